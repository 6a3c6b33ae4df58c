"""Many requests at once: answers do not depend on the company they keep, clients may vanish, queues may be long."""
import asyncio
import re
import time

import httpx
import openai
import pytest

import harness

META, CASES = harness.goldens(harness.GOLDEN / "goldens/llama-tied.npz")
STEPS = META["steps"]


@pytest.fixture(scope="module")
def server(plans):
    """A small model over 3 × 2 ranks, eight sequences at once, steps of 48 tokens at most."""
    with harness.Server(plans("llama-tied", 3, 2, "--max-num-seqs", 8, "--max-batched-tokens", 48)) as s:
        yield s


async def ask(http, server, prompt, **more):
    body = {"model": server.model, "prompt": prompt, "max_tokens": STEPS, "temperature": 0, "return_token_ids": True, **more}
    r = await http.post("/v1/completions", json=body)
    assert r.status_code == 200, r.text
    return r.json()["choices"][0]


def client_of(server, connections):
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    return httpx.AsyncClient(base_url=server.url, timeout=300 * harness.SLOW, limits=limits)


def test_hundreds_queued(server):
    """400 requests at once over eight places: all answered, each exactly as if alone."""
    async def main():
        async with client_of(server, 400) as http:
            return await asyncio.gather(*(ask(http, server, CASES[i % len(CASES)].prompt) for i in range(400)))

    for i, choice in enumerate(asyncio.run(main())):
        assert choice["token_ids"] == CASES[i % len(CASES)].tokens, f"request {i}"


def test_concurrent_streams(server):
    """40 streams through the openai client, interleaved with short requests that come and go."""
    async def stream(client, i):
        case, ids = CASES[i % len(CASES)], []
        await asyncio.sleep(0.003 * (i % 7))
        reply = await client.completions.create(model=server.model, prompt=case.prompt, max_tokens=STEPS - i % 5, temperature=0,
                                                stream=True, extra_body={"return_token_ids": True})
        reason = None
        async for chunk in reply:
            ids += getattr(chunk.choices[0], "token_ids", None) or []
            reason = chunk.choices[0].finish_reason or reason
        return ids == case.tokens[:STEPS - i % 5] and reason == "length"

    async def main():
        async with server.openai(openai.AsyncOpenAI) as client:
            return await asyncio.gather(*(stream(client, i) for i in range(40)))

    assert all(asyncio.run(main()))


def test_seed_is_deterministic_in_company(server):
    """The same seed gives the same text alone and in a busy batch."""
    sampled = {"temperature": 1.0, "top_p": 0.95, "seed": 1234}

    async def main():
        async with client_of(server, 64) as http:
            alone = [(await ask(http, server, c.prompt, **sampled))["token_ids"] for c in CASES]
            noise = [ask(http, server, c.prompt, temperature=1.3, seed=i) for i in range(5) for c in CASES]
            busy = await asyncio.gather(*(ask(http, server, c.prompt, **sampled) for c in CASES), *noise)
            return alone, [b["token_ids"] for b in busy[:len(CASES)]]

    alone, busy = asyncio.run(main())
    assert alone == busy
    assert all(a != c.tokens for a, c in zip(alone, CASES)), "nothing was sampled"


def test_requests_without_a_seed_differ(server):
    async def main():
        async with client_of(server, 8) as http:
            return await asyncio.gather(*(ask(http, server, CASES[3].prompt, temperature=1.0) for _ in range(8)))

    assert len({tuple(c["token_ids"]) for c in asyncio.run(main())}) > 4


def test_disconnects_free_their_places(plans):
    """Two places, both taken by long streams whose clients vanish: the next request is served at once."""
    meta, cases = harness.goldens(harness.GOLDEN / "smollm2/goldens.npz")
    case = cases[meta["names"].index("json")]
    with harness.Server(plans("smollm2", 1, 2, "--max-num-seqs", 2, "--max-model-len", 8192)) as server:
        body = {"model": server.model, "prompt": case.prompt, "max_tokens": 6000, "temperature": 0, "ignore_eos": True, "stream": True}
        for _ in range(3):
            for _ in range(2):
                with server.http.stream("POST", "/v1/completions", json=body) as r:
                    next(r.iter_lines())
            # Waiting in the queue and gone before its turn.
            with httpx.Client(base_url=server.url, timeout=0.05) as impatient, pytest.raises(httpx.TimeoutException):
                impatient.post("/v1/completions", json={**body, "stream": False})
        started = time.monotonic()
        choice, = harness.completions(server, [case.prompt], 8)
        assert choice["token_ids"] == case.tokens[:8]
        assert time.monotonic() - started < 5 * harness.SLOW, "the vanished clients still hold their places"


def test_cancelled_streams_leave_the_rest_alone(server):
    async def main():
        async with client_of(server, 64) as http:
            async def vanish(i):
                body = {"model": server.model, "prompt": CASES[i % 6].prompt, "max_tokens": 80, "temperature": 0, "stream": True}
                async with http.stream("POST", "/v1/completions", json=body) as r:
                    async for _ in r.aiter_lines():
                        break
            answers = await asyncio.gather(*(ask(http, server, c.prompt) for c in CASES * 3), *(vanish(i) for i in range(24)))
            return answers[:18]

    for i, choice in enumerate(asyncio.run(main())):
        assert choice["token_ids"] == CASES[i % 6].tokens


def test_sigterm_ends_it(plans):
    """SIGTERM with streams running: exit status 0 within seconds, and the streams end rather than hang."""
    server = harness.Server(plans("smollm2", 1, 2, "--max-num-seqs", 2, "--max-model-len", 8192))
    body = {"model": server.model, "prompt": "Once", "max_tokens": 6000, "temperature": 0, "ignore_eos": True, "stream": True}
    with server.http.stream("POST", "/v1/completions", json=body) as r:
        lines = r.iter_lines()
        next(lines)
        assert server.stop(within=10) == 0, server.log()
        try:
            for _ in lines:
                pass
        except httpx.TransportError:
            pass
    server.http.close()


def test_sigterm_ends_an_idle_server(plans):
    """With and without a connection that was used and is still open."""
    for used in (False, True):
        server = harness.Server(plans("llama-tied"))
        if used:
            harness.completions(server, [[1, 2, 3]], 2)
        else:
            server.http.close()
        assert server.stop(within=5) == 0, server.log()
        server.http.close()


def test_two_servers_one_port(plans):
    """The second says which address is taken."""
    plan = plans("llama-tied")
    with harness.Server(plan) as server:
        harness.refused("llmrt", "serve", plan, "--port", server.port, says=[str(server.port)])


def test_few_descriptors(plans):
    """A limit on open files below that on connections: who finds a place is served, the next is told at once instead of waiting in vain,
    and connections that nobody uses make room."""
    with harness.Server(plans("llama-tied"), files=80) as server:
        assert re.search(r"may open 80 files .* leaves \d+ connections of --max-connections 2048: raise it to \d{4}", server.log()), server.log()
        clients = [httpx.Client(base_url=server.url, timeout=20 * harness.SLOW) for _ in range(80)]
        try:
            statuses = [c.get("/health").status_code for c in clients]
            assert statuses.count(200) >= 20 and set(statuses) == {200, 503}, statuses
            time.sleep(1.5)
            assert httpx.get(server.url + "/health", timeout=20 * harness.SLOW).status_code == 200
        finally:
            for c in clients:
                c.close()
        assert "cannot accept" not in server.log()
