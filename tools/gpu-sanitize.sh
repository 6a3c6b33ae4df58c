#!/usr/bin/env bash
# compute-sanitizer over the GPU code: memcheck (accesses out of bounds, misaligned, of freed memory) and racecheck (shared
# memory that warps or blocks of a cluster touch without meeting in between), over kernel tests and over whole small models.
#
#   tools/gpu-sanitize.sh             on a machine that has built llmc with nvcc
#   tools/gpu-sanitize.sh FOLDER      on any GPU machine, with what test/gpu/prepare.py FOLDER made elsewhere
#
# COMPUTE_SANITIZER names the tool, of version 2026.1 or later (default: the one of .venv, if `.venv/bin/pip install
# nvidia-cuda-sanitizer-api` has put it there, on the PATH or of the CUDA toolkit). Racecheck does not see that a thread
# which has waited for its asynchronous copies, and then met the cluster, has made them known to the other blocks (two small
# kernels show it first: test/unit/cuda/cluster_after_copy.cu). So the decode attention, the one kernel of that kind, is
# checked with --racecheck-memcpy-async no, all others in full. Not here: sums in one shot, whose kernels wait for each other
# where the tool runs one at a time.
set -euo pipefail
. "$(dirname "$0")/gpu-folder.sh"
sanitizer=${COMPUTE_SANITIZER:-$(find .venv/lib -path '*/compute-sanitizer/compute-sanitizer' 2>/dev/null | head -1)}
sanitizer=${sanitizer:-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}
version=$("$sanitizer" --version | sed -n 's/^Version \([0-9.]*\).*/\1/p')
[ -n "$version" ] || { echo "gpu-sanitize: $sanitizer does not run; set COMPUTE_SANITIZER to a compute-sanitizer" >&2; exit 1; }
if [ "${version%%.*}" -lt 2026 ]; then
  echo "gpu-sanitize: $sanitizer is of version $version, whose racecheck fails on these kernels: pip install nvidia-cuda-sanitizer-api" \
    "(2026.1 or later) and name it by COMPUTE_SANITIZER" >&2
  exit 1
fi
echo "compute-sanitizer $version"
export CUDA_MODULE_LOADING=LAZY # the kernel tests load all kernels unless told otherwise, and the tool looks at all that are loaded
scratch=$(mktemp -d)
# Whoever stops this script stops the tools, and what they look at, too: timeout hands the signal on.
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 143' INT TERM

# start NAME COMMAND …: the tool in the background, on the GPUs in turn; a line when it ends, and what it found where it failed.
gpus=$(nvidia-smi -L | wc -l)
at_once=$(($(nproc) / 2 > 12 ? 12 : $(nproc) / 2 + 1))
started=0
start() {
  local name=$1
  shift
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
  started=$((started + 1))
  (
    export CUDA_VISIBLE_DEVICES=$((started % gpus))
    begin=$SECONDS
    status=0
    timeout 400 "$sanitizer" --error-exitcode 9 "$@" >"$scratch/$started" 2>&1 &
    tool=$!
    trap 'kill "$tool"; exit 143' INT TERM
    trap - EXIT
    wait "$tool" || status=$?
    summary=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$scratch/$started" | tail -1 | sed 's/^=* *//' || true)
    if [ "$status" = 0 ] && [ -n "$summary" ]; then
      echo "ok   $name: $summary ($((SECONDS - begin)) s)"
      touch "$scratch/$started.ok"
    else
      said=$(grep -vE '^(Note|\[[ =-]|Running)' "$scratch/$started" | head -40 | cut -c1-300 || true)
      printf '%s\n' "FAIL $name: status $status after $((SECONDS - begin)) s; ${summary:-no summary}" "$said"
    fi
  ) &
}
# all NAME COMMAND …: the three ways to look at it.
all() {
  local name=$1
  shift
  start "memcheck $name" --tool memcheck "$@"
  start "racecheck $name" --tool racecheck --kernel-name-exclude kernel_substring=decode_kernel "$@"
  case $name in
    Attention*|*-bf16-*)
      start "racecheck $name, decode_kernel" --tool racecheck --racecheck-memcpy-async no --kernel-name kernel_substring=decode_kernel "$@" ;;
  esac
}

# shown WORDS PROGRAM WAY: what racecheck says of a kernel that is known to be in order.
shown() {
  local said
  said=$("$sanitizer" --tool racecheck "$folder/bin/$2" "$3" | grep 'RACECHECK SUMMARY' | sed 's/^=* *//' || true)
  echo "$1: ${said:-no answer}"
}
shown "a cluster's writes over what was stored" cluster_after_copy stored
shown "a cluster's writes over what was copied" cluster_after_copy copied
shown "a bulk copy over what a warp has read, and met" refill_after_warp met
shown "a bulk copy over what a warp has read, fenced, and met" refill_after_warp fenced
# The tests compute their references on the CPU meanwhile, so they go side by side.
for filter in 'Attention.HeadDims' 'Attention.DecodeSplits:Attention.UnevenGroupsAndWideGroups' 'Attention.DecodeOfRaggedBatches' \
              'Attention.PrefillChunksAndWindows' 'Attention.PairedPrefill' 'SkinnyLinear.Ways:SkinnyLinear.OddKAndMixedTypes' 'FusedLinear.*' 'WideLinear.Gates' 'GatedLinear.Activations' \
              'Narrow.FeedForwardOfFewColumns' 'Narrow.AttentionShapes' 'Rows.*:Rope.*:BeginStep.*:FollowStep.*' \
              'Sample.GreedyTakesTheLowestOfTies:Sample.NanRowSaysSo:Sample.FewRowsOfASmallVocabulary'; do
  all "${filter//\*/all}" "$folder/bin/cuda_kernels_test" --gtest_brief=1 --gtest_filter="$filter"
done
printf '[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20],[7],[3,2,1]]' >"$scratch/prompts.json"
for plan in qwen3-7-7/float32-1x1 qwen3-7-7/bf16-1x1 llama-tied/bf16-3x2 mistral-window-hd224/bf16-1x1; do
  all "${plan//\//-}" "$folder/bin/llmrt" run "$folder/models/$plan.fb" --backend cuda --share-devices \
    --prompt-file "$scratch/prompts.json" --max-tokens 6 --seed 3 --ignore-eos --json --collective-timeout 300
done
wait

passed=$(find "$scratch" -name '*.ok' | wc -l)
echo "gpu-sanitize: $passed of $started clean"
[ "$passed" = "$started" ]
