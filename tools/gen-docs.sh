#!/usr/bin/env bash
# Writes docs/reference/ from the .td files: one page a dialect, one a phase's passes. With --check it writes nothing
# and fails when a page is stale (the test suite calls it so).
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  -h|--help) echo "Usage: tools/gen-docs.sh [--check]"; exit 0 ;;
  ''|--check) ;;
  *) echo "gen-docs: unknown argument '$1'; see tools/gen-docs.sh --help" >&2; exit 2 ;;
esac

llvm=${LLVM_PREFIX:-/usr/lib/llvm-19}
tblgen=$llvm/bin/mlir-tblgen
[ -x "$tblgen" ] || { echo "gen-docs: $tblgen is missing: install mlir-19-tools (tools/setup.sh does)" >&2; exit 1; }
out=docs/reference
[ "${1:-}" != --check ] || out=$(mktemp -d)
mkdir -p "$out"

note='<!-- Made by tools/gen-docs.sh from the .td files: edit those. -->'
for entry in llm:LLM dist:Dist exec:Exec; do
  folder=${entry%%:*} prefix=${entry##*:}
  { echo "$note"; "$tblgen" -gen-dialect-doc -dialect="$folder" -I . -I "$llvm/include" "dialects/$folder/${prefix}Ops.td"; } >"$out/dialect-$folder.md"
  { echo "$note"; echo; echo "# Passes of the $folder phase"; echo
    "$tblgen" -gen-pass-doc -I . -I "$llvm/include" "passes/$folder/Passes.td"; } >"$out/passes-$folder.md"
done

if [ "${1:-}" = --check ]; then
  if ! diff -ru docs/reference "$out"; then
    rm -rf "$out"
    echo "gen-docs: docs/reference is stale: run tools/gen-docs.sh and commit what it writes" >&2
    exit 1
  fi
  rm -rf "$out"
  echo "docs/reference is up to date"
fi
