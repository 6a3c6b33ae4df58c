"""/metrics as Prometheus reads it, and that what happens moves the right numbers."""
import math
import threading
import time

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import harness


@pytest.fixture(scope="module")
def server(plans):
    with harness.Server(plans("qwen2-14-2", 3, 2)) as s:
        yield s


def scrape(server, prefix="llmrt:"):
    """(name, labels but the constant ones) -> value"""
    response = server.http.get("/metrics")
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = {}
    for family in text_string_to_metric_families(response.text):
        assert family.type in ("counter", "gauge", "histogram") and family.documentation, family
        for sample in family.samples:
            labels = dict(sample.labels)
            assert sample.name.startswith(prefix) and labels.pop("model_name") == server.model and labels.pop("engine") == "0"
            key = (sample.name[len(prefix):], tuple(sorted(labels.items())))
            assert key not in values and math.isfinite(sample.value)
            values[key] = sample.value
    return values


class Change:
    """What changed since its making."""

    def __init__(self, server):
        self.server, self.before = server, scrape(server)

    def __call__(self, name, **labels):
        key = (name, tuple(sorted(labels.items())))
        return scrape(self.server)[key] - self.before[key]


def test_tokens_and_outcomes(server):
    change = Change(server)
    harness.completions(server, [[5, 6, 7], [8, 9, 10, 11]], 6, ignore_eos=True)
    assert change("prompt_tokens_total") == 7
    assert change("generation_tokens_total") == 12
    assert change("request_success_total", finished_reason="length") == 2
    assert change("request_success_total", finished_reason="abort") == 0
    assert change("request_success_total", finished_reason="error") == 0
    for name in ("request_queue_time_seconds", "request_prefill_time_seconds", "time_to_first_token_seconds",
                 "request_decode_time_seconds", "e2e_request_latency_seconds", "request_prompt_tokens", "request_generation_tokens"):
        assert change(f"{name}_count") == 2, name
    assert change("inter_token_latency_seconds_count") == 10
    assert change("request_prompt_tokens_sum") == 7 and change("request_generation_tokens_sum") == 12
    steps = change("steps_total")
    assert 6 <= steps <= 12 and change("step_time_seconds_count") == steps
    assert change("iteration_tokens_total_sum") == 7 + 2 * 5  # the last tokens are never fed in
    # Parts add up to the whole.
    whole = change("e2e_request_latency_seconds_sum")
    parts = sum(change(f"request_{p}_time_seconds_sum") for p in ("queue", "prefill", "decode"))
    assert 0 < parts <= whole < parts + 1
    assert change("time_to_first_token_seconds_sum") == pytest.approx(
        change("request_queue_time_seconds_sum") + change("request_prefill_time_seconds_sum"), abs=1e-6)
    assert change("inter_token_latency_seconds_sum") == pytest.approx(change("request_decode_time_seconds_sum"), abs=1e-6)


def test_histograms_are_cumulative(server):
    values = scrape(server)
    names = {name[:-len("_bucket")] for name, labels in values if name.endswith("_bucket")}
    assert len(names) == 10
    for name in names:
        buckets = sorted((float(dict(labels)["le"]), v) for (n, labels), v in values.items() if n == name + "_bucket")
        counts = [v for _, v in buckets]
        assert counts == sorted(counts) and buckets[-1] == (math.inf, values[name + "_count", ()])


def test_prefix_cache(server):
    prompt = list(range(20, 20 + 64))
    harness.completions(server, [prompt], 1)
    change = Change(server)
    harness.completions(server, [prompt], 1)
    assert change("prefix_cache_queries_total") == 64
    assert 32 <= change("prefix_cache_hits_total") < 64


def test_running_and_aborted(server):
    change = Change(server)
    gone = threading.Event()

    def ask():
        body = {"model": server.model, "prompt": [1, 2, 3], "max_tokens": 200, "ignore_eos": True, "stream": True}
        with httpx.stream("POST", server.url + "/v1/completions", json=body, timeout=60) as response:
            for _ in response.iter_lines():
                running = scrape(server)
                if running["num_requests_running", ()] == 1 and running["kv_pages_used", ()] > 0:
                    gone.set()
                    return

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(60)
    assert gone.is_set()
    end = time.monotonic() + 20
    while True:  # the engine lets go of it when its step returns
        values = scrape(server)
        if change("request_success_total", finished_reason="abort") == 1 and values["num_requests_running", ()] == 0:
            break
        assert time.monotonic() < end, values
        time.sleep(0.05)
    assert values["num_requests_waiting", ()] == values["kv_pages_used", ()] == 0
    assert values["kv_pages_total", ()] > 0 and values["engine_alive", ()] == 1
    assert change("request_success_total", finished_reason="length") == 0


def test_prefix_option(plans):
    with harness.Server(plans("qwen2-14-2"), "--metrics-prefix", "vllm:") as server:
        text = server.http.get("/metrics").text
        assert "\nvllm:num_requests_running{" in text and "llmrt:" not in text
    assert harness.run("llmrt", "serve", plans("qwen2-14-2"), "--metrics-prefix", "a-b", ok=False).code == 2
