#!/usr/bin/env python3
"""Small random GGUF models of the three architectures: `gguf_models.py OUT [NAME...]`.

Every tensor type that the importer reads occurs, K-quants included; llama-type files hold q and k as
they are, and readers undo llama.cpp's row permutation. Needs numpy only; same bytes everywhere.
"""
import math
import os
import sys
from dataclasses import dataclass, field

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gguf_io  # noqa: E402
import tiny_tokenizer  # noqa: E402
from deterministic import spread, uniform  # noqa: E402
from seeds import SEEDS  # noqa: E402


@dataclass(frozen=True)
class GgufSpec:
    name: str
    arch: str                        # llama, qwen2 or qwen3
    hidden: int
    layers: int
    heads: int
    kv: int
    head_dim: int
    ffn: int
    vocab: int = 509
    tied: bool = False
    theta: float = 10000.0
    types: dict = field(default_factory=dict)   # tensor kind -> type name, or a list dealt over layers
    rope: str = ""                   # "", "llama3" (a rope_freqs tensor) or "linear" (metadata, factor 4)
    pre: str = "gpt-2"               # tokenizer.ggml.pre; "spm" makes a SentencePiece vocabulary
    version: int = 3
    alignment: int = 32
    seed: int = 0                    # 0: take it from seeds.py

    def __post_init__(self):
        if not self.seed:
            object.__setattr__(self, "seed", SEEDS.get(self.name, 1))


GGUF_SPECS = [
    # One type per matrix kind, alternating over layers: every type in one file.
    GgufSpec("gguf-llama-mixed", "llama", 256, 3, 8, 2, 32, 512, pre="llama-bpe",
             types={"token_embd": "Q6_K", "output": "Q5_K", "attn_q": ["Q4_K", "Q8_0", "Q6_K"], "attn_k": ["Q6_K", "Q4_0"],
                    "attn_v": ["Q5_K", "Q5_0", "F16"], "attn_output": ["Q8_0", "Q4_1", "Q5_1"],
                    "ffn_gate": ["Q4_0", "Q4_K"], "ffn_up": ["Q4_1", "Q5_K", "BF16"], "ffn_down": ["Q5_0", "Q6_K", "Q4_K"]}),
    # SmolLM2's recipe in small: Q4_1 with a tied Q8_0 table; GGUF v2, data aligned to 64.
    GgufSpec("gguf-llama-tied-q41", "llama", 96, 4, 6, 3, 16, 160, tied=True, theta=100000.0, pre="smollm", version=2,
             alignment=64, types={"token_embd": "Q8_0", "*": "Q4_1"}),
    # Llama 3.1's rope factors as a tensor, f16 weights, 15 query heads over 5 KV heads.
    GgufSpec("gguf-llama3-rope", "llama", 240, 3, 15, 5, 16, 208, vocab=503, theta=500000.0, rope="llama3", pre="llama-bpe",
             types={"*": "F16"}),
    # head_dim 100, rows that no block size divides (f16, bf16), linear scaling, SentencePiece vocabulary.
    GgufSpec("gguf-llama-spm-hd100", "llama", 192, 3, 3, 1, 100, 192, rope="linear", pre="spm",
             types={"attn_output": "BF16", "ffn_down": "Q5_1", "token_embd": "F16", "*": "Q5_0"}),
    # Biases, 14 query heads over 2 KV heads, tied.
    GgufSpec("gguf-qwen2-14-2", "qwen2", 224, 4, 14, 2, 16, 320, tied=True, theta=1000000.0, pre="qwen2",
             types={"token_embd": "Q8_0", "attn_v": "Q5_1", "ffn_down": ["Q5_0", "Q8_0"], "*": "Q4_0"}),
    # q and k norms, q width 192 beside a hidden size of 256, K-quants.
    GgufSpec("gguf-qwen3", "qwen3", 256, 3, 6, 3, 32, 256, theta=1000000.0, pre="qwen2",
             types={"token_embd": "Q4_K", "output": "Q6_K", "attn_output": "Q8_0", "attn_v": "Q6_K", "*": "Q4_K"}),
]
BY_NAME = {s.name: s for s in GGUF_SPECS}

ORIGINAL_CONTEXT, FACTOR, LOW, HIGH = 64, 8.0, 1.0, 4.0


def rope_factors(spec) -> np.ndarray:
    """float32 [head_dim / 2]: what each inverse frequency is divided by (llama3 scaling)."""
    out = []
    for i in range(spec.head_dim // 2):
        wavelength = 2 * math.pi * spec.theta ** (2 * i / spec.head_dim)
        if wavelength < ORIGINAL_CONTEXT / HIGH:
            out.append(1.0)
        elif wavelength > ORIGINAL_CONTEXT / LOW:
            out.append(FACTOR)
        else:
            smooth = (ORIGINAL_CONTEXT / wavelength - LOW) / (HIGH - LOW)
            out.append(1 / ((1 - smooth) / FACTOR + smooth))
    return np.array(out, np.float32)


def tensors(spec) -> list:
    """(name, shape, type, bytes) in the order of the file."""
    out = []

    def key(name):
        return f"{spec.name}/{spec.seed}/{name}"

    def matrix(name, kind, layer, rows, cols, std):
        chosen = spec.types.get(kind, spec.types.get("*"))
        chosen = chosen if isinstance(chosen, str) else chosen[layer % len(chosen)]
        out.append((f"{name}.weight", (rows, cols), chosen, gguf_io.tensor_bytes(key(name), (rows, cols), chosen, std)))

    def vector(name, values):
        out.append((name, values.shape, "F32", gguf_io.encode(values, "F32")))

    def norm(name, n):
        vector(f"{name}.weight", uniform(key(name), (n,), 0.5, 1.5))

    h, q, kv = spec.hidden, spec.heads * spec.head_dim, spec.kv * spec.head_dim
    matrix("token_embd", "token_embd", 0, spec.vocab, h, 3.0 / math.sqrt(h) if spec.tied else 1.0)
    if spec.rope == "llama3":
        vector("rope_freqs.weight", rope_factors(spec))
    for i in range(spec.layers):
        at = f"blk.{i}."
        norm(at + "attn_norm", h)
        for kind, rows, cols, gain in (("attn_q", q, h, 1.3), ("attn_k", kv, h, 1.3), ("attn_v", kv, h, 1.0),
                                       ("attn_output", h, q, 1.5), ("ffn_gate", spec.ffn, h, 1.3),
                                       ("ffn_up", spec.ffn, h, 1.0), ("ffn_down", h, spec.ffn, 1.5)):
            matrix(at + kind, kind, i, rows, cols, gain / math.sqrt(cols))
            if spec.arch == "qwen2" and kind in ("attn_q", "attn_k", "attn_v"):
                vector(f"{at}{kind}.bias", spread(key(at + kind + ".bias"), (rows,), 0.3))
        if spec.arch == "qwen3":
            norm(at + "attn_q_norm", spec.head_dim)
            norm(at + "attn_k_norm", spec.head_dim)
        norm(at + "ffn_norm", h)
    norm("output_norm", h)
    if not spec.tied:
        matrix("output", "output", 0, spec.vocab, h, 3.0 / math.sqrt(h))
    return out


def metadata(spec) -> dict:
    a = spec.arch
    m = {"general.architecture": a, "general.name": spec.name, "general.file_type": 1,
         f"{a}.block_count": spec.layers, f"{a}.context_length": 256, f"{a}.embedding_length": spec.hidden,
         f"{a}.feed_forward_length": spec.ffn, f"{a}.attention.head_count": spec.heads,
         f"{a}.attention.head_count_kv": spec.kv, f"{a}.attention.layer_norm_rms_epsilon": 1e-5,
         f"{a}.rope.freq_base": spec.theta, f"{a}.vocab_size": spec.vocab}
    if a == "llama":
        m["llama.rope.dimension_count"] = spec.head_dim
    if spec.head_dim * spec.heads != spec.hidden:
        m[f"{a}.attention.key_length"] = m[f"{a}.attention.value_length"] = spec.head_dim
    if spec.rope == "linear":
        m["llama.rope.scaling.type"], m["llama.rope.scaling.factor"] = "linear", 4.0
    if spec.pre == "spm":
        tokens, _ = tiny_tokenizer.sentencepiece(spec.vocab)
        m.update({"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": tokens,
                  "tokenizer.ggml.scores": [0.0] * 259 + [-float(i) for i in range(len(tokens) - 259)],
                  "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259),
                  "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
                  "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": False})
    else:
        tokens, merges = tiny_tokenizer.byte_level(spec.vocab)
        m.update({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": spec.pre, "tokenizer.ggml.tokens": tokens,
                  "tokenizer.ggml.token_type": [1] * (len(tokens) - 3) + [3] * 3,
                  "tokenizer.ggml.merges": [f"{x} {y}" for x, y in merges],
                  "tokenizer.ggml.eos_token_id": len(tokens) - 1, "tokenizer.ggml.add_bos_token": False})
    m["tokenizer.chat_template"] = tiny_tokenizer.CHATML
    return m


def build(spec, folder: str) -> str:
    """Writes folder/NAME.gguf and returns the folder."""
    os.makedirs(folder, exist_ok=True)
    gguf_io.write(f"{folder}/{spec.name}.gguf", metadata(spec), tensors(spec), spec.version, spec.alignment)
    return folder


def load_oracle(oracle, spec, folder: str, dtype):
    """The model as transformers reads it. It knows neither rope_freqs nor rope.scaling in a GGUF, nor
    qwen3's key_length, so those come as the equivalent HuggingFace configuration; the rest of its
    reading is checked."""
    import transformers
    file = f"{spec.name}.gguf"
    config = transformers.AutoConfig.from_pretrained(folder, gguf_file=file)
    if spec.rope:
        scaling = {"llama3": {"rope_type": "llama3", "factor": FACTOR, "low_freq_factor": LOW, "high_freq_factor": HIGH,
                              "original_max_position_embeddings": ORIGINAL_CONTEXT},
                   "linear": {"rope_type": "linear", "factor": 4.0}}[spec.rope]
        config.rope_parameters = {**scaling, "rope_theta": spec.theta}
    if spec.arch == "qwen3":
        config.head_dim = spec.head_dim
    model = oracle.load(folder, dtype, gguf_file=file, config=config)
    c = model.config
    head_dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    seen = (c.rope_parameters["rope_theta"], c.rope_parameters["rope_type"], head_dim, c.num_key_value_heads,
            c.tie_word_embeddings, c.vocab_size, round(c.rms_norm_eps, 9))
    want = (spec.theta, spec.rope or "default", spec.head_dim, spec.kv, spec.tied, spec.vocab, 1e-5)
    assert seen == want, f"{spec.name}: transformers read {seen}, the file says {want}"
    return model


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: gguf_models.py OUT [NAME...]\nnames: {' '.join(BY_NAME)}")
    for spec in [BY_NAME[n] for n in sys.argv[2:]] or GGUF_SPECS:
        folder = build(spec, os.path.join(sys.argv[1], spec.name))
        print(f"{spec.name}: {os.path.getsize(f'{folder}/{spec.name}.gguf') / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
