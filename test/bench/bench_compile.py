#!/usr/bin/env python3
"""Compile time of `llmc compile` as a user sees it (whole process), over layers x ranks.

Prints the median of several runs for the Qwen2.5-72B shape: 8 ranks against the goal of 1 s, and a table over layers
and ranks with the time per (layer x rank), which stays flat where the compiler is linear.

    test/bench/bench_compile.py [--llmc build/bin/llmc] [--runs 5]
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def topology(path, ranks):
    device = {"kind": "cuda", "name": "GPU", "memory": "300GB", "reserved": "768MiB", "capability": "9.0",
              "memory_bandwidth": "4.8TB/s", "peak_flops": "989TFLOPS"}
    link = {"kind": "NV18", "bandwidth": "400GB/s", "latency": "2us", "p2p": True}
    with open(path, "w") as f:
        json.dump({"name": "bench", "device_defaults": device, "default_link": link,
                   "devices": [{"id": f"gpu{i}"} for i in range(ranks)]}, f)


def measure(llmc, folder, layers, tp, pp, runs):
    config = json.load(open(os.path.join(ROOT, "test/golden/configs/Qwen2.5-72B/config.json")))
    config["num_hidden_layers"] = layers
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    topo = os.path.join(folder, "topo.json")
    topology(topo, tp * pp)
    command = [llmc, "compile", "--load-format", "dummy", "--model", folder, "--topo", topo, "--tp", str(tp), "--pp", str(pp),
               "-o", os.path.join(folder, "plan.fb")]
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmc", default=os.path.join(ROOT, "build/bin/llmc"))
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        best = measure(args.llmc, folder, 80, 8, 1, args.runs)
        print(f"Qwen2.5-72B shape, tp 8: {best:.3f} s = {best / 1.0:.2f} of the goal of 1 s")
        print(f"{'layers':>6} {'ranks':>6} {'seconds':>8} {'us/(layer x rank)':>18}")
        base = measure(args.llmc, folder, 1, 1, 1, args.runs)
        print(f"{1:6} {1:6} {base:8.3f} {'(start-up)':>18}")
        for layers in (20, 40, 80):
            for tp in (1, 2, 4, 8, 16, 32, 64):
                t = measure(args.llmc, folder, layers, tp, 1, args.runs)
                print(f"{layers:6} {tp:6} {t:8.3f} {(t - base) / (layers * tp) * 1e6:18.1f}")


if __name__ == "__main__":
    main()
