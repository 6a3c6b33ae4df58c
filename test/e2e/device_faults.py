"""A device that fails for good while requests run and other ranks wait for it (test/gpu/failing_device.c): what the server, its clients and
`llmrt run` have to make of it. On real GPUs (test/gpu/check_faults.py) and on made-up ones (test_device_faults.py)."""
import re
import tempfile
import time
from pathlib import Path

import harness
from clients import Clients

SAID = {"address": "an illegal memory access", "lost": "busy or unavailable"}
HANG = r"rank \d did not finish step \d+ on CUDA device \d within .* s"
PROMPT = ("--prompt-ids", "1,5,9", "--temperature", 0, "--ignore-eos")


def sentence(device, way, last=False):
    """Rank and device have the same number; `last`: the collective that the rank has come to is named too. What only waits for others
    may be the first to find that a device hangs."""
    if way == "hang":
        return HANG
    where = r", last (in \w+ \d+ of|handing round the tokens drawn in) group '.*'," if last else ".*"
    return rf"step \d+ of rank {device} on CUDA device {device}{where} failed: .*{SAID[way]}"


def variables(device, way, after=0, when=None):
    return {"FAILING_DEVICE": str(device), "FAILING_WAY": way, "FAILING_AFTER": str(after), **({"FAILING_WHEN": str(when)} if when else {})}


def serve(plan, device, way, env, deadline, *mode, last=False):
    """The server says which device failed, in which step and where, and ends; clients hear of it. Returns the seconds that it took."""
    with tempfile.TemporaryDirectory() as scratch:
        when = Path(scratch) / "now"
        server = harness.Server(plan, "--backend", "cuda", "--collective-timeout", deadline, *mode, log=Path(scratch) / "log",
                                env={**env, **variables(device, way, 25 if "--eager" in mode else 0, when)})
        try:
            clients = Clients(server)
            time.sleep(0.5)
            start = time.monotonic()
            when.touch()
            status = server.process.wait(deadline + 8)
            took = time.monotonic() - start
        finally:
            server.process.kill()
        log = server.log()
    assert status == 1, f"status {status}\n{log}"
    clients.heard("CUDA device" if way == "hang" else f"CUDA device {device}")
    assert re.search(sentence(device, way, last), log), log
    assert "this server ends" in log, log
    return took


def run(plan, device, way, env, deadline):
    """Where the process takes itself down in order nothing hangs either, and the error comes once. Returns the seconds that it took
    from its start, and what it said."""
    start = time.monotonic()
    said = harness.refused("llmrt", "run", plan, "--backend", "cuda", "--eager", "--collective-timeout", deadline, *PROMPT,
                           "--max-tokens", 200, env={**env, **variables(device, way, 1500)}, says=[sentence(device, way)])
    assert len(said.splitlines()) == 1, said
    return time.monotonic() - start, said
