"""`llmrt bench`: every figure beside its limit; on CPUs, and on made-up GPUs (null_gpus.c) what is said of those only."""
import json

import pytest

import harness

ALL = ("--what", "latency,decode,prefill,throughput", "--batch", "1,3,1000", "--context", 24, "--prefill", "32,64", "--input", 16, "--output", 8,
       "--requests", 12)


def bench(plan, *args, env={}):
    return json.loads(harness.run("llmrt", "bench", plan, "--json", *args, env=env).out)


def check_start(result):
    start = result["start_up"]
    parts = start["devices_s"] + start["weights_s"] + start["graphs_s"]
    assert 0 < start["weights_s"] <= parts <= start["seconds"] and start["weight_bytes"] > 0, start
    return start


def check_figures(result, figures):
    """Each positive, and each share the quotient of what it is a share of."""
    for line in figures:
        assert all(value > 0 for key, value in line.items() if isinstance(value, float)), line
        for floor, share in ("floor_s", "share_of_floor"), ("serial_floor_s", "share_of_serial_floor"):
            if share in line:
                assert line[share] == pytest.approx(line[floor] / line.get("step_s", line.get("token_s"))), line
        if "share_of_matmul" in line:
            assert line["share_of_matmul"] == pytest.approx(line["flops_per_s"] / result["matmul_flops_per_s"]), line


@pytest.mark.parametrize("split", [(1, 1), (3, 2)])
def test_on_cpus(plans, split):
    result = bench(plans("qwen2-14-2", *split), *ALL, "--concurrency", 4)
    assert (result["tp"], result["pp"]) == split
    start = check_start(result)
    assert start["devices_s"] == start["graphs_s"] == 0 and "to_device_bytes_per_s" not in start
    check_figures(result, [result["latency"], *result["decode"], *result["prefill"]])
    assert [line["batch"] for line in result["decode"]] == [1, 3]  # 1,000 sequences do not fit
    assert [line["tokens"] for line in result["prefill"]] == [32, 64]
    load = result["throughput"]
    assert load["output_tokens_per_s"] == pytest.approx(12 * 8 / load["seconds"])
    assert load["first_token_s"] <= load["first_token_s_99"] and load["token_s"] <= load["token_s_99"]


def test_open_loop(plans):
    """Requests come when they are due, however fast they are answered."""
    load = bench(plans("qwen2-14-2", 1, 1), "--what", "throughput", "--requests", 12, "--rate", 40, "--input", 16, "--output", 8)["throughput"]
    assert load["rate"] == 40 and load["seconds"] > 12 / 40 / 4  # the stream is drawn from a fixed seed


def test_on_devices(plans, null_gpus):
    plan = plans("llama-tied", 1, 1, "--max-batched-tokens", 64, "--max-num-seqs", 8, topo=harness.ROOT / "examples/topo/2x-h200.json")
    result = bench(plan, "--backend", "cuda", "--what", "decode", "--batch", 2, "--context", 24, "--output", 8, "--no-algorithm-cache",
                   env=null_gpus.machine(null_gpus.H200, NULL_GRAPH_US="2000"))
    start = check_start(result)
    assert start["devices_s"] > 0 and start["graphs_s"] > 0 and start["to_device_bytes_per_s"] > 0
    host = result["decode"][0]["host_s"]
    assert host["total"] == pytest.approx(host["compose"] + host["launch"] + host["results"])


def test_too_long(plans):
    harness.refused("llmrt", "bench", plans("qwen2-14-2", 1, 1), "--what", "throughput", "--input", 200, "--output", 100,
                    says=["200 \\+ 100 tokens do not fit this plan's max_model_len of 256"])


def test_refused_by_the_engine(plans):
    harness.refused("llmrt", "bench", plans("qwen2-14-2", 1, 1), "--what", "latency", "--input", 200, "--output", 100,
                    says=["request was refused: .*together 300; the maximum context length is 256"])
