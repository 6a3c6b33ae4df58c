"""What keeps `llmrt` from starting on devices, said at once and in words: no driver or one too old, a library of CUDA's that is missing,
a port that is taken, and, with GPUs that null_gpus.c makes up, a machine that is not the plan's. The rest of what is refused is in
test/unit/exec/placement_test.cpp."""
import json
import os
import re
import shutil
import socket
import subprocess

import pytest

import harness

GPUS = harness.ROOT / "examples/topo/2x-h200.json"
RUN = ("--prompt-ids", "1", "--max-tokens", 1)


@pytest.fixture(scope="module")
def plan(plans):
    return plans("llama-tied", 2, 1, "--max-batched-tokens", 64, "--max-num-seqs", 8, topo=GPUS)


def beside(folder, library):
    """llmrt in a folder of its own, with this library for its CUDA backend."""
    (folder / "bin").mkdir()
    (folder / "lib").mkdir()
    program = shutil.copy2(harness.PROGRAMS["llmrt"], folder / "bin")
    if library:
        shutil.copy2(library, folder / "lib/libllmrt_cuda.so")
    return program


def refused(program, *args):
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=60 * harness.SLOW)
    assert done.returncode == 1, done
    return done.stderr


def test_no_driver(plan):
    if os.path.exists("/dev/nvidiactl") or not (harness.BUILD / "lib/libllmrt_cuda.so").exists():
        pytest.skip("this machine has a GPU, or the build no CUDA")
    harness.refused("llmrt", "run", plan, *RUN, "--backend", "cuda",
                    says=[r"CUDA backend cannot be used: there is no NVIDIA driver \(libcuda.so.1 does not load\): install one for CUDA \d+\.\d"])


def test_a_library_is_missing(plan, tmp_path):
    """The backend's library is there, but one that it needs is not: the loader's words name that one."""
    gone, library = tmp_path / "libnccl_gone.so.2", tmp_path / "library.so"
    subprocess.run(["cc", "-shared", "-o", gone, "-x", "c", "/dev/null"], check=True)
    subprocess.run(["cc", "-shared", "-o", library, "-Wl,--no-as-needed", gone, "-x", "c", "/dev/null"], check=True)
    gone.unlink()
    said = refused(beside(tmp_path, library), "run", plan, *RUN, "--backend", "cuda")
    assert "libnccl_gone.so.2: cannot open shared object file" in said and "install the CUDA 13 runtime" in said, said


def test_a_library_of_another_version(plan, tmp_path):
    library = tmp_path / "library.so"
    subprocess.run(["cc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    assert "of another version of llmrt" in refused(beside(tmp_path, library), "run", plan, *RUN, "--backend", "cuda")


def test_the_port_is_tried_first(models, tmp_path):
    """Before weights are looked for, which would take minutes to load: here there are none any more."""
    model = shutil.copytree(models("llama-tied"), tmp_path / "model")
    plan = harness.compile_plan(model, model / "plan.fb", 2, 1, "--max-batched-tokens", 64, "--max-num-seqs", 8, topo=GPUS)
    for weights in model.glob("*.safetensors"):
        weights.unlink()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        harness.refused("llmrt", "serve", plan, "--port", port,
                        says=[f"cannot listen on 127.0.0.1:{port}: .*another server has this port, choose one with --port"])
    harness.refused("llmrt", "serve", plan, "--backend", "cpu", "--port", port, says=["cannot open the weight file"])


# --- machines of made-up GPUs: the CUDA backend whole, but for what devices compute ------------------------------------


def said_on(machine, plan, *more):
    """What `llmrt run` says when it refuses this machine."""
    return harness.refused("llmrt", "run", plan, *RUN, "--backend", "cuda", *more, env=machine)


def runs_on(machine, plan, *more):
    done = harness.run("llmrt", "run", plan, *RUN, "--backend", "cuda", "--no-algorithm-cache", "--verbose", *more, env=machine)
    return done.err


def test_a_machine_that_is_the_plans(plan, null_gpus):
    assert "captured" in runs_on(null_gpus.machine(null_gpus.H200, null_gpus.H200), plan)


@pytest.mark.parametrize("tp,pp,more", [
    (1, 1, ("--eager",)), (2, 1, ("--check-collectives",)), (2, 1, ("--collectives", "nccl")), (2, 1, ("--collectives", "host")), (1, 2, ()),
    (2, 1, ("--no-run-ahead",)), (3, 2, ("--share-devices",)), (2, 2, ("--share-devices",)), (5, 1, ("--share-devices", "--collectives", "host")),
    (5, 1, ("--share-devices", "--collectives", "peer"))])
@pytest.mark.parametrize("sampling", [("--temperature", 0), ("--temperature", 1, "--top-p", 0.9), ("--temperature", 0, "--repetition-penalty", 1.2)])
def test_every_layout_comes_to_its_end(tp, pp, more, sampling, plans, tmp_path, null_gpus):
    """Prompts that take several steps and a batch, by every way that ranks talk; every token drawn is 0, from logits that are all 0."""
    topo = tmp_path / "topo.json"
    device = {"kind": "cuda", "memory": "4GiB", "capability": "9.0", "memory_bandwidth": "3TB/s", "peak_flops": "900TFLOPS"}
    link = {"kind": "NV18", "bandwidth": "400GB/s", "p2p": True}
    topo.write_text(json.dumps({"device_defaults": device, "default_link": link, "devices": [{"id": f"gpu{i}"} for i in range(6)]}))
    plan = plans("llama-tied", tp, pp, "--max-batched-tokens", 64, "--max-num-seqs", 8, topo=topo)
    prompts = [[1 + i % 50 for i in range(n)] for n in (1, 5, 100, 70, 3)]
    (tmp_path / "prompts.json").write_text(json.dumps(prompts))
    done = harness.run("llmrt", "run", plan, "--prompt-file", tmp_path / "prompts.json", "--max-tokens", 7, "--ignore-eos", "--json", *sampling,
                       "--backend", "cuda", "--no-algorithm-cache", *more, env=null_gpus.machine(*[null_gpus.H200] * 2))
    answers = json.loads(done.out)
    assert [a["prompt_ids"] for a in answers] == prompts
    assert [len(a["token_ids"]) for a in answers] == [7] * 5, answers
    if sampling == ("--temperature", 0):
        assert {t for a in answers for t in a["token_ids"]} == {0}


def test_too_few_devices(plan, null_gpus):
    one = null_gpus.machine(null_gpus.H200)
    assert "rank 1 of the plan's 2 runs on device 'gpu1', for which 2 CUDA devices are needed, but there are 1: compile" in said_on(one, plan)
    assert "but there are 1 (CUDA_VISIBLE_DEVICES shows '0'): compile with fewer ranks, or let ranks share GPUs (--share-devices)" in \
        said_on({**one, "CUDA_VISIBLE_DEVICES": "0"}, plan)
    assert "the driver shows no CUDA device" in said_on(null_gpus.machine(), plan)
    # Two ranks that each count on 0.9 of a device.
    assert re.search(r"ranks 0 1 of the plan need \d+ .*compile the plan with --memory-utilization 0.49 ", said_on(one, plan, "--share-devices"))


def test_ranks_share_a_device(models, tmp_path, null_gpus):
    half = harness.compile_plan(models("llama-tied"), tmp_path / "plan.fb", 2, 1, "--memory-utilization", "0.45", topo=GPUS)
    runs_on(null_gpus.machine(null_gpus.H200), half, "--share-devices")


def test_a_device_that_is_too_old(plan, null_gpus):
    assert "made for compute capability 9.0, and CUDA device 1 (Old one), where rank 1 runs, has 8.6" in \
        said_on(null_gpus.machine(null_gpus.H200, "Old one,86,140000,143771"), plan)


def test_devices_that_nothing_was_built_for(plan, null_gpus):
    newer = "Newer one,120,140000,143771"
    assert re.search(r"this llmrt was built for compute capability \d.*, and CUDA device [01] \(Newer one\) has 12\.0: build it with "
                     r"-DLLMRT_CUDA_ARCHITECTURES=120", said_on(null_gpus.machine(newer, newer, NULL_NO_CODE="1"), plan))


def test_no_peer_to_peer_access(plan, null_gpus):
    machine = null_gpus.machine(null_gpus.H200, null_gpus.H200, NULL_PEERS="0")
    said = said_on(machine, plan)
    assert "CUDA devices 0 and 1, where ranks 0 and 1 run, cannot reach each other's memory" in said and "--collectives host" in said, said
    runs_on(machine, plan, "--collectives", "host")


def test_memory_that_others_hold(models, plan, tmp_path, null_gpus):
    machine = null_gpus.machine(null_gpus.H200, "Full one,90,30000,143771")
    assert re.search(r"CUDA device 1 \(Full one, 'gpu1' in the plan\) has 31457280000 of its 150754820096 bytes free .*rank 1 of the plan needs "
                     r"\d+ \(.*weights \d+, .*\): the KV pages do not fit, \d+ bytes are missing in all; end what else runs there "
                     r"\(see nvidia-smi\), or compile the plan with --memory-utilization 0.21 \(it is 0.90\)", said_on(machine, plan))
    # What is named as the remedy is one.
    runs_on(machine, harness.compile_plan(models("llama-tied"), tmp_path / "plan.fb", 2, 1, "--memory-utilization", "0.21", topo=GPUS))


def test_a_driver_that_is_too_old(plan, null_gpus):
    assert re.search(r"cannot be used: the NVIDIA driver is of CUDA 12.4, and llmrt was built with CUDA \d+.\d: install a driver",
                     said_on(null_gpus.machine(NULL_DRIVER="12040"), plan))


def test_files_come_before_memory(models, tmp_path, null_gpus):
    """Weights that are not those of the plan are told before a device's memory is looked at."""
    model = shutil.copytree(models("llama-tied"), tmp_path / "model")
    plan = harness.compile_plan(model, model / "plan.fb", 2, 1, topo=GPUS)
    [weights] = model.glob("*.safetensors")
    with open(weights, "r+b") as file:
        file.truncate(weights.stat().st_size - 4)
    assert "but the plan was made from one of" in said_on(null_gpus.machine(*["Full one,90,1,143771"] * 2), plan)
