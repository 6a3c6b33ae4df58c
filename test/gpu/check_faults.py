#!/usr/bin/env python3
"""On a GPU machine: what goes wrong while requests run, or before. The server has to end within the deadline and say what happened,
clients have to hear of it, and the GPUs have to be free for the next one. Ranks share the GPUs that are there.

    test/gpu/check_faults.py FOLDER [WORD …]     FOLDER as test/gpu/prepare.py made it; only faults with a WORD in their name
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import folder_args

args = folder_args.parse(__doc__)
folder = args.folder
import device_faults  # noqa: E402
import harness  # noqa: E402
from clients import BODY, Clients  # noqa: E402
from test_faults import stop_rank  # noqa: E402

RUN = ("--prompt-ids", "1,5,9", "--temperature", 0)
DEADLINE = 5  # seconds that ranks wait for each other: NCCL takes one to begin, and several servers begin at once
AT_ONCE = 10  # seconds that a start which cannot succeed may take
# Takes all but so many bytes of a device, says so, and holds them until its input ends.
HOLD = """
import ctypes, sys
cuda, free, total, data = ctypes.CDLL("libcudart.so.13"), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
assert cuda.cudaSetDevice(int(sys.argv[1])) == 0 and cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0
assert cuda.cudaMalloc(ctypes.byref(data), ctypes.c_size_t(free.value - int(sys.argv[2]))) == 0
print("held", flush=True)
sys.stdin.read()
"""


def plan(layout):
    return folder / f"models/llama-tied/float32-{layout}.fb"


def of_visible_gpus(field):
    """A field of nvidia-smi's, of each GPU that CUDA_VISIBLE_DEVICES leaves."""
    ids = os.environ.get("CUDA_VISIBLE_DEVICES")
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", *(["-i", ids] if ids else [])]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def gpus():
    return len(of_visible_gpus("index"))


def used_mib():
    return sum(map(int, of_visible_gpus("memory.used")))


def stopped(layout, rank, way):
    why = stop_rank(plan(layout), "--backend", "cuda", "--share-devices", "--collectives", way, rank=rank, deadline=DEADLINE)
    return f"not possible here: {why}" if why else None


def killed(layout):
    """SIGKILL: the client's connection closes, the GPUs' memory comes back, and the next server answers the same."""
    args = (plan(layout), "--backend", "cuda", "--share-devices")
    before = used_mib()
    server = harness.Server(*args)
    clients = Clients(server)
    answer = clients.all[0].want
    time.sleep(0.3)
    server.process.kill()
    server.process.wait(10)
    assert {client.heard() for client in clients.all} == {0}, "a client heard something else than its connection's end"
    start = time.monotonic()
    with harness.Server(*args) as next_one: # at once
        assert next_one.post("/v1/completions", **BODY).json()["choices"][0]["text"] == answer, "another answer than before"
    while (left := used_mib() - before) > 64 and time.monotonic() - start < 20:
        time.sleep(0.2)
    assert left <= 64, f"{left} MiB of the GPUs' memory are still taken"


def failing(layout, device, way, *mode):
    env = {"LD_PRELOAD": str(folder / "lib/libfailing_device.so")}
    return f"ended after {device_faults.serve(plan(layout), device, way, env, DEADLINE, *mode, last=layout == '2x1'):.1f} s"


def failing_run(layout, device, way):
    took, said = device_faults.run(plan(layout), device, way, {"LD_PRELOAD": str(folder / "lib/libfailing_device.so")}, DEADLINE)
    return f"ended {took:.1f} s after it was started" + (", by force" if "did not let go" in said else "")


def at_once(layout, *says, env={}):
    """A start that cannot succeed, and says so."""
    start = time.monotonic()
    harness.refused("llmrt", "run", plan(layout), "--backend", "cuda", *RUN, "--max-tokens", 1, env=env, says=says)
    took = time.monotonic() - start
    assert took < AT_ONCE, f"it took {took:.1f} s to say so"
    return f"said after {took:.1f} s"


def hidden():
    """A machine with fewer devices than the plan has ranks, because some are hidden."""
    return at_once("2x1", r"2 CUDA devices are needed, but there are 1 \(CUDA_VISIBLE_DEVICES shows '0'\): .*--share-devices",
                   env={"CUDA_VISIBLE_DEVICES": "0"})


def too_few():
    if gpus() >= 6:
        return "not possible here: there are six GPUs"
    return at_once("3x2", rf"rank {gpus()} of the plan's 6 .*{gpus() + 1} CUDA devices are needed, but there are {gpus()}"
                          r"( \(CUDA_VISIBLE_DEVICES shows '[^']*'\))?: .*--share-devices")


def held():
    """Another process has taken a device's memory."""
    device = gpus() - 1
    layout = "2x1" if gpus() > 1 else "1x1"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(device), str(2 << 30)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        return at_once(layout, rf"CUDA device {device} \(.*'gpu{device}' in the plan\) has \d+ of its \d+ bytes free .*rank {device} of the "
                       r"plan needs \d+ .*weights \d+, .*the KV pages do not fit, \d+ bytes are missing in all; end what else runs there"
                       r".*--memory-utilization 0\.\d\d \(it is 0\.90\)")
    finally:
        holder.communicate()


def unloadable():
    """A library that does not load is no reason to leave the GPUs idle: CPUs are taken only where somebody says so."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in "bin", "lib":
            (Path(scratch) / name).mkdir()
        program = shutil.copy2(folder / "bin/llmrt", Path(scratch) / "bin")
        (Path(scratch) / "lib/libllmrt_cuda.so").touch()
        args = [program, "run", plan("1x1"), *map(str, RUN), "--max-tokens", "1"]
        done = subprocess.run(args, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "this machine has GPUs" in done.stderr and "file too short" in done.stderr, done
        done = subprocess.run([*args, "--backend", "cpu"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done


def faults():
    """[(name, check, its arguments)]: those that run beside each other, and those that look at the GPUs' memory."""
    beside = [(f"rank {rank} of {layout} stopped, collectives {way}", stopped, (layout, rank, way))
              for layout, rank, way in (("2x1", 1, "auto"), ("2x1", 1, "host"), ("1x2", 0, "auto"))]
    shapes = [("1x1", 0, "address"), ("1x1", 0, "lost")]
    if gpus() > 1:
        shapes += [("2x1", 1, "address"), ("2x1", 0, "address"), ("2x1", 1, "lost"), ("2x1", 1, "address", "--eager", "--collectives", "nccl"),
                   ("2x1", 1, "address", "--collectives", "nccl"), ("2x1", 1, "address", "--collectives", "host"), ("1x2", 0, "address"),
                   ("1x2", 1, "lost")]
        beside += [(f"device {device} of {layout} fails a run ({way})", failing_run, (layout, device, way))
                   for layout, device, way in (("2x1", 1, "address"), ("1x2", 0, "address"), ("2x1", 0, "lost"))]
        beside.append(("a device hidden", hidden, ()))
    beside += [(f"device {device} of {layout} fails ({way}) {' '.join(mode)}", failing, (layout, device, way, *mode))
               for layout, device, way, *mode in shapes]
    beside += [("too few devices", too_few, ()), ("a library that does not load", unloadable, ())]
    return beside, [("2x1 killed", killed, ("2x1",)), ("memory held by another process", held, ())]


def attempt(name, check, arguments):
    """A line on what came of it, and whether it is as it should be."""
    start = time.time()
    try:
        said, good = check(*arguments) or "ended as it should", True
    except Exception as e:  # all are tried
        said, good = f"FAILED: {str(e)[-1500:]}", False
    print(f"{name.strip()}: {said} ({time.time() - start:.0f} s)", flush=True)
    return good


def main():
    beside, alone = ([fault for fault in some if not args.words or any(word in fault[0] for word in args.words)] for some in faults())
    with concurrent.futures.ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 1) // 2))) as pool:
        good = list(pool.map(lambda fault: attempt(*fault), beside))
    good += [attempt(*fault) for fault in alone]
    print(f"faults on the GPU: {sum(good)} ended as they should, {len(good) - sum(good)} failed")
    sys.exit(0 if good and all(good) else 1)


if __name__ == "__main__":
    main()
