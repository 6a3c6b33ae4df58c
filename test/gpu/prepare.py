#!/usr/bin/env python3
"""Makes everything that the GPU tests need into a folder that can be carried to a GPU machine: binaries, the libraries
that machine may lack, golden checkpoints, and their plans for CUDA devices.

    test/gpu/prepare.py OUT [--big NAME[:LAYERS] …]            then, there: tools/gpu-test.sh OUT

--big adds outlines of real-size checkpoints (names of test/golden/configs) with bf16 plans, for check_bf16.py and
`llmrt bench`; they take no room until they are filled there.

Needs a build with nvcc (build/bin, build/lib, build/test/bin). No GPU is needed here.
"""
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
import make_models  # noqa: E402
import specs  # noqa: E402

BUILD = Path(os.environ.get("LLMC_BUILD_DIR", ROOT / "build"))
LAYOUTS = ((1, 1), (2, 1), (1, 2), (3, 2), (2, 2), (5, 1))
# Bare Ubuntu images have these neither installed nor of the right version.
CARRIED_LIBRARIES = ("simdjson", "utf8proc", "pcre2", "spdlog", "fmt")


def topology(path, devices, memory):
    device = {"kind": "cuda", "name": "NVIDIA GPU", "memory": memory, "reserved": "512MiB", "capability": "8.0",
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
    for test in ("cuda_kernels_test", "bench_cuda_kernels", "bench_collectives"):
        shutil.copy2(BUILD / "test/bin" / test, out / "bin")
    for binary in (out / "bin/llmrt", out / "lib/libllmrt_cuda.so"):
        subprocess.run(["strip", "--strip-debug", binary], check=True)
        for line in subprocess.run(["ldd", binary], capture_output=True, text=True).stdout.splitlines():
            name, _, rest = line.strip().partition(" => ")
            if rest and any(word in name for word in CARRIED_LIBRARIES):
                shutil.copy2(rest.split()[0], out / "lib" / name)


def compile_plan(model, name, tp, pp, dtype, topo, *more):
    plan = model / name
    subprocess.run([BUILD / "bin/llmc", "compile", "--model", model, "--topo", topo, "--tp", str(tp), "--pp", str(pp),
                    "--dtype", dtype, "-o", plan, *more], check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def prepare_big(out, spec, layouts):
    name, _, layers = spec.partition(":")
    folder = out / "big" / name
    big_model.outline(name, str(folder), int(layers) if layers else None)
    topo = out / "big-topo.json"
    for tp, pp in layouts:
        # Ranks that share one GPU of 141 GB share its memory.
        topology(topo, tp * pp, f"{130 // (tp * pp)}GiB")
        compile_plan(folder, f"bf16-{tp}x{pp}.fb", tp, pp, "bfloat16", topo, "--max-model-len", "10240", "--max-num-seqs", "256",
                     "--max-batched-tokens", "8192")
    # A hole of gigabytes would be carried as zeros: the outline is made again there, by the same code.
    (folder / "model.safetensors").unlink()
    (folder / "outline.json").write_text(json.dumps({"name": name, "layers": int(layers) if layers else None}))


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out = Path(sys.argv[1]).resolve()
    copy_binaries(out)
    if len(sys.argv) > 3 and sys.argv[2] == "--big":
        for spec in sys.argv[3:]:
            prepare_big(out, spec, ((1, 1), (2, 1), (1, 2), (3, 2), (2, 2)))
    topo = out / "topo.json"
    topology(topo, 12, "2GiB")
    models = list(specs.BY_NAME) + list(gguf_models.BY_NAME)
    for name in models:
        folder = out / "models" / name
        if not folder.exists():
            if name in specs.BY_NAME:
                make_models.build(specs.BY_NAME[name], str(folder))
            else:
                gguf_models.build(gguf_models.BY_NAME[name], str(folder))
        if name in specs.BY_NAME:
            config = specs.BY_NAME[name].config
            heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
        else:
            heads, layers = gguf_models.BY_NAME[name].heads, gguf_models.BY_NAME[name].layers
        for tp, pp in LAYOUTS:
            if tp <= heads and pp <= layers:
                compile_plan(folder, f"float32-{tp}x{pp}.fb", tp, pp, "float32", topo, "--max-batched-tokens", "64",
                             "--max-num-seqs", "64")
    print(f"{out}: {sum(f.stat().st_size for f in out.rglob('*') if f.is_file()) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
