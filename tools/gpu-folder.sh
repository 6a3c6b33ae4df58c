# For gpu-test.sh and gpu-sanitize.sh, which source it with their arguments: --help, or $folder with what test/gpu/prepare.py made (from
# this build where none is named), $python, and the libraries that the folder's binaries need.
cd "$(dirname "$0")/.."
case ${1:-} in
  -h|--help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "tools/${0##*/}"; exit 0 ;;
esac
python=${PYTHON:-python3}
[ ! -x .venv/bin/python ] || python=${PYTHON:-.venv/bin/python}
folder=${1:-}
if [ -z "$folder" ]; then
  folder=build/gpu-test
  "$python" test/gpu/prepare.py "$folder"
fi
folder=$(realpath "$folder")
export LD_LIBRARY_PATH=$folder/lib:/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
