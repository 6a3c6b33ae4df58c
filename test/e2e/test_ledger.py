"""The ledger is honest: what llmrt measures at start is at most what the plan says, and at least 97% of it."""
import re

import pytest

import harness

ROW = re.compile(r"^  (\d+) +\S+ +" + r" +".join([r"([\d.]+) / ([\d.]+)"] * 6) + "$", re.M)
ROUNDING = 0.11  # MiB: both numbers are printed with one decimal


def check(plan, ranks, *more, env={}):
    """Returns what was measured and planned, [(weights, activations, workspace, communication, KV pages, total)] of pairs in MiB."""
    said = harness.run("llmrt", "run", plan, "--prompt-ids", "1", "--max-tokens", 2, "--verbose", *harness.GREEDY, *more, env=env).err
    table = []
    rows = ROW.findall(said)
    assert [int(r[0]) for r in rows] == list(range(ranks)), said
    for rank, *numbers in rows:
        pairs = list(zip(map(float, numbers[::2]), map(float, numbers[1::2])))
        for measured, planned in pairs:
            assert measured <= planned + ROUNDING, f"rank {rank}: {numbers}"
        measured, planned = pairs[-1]
        assert planned <= measured * 1.03 + ROUNDING, f"rank {rank}: {numbers}"
        table.append(pairs)
    return table


@pytest.mark.parametrize("tp,pp", [(1, 1), (3, 2), (5, 2)])
@pytest.mark.parametrize("dtype", ["auto", "bfloat16", "float32"])
def test_smollm2(tp, pp, dtype, plans):
    check(plans("smollm2", tp, pp, dtype=dtype), tp * pp)


@pytest.mark.parametrize("name", ["llama-tied", "llama-bias-hd100", "mistral-window-hd224", "qwen2-window-15-5", "qwen3-7-7"])
@pytest.mark.parametrize("tp,pp", [(1, 1), (2, 2)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_small_models(name, tp, pp, dtype, plans):
    """A few megabytes in all, where scratch counts: as many threads as the plan provides for."""
    check(plans(name, tp, pp, dtype=dtype), tp * pp, "--threads", 16)


@pytest.mark.parametrize("threads", [1, 5, 16])
def test_fewer_threads(threads, plans):
    check(plans("smollm2", 1, 1), 1, "--threads", threads)


@pytest.mark.parametrize("topo,slots", [("2x-h200", 3), ("6x-pcie-24gb", 0)])
def test_stages_of_gpus(topo, slots, plans, null_gpus):
    """What a stage sends waits in slots of its memory, there from the start, where the next reads it: a step in flight each, and one
    more. Without peer-to-peer access it goes through the host's. (Elsewhere GPUs measure themselves: null ones take as much as
    they are asked for.)"""
    tokens, hidden = 4096, harness.specs.BY_NAME["llama-tied"].config["hidden_size"]
    plan = plans("llama-tied", 1, 2, "--max-batched-tokens", tokens, "--max-num-seqs", 8, topo=harness.ROOT / f"examples/topo/{topo}.json")
    gpus = [null_gpus.H200 if slots else "Made-up 4090,89,24000,24564"] * 2
    first, second = check(plan, 2, "--backend", "cuda", "--no-algorithm-cache", env=null_gpus.machine(*gpus))
    mib = slots * tokens * hidden * 4 / 2**20
    assert first[3] == (pytest.approx(mib, abs=ROUNDING), pytest.approx(mib, abs=ROUNDING)) and second[3] == (0, 0)
