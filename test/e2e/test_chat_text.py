"""Streaming text: stop strings across tokens, characters across tokens, template errors (cases 24 and 25)."""
import pytest

import harness

META, CASES = harness.goldens(harness.GOLDEN / "smollm2/goldens.npz")


@pytest.fixture(scope="module")
def server(plans):
    with harness.Server(plans("smollm2", 1, 2, "--max-model-len", 1024)) as s:
        yield s


def both_ways(server, prompt, **more):
    """(text, finish_reason, [pieces]) of a greedy completion; streamed and whole have to agree."""
    client = server.openai()
    ask = {"model": server.model, "prompt": prompt, "temperature": 0, **more}
    whole = client.completions.create(**ask).choices[0]
    chunks = list(client.completions.create(**ask, stream=True))
    pieces = [c.choices[0].text for c in chunks]
    assert "".join(pieces) == whole.text
    assert chunks[-1].choices[0].finish_reason == whole.finish_reason
    return whole.text, whole.finish_reason, pieces


def golden(name):
    i = META["names"].index(name)
    return CASES[i].prompt, META["outputs"][i]


@pytest.mark.parametrize("name", ["plain-english", "cpp", "json", "long-text"])
@pytest.mark.parametrize("length", [1, 3, 9, 25])
def test_stop_string_across_tokens(server, name, length):
    """A stop string cut from the middle of the known answer, on no token's border in particular."""
    prompt, text = golden(name)
    at = len(text) // 3
    stop = text[at:at + length]
    got, reason, pieces = both_ways(server, prompt, max_tokens=64, stop=stop)
    assert got == text[:text.index(stop)] and reason == "stop"
    for i in range(len(pieces)):
        assert text.startswith("".join(pieces[:i + 1])), "a piece ran ahead of the answer"


def test_stop_string_that_never_comes(server):
    """Held-back text that might have begun a stop string is given out in the end."""
    prompt, text = golden("plain-english")
    got, reason, _ = both_ways(server, prompt, max_tokens=64, stop=[text[-12:] + "\x01", text[10:30] + "\x01", "\x02"])
    assert got == text and reason == "length"


def test_first_of_several_stops(server):
    prompt, text = golden("cpp")
    stops = [text[40:44], text[20:28], text[60:61]]
    got, reason, _ = both_ways(server, prompt, max_tokens=64, stop=stops)
    assert got == text[:min(text.index(s) for s in stops)] and reason == "stop"


def test_stop_string_in_chat(server):
    answer = server.openai().chat.completions.create(
        model=server.model, temperature=0, max_tokens=64, stop=["known for its"],
        messages=[{"role": "user", "content": "What is the capital of France, and what is it known for?"}])
    want = META["outputs"][META["names"].index("chat-capital")]
    end = want.find("known for its")
    assert answer.choices[0].message.content == (want if end < 0 else want[:end])


@pytest.mark.parametrize("name", ["chinese", "japanese-emoji", "russian", "french", "german"])
def test_characters_across_tokens(server, name):
    """No broken character in any piece, and none lost: each prefix of the stream is a prefix of the answer."""
    prompt, text = golden(name)
    for limit in (64, 63, 62, 61):
        got, _, pieces = both_ways(server, prompt, max_tokens=limit)
        whole = text.rstrip("\ufffd")
        assert whole.startswith(got.rstrip("\ufffd")), "the answer differs"
        assert "\ufffd" not in "".join(pieces[:-1]), "a character was given out before it was whole"


def test_emoji_forced_byte_by_byte(server):
    """Emoji of several tokens, forced through the bias: held until whole."""
    ids = server.post("/tokenize", model=server.model, prompt="🧬").json()["tokens"]
    assert len(ids) >= 2, "the emoji is one token; the test wants one of several"
    text, _, pieces = both_ways(server, "x", max_tokens=1, logit_bias={str(ids[0]): 100})
    assert "".join(pieces) == text and len(text) <= 1, "half an emoji is at most one replacement character"
    echo = server.openai().completions.create(model=server.model, prompt=ids, max_tokens=0, echo=True)
    assert echo.choices[0].text == "🧬"


def test_template_exception_is_400(plans):
    """Case 24: raise_exception in a chat template answers 400 with its message."""
    with harness.Server(plans("mistral-24-heads")) as server:
        ok = server.post("/v1/chat/completions", model=server.model, messages=[{"role": "user", "content": "hi"}], max_tokens=2)
        assert ok.status_code == 200, ok.text
        bad = server.post("/v1/chat/completions", model=server.model, max_tokens=2,
                          messages=[{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}])
        assert bad.status_code == 400, bad.text
        assert "Only user and assistant roles are supported, got system!" in bad.json()["error"]["message"]


def test_no_template_is_400(plans):
    """A model without a chat template: chat is refused with a reason, completions work, the log says so."""
    with harness.Server(plans("qwen3-7-7")) as server:
        bad = server.post("/v1/chat/completions", model=server.model, messages=[{"role": "user", "content": "hi"}], max_tokens=2)
        assert bad.status_code == 400 and "template" in bad.json()["error"]["message"], bad.text
        ok = server.post("/v1/completions", model=server.model, prompt="The plan", max_tokens=2)
        assert ok.status_code == 200, ok.text
        assert "template" in server.log()
