"""`llmrt profile`: every op of the plan with its time, what it must do, and the timeline."""
import json
import re

import pytest

import harness
from harness import refused, run


def profile(plan, *args):
    return json.loads(run("llmrt", "profile", plan, "--json", "--per-op", "--steps", 12, *args).out)


def planned(plan):
    """[[name of each op] of each rank]"""
    return [[re.sub(r"(?<!^)([A-Z])", r"_\1", op["op_type"]).lower() for op in program["ops"]] for program in json.loads(run("llmc", "dump", "--json", plan).out)["programs"]]


@pytest.mark.parametrize("split", [(1, 1), (3, 2)])
def test_every_op_appears(plans, split):
    plan = plans("qwen2-14-2", *split)
    seen = profile(plan, "--batch", 3, "--context", 40)
    assert seen["backend"] == "cpu" and seen["step"] == {"kind": "decode", "batch": 3, "new_tokens": 1, "context": 40}
    want = planned(plan)
    got = [[] for _ in want]
    for op in seen["per_op"]:
        if op["index"] >= 0:
            assert op["index"] == len(got[op["rank"]])
            got[op["rank"]].append(op["op"].split()[0])
    assert got == want
    # Titles are the same ops added up.
    for key in ("bytes", "flops", "link_bytes"):
        assert sum(op[key] for op in seen["ops"]) == sum(op[key] for op in seen["per_op"])
    assert sum(op["calls"] for op in seen["ops"]) == len(seen["per_op"])
    assert {op["op"] for op in seen["ops"]} >= {"linear qkv", "attention", "kv_append", "rope", "sampling"}
    assert (split == (1, 1)) == (not any(op["op"].startswith("all_reduce") for op in seen["ops"]))
    assert ("pipeline" in seen) == (split[1] > 1)
    if split[1] > 1:
        pipeline = seen["pipeline"]
        assert pipeline["in_flight"] == split[1] and pipeline["slowest_stage_s"] > 0
        assert pipeline["bubble"] == pytest.approx(1 - pipeline["slowest_stage_s"] / pipeline["interval_s"])
    for op in seen["per_op"]:
        assert op["time_s"] > 0, op
        if op["op"] != "recv" and op["index"] >= 0:
            assert op["bytes"] > 0 and op["floor_s"] > 0, op


def test_ops_add_up_to_the_step(plans):
    """A prompt long enough that ops take milliseconds: what is beside them is little."""
    seen = profile(plans("smollm2", 1, 1, dtype="auto"), "--prefill", 128)
    assert sum(op["time_s"] for op in seen["ops"]) == pytest.approx(seen["sum_s"])
    assert 0.8 < seen["sum_s"] / seen["profiled_step_s"] <= 1.0
    assert seen["neither_s"] == pytest.approx(seen["step_s"] - seen["sum_s"])
    assert 0 < seen["floor_s"] < 2 * seen["step_s"]
    linear = sum(op["flops"] for op in seen["ops"] if op["op"].startswith("linear"))
    assert linear == pytest.approx(2 * 128 * 106e6, rel=0.1)  # 135M less the table, which one row is multiplied with


def test_trace(plans, tmp_path):
    plan = plans("qwen2-14-2", 3, 2)
    file = tmp_path / "trace.json"
    profile(plan, "--context", 17, "--trace", file)
    events = json.loads(file.read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert len(names) == 7 and names[6] == "llmrt" and all(names[r].startswith(f"rank {r} ") for r in range(6))
    threads = {(e["pid"], e["args"]["name"].split(":")[0]) for e in events if e["name"] == "thread_name"}
    assert threads == {(r, t) for r in range(6) for t in ("host", "stream 0")} | {(6, "host")}
    spans = [e for e in events if e["ph"] == "X"]
    for rank, ops in enumerate(planned(plan)):
        steps = {}
        for e in spans:
            if e["pid"] == rank and "op" in e["args"]:
                steps.setdefault(e["args"]["step"], []).append(e["args"]["op"])
        assert len(steps) == 12 and all(s == list(range(len(ops))) for s in steps.values())
    # On a thread, spans follow each other.
    last = {}
    for e in sorted(spans, key=lambda e: e["ts"]):
        assert e["dur"] >= 0 and e["ts"] >= last.get((e["pid"], e["tid"]), 0) - 1e-3
        last[e["pid"], e["tid"]] = e["ts"] + e["dur"]


def test_table(plans):
    text = run("llmrt", "profile", plans("qwen2-14-2"), "--prefill", 20, "--context", 30, "--steps", 3).out
    assert re.search(r"prefill step .*1 sequences, 20 new tokens each, context 30", text), text
    assert re.search(r"(?m)^linear gate_up +5 ", text) and re.search(r"(?m)^neither.* [\d.-]+%$", text), text


def test_refusals(plans, tmp_path):
    plan = plans("qwen2-14-2")
    refused("llmrt", "profile", plan, "--context", 10**6, says=["max_model_len of 1000000", "smaller step"])
    refused("llmrt", "profile", plan, "--batch", 10**5, says=["max_num_seqs"])
    refused("llmrt", "profile", plan, "--prefill", 20, "--context", 10, says=["--context 10 .* 20 new tokens"])
    refused("llmrt", "profile", plan, "--trace", tmp_path / "no" / "t.json", says=["trace.*No such file"])
    refused("llmrt", "profile", plan, "--backend", "cuda", says=["CPU"])
    assert run("llmrt", "profile", plan, "--steps", 0, ok=False).code == 2
