"""Writes the seed corpus of fuzz_tokenizer: every configuration of test/golden/text over tiny vocabularies,
each with a text that its special tokens and odd characters occur in. (Files named after a hash are inputs
that once failed; they stay.)

    python test/fuzz/tokenizer/make_corpus.py
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "golden/text"))
import make_tokenizers as mt  # noqa: E402

TEXT = "abab 12 a\u0301 \U0001F600 don't\r\n\n  x<s>ab<|end|> ab\x00\u00e9\u4e2d\t<|end|>".encode() + b"\xff\xe2\x82"
SPECIAL = [{"id": 0, "content": "<s>", "special": True, "normalized": False},
           {"id": 90, "content": "<|end|>", "special": False, "normalized": True, "lstrip": True, "rstrip": True},
           {"id": 91, "content": "ab", "special": False, "single_word": True, "normalized": False}]


def tiny(spm):
    letters = "▁abdnotx12" if spm else "Ġabdnotx12'ċĊčÃ©ðŁĺĢÿâĤ"
    vocab = {"<s>": 0}
    if spm:
        for b in (0x0A, 0xE2, 0xF0, 0x9F, 0x98, 0x80, 0xC3, 0xA9):
            vocab[f"<0x{b:02X}>"] = len(vocab)
    for c in letters:
        vocab.setdefault(c, len(vocab))
    merges = [("a", "b"), ("ab", "ab"), (letters[0], "a"), ("1", "2"), ("o", "n")]
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    return vocab, merges


def write(name, doc, text=TEXT):
    (HERE / "corpus" / name).write_bytes(json.dumps(doc, ensure_ascii=False, separators=(",", ":")).encode() + b"\0" + text)


def main():
    (HERE / "corpus").mkdir(exist_ok=True)
    (HERE / "corpus_gguf").mkdir(exist_ok=True)
    bases = {}
    for name, doc in mt.fixtures().items():
        spm = name in ("llama2", "mistral")
        vocab, merges = tiny(spm)
        doc = {**doc, "added_tokens": SPECIAL,
               "model": {**doc["model"], "vocab": vocab,
                         "merges": [" ".join(m) if name in ("gpt2", "llama2") else list(m) for m in merges]}}
        if spm:
            doc["model"]["unk_token"] = "<s>"
        bases[name] = doc
        write(name, doc)
    for name, (base, changes) in mt.variants().items():
        if "-vocab" not in changes and "+added_tokens" not in changes:
            write(name, mt.apply_variant(bases[base], changes))
    for name, model, pre, spm in (("smollm", "gpt2", "smollm", False), ("llama3", "gpt2", "llama-bpe", False),
                                  ("qwen2", "gpt2", "qwen2", False), ("default", "gpt2", "default", False),
                                  ("spm", "llama", "", True), ("spm-merges", "llama", "", True)):
        vocab, merges = tiny(spm)
        lines = [f"{model}/{pre}/{'b' if name == 'llama3' else ''}0"]
        for i, token in enumerate(vocab):
            kind = 3 if token == "<s>" else 6 if token.startswith("<0x") else 1
            lines.append(f"{kind}{chr(126 - i)}{token}")
        lines.append("")
        if name != "spm":
            lines += [" ".join(m) for m in merges]
        data = "\n".join(lines).encode() + b"\n\n" + TEXT
        (HERE / "corpus_gguf" / name).write_bytes(data)


if __name__ == "__main__":
    main()
