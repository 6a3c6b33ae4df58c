"""What clients join from a stream is what they get whole, for random requests of every kind, over three kinds of tokenizer; and both
are the text of the tokens behind the prompt."""
import json
import random

import pytest

import harness

ROUNDS = 60 if harness.SANITIZED else 400
FRAGMENTS = ["Hello", " world", "日本語", "👩‍👩‍👧", "\n\n", "  ", "a", "é", "<|im_end|>", "<s>", "𝔘", "def f(x):\n\treturn x", "العربية", "\0", "1234567", "😀😃",
             " ", "\t"]
SPECIAL = ["<s>", "</s>", "<unk>", "<|im_end|>", "<|im_start|>", "<|endoftext|>"]
STOPS = [" the", "e", "a b", "\n", ". ", "é", "日", "in", "x"]


@pytest.fixture(scope="module", params=["mistral-sentencepiece", "llama-untied-bf16", "qwen2-14-2"])
def server(request, plans):
    with harness.Server(plans(request.param)) as s:
        yield s


def random_request(rng, server, vocab):
    """(path, body)"""
    def sometimes(share, name, value):
        if rng.random() < share:
            body[name] = value() if callable(value) else value

    text = "".join(rng.choices(FRAGMENTS, k=rng.randint(1, 10)))
    body = {"model": server.model, "temperature": rng.choice([0, 0.7, 1.5, 2]), "seed": rng.randrange(1 << 60), "n": rng.choice([1, 1, 2, 3]),
            "max_tokens": rng.choice([1, 2, 5, 17, 40]), "return_token_ids": True}
    sometimes(0.4, "top_p", lambda: rng.uniform(0.1, 1))
    sometimes(0.3, "top_k", lambda: rng.randint(1, 200))
    sometimes(0.2, "min_p", lambda: rng.uniform(0, 0.3))
    sometimes(0.2, "presence_penalty", lambda: rng.uniform(-2, 2))
    sometimes(0.2, "frequency_penalty", lambda: rng.uniform(-2, 2))
    sometimes(0.2, "repetition_penalty", lambda: rng.uniform(0.5, 2))
    sometimes(0.3, "ignore_eos", True)
    sometimes(0.4, "stop", lambda: rng.choices(STOPS, k=rng.randint(1, 3)))
    sometimes(0.2, "include_stop_str_in_output", True)
    sometimes(0.2, "skip_special_tokens", False)
    sometimes(0.2, "logit_bias", lambda: {str(rng.randrange(vocab)): rng.uniform(0, 30) for _ in range(20)})
    body["prompt"] = [rng.randrange(vocab) for _ in range(rng.randint(1, 30))] if rng.random() < 0.4 else text
    sometimes(0.2, "prompt", [body["prompt"]] * 2)
    sometimes(0.4, "logprobs", lambda: rng.randint(0, 5))
    sometimes(0.3, "echo", True)
    if "echo" in body:
        sometimes(0.3, "max_tokens", 0)
    return body


def joined(server, body):
    """([choice], usage) of a stream, in the form of a whole answer."""
    choices, usage = {}, None
    with server.http.stream("POST", "/v1/completions", json={**body, "stream": True, "stream_options": {"include_usage": True}}) as response:
        assert response.status_code == 200, response.read()
        events = b"".join(response.iter_bytes()).decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    for event in map(json.loads, (e.removeprefix("data: ") for e in events[:-2])):
        assert usage is None, "something came behind the usage"
        usage = event["usage"]
        for part in event["choices"]:
            all_ = choices.setdefault(part["index"], {"index": part["index"], "text": "", "logprobs": None, "finish_reason": None, "token_ids": []})
            assert all_["finish_reason"] is None, "something came behind the end"
            all_["text"] += part["text"]
            all_["token_ids"] += part["token_ids"]
            all_["finish_reason"], all_["stop_reason"] = part["finish_reason"], part.get("stop_reason")
            all_.setdefault("prompt_token_ids", part.get("prompt_token_ids"))
            if part["logprobs"] and all_["logprobs"]:
                for name, values in part["logprobs"].items():
                    all_["logprobs"][name] += values
            all_["logprobs"] = all_["logprobs"] or part["logprobs"]
    return [choices[i] for i in sorted(choices)], usage


def text_of(server, ids):
    return server.post("/detokenize", tokens=ids).json()["prompt"]


def check_text(server, body, choice, special):
    """Where nothing was cut off or left out, the text is that of the tokens behind the prompt."""
    ids = choice["token_ids"]
    if "stop" in body or special & set(ids) or "\ufffd" in choice["text"]:
        return False
    whole, prompt = text_of(server, choice["prompt_token_ids"] + ids), text_of(server, choice["prompt_token_ids"])
    if "\ufffd" in whole + prompt:
        return False
    if body.get("echo"):
        assert choice["text"].endswith(whole[len(prompt):])
    else:
        assert choice["text"] == whole[len(prompt):]
    return True


def check_offsets(body, choice):
    """Each token stands in the text where its offset says; special ones may be missing there, and the first one's space."""
    text = choice["text"]
    if "stop" in body or not choice["logprobs"] or "\ufffd" in text:
        return False
    first = True
    for token, offset in zip(choice["logprobs"]["tokens"], choice["logprobs"]["text_offset"]):
        if "\ufffd" not in token and token not in SPECIAL:
            wanted = [token, token[1:]] if first and token[:1] == " " else [token]
            assert any(text.startswith(w, offset) for w in wanted), (token, offset, text)
        first = token in SPECIAL
    return True


def test_streamed_is_whole(server):
    rng = random.Random(server.model)
    vocab = server.post("/detokenize", tokens=[1 << 30]).json()["error"]["message"]
    vocab = int(vocab.rsplit(" ", 1)[1]) + 1
    special = {i for name in SPECIAL for i in server.post("/tokenize", prompt=name, add_special_tokens=False).json()["tokens"][:1] if text_of(server, [i]) == name}
    compared = offsets = 0
    for _ in range(ROUNDS):
        body = random_request(rng, server, vocab)
        answer = server.post("/v1/completions", **body)
        assert answer.status_code == 200, (body, answer.text)
        answer = answer.json()
        choices, usage = joined(server, body)
        assert {k: v for k, v in usage.items() if k.endswith("tokens")} == {k: v for k, v in answer["usage"].items() if k.endswith("tokens")}, body
        assert choices == answer["choices"], body
        assert sum(len(c["token_ids"]) for c in choices) == usage["completion_tokens"], body
        for choice in choices:
            compared += check_text(server, body, choice, special)
            offsets += check_offsets(body, choice)
    assert compared > ROUNDS // 10 and offsets > ROUNDS // 20, f"{compared} texts and {offsets} lists of offsets were compared"
