"""Small but real tokenizers for the golden models: byte-level BPE in several pre-tokeniser flavours,
and a SentencePiece-style BPE with byte fallback. Merges are learnt from a fixed text, so every
machine makes the same files.
"""
import functools
import json
import re

CORPUS = """
The quick brown fox jumps over the lazy dog, and the dog does not care. In the beginning there was
a plan, then there were several plans, then there were meetings about the plans. Parallel lines meet
at infinity; parallel ranks meet at the collective. Every token that the model reads has a position,
and every position has a key and a value. What is the capital of France? The capital of France is
Paris. def main(args): return sum(int(x) for x in args if x) # total for the whole list
for (int i = 0; i < n; ++i) { out[i] = in[i] * scale + bias; } The answer is 42, the year is 1984.
Der schnelle braune Fuchs springt ueber den faulen Hund. Le renard brun saute par-dessus le chien.
Once upon a time there was a small model that wanted to be served. It was the smallest of them all.
"""

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")

STRICT_TEMPLATE = ("{% for message in messages %}{% if message['role'] not in ['user', 'assistant'] %}"
                   "{{ raise_exception('Only user and assistant roles are supported, got ' + message['role'] + '!') }}{% endif %}"
                   "{{'[' + message['role'] + '] ' + message['content'] + '\\n'}}{% endfor %}"
                   "{% if add_generation_prompt %}{{ '[assistant]' }}{% endif %}")

LLAMA3_REGEX = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2_REGEX = LLAMA3_REGEX.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_alphabet() -> list:
    """The 256 printable stand-ins of GPT-2's byte-level BPE, indexed by byte."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {}, 0
    for b in range(256):
        if b in keep:
            table[b] = chr(b)
        else:
            table[b] = chr(256 + extra)
            extra += 1
    return [table[b] for b in range(256)]


def _learn(sequences: list, count: int, taken: set) -> list:
    """Plain BPE training: `count` merges of the most frequent pair (ties: smallest pair first)."""
    merges = []
    while len(merges) < count:
        pairs = {}
        for seq in sequences:
            for pair in zip(seq, seq[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        pairs = {p: n for p, n in pairs.items() if p[0] + p[1] not in taken}
        if not pairs:
            raise ValueError(f"the corpus yields {len(merges)} merges, {count} are wanted")
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        taken.add(best[0] + best[1])
        for k, seq in enumerate(sequences):
            i, out = 0, []
            while i < len(seq):
                if i + 1 < len(seq) and (seq[i], seq[i + 1]) == best:
                    out.append(seq[i] + seq[i + 1])
                    i += 2
                else:
                    out.append(seq[i])
                    i += 1
            sequences[k] = out
    return merges


@functools.lru_cache(None)
def byte_level(size: int):
    """(tokens, merges): 256 byte tokens, then merges, then SPECIALS; `size` tokens in all."""
    alphabet = byte_alphabet()
    text = re.findall(r" ?\w+| ?[^\w\s]+|\s+", CORPUS)
    sequences = [[alphabet[b] for b in w.encode()] for w in text]
    # Sorted by code point, as the reference tokenizers do, so that ids differ from byte values.
    tokens = sorted(alphabet)
    merges = _learn(sequences, size - 256 - len(SPECIALS), set(tokens))
    return tokens + [a + b for a, b in merges] + SPECIALS, merges


@functools.lru_cache(None)
def sentencepiece(size: int):
    """(tokens, merges): <unk> <s> </s>, 256 byte tokens, characters, then merges; `size` in all."""
    text = [w.replace(" ", "\u2581") for w in re.findall(r" ?\S+|\n", " " + CORPUS.strip())]
    sequences = [list(w) for w in text]
    chars = sorted({c for w in sequences for c in w} | {"\u2581"})
    base = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    merges = _learn(sequences, size - len(base) - len(chars), set(chars))
    return base + [a + b for a, b in merges] + chars, merges


def _added(content: str, index: int) -> dict:
    return {"id": index, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True}


def _pre_tokenizer(kind: str) -> dict:
    byte_level_step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    if kind == "gpt2":
        return {**byte_level_step, "use_regex": True}
    if kind == "smollm":
        return {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                                                      {**byte_level_step, "use_regex": True}]}
    regex = {"llama3": LLAMA3_REGEX, "qwen2": QWEN2_REGEX}[kind]
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, byte_level_step]}


def tokenizer_json(kind: str, size: int) -> dict:
    """The tokenizer.json of kind gpt2, smollm, llama3, qwen2 or sentencepiece."""
    common = {"version": "1.0", "truncation": None, "padding": None}
    if kind == "sentencepiece":
        tokens, merges = sentencepiece(size)
        return {**common, "added_tokens": [_added(t, i) for i, t in enumerate(tokens[:3])],
                "normalizer": {"type": "Sequence", "normalizers": [
                    {"type": "Prepend", "prepend": "\u2581"},
                    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
                "pre_tokenizer": None,
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
                "decoder": {"type": "Sequence", "decoders": [
                    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                    {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
                "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                          "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True,
                          "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [f"{a} {b}" for a, b in merges]}}
    tokens, merges = byte_level(size)
    first = size - len(SPECIALS)
    return {**common, "added_tokens": [_added(t, first + i) for i, t in enumerate(SPECIALS)],
            "normalizer": {"type": "NFC"} if kind == "qwen2" else None,
            "pre_tokenizer": _pre_tokenizer(kind),
            "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                      "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": kind == "llama3",
                      "vocab": {t: i for i, t in enumerate(tokens[:first])},
                      # Both spellings of a merge are in use: a string with a space, and a pair.
                      "merges": [[a, b] for a, b in merges] if kind == "qwen2" else [f"{a} {b}" for a, b in merges]}}


def tokenizer_config(kind: str, size: int, template) -> dict:
    """tokenizer_config.json; `template` is the chat template or None."""
    if kind == "sentencepiece":
        config = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False, "bos_token": "<s>",
                  "eos_token": "</s>", "unk_token": "<unk>", "clean_up_tokenization_spaces": False}
    else:
        first = size - len(SPECIALS)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": "<|im_end|>",
                  "clean_up_tokenization_spaces": False,
                  "added_tokens_decoder": {str(first + i): {k: v for k, v in _added(t, 0).items() if k != "id"}
                                           for i, t in enumerate(SPECIALS)}}
    if template is not None:
        config["chat_template"] = template
    return config


def write(folder: str, kind: str, size: int, template) -> None:
    for name, data in (("tokenizer.json", tokenizer_json(kind, size)),
                       ("tokenizer_config.json", tokenizer_config(kind, size, template))):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            json.dump(data, f, ensure_ascii=False, indent=1)
