#!/usr/bin/env bash
# Sets up, builds and runs every test that needs no GPU, then says in plain words how it went.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
Usage: tools/test.sh [--asan | --tsan] [-R REGEX] [-j JOBS]

Runs tools/setup.sh, builds, and runs every test without the label "gpu".

  --asan     build and test with AddressSanitizer, LeakSanitizer and UBSan (preset asan, build-asan/)
  --tsan     build and test the runtime with ThreadSanitizer (preset tsan, build-tsan/); the plans for its end-to-end
             tests come from the release build's llmc, which is built first
  -R REGEX   only the tests whose name matches
  -j JOBS    build and test with so many jobs at once (default: one per core)
TEXT
}

preset=release
jobs=$(nproc)
select=()
while [ $# -gt 0 ]; do
  case $1 in
    --asan) preset=asan ;;
    --tsan) preset=tsan ;;
    -R) [ $# -gt 1 ] || { echo "test: -R needs a regular expression" >&2; exit 2; }; select=(-R "$2"); shift ;;
    -j) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "test: -j needs a number" >&2; exit 2; }; jobs=$2; shift ;;
    -h|--help) usage; exit 0 ;;
    *) echo "test: unknown argument '$1'; see tools/test.sh --help" >&2; exit 2 ;;
  esac
  shift
done
build=build
[ $preset = release ] || build=build-$preset

tools/setup.sh
started=$SECONDS

configure() {
  local log
  echo "test: configuring (preset $1)"
  log=$(cmake --preset "$@" 2>&1) || { printf '%s\n' "$log" >&2; exit 1; }
}
if [ $preset = tsan ]; then
  configure release
  echo "test: building the compiler"
  cmake --build --preset release -j "$jobs" --target llmc
  configure tsan "-DLLMC_TEST_LLMC=$PWD/build/bin/llmc"
else
  configure $preset
fi
echo "test: building"
cmake --build --preset $preset -j "$jobs"
built=$SECONDS

echo "test: testing"
report=$PWD/$build/test-report.xml
rm -f "$report"
status=0
ctest --preset $preset -j "$jobs" "${select[@]}" --no-tests=error --output-junit "$report" || status=$?

.venv/bin/python - "$report" $((built - started)) $((SECONDS - built)) $preset <<'PY'
import os
import sys
import xml.etree.ElementTree as xml

path, build_s, test_s, preset = sys.argv[1:]
print()
if not os.path.exists(path):
    sys.exit(f"FAILED: ctest wrote no report ({path})")
tests = xml.parse(path).getroot().findall("testcase")
failed = [t.get("name") for t in tests if t.get("status") == "fail"]
skipped = [t.get("name") for t in tests if t.get("status") in ("notrun", "disabled")]
slowest = sorted(tests, key=lambda t: -float(t.get("time", 0)))[:5]
print(f"preset {preset}: built in {build_s} s, tested in {test_s} s; slowest: "
      + ", ".join(f"{t.get('name')} {float(t.get('time', 0)):.0f} s" for t in slowest))
if skipped:
    print(f"not run ({len(skipped)}): {', '.join(skipped)}")
if failed:
    print(f"FAILED ({len(failed)} of {len(tests)}): {', '.join(failed)}")
else:
    print(f"PASSED: {len(tests) - len(skipped)} of {len(tests)} tests")
PY
exit $status
