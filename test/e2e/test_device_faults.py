"""Devices that fail, on made-up GPUs (null_gpus.c): the host's side of it. test/gpu/check_faults.py has the same on real ones."""
import device_faults
import pytest

import harness

DEADLINE = 5  # seconds that ranks wait for each other
FORCE = 10    # seconds after which a process ends whose devices do not let go


@pytest.fixture
def plan(plans):
    def get(layout):
        tp, pp = map(int, layout.split("x"))
        return plans("llama-tied", tp, pp, "--max-batched-tokens", 64, "--max-num-seqs", 64, topo=harness.ROOT / "examples/topo/2x-h200.json")
    return get


@pytest.mark.parametrize("layout,device,way,mode", [
    ("1x1", 0, "address", ()),
    ("2x1", 0, "address", ()),
    ("2x1", 0, "lost", ("--no-run-ahead",)),
    ("2x1", 1, "lost", ()),
    ("2x1", 1, "address", ("--collectives", "nccl", "--eager")),
    ("2x1", 1, "address", ("--collectives", "host")),
    ("2x1", 1, "hang", ()),
    ("1x2", 0, "address", ()),
    ("1x2", 1, "lost", ("--collectives", "host"))])
def test_serve(layout, device, way, mode, plan, null_gpus):
    deadline = 2 if way == "hang" else DEADLINE
    told = layout == "2x1" and "--collectives" in mode # what kernels tell the host themselves is not made up
    took = device_faults.serve(plan(layout), device, way, null_gpus.failing(*[null_gpus.H200] * 2), deadline, *mode, last=told)
    assert took < deadline + (4 if way == "hang" else 0)


@pytest.mark.parametrize("way", ["address", "lost"])
@pytest.mark.parametrize("layout,device", [("1x1", 0), ("2x1", 0), ("2x1", 1), ("1x2", 0), ("1x2", 1)])
def test_run(layout, device, way, plan, null_gpus):
    took, said = device_faults.run(plan(layout), device, way, null_gpus.failing(*[null_gpus.H200] * 2), DEADLINE)
    # The second stage's device waits for an event of the first's for ever, and no call of CUDA ends that.
    forced = (layout, device, way) == ("1x2", 0, "address")
    assert ("did not let go" in said) == forced and (took < FORCE) != forced, f"{took:.1f} s: {said}"


def test_a_failure_that_spreads(plan, null_gpus):
    """The second stage's device fails with the first's, whose rows it waits for, and its rank hears of it first: the first's is named."""
    gpus = {**null_gpus.failing(*[null_gpus.H200] * 2), "NULL_SPREADS": "1"}
    took, said = device_faults.run(plan("1x2"), 0, "address", gpus, DEADLINE)
    assert took < FORCE and "did not let go" not in said, f"{took:.1f} s: {said}"
    device_faults.serve(plan("1x2"), 0, "address", gpus, DEADLINE)
