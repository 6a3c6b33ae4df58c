"""The unmodified `openai` client against `llmrt serve`: forms, fields, streaming, errors."""
import json
import math

import openai
import pytest

import harness

META, CASES = harness.goldens(harness.GOLDEN / "smollm2/goldens.npz")
CAPITAL = [{"role": "user", "content": "What is the capital of France, and what is it known for?"}]
GREEDY = {"temperature": 0}


@pytest.fixture(scope="module")
def server(plans):
    with harness.Server(plans("smollm2", 1, 2, "--max-model-len", 1024)) as s:
        yield s


@pytest.fixture(scope="module")
def client(server):
    return server.openai()


def chat(client, server, messages=CAPITAL, **more):
    return client.chat.completions.create(model=server.model, messages=messages, **more)


def complete(client, server, prompt, **more):
    return client.completions.create(model=server.model, prompt=prompt, **more)


# --- chat ---------------------------------------------------------------------------------------------

def test_chat_is_the_golden_answer(client, server):
    """Template, tokenizer, model and detokenizer in one: the answer is transformers', word for word."""
    i = META["names"].index("chat-capital")
    answer = chat(client, server, max_tokens=64, extra_body={"return_token_ids": True}, **GREEDY)
    want = harness.until_eos(CASES[i].tokens)
    assert answer.choices[0].message.content == META["outputs"][i]
    assert harness.until_eos(answer.choices[0].token_ids) == want
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.id.startswith("chatcmpl-") and answer.object == "chat.completion" and answer.model == server.model
    assert answer.created > 1_600_000_000
    usage = answer.usage
    assert usage.prompt_tokens == len(CASES[i].prompt)
    assert usage.completion_tokens in (len(want), len(want) + 1)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_chat_stream_form(client, server):
    whole = chat(client, server, max_tokens=24, **GREEDY).choices[0].message.content
    chunks = list(chat(client, server, max_tokens=24, stream=True, stream_options={"include_usage": True}, **GREEDY))
    assert len({c.id for c in chunks}) == 1 and all(c.object == "chat.completion.chunk" for c in chunks)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(c.choices[0].delta.role is None for c in chunks[1:-1])
    *with_choices, usage = chunks
    assert usage.choices == [] and usage.usage.completion_tokens == 24
    assert all(c.usage is None for c in with_choices)
    assert [c.choices[0].finish_reason for c in with_choices[:-1]] == [None] * (len(with_choices) - 1)
    assert with_choices[-1].choices[0].finish_reason == "length"
    assert "".join(c.choices[0].delta.content or "" for c in with_choices) == whole
    assert len([c for c in with_choices if c.choices[0].delta.content]) > 10, "the text came in lumps"


def test_chat_stream_without_usage(client, server):
    chunks = list(chat(client, server, max_tokens=4, stream=True, **GREEDY))
    assert all(len(c.choices) == 1 for c in chunks) and all(c.usage is None for c in chunks)


def test_raw_stream_ends_with_done(server):
    body = {"model": server.model, "messages": CAPITAL, "max_tokens": 3, "stream": True, **GREEDY}
    with server.http.stream("POST", "/v1/chat/completions", json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        text = response.read().decode()
    events = text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""], text
    assert all(json.loads(e.removeprefix("data: ")) for e in events[:-2])


def test_n_choices(client, server):
    answer = chat(client, server, max_tokens=12, n=3, temperature=1.0, seed=7)
    assert [c.index for c in answer.choices] == [0, 1, 2]
    assert len({c.message.content for c in answer.choices}) > 1, "three samples are all the same"
    assert answer.usage.completion_tokens <= 36
    again = chat(client, server, max_tokens=12, n=3, temperature=1.0, seed=7)
    assert [c.message.content for c in again.choices] == [c.message.content for c in answer.choices]


def test_n_choices_streamed(client, server):
    whole = chat(client, server, max_tokens=12, n=2, temperature=1.0, seed=11)
    parts, roles, reasons = {0: "", 1: ""}, set(), {}
    for chunk in chat(client, server, max_tokens=12, n=2, temperature=1.0, seed=11, stream=True):
        for c in chunk.choices:
            parts[c.index] += c.delta.content or ""
            if c.delta.role:
                roles.add(c.index)
            if c.finish_reason:
                reasons[c.index] = c.finish_reason
    assert roles == {0, 1} and set(reasons) == {0, 1}
    assert [parts[0], parts[1]] == [c.message.content for c in whole.choices]


def test_content_parts_and_nulls(server):
    plain = server.post("/v1/chat/completions", model=server.model, messages=CAPITAL, max_tokens=8, **GREEDY).json()
    parts = [{"role": "user", "content": [{"type": "text", "text": CAPITAL[0]["content"]}]}]
    nulls = dict.fromkeys(("top_p", "n", "stop", "seed", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty",
                           "logit_bias", "stream", "stream_options", "user", "max_completion_tokens", "response_format",
                           "tools", "tool_choice", "top_k", "min_p"))
    response = server.post("/v1/chat/completions", model=server.model, messages=parts, max_tokens=8, **GREEDY, **nulls,
                           some_field_of_the_future={"a": [1]})
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == plain["choices"][0]["message"]["content"]


def test_unknown_fields_are_named_once(client, server):
    for _ in range(2):
        list(chat(client, server, max_tokens=1, stream=True, stream_options={"include_usage": True, "hue": 1}, extra_body={"some_hue": [1]}))
    for name in ("some_hue", "stream_options.hue"):
        assert server.log().count(f"'{name}' is not known here and is ignored") == 1, name


def test_history_of_tool_calls(client, server):
    """What agents send back, through a template that knows of no tools; and the client's own message objects."""
    call = {"id": "call_1", "type": "function", "function": {"name": "population", "arguments": "{\"city\": \"Paris\"}"}}
    for content in ({"content": None}, {"content": ""}, {}):
        history = CAPITAL + [{"role": "assistant", **content, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call_1", "content": "2,100,000"}]
        answer = chat(client, server, messages=history, max_tokens=4, **GREEDY)
        history += [answer.choices[0].message, *CAPITAL]
        assert chat(client, server, messages=history, max_tokens=4, **GREEDY).usage.prompt_tokens > answer.usage.prompt_tokens


def test_max_completion_tokens(client, server):
    answer = chat(client, server, max_completion_tokens=5, **GREEDY)
    assert answer.usage.completion_tokens == 5 and answer.choices[0].finish_reason == "length"


def test_chat_logprobs(client, server):
    answer = chat(client, server, max_tokens=8, logprobs=True, top_logprobs=5, **GREEDY)
    content = answer.choices[0].logprobs.content
    golden = CASES[META["names"].index("chat-capital")].top_logprobs()
    assert len(content) == 8
    assert "".join(t.token for t in content) == answer.choices[0].message.content
    for step, t in enumerate(content):
        assert bytes(t.bytes).decode() == t.token
        top = [x.logprob for x in t.top_logprobs]
        assert len(top) == 5 and top == sorted(top, reverse=True) and t.logprob == top[0]
        assert max(abs(a - b) for a, b in zip(top, golden[step])) <= 2 * harness.TOLERANCE


# --- completions ----------------------------------------------------------------------------------------

def test_completion_form(client, server):
    answer = complete(client, server, "The capital of France is", max_tokens=6, **GREEDY)
    assert answer.id.startswith("cmpl-") and answer.object == "text_completion"
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 6
    streamed = list(complete(client, server, "The capital of France is", max_tokens=6, stream=True, **GREEDY))
    assert "".join(c.choices[0].text for c in streamed) == answer.choices[0].text
    assert streamed[-1].choices[0].finish_reason == "length"


def test_prompt_in_every_form(client, server):
    text = ["Once upon a time", "The answer is"]
    ids = [server.post("/tokenize", model=server.model, prompt=t).json()["tokens"] for t in text]
    lone = [complete(client, server, t, max_tokens=6, **GREEDY).choices[0].text for t in text]
    assert complete(client, server, ids[0], max_tokens=6, **GREEDY).choices[0].text == lone[0]
    for prompt in (text, ids):
        answer = complete(client, server, prompt, max_tokens=6, **GREEDY)
        assert [c.text for c in answer.choices] == lone
        assert [c.index for c in answer.choices] == [0, 1]
    answer = complete(client, server, text, max_tokens=6, n=2, **GREEDY)
    assert [c.text for c in answer.choices] == [lone[0]] * 2 + [lone[1]] * 2


def test_echo_and_logprobs(client, server):
    prompt = "The capital of France is"
    answer = complete(client, server, prompt, max_tokens=3, logprobs=2, echo=True, **GREEDY)
    plain = complete(client, server, prompt, max_tokens=3, **GREEDY)
    choice = answer.choices[0]
    assert choice.text == prompt + plain.choices[0].text
    lp = choice.logprobs
    assert len(lp.tokens) == len(lp.token_logprobs) == len(lp.text_offset) == len(lp.top_logprobs)
    assert len(lp.tokens) == answer.usage.prompt_tokens + 3
    assert lp.token_logprobs[0] is None and all(x <= 0 for x in lp.token_logprobs[1:])
    for token, offset in zip(lp.tokens, lp.text_offset):
        assert choice.text[offset:offset + len(token)] == token


def test_echo_alone(client, server):
    answer = complete(client, server, "The capital of France is", max_tokens=0, logprobs=1, echo=True, **GREEDY)
    assert answer.choices[0].text == "The capital of France is"
    assert len(answer.choices[0].logprobs.token_logprobs) == answer.usage.prompt_tokens
    assert answer.usage.completion_tokens == 0


# --- sampling ---------------------------------------------------------------------------------------------

def test_seed(client, server):
    one, same, other = (chat(client, server, max_tokens=16, temperature=1.0, seed=s).choices[0].message.content
                        for s in (1, 1, 2))
    assert one == same and one != other


def test_logit_bias(client, server):
    token = server.post("/tokenize", model=server.model, prompt="zebra").json()["tokens"][-1]
    answer = complete(client, server, "A", max_tokens=4, logit_bias={str(token): 100}, extra_body={"return_token_ids": True}, **GREEDY)
    assert answer.choices[0].token_ids == [token] * 4
    usual = complete(client, server, "A", max_tokens=1, extra_body={"return_token_ids": True}, **GREEDY).choices[0].token_ids[0]
    banned = complete(client, server, "A", max_tokens=8, logit_bias={str(usual): -100}, extra_body={"return_token_ids": True}, **GREEDY)
    assert usual not in banned.choices[0].token_ids


def test_penalties_break_a_loop(server):
    prompt = CASES[META["names"].index("chinese")].prompt
    plain, = harness.completions(server, [prompt], 48)
    for field, value in (("frequency_penalty", 2.0), ("presence_penalty", 2.0)):
        fresh, = harness.completions(server, [prompt], 48, **{field: value})
        assert len(set(fresh["token_ids"])) > len(set(plain["token_ids"])), field
    r = server.post("/v1/completions", model=server.model, prompt=prompt, max_tokens=48, repetition_penalty=1.5,
                    return_token_ids=True, **GREEDY).json()["choices"][0]["token_ids"]
    assert len(set(r)) > len(set(plain["token_ids"]))


def test_top_k_one_is_greedy(server):
    prompt = CASES[META["names"].index("french")].prompt
    want, = harness.completions(server, [prompt], 16)
    for narrow in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}):
        got = server.post("/v1/completions", model=server.model, prompt=prompt, max_tokens=16, temperature=1.5, seed=3,
                          return_token_ids=True, **narrow).json()["choices"][0]["token_ids"]
        assert got == want["token_ids"], narrow


def test_eos_controls(server):
    case = CASES[META["names"].index("chat-capital")]
    want = harness.until_eos(case.tokens)
    ignoring, = harness.completions(server, [case.prompt], 64, ignore_eos=True)
    assert ignoring["token_ids"] == case.tokens and ignoring["finish_reason"] == "length"
    longer, = harness.completions(server, [case.prompt], 64, min_tokens=len(want) + 5)
    assert len(longer["token_ids"]) >= len(want) + 5 and longer["token_ids"][:len(want)] == want
    early, = harness.completions(server, [case.prompt], 64, stop_token_ids=[want[5]])
    assert early["finish_reason"] == "stop"
    assert [t for t in early["token_ids"] if t != want[5]] == want[:want.index(want[5])]


# --- the rest of the surface ----------------------------------------------------------------------------------

def test_models(client, server):
    listed = client.models.list().data
    assert [m.id for m in listed] == [server.model] and listed[0].object == "model"
    assert listed[0].max_model_len == 1024
    assert client.models.retrieve(server.model).id == server.model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_health_and_version(server):
    assert server.http.get("/health").status_code == 200
    assert server.http.get("/version").json()["version"]


@pytest.mark.parametrize("text", ["", "Hello, world!", "  runs   of    spaces\n\n\tand tabs", "naïve café — “quotes”",
                                  "日本語と中文 и русский", "👩‍👩‍👧‍👦🏳️‍🌈", "x = {'a': [1, 2.5e-3]}  # ok", "\u0000\u0001\u200b",
                                  "<|im_start|>user\nhi<|im_end|>\n"])
def test_tokenize_round_trip(server, text):
    r = server.post("/tokenize", model=server.model, prompt=text, add_special_tokens=False).json()
    assert r["count"] == len(r["tokens"]) and r["max_model_len"] == 1024
    assert server.post("/detokenize", model=server.model, tokens=r["tokens"]).json()["prompt"] == text


def test_tokenize_messages(server):
    r = server.post("/tokenize", model=server.model, messages=CAPITAL).json()
    assert r["tokens"] == CASES[META["names"].index("chat-capital")].prompt


def test_golden_prompt_ids(server):
    for text, case in zip(META["texts"], CASES):
        assert server.post("/tokenize", model=server.model, prompt=text).json()["tokens"] == case.prompt, text[:50]


# --- errors -----------------------------------------------------------------------------------------------------

def error_of(response, status) -> dict:
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    error = response.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"} and error["message"], error
    return error


def test_unknown_model(client, server):
    with pytest.raises(openai.NotFoundError) as e:
        client.chat.completions.create(model="gpt-17", messages=CAPITAL)
    assert e.value.code == "model_not_found" and "gpt-17" in e.value.message
    error_of(server.post("/v1/completions", model="gpt-17", prompt="x"), 404)


BAD_FIELDS = [("temperature", -1), ("temperature", "hot"), ("top_p", 0), ("top_p", 1.5), ("top_k", -7), ("min_p", 2), ("n", 0),
              ("n", -1), ("n", 1.5), ("max_tokens", -5), ("max_tokens", "many"), ("stop", 5), ("stop", [1]), ("seed", "x"),
              ("presence_penalty", 99), ("frequency_penalty", "a"), ("repetition_penalty", 0), ("logit_bias", [1]),
              ("logit_bias", {"x": 1}), ("logit_bias", {"49152": 1}), ("logprobs", "yes"), ("stream", "yes"),
              ("stream_options", 1), ("stop_token_ids", ["a"]), ("messages", []), ("messages", "hi"),
              ("messages", [{"content": "no role"}]), ("messages", [{"role": "user", "content": 5}]), ("messages", None),
              ("top_logprobs", -1), ("max_completion_tokens", 0.5)]


@pytest.mark.parametrize("field,value", BAD_FIELDS)
def test_bad_chat_field(server, field, value):
    body = {"model": server.model, "messages": CAPITAL, "max_tokens": 2, field: value}
    error = error_of(server.post("/v1/chat/completions", **body), 400)
    assert field in error["message"] or error["param"] == field, error


@pytest.mark.parametrize("prompt", [None, 5, [], [[]], ["a", 1], [-1], [49152], [[1, 2], [999999]], {"a": 1}, [1.5], [2**70]])
def test_bad_prompt(server, prompt):
    error_of(server.post("/v1/completions", model=server.model, prompt=prompt, max_tokens=2), 400)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\"x\"", b"{\"model\":}", b"\xff\xfe{}", b"[" * 100_000,
                                  b'{"a":' * 100_000, b'{"messages": "\\ud800"}'])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"])
def test_bad_json(server, path, body):
    error_of(server.http.post(path, content=body, headers={"content-type": "application/json"}), 400)


def test_context_length(client, server):
    with pytest.raises(openai.BadRequestError) as e:
        complete(client, server, [5] * 1000, max_tokens=100)
    assert e.value.code == "context_length_exceeded"
    assert "1024" in e.value.message and "1000" in e.value.message and "100" in e.value.message
    with pytest.raises(openai.BadRequestError) as e:
        complete(client, server, [5] * 2000)
    assert e.value.code == "context_length_exceeded"
    # Exactly full is fine, and leaving max_tokens out never asks for more than fits.
    assert complete(client, server, [5] * 1020, max_tokens=4, **GREEDY).usage.completion_tokens <= 4
    assert complete(client, server, [5] * 1020, **GREEDY).usage.total_tokens <= 1024


def test_routes(server):
    error_of(server.http.get("/v1/nothing"), 404)
    assert server.http.get("/v1/chat/completions").status_code == 405
    assert server.http.post("/health").status_code == 405
    assert server.http.get("/v1/models/" + "x" * 5000).status_code in (404, 414, 431)


def test_detokenize_refuses(server):
    for tokens in ([-1], [49152], ["a"], None, 5):
        error_of(server.post("/detokenize", model=server.model, tokens=tokens), 400)


def test_still_alive(server):
    """After all that abuse the server answers, and nothing has leaked into its log as a crash."""
    assert server.process.poll() is None
    choice, = harness.completions(server, [CASES[0].prompt], 4, logprobs=1)
    assert choice["token_ids"] == CASES[0].tokens[:4] and math.isfinite(choice["logprobs"]["token_logprobs"][0])
