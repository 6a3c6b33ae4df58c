#!/usr/bin/env python3
"""On a GPU machine: what goes wrong while requests run, or before. The server has to end within the deadline and say what happened,
clients have to hear of it, and the GPUs have to be free for the next one. Ranks share the GPUs that are there.

    test/gpu/check_faults.py FOLDER [WORD …]     FOLDER as test/gpu/prepare.py made it; only faults with a WORD in their name
"""
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

folder = Path(sys.argv[1]).resolve()
os.environ["LLMC_BUILD_DIR"] = str(folder)
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402
from test_faults import stop_rank  # noqa: E402

BODY = {"prompt": [1, 5, 9], "max_tokens": 40, "temperature": 0, "ignore_eos": True}


def plan(layout):
    return folder / f"models/llama-tied/float32-{layout}.fb"


def gpus():
    return len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())


def used_mib():
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True,
                         check=True).stdout
    return sum(map(int, out.split()))


class Asking:
    """A client that asks on and on until it hears of an error."""

    def __init__(self, server):
        self.server, self.error = server, None
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self):
        try:
            while True:
                self.server.http.post("/v1/completions", json=BODY).raise_for_status()
        except Exception as e:
            self.error = e

    def heard(self):
        self.thread.join(30)
        assert self.error is not None, "the client waited for ever"


def stopped(layout, rank, way):
    why = stop_rank(plan(layout), "--backend", "cuda", "--share-devices", "--collectives", way, rank=rank)
    return f"not possible here: {why}" if why else None


def killed(layout):
    """SIGKILL: the client's connection closes, the GPUs' memory comes back, and the next server answers the same."""
    args = (plan(layout), "--backend", "cuda", "--share-devices")
    before = used_mib()
    server = harness.Server(*args)
    answer = server.post("/v1/completions", **BODY).json()["choices"][0]["text"]
    asking = Asking(server)
    time.sleep(0.3)
    server.process.kill()
    server.process.wait(10)
    asking.heard()
    start = time.monotonic()
    with harness.Server(*args) as next_one: # at once
        assert next_one.post("/v1/completions", **BODY).json()["choices"][0]["text"] == answer, "another answer than before"
    while (left := used_mib() - before) > 64 and time.monotonic() - start < 20:
        time.sleep(0.2)
    assert left <= 64, f"{left} MiB of the GPUs' memory are still taken"


def hidden():
    """A machine with fewer devices than the plan has ranks."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    try:
        harness.refused("llmrt", "run", plan("2x1"), "--backend", "cuda", "--prompt-ids", "1,5,9", "--max-tokens", "1",
                        says=[r"2 CUDA devices are needed, but there are 1 \(CUDA_VISIBLE_DEVICES shows '0'\): .*--share-devices"])
    finally:
        del os.environ["CUDA_VISIBLE_DEVICES"]


def main():
    work = [(f"rank {rank} of {layout} stopped, collectives {way}", stopped, (layout, rank, way))
            for layout, rank, way in (("2x1", 1, "auto"), ("2x1", 1, "host"), ("1x2", 0, "auto"))]
    work.append(("2x1 killed", killed, ("2x1",)))
    if gpus() > 1:
        work.append(("a device hidden", hidden, ()))
    failed, words = 0, sys.argv[2:]
    for name, check, arguments in work:
        if words and not any(word in name for word in words):
            continue
        start = time.time()
        try:
            said = check(*arguments) or "ended as it should"
        except Exception as e:  # all are tried
            failed += 1
            said = f"FAILED: {str(e)[-1500:]}"
        print(f"{name}: {said} ({time.time() - start:.0f} s)", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
