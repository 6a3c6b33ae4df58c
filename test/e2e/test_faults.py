"""A rank that stops in the middle of its work: the others name it within the deadline, clients get an error, and the server
ends instead of hanging."""
import re
import time

import harness
import pytest
from clients import Clients
from frozen import Frozen

DEADLINE = 2  # seconds that ranks wait for each other
ENDING = 7  # seconds that all has to end in, once a watch has said at 1.25 times the deadline that nothing moves


def stop_rank(plan, *args, rank, deadline=DEADLINE, env={}, says=""):
    """Serves the plan, stops a rank's thread under load, and sees everything end as it should. None, or why tracing is not
    possible here. Not for the output rank: its thread runs the engine's code as well, and to be stopped inside a lock is no
    fault that devices or peers cause (test/unit/exec/step_loop_test.cpp has the output rank hang where they can)."""
    server = harness.Server(plan, "--collective-timeout", deadline, *args, env=env)
    clients = Clients(server)
    time.sleep(0.3)
    try:
        with Frozen(server.process.pid, f"rank {rank}") as frozen:
            end = time.monotonic() + (1.25 * deadline + ENDING) * harness.SLOW
            while server.process.poll() is None and time.monotonic() < end:
                frozen.collect()
                time.sleep(0.05)
        status = server.process.poll()
    except PermissionError as e:
        return str(e)
    finally:
        server.process.kill()
    log = server.log()
    assert status == 1, f"None: still running\n{log}"
    clients.heard("rank")
    # Who is missing, and where: the operation and its number, or the step where nobody else waited for the rank, and what it and the
    # others were last at. Of stages on GPUs, which have no group, the step alone is known. `says` is wanted besides.
    operation = r"in (all_?reduce|all_?gather|gather|send|recv) \d+ .*(rank \d|group)"
    # Where the thread was stopped with a lock in its hands, others stand still with it.
    missed = rf"rank {rank} has not finished step \d+|ranks [\d, ]*\b{rank}\b[\d, ]* have not finished step \d+"
    assert re.search(rf"{operation}|{missed}", log, re.IGNORECASE) and re.search(says, log), log
    assert "this server ends" in log


@pytest.mark.parametrize("tp,pp,rank", [(3, 1, 1), (1, 2, 0)])
def test_a_rank_that_stops(tmp_path, tp, pp, rank):
    model = harness.checkpoint("llama-tied", str(tmp_path))
    if why := stop_rank(harness.compile_plan(model, tmp_path / "plan.fb", tp, pp), rank=rank):
        pytest.skip(f"this machine forbids tracing: {why}")


# On made-up GPUs no step waits for another rank, so that rank 0 has done all there is when the steps of the one that stopped are missed:
# as on real ones where the thread stops once what it launched needs it no more.
def test_a_rank_that_stops_when_nobody_waits_for_it(plans, null_gpus):
    plan = plans("llama-tied", 2, 1, "--max-batched-tokens", 64, "--max-num-seqs", 64, topo=harness.ROOT / "examples/topo/2x-h200.json")
    at = r"was last in \w+ \d+ of group '.*'"
    if why := stop_rank(plan, "--backend", "cuda", "--collectives", "nccl", rank=1, env=null_gpus.machine(*[null_gpus.H200] * 2),
                        says=rf"rank 1 has not finished step \d+ within 2.5\d* s, .*\(rank 0 {at}, rank 1 {at}\)"):
        pytest.skip(f"this machine forbids tracing: {why}")
