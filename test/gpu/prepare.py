#!/usr/bin/env python3
"""Makes everything that the GPU tests need into a folder that can be carried to a GPU machine: binaries, the libraries
that machine may lack, golden checkpoints, outlines of checkpoints of real size, random shapes, and their plans for CUDA devices.

    test/gpu/prepare.py OUT [--big NAME[:LAYERS] …] [--shapes N] [--smollm2]         then, there: tools/gpu-test.sh OUT

Outlines (names of test/golden/configs) take no room until they are filled there: for check_bf16.py a few layers of four
models and all of SmolLM2's shape, unless --big names others; with all layers, also for `llmrt bench`. --smollm2 takes the real SmolLM2 along (92 MB), as
`tools/setup.sh` has put it into .cache.

Needs a build with nvcc (build/bin, build/lib, build/test/bin). No GPU is needed here.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/golden/models"))
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import big_model  # noqa: E402
import gguf_models  # noqa: E402
import layouts  # noqa: E402
import make_models  # noqa: E402
import shapes  # noqa: E402
import specs  # noqa: E402

BUILD = Path(os.environ.get("LLMC_BUILD_DIR", ROOT / "build"))
LAYOUTS = ((1, 1), (2, 1), (1, 2), (3, 2), (2, 2), (5, 1))
BF16_LAYOUTS = ((1, 1), (3, 2), (2, 2), (5, 1))
BIG = ("Qwen2.5-7B:4", "Qwen3-8B:3", "Llama-3.1-8B:3", "Mistral-7B-v0.3:3", "SmolLM2-135M:30")
CAPABILITY = None  # --capability
SMOLLM2 = ROOT / ".cache/models/SmolLM2-135M-Instruct"
# Bare Ubuntu images have these neither installed nor of the right version.
CARRIED_LIBRARIES = ("simdjson", "utf8proc", "pcre2", "spdlog", "fmt")


def capability_here():
    """Of this machine's GPU, or Hopper's: plans choose kernels by it, and run where it is the same or higher."""
    try:
        query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "9.0"


def topology(path, devices, memory, capability=None):
    device = {"kind": "cuda", "name": "NVIDIA GPU", "memory": memory, "reserved": "512MiB", "capability": capability or CAPABILITY,
              "memory_bandwidth": "4.8TB/s", "peak_flops": "989TFLOPS"}
    link = {"kind": "NV18", "bandwidth": "400GB/s", "latency": "2us", "p2p": True}
    with open(path, "w") as f:
        json.dump({"name": "GPU tests", "device_defaults": device, "default_link": link,
                   "devices": [{"id": f"gpu{i}"} for i in range(devices)]}, f)


def copy_binaries(out):
    (out / "bin").mkdir(parents=True, exist_ok=True)
    (out / "lib").mkdir(exist_ok=True)
    shutil.copy2(BUILD / "bin/llmrt", out / "bin")
    shutil.copy2(BUILD / "lib/libllmrt_cuda.so", out / "lib")
    for test in ("cuda_kernels_test", "cuda_communicators_test", "cluster_after_copy", "refill_after_warp", "bench_cuda_kernels",
                 "bench_collectives"):
        shutil.copy2(BUILD / "test/bin" / test, out / "bin")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", out / "lib/libfailing_device.so", Path(__file__).with_name("failing_device.c"),
                    "-ldl"], check=True)
    for binary in (out / "bin/llmrt", out / "lib/libllmrt_cuda.so"):
        subprocess.run(["strip", "--strip-debug", binary], check=True)
        for line in subprocess.run(["ldd", binary], capture_output=True, text=True).stdout.splitlines():
            name, _, rest = line.strip().partition(" => ")
            if rest and any(word in name for word in CARRIED_LIBRARIES):
                shutil.copy2(rest.split()[0], out / "lib" / name)


def compile_plan(model, name, tp, pp, dtype, topo, *more):
    plan = model / name
    done = subprocess.run([BUILD / "bin/llmc", "compile", "--model", model, "--topo", topo, "--tp", str(tp), "--pp", str(pp),
                           "--dtype", dtype, "-o", plan, *more], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{plan} cannot be made: {done.stderr}")


def prepare_big(out, spec):
    name, _, layers = spec.partition(":")
    folder = out / "big" / name
    big_model.outline(name, str(folder), int(layers) if layers else None)
    topo = out / "big-topo.json"
    config = json.loads((folder / "config.json").read_text())
    longest = min(10240, config["max_position_embeddings"])
    few = layouts.legal(name, BF16_LAYOUTS, config["num_attention_heads"], config["num_hidden_layers"])
    for tp, pp in few if layers else LAYOUTS:
        # Ranks that share one GPU of 141 GB share its memory; plans of few layers run several at a time. NCCL's part of it is
        # planned for every rank.
        topology(topo, tp * pp, f"{max((16 if layers else 130) * 1024 // (tp * pp), 5120)}MiB")
        compile_plan(folder, f"bf16-{tp}x{pp}.fb", tp, pp, "bfloat16", topo, "--max-model-len", str(longest), "--max-num-seqs", "256",
                     "--max-batched-tokens", "8192")
    if name == "SmolLM2-135M":  # for check_batch.py
        topology(topo, 1, "8GiB")
        compile_plan(folder, "float32-1x1.fb", 1, 1, "float32", topo, "--max-model-len", "2048", "--max-num-seqs", "64")
    # A hole of gigabytes would be carried as zeros: the outline is made again there, by the same code.
    (folder / "model.safetensors").unlink()
    (folder / "outline.json").write_text(json.dumps({"name": name, "layers": int(layers) if layers else None}))


def prepare_golden(out, name, topo):
    folder = out / "models" / name
    if not folder.exists():
        if name in specs.BY_NAME:
            make_models.build(specs.BY_NAME[name], str(folder))
        else:
            gguf_models.build(gguf_models.BY_NAME[name], str(folder))
    for tp, pp in layouts.legal(name, LAYOUTS, *layouts.shape(name)):
        compile_plan(folder, f"float32-{tp}x{pp}.fb", tp, pp, "float32", topo, "--max-batched-tokens", "64", "--max-num-seqs", "64")
        if name in specs.BY_NAME and (tp, pp) in BF16_LAYOUTS:  # transformers reads these as they are
            compile_plan(folder, f"bf16-{tp}x{pp}.fb", tp, pp, "bfloat16", topo, "--max-batched-tokens", "256", "--max-num-seqs", "64")


def prepare_shapes(out, cases):
    """The folders of cases for check_shapes.py, with their plans: [(case, its folder)]."""
    if not (BUILD / "bin/llmc").exists():
        sys.exit(f"{BUILD}/bin has no llmc, which makes the plans: set LLMC_BUILD_DIR to a build's folder")

    def llmc(*words):
        done = subprocess.run([BUILD / "bin/llmc", *map(str, words)], capture_output=True, text=True)
        return done.returncode, done.stderr
    topologies = {"cuda": out / "shapes-topo.json", "cpu": out / "shapes-cpu.json"}
    cpu = {"id": "cpu0", "kind": "cpu", "memory": "32GiB", "memory_bandwidth": "100GB/s", "peak_flops": "1TFLOPS"}
    topologies["cpu"].write_text(json.dumps({"name": "one CPU rank", "devices": [cpu]}))
    made = []
    for of in cases:
        # The ranks of a few cases run side by side on one GPU. Much of it is NCCL's in plans, and taken only where no rank shares a GPU.
        ranks = of.tp * of.pp
        memory = 2048 + 320 * ranks + 5 * shapes.weights(of.config) // ranks // 2**20
        topology(topologies["cuda"], ranks, f"{memory}MiB", CAPABILITY or capability_here())
        refused = shapes.prepare(of, out / "shapes" / of.name, topologies, llmc)
        if refused:
            sys.exit(f"{of.said()}: {refused}")
        made.append((of, out / "shapes" / of.name))
    return made


def prepare_smollm2(out, topo):
    folder = out / "smollm2"
    folder.mkdir(exist_ok=True)
    for file in SMOLLM2.glob("*.gguf"):
        shutil.copy2(file, folder)
    for tp, pp in (1, 1), (3, 2):
        compile_plan(folder, f"float32-{tp}x{pp}.fb", tp, pp, "float32", topo, "--max-num-seqs", "64", "--max-model-len", "2048")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=lambda f: Path(f).resolve())
    parser.add_argument("--big", nargs="*", default=BIG)
    parser.add_argument("--smollm2", action="store_true")
    parser.add_argument("--shapes", type=int, default=40,
                        help="random cases for check_shapes.py, beside those of real shapes (default: %(default)s)")
    parser.add_argument("--capability", default=capability_here(), help="of the GPUs that the plans are for (default: %(default)s)")
    args = parser.parse_args()
    global CAPABILITY
    CAPABILITY = args.capability
    out = args.out
    copy_binaries(out)
    for spec in args.big:
        prepare_big(out, spec)
    topo = out / "topo.json"
    topology(topo, 12, "3GiB")
    for name in [*specs.BY_NAME, *gguf_models.BY_NAME]:
        prepare_golden(out, name, topo)
    prepare_shapes(out, [*map(shapes.case, range(args.shapes)), *(shapes.case(0, name) for name in shapes.REAL)])
    if args.smollm2:
        prepare_smollm2(out, topo)
    print(f"{out}: {sum(f.stat().st_size for f in out.rglob('*') if f.is_file()) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
