#!/usr/bin/env python3
"""SmolLM2-135M on this CPU: decode and prefill speed of llmrt, as shares of what the machine can do in this
very run, and beside llama.cpp on the same file with the same threads when its llama-bench is given.

    test/bench/bench_smollm2.py [--llama-bench PATH] [--threads N] [--rounds N] [--json FILE]

Rounds are interleaved (ours, theirs, ours, …) and medians count; prompts are random, so that no cache helps.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/e2e"))

PARAMETERS = 134_515_008        # the tied table counts once: it is read as lm_head
PREFILL, DECODE = 512, 128
MATRIX_PARAMETERS = 106_168_320  # all layers' matrices: what a prefilled token multiplies (lm_head runs once)


def read_bandwidth(threads: int) -> float:
    """Bytes per second of `threads` threads each reading its own 256 MB (a dot product, which BLAS streams)."""
    import numpy as np
    arrays = [np.random.default_rng(i).random(1 << 26, dtype=np.float32) for i in range(threads)]
    best = 0.0
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(8):
            start = time.perf_counter()
            list(pool.map(lambda a: np.dot(a, a), arrays))
            best = max(best, sum(a.nbytes for a in arrays) / (time.perf_counter() - start))
    return best


def sgemm_peak(n: int = 2048) -> float:
    """FLOP per second of an n³ float32 product with as many threads as BLAS was started with."""
    import numpy as np
    a, b = (np.random.default_rng(i).random((n, n), dtype=np.float32) for i in range(2))
    best = 0.0
    for _ in range(4):
        start = time.perf_counter()
        a @ b
        best = max(best, 2 * n**3 / (time.perf_counter() - start))
    return best


def measured_alone(what: str, threads: int) -> float:
    """Runs one of the two above in a process of its own: BLAS reads its thread count once."""
    blas = 1 if what == "read_bandwidth" else threads
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import bench_smollm2 as b; print(b.{what}({threads if blas == 1 else ''}))"
    env = {**os.environ, "OPENBLAS_NUM_THREADS": str(blas), "PYTHONDONTWRITEBYTECODE": "1"}
    return float(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout)


class Ours:
    """A plan served with `threads` threads."""

    def __init__(self, folder: str, dtype: str, threads: int):
        import harness
        import numpy as np
        self.random = np.random.default_rng(1)
        plan = harness.compile_plan(harness.SMOLLM2, f"{folder}/{dtype}.fb", 1, 1, "--max-batched-tokens", PREFILL, "--max-model-len", 2048,
                                    dtype=dtype)
        self.server = harness.Server(plan, "--threads", threads)

    def seconds(self, prompt_tokens: int, new_tokens: int) -> float:
        prompt = self.random.integers(1000, 40000, prompt_tokens).tolist()
        start = time.perf_counter()
        r = self.server.post("/v1/completions", model=self.server.model, prompt=prompt, max_tokens=new_tokens, temperature=0, ignore_eos=True)
        took = time.perf_counter() - start
        assert r.status_code == 200 and r.json()["usage"]["completion_tokens"] == new_tokens, r.text
        return took

    def decode(self) -> float:
        """Tokens per second after the first, at a context of 8 to 8 + DECODE."""
        return DECODE / (self.seconds(8, DECODE + 1) - self.seconds(8, 1))

    def prefill(self) -> float:
        """Prompt tokens per second until the first token stands, everything included."""
        return PREFILL / self.seconds(PREFILL, 1)

    def close(self):
        self.server.http.close()
        self.server.stop()


def llama_bench(program: str, gguf: str, threads: int) -> tuple:
    """(decode, prefill) in tokens per second."""
    out = subprocess.run([program, "-m", gguf, "-p", str(PREFILL), "-n", str(DECODE), "-t", str(threads), "-r", "1", "-o", "json"],
                         capture_output=True, text=True, check=True).stdout
    rows = json.loads(out)
    return (next(r["avg_ts"] for r in rows if r["n_gen"] == DECODE), next(r["avg_ts"] for r in rows if r["n_prompt"] == PREFILL))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama-bench", help="llama.cpp's llama-bench, to run beside")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtypes", default="bfloat16,auto", help="plans to measure (default: bfloat16,auto)")
    parser.add_argument("--json", help="also write the figures here")
    args = parser.parse_args()
    import harness
    gguf = str(next(harness.SMOLLM2.glob("*.gguf")))
    bandwidth, peak = measured_alone("read_bandwidth", args.threads), measured_alone("sgemm_peak", args.threads)
    figures = {"threads": args.threads, "read_bandwidth": bandwidth, "sgemm_peak": peak, "plans": {}}
    print(f"{args.threads} threads: read {bandwidth / 1e9:.1f} GB/s, sgemm {peak / 1e9:.0f} GFLOP/s")
    theirs = {"decode": [], "prefill": []}
    with tempfile.TemporaryDirectory() as folder:
        for dtype in args.dtypes.split(","):
            ours = Ours(folder, dtype, args.threads)
            ours.seconds(PREFILL, 8)
            runs = {"decode": [], "prefill": []}
            try:
                for _ in range(args.rounds):
                    runs["decode"].append(ours.decode())
                    runs["prefill"].append(ours.prefill())
                    if args.llama_bench:
                        decode, prefill = llama_bench(args.llama_bench, gguf, args.threads)
                        theirs["decode"].append(decode)
                        theirs["prefill"].append(prefill)
            finally:
                ours.close()
            figures["plans"][dtype] = {k: statistics.median(v) for k, v in runs.items()}
    if args.llama_bench:
        figures["llama.cpp"] = {k: statistics.median(v) for k, v in theirs.items()}
    for dtype, f in figures["plans"].items():
        decode_share = f["decode"] * PARAMETERS * 2 / bandwidth
        prefill_share = f["prefill"] * 2 * MATRIX_PARAMETERS / peak
        f.update(decode_share=decode_share, prefill_share=prefill_share)
        line = f"llmrt {dtype:9} decode {f['decode']:7.1f} tok/s"
        if dtype == "bfloat16":
            line += f" ({decode_share:.0%} of the read bandwidth)"
        line += f", prefill {PREFILL}: {f['prefill']:7.1f} tok/s ({prefill_share:.0%} of sgemm)"
        if args.llama_bench:
            other = figures["llama.cpp"]
            line += f"; {f['decode'] / other['decode']:.2f}× and {f['prefill'] / other['prefill']:.2f}× llama.cpp"
        print(line)
    if args.llama_bench:
        other = figures["llama.cpp"]
        print(f"llama.cpp       decode {other['decode']:7.1f} tok/s, prefill {PREFILL}: {other['prefill']:7.1f} tok/s (the same Q4_1 file)")
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
