#!/usr/bin/env bash
# Every test that needs a GPU: kernels; goldens through the CUDA backend for all layouts (ranks share the GPUs there are), some
# of them over every way to talk; ranks that stop; the same text from steps scheduled ahead, and alone or among 64; bf16 logits
# beside transformers' for small models and, with random weights, for layers of real size; random shapes, layouts and batches beside
# the CPU backend. tools/gpu-sanitize.sh is apart.
#
#   tools/gpu-test.sh             on a machine that has built llmc with nvcc
#   tools/gpu-test.sh FOLDER      on any GPU machine, with what test/gpu/prepare.py FOLDER made elsewhere
set -euo pipefail
. "$(dirname "$0")/gpu-folder.sh"
nvidia-smi -L || { echo "gpu-test: no NVIDIA driver here; these tests need a GPU" >&2; exit 1; }

failed=0
# Most of their time these two compute on the CPU what kernels are held to: others get done beside them.
said=$(mktemp)
{ "$folder/bin/cuda_kernels_test" --gtest_brief=1 && "$folder/bin/cuda_communicators_test" --gtest_brief=1; } >"$said" 2>&1 &
kernels=$!
trap 'kill $kernels 2>/dev/null || true; rm -f "$said"' EXIT
"$python" test/gpu/check_goldens.py "$folder" || failed=1
for way in peer host; do
  "$python" test/gpu/check_goldens.py "$folder" --collectives $way llama-bias qwen3-7 || failed=1
done
"$python" test/gpu/check_ahead.py "$folder" || failed=1
wait $kernels || failed=1
cat "$said"
"$python" test/gpu/check_faults.py "$folder" || failed=1 # alone: it has deadlines
mapfile -t models < <(find "$folder/big" "$folder/models" -name 'bf16-1x1.fb' -printf '%h\n' | sort)
"$python" test/gpu/check_bf16.py --binaries "$folder" "${models[@]}" || failed=1
"$python" test/gpu/check_batch.py "$folder" || failed=1
"$python" test/gpu/check_shapes.py "$folder" || failed=1
[ $failed = 0 ] && echo "gpu-test: all passed" || echo "gpu-test: FAILED"
exit $failed
