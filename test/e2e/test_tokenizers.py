"""The server's ids equal the `tokenizers` package's for every kind of tokenizer, end to end through the plan."""
import pytest
import tokenizers

import harness
from deterministic import words

TEXTS = ["", " ", "  ", "\n", "Hello world", " Hello  world ", "The capital of France is Paris.", "it's we'll I'VE don't",
         "1 12 123 1234 3.14159", "x = {'a': [1, 2.5e-3]}  # ok\n\tif x:\n        return", "naïve café — “quotes” …",
         "日本語と中文 и русский العربية हिन्दी", "👩‍👩‍👧‍👦🏳️‍🌈 🧬🙂", "\u0000\u0001\u200b\u00a0\ufeff", "a" * 300, " \t \n \r\n  x",
         "<|im_start|>user\nhi<|im_end|>\n", "<|im_start|", "<s>not special here</s>", "e\u0301 vs \u00e9", "\ud7ff\ue000\uffff"]
POOL = "abz ABZ 019 .,;!?'\"()[]{}<>|/\\-_=+*&^%$#@~`\n\t éßøñ日本한국🙂🧬\u0301"


def random_texts(count: int):
    for i in range(count):
        w = words(f"text/{i}", 2 + i % 60)
        yield "".join(POOL[int(x) % len(POOL)] for x in w)


@pytest.mark.parametrize("name", ["llama-tied", "llama-untied-bf16", "llama3-rope-f16", "qwen2-14-2", "mistral-sentencepiece"])
def test_ids(name, models, plans):
    """gpt2, smollm, llama3, qwen2 and SentencePiece-style; 400 strings in all directions."""
    oracle = tokenizers.Tokenizer.from_file(str(models(name) / "tokenizer.json"))
    with harness.Server(plans(name)) as server:
        for text in [*TEXTS, *random_texts(380)]:
            for special in (True, False):
                got = server.post("/tokenize", model=server.model, prompt=text, add_special_tokens=special)
                assert got.status_code == 200, got.text
                want = oracle.encode(text, add_special_tokens=special).ids
                assert got.json()["tokens"] == want, f"{text!r}, add_special_tokens={special}"


@pytest.mark.parametrize("name,like", [("gguf-llama-tied-q41", "llama-untied-bf16"), ("gguf-llama-mixed", None), ("gguf-qwen3", "qwen3-tied"),
                                       ("gguf-llama-spm-hd100", "mistral-sentencepiece")])
def test_gguf_ids(name, like, models, plans):
    """The same vocabulary from a GGUF gives the same ids as its tokenizer.json."""
    if like:
        text = (models(like) / "tokenizer.json").read_text()
    else:
        import json
        text = json.dumps(harness.make_models.tiny_tokenizer.tokenizer_json("llama3", 509))
    oracle = tokenizers.Tokenizer.from_str(text)
    with harness.Server(plans(name)) as server:
        for text in [*TEXTS, *random_texts(150)]:
            got = server.post("/tokenize", model=server.model, prompt=text, add_special_tokens=False).json()["tokens"]
            assert got == oracle.encode(text, add_special_tokens=False).ids, repr(text)
