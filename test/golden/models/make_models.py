#!/usr/bin/env python3
"""Makes the golden HuggingFace checkpoints: `make_models.py OUT [NAME...]`, each in OUT/NAME.

Needs numpy only, and gives the same bytes everywhere; the tests call `build` at run time.
"""
import hashlib
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import safetensors_io  # noqa: E402
import tiny_tokenizer  # noqa: E402
from deterministic import spread, uniform  # noqa: E402
from specs import BY_NAME, SPECS  # noqa: E402

TEMPLATES = {"chatml": tiny_tokenizer.CHATML, "strict": tiny_tokenizer.STRICT_TEMPLATE, "none": None}


def tensors(spec) -> dict:
    """{name: float32 array} under the names that transformers uses."""
    c = spec.config
    hidden, ffn, vocab = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
    dim = c.get("head_dim") or hidden // heads
    kind, out = c["model_type"], {}
    qkv_bias = kind == "qwen2" or c.get("attention_bias", False)
    o_bias = kind != "qwen2" and c.get("attention_bias", False)
    tied = c.get("tie_word_embeddings", False)

    def key(name):
        return f"{spec.name}/{spec.seed}/{name}"

    def norm(name, n):
        out[name] = uniform(key(name), (n,), 0.5, 1.5)

    def linear(name, rows, cols, bias, gain=1.0):
        out[f"{name}.weight"] = spread(key(name), (rows, cols), gain / math.sqrt(cols))
        if bias:
            out[f"{name}.bias"] = spread(key(name + ".bias"), (rows,), 0.3)

    # Logits have a standard deviation near 3; a tied table would otherwise favour the token just read.
    out["model.embed_tokens.weight"] = spread(key("embed"), (vocab, hidden), 3.0 / math.sqrt(hidden) if tied else 1.0)
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        norm(at + "input_layernorm.weight", hidden)
        linear(at + "self_attn.q_proj", heads * dim, hidden, qkv_bias, 1.3)
        linear(at + "self_attn.k_proj", kv * dim, hidden, qkv_bias, 1.3)
        linear(at + "self_attn.v_proj", kv * dim, hidden, qkv_bias)
        linear(at + "self_attn.o_proj", hidden, heads * dim, o_bias, 1.5)
        if kind == "qwen3":
            norm(at + "self_attn.q_norm.weight", dim)
            norm(at + "self_attn.k_norm.weight", dim)
        norm(at + "post_attention_layernorm.weight", hidden)
        linear(at + "mlp.gate_proj", ffn, hidden, c.get("mlp_bias", False), 1.3)
        linear(at + "mlp.up_proj", ffn, hidden, c.get("mlp_bias", False))
        linear(at + "mlp.down_proj", hidden, ffn, c.get("mlp_bias", False), 1.5)
    norm("model.norm.weight", hidden)
    if not tied:
        linear("lm_head", vocab, hidden, False, 3.0)
    return out


def build(spec, folder: str) -> str:
    """Writes the checkpoint of `spec` into `folder` and returns it."""
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/config.json", "w") as f:
        json.dump(spec.config, f, indent=2)
    if spec.generation:
        with open(f"{folder}/generation_config.json", "w") as f:
            json.dump(spec.generation, f, indent=2)

    def dtype_of(name):
        return "F32" if spec.f32_norms and "norm" in name else spec.dtype

    safetensors_io.write_model(folder, tensors(spec), dtype_of, spec.shards)
    tiny_tokenizer.write(folder, spec.tokenizer, spec.tokenizer_size, TEMPLATES[spec.template])
    return folder


def digest(folder: str) -> str:
    """sha256 over a checkpoint's weight files, which the goldens record."""
    h = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        if name.endswith((".safetensors", ".gguf")):
            with open(os.path.join(folder, name), "rb") as f:
                h.update(f.read())
    return h.hexdigest()


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: make_models.py OUT [NAME...]\nnames: {' '.join(BY_NAME)}")
    for spec in [BY_NAME[n] for n in sys.argv[2:]] or SPECS:
        folder = build(spec, os.path.join(sys.argv[1], spec.name))
        size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
        print(f"{spec.name}: {size / 1024:.0f} KiB, weights {digest(folder)[:16]}")


if __name__ == "__main__":
    main()
