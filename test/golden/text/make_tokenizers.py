"""Writes the tokenizer fixtures and their goldens.

Trains small BPE vocabularies with the `tokenizers` package, puts each under the exact configuration of a
well-known model (normaliser, pre-tokeniser, post-processor, decoder, added tokens, model flags), and
records what the package answers for every string of make_strings.py:

    strings.bin.gz           the strings
    <name>.json.gz           a tokenizer.json
    <name>.golden.gz         ids and decoded texts for it (format: see Writer, read by golden_file.h)
    variants.json            tokenizers that differ from one of the above in a few members
    gguf-spm.json.gz         GGUF metadata without merges, and the merges that `transformers` derives
    smollm2.golden.gz        the same for the real SmolLM2 vocabulary, with --gguf PATH

    python make_tokenizers.py [--gguf SmolLM2-135M-Instruct.Q4_1.gguf]
"""
import argparse
import collections
import copy
import gzip
import json
import pathlib
import pydoc_data.topics
import random
import sys
import inspect
import email.message
import argparse as argparse_module
import decimal
import difflib

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import make_strings

HERE = pathlib.Path(__file__).parent
VOCAB = 3000
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")


class Writer:
    """LEB128 numbers and length-prefixed UTF-8, gzipped without a time stamp."""

    def __init__(self):
        self.data = bytearray()

    def number(self, n):
        while n >= 0x80:
            self.data.append(n & 0x7F | 0x80)
            n >>= 7
        self.data.append(n)

    def text(self, s):
        b = s.encode()
        self.number(len(b))
        self.data += b

    def ids(self, ids):
        self.number(len(ids))
        for i in ids:
            self.number(i)

    def save(self, path):
        path.write_bytes(gzip.compress(bytes(self.data), 9, mtime=0))
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def corpus():
    for topic in pydoc_data.topics.topics.values():
        yield topic
    for module in (email.message, argparse_module, decimal, difflib, inspect, json, random):
        try:
            yield inspect.getsource(module)
        except OSError:
            pass
    rng = random.Random(7)
    words = [w for s in make_strings.SENTENCES for w in s.split()]
    for _ in range(200):
        yield " ".join(rng.choice(words) for _ in range(200))
    for s in make_strings.SENTENCES + make_strings.CODE:
        yield "\n".join([s] * 20)


def train(pre_tokenizer, **options):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizer
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(show_progress=False, **options))
    model = json.loads(tok.to_str())["model"]
    return model["vocab"], [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]


def byte_level(pattern_steps, specials_first=()):
    steps = pre_tokenizers.Sequence([*pattern_steps, pre_tokenizers.ByteLevel(False, use_regex=not pattern_steps)])
    vocab, merges = train(steps, vocab_size=VOCAB, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    if specials_first:
        vocab = {**{s: i for i, s in enumerate(specials_first)},
                 **{t: i + len(specials_first) for t, i in vocab.items()}}
    return vocab, merges


def sentencepiece(controls):
    """Characters and merges over "▁", bytes as "<0xNN>", the order of ids of a converted SentencePiece model."""
    counts = collections.Counter("▁" + "".join(corpus()).replace(" ", "▁"))
    alphabet = [c for c, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:600]]
    vocab, merges = train(pre_tokenizers.Metaspace(), vocab_size=VOCAB, initial_alphabet=alphabet,
                          limit_alphabet=len(alphabet))
    spaces = [("▁", "▁"), ("▁▁", "▁▁"), ("▁▁", "▁"), ("▁", "▁▁"), ("▁▁▁▁", "▁▁▁▁"), ("▁▁▁▁▁▁▁▁", "▁▁▁▁▁▁▁▁")]
    merges = merges[:40] + spaces + merges[40:]
    tokens = list(controls) + [f"<0x{b:02X}>" for b in range(256)]
    tokens += [a + b for a, b in merges] + sorted(t for t in vocab if len(t) == 1)
    return {t: i for i, t in enumerate(dict.fromkeys(tokens))}, merges


def added(vocab, contents, first_id=None, special=True, **flags):
    out = []
    for k, content in enumerate(contents):
        token_id = vocab[content] if content in vocab else first_id + k
        out.append({"id": token_id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                    "normalized": False, "special": special, **flags})
    return out


def bl(add_prefix_space, trim_offsets, use_regex=None):
    out = {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": trim_offsets}
    return out if use_regex is None else {**out, "use_regex": use_regex}


def template(token, token_id):
    piece = {"SpecialToken": {"id": token, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [piece, text],
            "pair": [piece, text, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}}}


def document(vocab, merges, added_tokens, normalizer=None, pre_tokenizer=None, post_processor=None, decoder=None,
             merges_as_strings=False, **model):
    base = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added_tokens,
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": post_processor,
            "decoder": decoder,
            "model": {**base, **model, "vocab": vocab,
                      "merges": [" ".join(m) for m in merges] if merges_as_strings else [list(m) for m in merges]}}


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


SPM_DECODER = {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
SMOLLM_SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>",
                   "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>",
                   "<jupyter_code>", "<jupyter_output>", "<jupyter_script>", "<empty_output>"]
SMOLLM_PRE = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, bl(False, True, True)]}
QWEN_SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
                 "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
                 "<|image_pad|>", "<|video_pad|>"]
QWEN_PLAIN = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
              "<|repo_name|>", "<|file_sep|>"]


def smollm2(vocab, merges):
    return document(vocab, merges, added(vocab, SMOLLM_SPECIALS), pre_tokenizer=SMOLLM_PRE,
                    decoder=bl(True, True, True))


def fixtures():
    out = {}
    gpt2_vocab, gpt2_merges = byte_level([])
    out["gpt2"] = document(gpt2_vocab, gpt2_merges, added(gpt2_vocab, ["<|endoftext|>"], len(gpt2_vocab), normalized=True),
                           pre_tokenizer=bl(False, True), post_processor=bl(True, False), decoder=bl(True, True),
                           merges_as_strings=True, continuing_subword_prefix="", end_of_word_suffix="")
    vocab, merges = byte_level([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)][:1] +
                               [pre_tokenizers.Split(tokenizers.Regex(r"\s+(?!\S)| ?\p{L}+|\p{P}+"), "isolated")],
                               SMOLLM_SPECIALS)
    out["smollm2-small"] = smollm2(vocab, merges)
    vocab, merges = byte_level([pre_tokenizers.Split(tokenizers.Regex(LLAMA3), "isolated")])
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
                "<|finetune_right_pad_id|>", "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>",
                "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"] + [f"<|reserved_special_token_{i}|>" for i in range(3, 20)]
    out["llama3"] = document(vocab, merges, added(vocab, specials, len(vocab)),
                             pre_tokenizer={"type": "Sequence", "pretokenizers": [split(LLAMA3), bl(False, True, False)]},
                             post_processor={"type": "Sequence", "processors": [
                                 bl(True, False, True), template("<|begin_of_text|>", len(vocab))]},
                             decoder=bl(True, True, True), ignore_merges=True, merges_as_strings=True)
    vocab, merges = byte_level([pre_tokenizers.Split(tokenizers.Regex(QWEN2), "isolated")])
    for name, plain in (("qwen2", QWEN_PLAIN), ("qwen3", QWEN_PLAIN + ["<tool_response>", "</tool_response>", "<think>", "</think>"])):
        tokens = added(vocab, QWEN_SPECIALS, len(vocab))
        tokens += added(vocab, plain, len(vocab) + len(QWEN_SPECIALS), special=False)
        out[name] = document(vocab, merges, tokens, normalizer={"type": "NFC"},
                             pre_tokenizer={"type": "Sequence", "pretokenizers": [split(QWEN2), bl(False, False, False)]},
                             post_processor=bl(False, False, False), decoder=bl(False, False, False),
                             continuing_subword_prefix="", end_of_word_suffix="", merges_as_strings=name == "qwen2")
    vocab, merges = sentencepiece(["<unk>", "<s>", "</s>"])
    out["llama2"] = document(vocab, merges, added(vocab, ["<unk>", "<s>", "</s>"]),
                             normalizer={"type": "Sequence", "normalizers": [
                                 {"type": "Prepend", "prepend": "▁"},
                                 {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
                             post_processor=template("<s>", 1), decoder=SPM_DECODER, merges_as_strings=True,
                             unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    controls = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                "[TOOL_RESULTS]", "[/TOOL_RESULTS]"]
    vocab, merges = sentencepiece(controls)
    out["mistral"] = document(vocab, merges, added(vocab, controls),
                              pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
                              post_processor=template("<s>", 1), decoder=SPM_DECODER,
                              unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    return out


def at(content, **flags):
    return {"id": None, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": True, "special": False, **flags}


def pre(*steps):
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": list(steps)}}


def variants():
    """name -> (base fixture, members to replace); "+added_tokens" adds to the base's, "model" members merge,
    "-vocab" removes tokens."""
    every = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    out = {}
    for behavior in every:
        for invert in (False, True):
            step = {"type": "Split", "pattern": {"Regex": r"\w+|[^\w\s]+"}, "behavior": behavior, "invert": invert}
            out[f"split-{behavior}-{invert}"] = ("gpt2", pre(step, bl(False, True, False)))
            out[f"scan-{behavior}-{invert}"] = ("gpt2", pre({**step, "pattern": {"Regex": LLAMA3}}, bl(False, True, False)))
        out[f"literal-{behavior}"] = ("gpt2", pre({"type": "Split", "pattern": {"String": "e"}, "behavior": behavior,
                                                   "invert": False}, bl(True, True, True)))
    patterns = {
        "gpt4o": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
                 r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
                 r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "gpt2-regex": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
        "llama3-by-regex": LLAMA3 + "|$^",
        "space": r"\s", "not-space": r"\S+", "word": r"\w", "not-word": r"\W+", "digit": r"\d", "not-digit": r"\D+",
        "hex": r"\h+", "mark": r"\p{M}", "not-letter": r"\P{L}+", "negated": r"[^\p{L}\P{N}]", "punct": r"\p{P}|\p{S}",
        "han": r"\p{Han}+|[\p{Hiragana}\p{Katakana}]+", "lines": r"^.|.$", "dotall": r"(?m:a.b)|.",
        "border": r"\b\w+\b|\B.", "vertical-tab": r"\v|[\n\v]{2}", "posix": r"[[:digit:]_]+|[[:^space:][:xdigit:]]",
        "property-names": r"\p{lu}+|\p{Lowercase_Letter}|\p{ dash punctuation }|\p{Digit}", "no-interval": r"a{,}|e{x",
        "intervals-repeated": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
                              r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        "class-in-class": r" ?[^(\s|[.,!?…。，、।۔،])]+",
        "empty-matches": r"x*", "cased": r"(?i)straße|ÉTÉ|k|ſ",
    }
    for name, pattern in patterns.items():
        out["regex-" + name] = ("gpt2", pre(split(pattern), bl(False, True, False)))
    out["byte-level-prefix"] = ("gpt2", {"pre_tokenizer": bl(True, True, True)})
    out["byte-level-in-the-middle"] = ("gpt2", pre(bl(False, True, True), {"type": "Digits", "individual_digits": False}))
    out["digits-runs"] = ("gpt2", pre({"type": "Digits", "individual_digits": False}, bl(False, True, False)))
    for behavior in every:
        out[f"punctuation-{behavior}"] = ("gpt2", pre({"type": "Punctuation", "behavior": behavior}, bl(False, True, False)))
    out["punctuation"] = ("gpt2", pre({"type": "Punctuation"}, bl(False, True, True), {"type": "Digits", "individual_digits": True}))
    out["roberta"] = ("gpt2", {"post_processor": {"type": "RobertaProcessing", "sep": ["<b>", 2], "cls": ["<a>", 1],
                                                  "trim_offsets": True, "add_prefix_space": True}})
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        out["form-" + form] = ("qwen2", {"normalizer": {"type": form}})
    out["normalizers"] = ("qwen2", {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}]}})
    out["added-flags"] = ("qwen2", {"+added_tokens": [
        at("free", single_word=True), at("<|l|>", lstrip=True), at("and", lstrip=True, rstrip=True, single_word=True),
        at("<think>", rstrip=True, normalized=False, special=True), at("e\u0301", normalized=True), at("  ", normalized=False),
        at("<|im", normalized=False), at("un", special=True), at("'", lstrip=True, normalized=False)]})
    out["added-ids"] = ("qwen2", {"+added_tokens": [
        at("<think>", special=True, id=9000), at("free", id=2), at("</think>", id=3), at("<s>", special=True, id=4000),
        at("<think>", normalized=False, id=9001)]})
    out["added-spaces"] = ("llama3", {"+added_tokens": [
        at("\n\n", normalized=False), at("  ", normalized=False), at("</s>", rstrip=True, normalized=False),
        at("<s>", lstrip=True, rstrip=True, normalized=False), at("\t", rstrip=True, normalized=False)]})
    out["lowercase"] = ("qwen2", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}})
    # What the GGUF converter's names stand for.
    tekken = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
              r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
              r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    out["pre-tekken"] = ("llama3", pre(split(tekken), bl(False, False, False)))
    seed = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+"
            r"|\s+(?!\S)|\s+")
    out["pre-seed-coder"] = ("qwen2", {"normalizer": None, **pre(split(seed), bl(False, False, False))})
    out["pre-deepseek-coder"] = ("qwen2", {"normalizer": None, **pre(
        split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
        {"type": "Digits", "individual_digits": True}, bl(False, False, False))})
    out["pre-smaug"] = ("llama3", {"model": {"ignore_merges": False}, "post_processor": None})
    for name, normalizer in {
            "strip": {"type": "Strip", "strip_left": True, "strip_right": False}, "accents": {"type": "StripAccents"},
            "replace": {"type": "Replace", "pattern": {"Regex": r"^[\sA-M]+"}, "content": ""},
            "prepend-strip": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "  "}, {"type": "Strip", "strip_left": True, "strip_right": True}]}}.items():
        out[f"metaspace-first-{name}"] = ("mistral", {"normalizer": normalizer})
    out["added-normalized"] = ("llama2", {"+added_tokens": [
        at("<think>"), at("<|im_start|>", special=True, normalized=False), at("human"), at("<|endoftext|>", rstrip=True, normalized=False)]})
    for scheme in ("first", "always", "never"):
        for do_split in (True, False):
            step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": do_split}
            out[f"metaspace-{scheme}-{do_split}"] = ("mistral", {"pre_tokenizer": step, "decoder": step})
    out["metaspace-legacy"] = ("mistral", {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
                                           "decoder": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}})
    out["unk-fused"] = ("llama2", {"-vocab": ["<0xE2>", "<0xC3>", "<0xF0>"]})
    out["unk-single"] = ("llama2", {"-vocab": ["<0xE2>", "<0xC3>", "<0xF0>"], "model": {"fuse_unk": False}})
    out["no-unk-no-bytes"] = ("llama2", {"model": {"unk_token": None, "byte_fallback": False}})
    out["no-marker"] = ("llama2", {"normalizer": None})
    out["ignore-merges-spm"] = ("mistral", {"model": {"ignore_merges": True},
                                            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}})
    out["no-decoder"] = ("gpt2", {"decoder": None})
    out["strip-both"] = ("llama2", {"decoder": {"type": "Sequence", "decoders": [
        {"type": "ByteFallback"}, {"type": "Replace", "pattern": {"Regex": "▁+"}, "content": " "}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 2, "stop": 0}]}})
    out["fused-early"] = ("llama2", {"decoder": {"type": "Sequence", "decoders": [
        {"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}]}})
    return out


def give_ids(base, changes):
    """Added tokens get the ids that the package gives them: of the vocabulary, of the base, or the next free one. Those
    that have an id already keep it."""
    taken = {**base["model"]["vocab"], **{t["content"]: t["id"] for t in base["added_tokens"]}}
    for token in changes.get("+added_tokens", []):
        if token["id"] is None:
            token["id"] = taken.setdefault(token["content"], max(taken.values()) + 1)


def apply_variant(base, changes):
    doc = copy.deepcopy(base)
    for key, value in changes.items():
        if key == "+added_tokens":
            known = {t["content"] for t in value}
            doc["added_tokens"] = [t for t in doc["added_tokens"] if t["content"] not in known] + value
        elif key == "model":
            doc["model"].update(value)
        elif key == "-vocab":
            for token in value:
                del doc["model"]["vocab"][token]
        else:
            doc[key] = value
    return doc


def write_golden(path, doc, strings, step=1, sequences=1500):
    tok = Tokenizer.from_str(json.dumps(doc))
    literal = Tokenizer.from_str(json.dumps(doc))
    literal.encode_special_tokens = True
    w = Writer()
    frame = tok.encode("a", add_special_tokens=True).ids
    inner = tok.encode("a", add_special_tokens=False).ids
    start = next(i for i in range(len(frame) + 1) if frame[i:i + len(inner)] == inner)
    before, after = frame[:start], frame[start + len(inner):]
    w.ids(before)
    w.ids(after)
    w.number(step)
    picked = strings[::step]
    w.number(len(picked))
    for s in picked:
        ids = tok.encode(s, add_special_tokens=False).ids
        assert tok.encode(s, add_special_tokens=True).ids == before + ids + after
        w.ids(ids)
        plain = literal.encode(s, add_special_tokens=False).ids
        w.number(int(plain != ids))
        if plain != ids:
            w.ids(plain)
        texts = [s]
        for skip in (False, True):
            text = tok.decode(ids, skip_special_tokens=skip)
            if text in texts:
                w.number(texts.index(text))
            else:
                w.number(2)
                w.text(text)
            texts.append(text)
    rng = random.Random(len(doc["model"]["vocab"]))
    known = sorted(set(doc["model"]["vocab"].values()) | {t["id"] for t in doc["added_tokens"]})
    odd = [i for t, i in doc["model"]["vocab"].items() if t.startswith("<0x") or len(t) == 1] or known
    w.number(sequences)
    for _ in range(sequences):
        pool = rng.choice([known, odd, known + [max(known) + 7]])
        ids = [rng.choice(pool) for _ in range(rng.randrange(0, 12))]
        w.ids(ids)
        w.text(tok.decode(ids, skip_special_tokens=False))
        w.text(tok.decode(ids, skip_special_tokens=True))
    w.save(path)


def gguf_document(path):
    import gguf
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    return smollm2({t: i for i, t in enumerate(tokens)}, merges)


def gguf_spm(llama2, strings):
    """A SentencePiece vocabulary without merges, and the merges that transformers derives from its scores."""
    from transformers.tokenization_utils_base import generate_merges
    vocab = llama2["model"]["vocab"]
    tokens = sorted(vocab, key=vocab.get)
    types = [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259)
    scores = [0.0] * 259 + [-float(i // 3) for i in range(len(tokens) - 259)]  # with ties
    usable = {t for t, kind in zip(tokens, types) if kind == 1}
    merges = generate_merges({t: i for t, i in vocab.items() if t in usable},
                             {t: s for t, s in zip(tokens, scores) if t in usable})
    data = {"tokens": tokens, "token_types": types, "scores": scores, "merges": merges}
    (HERE / "gguf-spm.json.gz").write_bytes(gzip.compress(json.dumps(data, ensure_ascii=False).encode(), 9, mtime=0))
    doc = copy.deepcopy(llama2)
    doc["model"]["merges"] = [list(m) for m in merges]
    write_golden(HERE / "gguf-spm.golden.gz", doc, strings, 7, 100)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gguf", type=pathlib.Path)
    options = parser.parse_args()
    print("tokenizers", tokenizers.__version__, "Python", sys.version.split()[0])
    strings = make_strings.strings()
    w = Writer()
    w.number(len(strings))
    for s in strings:
        w.text(s)
    w.save(HERE / "strings.bin.gz")
    documents = fixtures()
    for name, doc in documents.items():
        text = json.dumps(doc, ensure_ascii=False, separators=(",", ":"))
        (HERE / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        write_golden(HERE / f"{name}.golden.gz", doc, strings)
    table = variants()
    for base, changes in table.values():
        give_ids(documents[base], changes)
    (HERE / "variants.json").write_text(json.dumps(
        {"tokenizers": tokenizers.__version__,
         "variants": {n: {"base": b, "changes": c} for n, (b, c) in table.items()}}, ensure_ascii=False, indent=1) + "\n")
    (HERE / "variants").mkdir(exist_ok=True)
    for name, (base, changes) in table.items():
        write_golden(HERE / "variants" / f"{name}.golden.gz", apply_variant(documents[base], changes), strings, 29,
                     150 if changes.get("decoder") or base in ("llama2", "mistral") else 20)
    gguf_spm(documents["llama2"], strings)
    if options.gguf:
        write_golden(HERE / "smollm2.golden.gz", gguf_document(options.gguf), strings)


if __name__ == "__main__":
    main()
