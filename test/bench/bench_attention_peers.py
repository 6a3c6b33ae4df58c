#!/usr/bin/env python3
"""Attention of Qwen2.5-7B's shape (28 query heads, 4 KV heads of 128, bf16) on this GPU: ours beside the ways of PyTorch's
scaled_dot_product_attention (cuDNN, flash, …) that take it, in one run, by turns.

    test/bench/bench_attention_peers.py [--binaries FOLDER]      what test/gpu/prepare.py made, or this build

PyTorch's ways read keys and values that lie in one piece, ours pages of 16 tokens (for decode in disorder): theirs is the easier task.
Decode is one token a sequence. Every call of a graph has keys and values of its own, so that none comes from the cache.
"""
import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Q_HEADS, KV_HEADS, DIM = 28, 4, 128
PREFILL = (512, 2048, 8192)
DECODE = ((16, 1024), (64, 256), (256, 256), (256, 1024))
ROUNDS = 3


def ours(binary):
    """Microseconds by ("prefill", T) and ("decode", sequences, context)."""
    done = subprocess.run([binary, "attention", "prefill"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{binary} failed:\n{done.stdout}{done.stderr}")
    times = {}
    for line in done.stdout.splitlines():
        if m := re.match(r"prefill attention 1 x (\d+) +([\d.]+) us", line):
            times["prefill", int(m[1])] = float(m[2])
        elif (m := re.match(r"decode attention S=(\d+) +context=(\d+) +([\d.]+) us", line)) and "ragged" not in line:
            times["decode", int(m[1]), int(m[2])] = float(m[3])
    return times


def microseconds(torch, run, copies):
    """Of one run(i), in a graph of `copies` of them."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run(0)  # plans and workspaces are made outside of graphs
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(copies):
            run(i)
    best = []
    for _ in range(6):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best.append(start.elapsed_time(end) * 1e3 / copies)
    return statistics.median(best[1:])


def peer(torch, backend, batch, queries, context):
    """Microseconds of PyTorch's `backend`, or why it does not take the shape."""
    from torch.nn.attention import sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention
    bytes_each = 2 * batch * KV_HEADS * context * DIM * 2
    copies = max(1, min(28, (8 << 30) // bytes_each)) if queries == 1 else 4
    like = dict(device="cuda", dtype=torch.bfloat16)
    q = torch.randn(batch, Q_HEADS, queries, DIM, **like)
    k = torch.randn(copies, batch, KV_HEADS, context, DIM, **like)
    v = torch.randn(copies, batch, KV_HEADS, context, DIM, **like)

    def run(i):
        with sdpa_kernel([backend]):
            scaled_dot_product_attention(q, k[i], v[i], is_causal=queries > 1, enable_gqa=True)
    try:
        return microseconds(torch, run, copies)
    except RuntimeError as e:
        return str(e).splitlines()[0][:60]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", type=Path, default=None)
    args = parser.parse_args()
    binary = args.binaries / "bin/bench_cuda_kernels" if args.binaries else ROOT / "build/test/bin/bench_cuda_kernels"
    import torch
    from torch.nn.attention import SDPBackend
    backends = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    shapes = [("prefill", t) for t in PREFILL] + [("decode", *d) for d in DECODE]
    mine, theirs = {}, {}
    for _ in range(ROUNDS):
        for shape, us in ours(binary).items():
            mine.setdefault(shape, []).append(us)
        for shape in shapes:
            batch, queries, context = (1, shape[1], shape[1]) if shape[0] == "prefill" else (shape[1], 1, shape[2])
            for name, backend in backends.items():
                theirs.setdefault((shape, name), []).append(peer(torch, backend, batch, queries, context))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}; medians of {ROUNDS} rounds")
    for shape in shapes:
        if shape not in mine:
            sys.exit(f"{binary} has no line for {shape}")
        us = statistics.median(mine[shape])
        line = f"{' '.join(map(str, shape)):18} ours {us:8.1f} us"
        for name in backends:
            them = theirs[shape, name]
            failed = [t for t in them if isinstance(t, str)]
            line += f"; {name}: {failed[0]}" if failed else f"; {name} {statistics.median(them):8.1f} us, {statistics.median(them) / us:.2f} of ours"
        print(line)


if __name__ == "__main__":
    main()
