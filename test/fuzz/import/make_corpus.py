#!/usr/bin/env python3
"""Writes the seed corpora of the importers' fuzz targets into corpus/. Needs nothing but Python."""
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../../.."))


def put(target, name, content):
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


# safetensors headers
put("safetensors", "two", json.dumps({"__metadata__": {"format": "pt"},
                                      "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                                      "b": {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]}}))
put("safetensors", "empty", "{}")
put("safetensors", "overlap", json.dumps({"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
                                          "b": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [4, 12]}}))
put("safetensors", "huge", '{"a":{"dtype":"F32","shape":[9223372036854775807,2],"data_offsets":[0,18446744073709551615]}}')
put("safetensors", "nested", '{"a":[[[[{"b":1}]]]]}')


# GGUF files
def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key, kind, raw):
    return text(key) + struct.pack("<I", kind) + raw


def u32(key, value):
    return pair(key, 4, struct.pack("<I", value))


def f32(key, value):
    return pair(key, 6, struct.pack("<f", value))


def string(key, value):
    return pair(key, 8, text(value))


def strings(key, values):
    return pair(key, 9, struct.pack("<IQ", 8, len(values)) + b"".join(map(text, values)))


def gguf(arch, version=3, extra=(), freqs=False, tied=True):
    hidden, heads, dim, ffn, vocab = 4, 2, 2, 4, 3
    keys = [string("general.architecture", arch), u32(f"{arch}.block_count", 1), u32(f"{arch}.context_length", 8),
            u32(f"{arch}.embedding_length", hidden), u32(f"{arch}.feed_forward_length", ffn),
            u32(f"{arch}.attention.head_count", heads), u32(f"{arch}.attention.head_count_kv", 1),
            f32(f"{arch}.attention.layer_norm_rms_epsilon", 1e-5), f32(f"{arch}.rope.freq_base", 1e4), *extra]
    shapes = {"token_embd.weight": (hidden, vocab), "output_norm.weight": (hidden,)}
    layer = {"attn_norm.weight": (hidden,), "attn_q.weight": (hidden, heads * dim), "attn_k.weight": (hidden, dim),
             "attn_v.weight": (hidden, dim), "attn_output.weight": (heads * dim, hidden), "ffn_norm.weight": (hidden,),
             "ffn_gate.weight": (hidden, ffn), "ffn_up.weight": (hidden, ffn), "ffn_down.weight": (ffn, hidden)}
    if arch == "qwen2":
        layer |= {"attn_q.bias": (heads * dim,), "attn_k.bias": (dim,), "attn_v.bias": (dim,)}
    if arch == "qwen3":
        layer |= {"attn_q_norm.weight": (dim,), "attn_k_norm.weight": (dim,)}
    shapes |= {f"blk.0.{name}": shape for name, shape in layer.items()}
    if not tied:
        shapes["output.weight"] = (hidden, vocab)
    if freqs:
        shapes["rope_freqs.weight"] = (dim // 2,)
    infos, offset = b"", 0
    for name, shape in shapes.items():
        infos += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in shape)
        infos += struct.pack("<IQ", 0, offset)
        count = 1
        for d in shape:
            count *= d
        offset += -(-4 * count // 32) * 32
    out = b"GGUF" + struct.pack("<IQQ", version, len(shapes), len(keys)) + b"".join(keys) + infos
    out += b"\0" * (-len(out) % 32)
    return out + struct.pack("<f", 1.0) * (offset // 4)


TOKENIZER = [string("tokenizer.ggml.model", "gpt2"), string("tokenizer.ggml.pre", "gpt-2"),
             strings("tokenizer.ggml.tokens", ["a", "b", "ab"]), strings("tokenizer.ggml.merges", ["a b"]),
             pair("tokenizer.ggml.token_type", 9, struct.pack("<IQ3i", 5, 3, 1, 1, 3)),
             u32("tokenizer.ggml.eos_token_id", 2)]
SPM = [string("tokenizer.ggml.model", "llama"), strings("tokenizer.ggml.tokens", ["<unk>", "a", "b"]),
       pair("tokenizer.ggml.scores", 9, struct.pack("<IQ3f", 6, 3, 0, -1, -2)),
       pair("tokenizer.ggml.token_type", 9, struct.pack("<IQ3i", 5, 3, 2, 1, 1)),
       u32("tokenizer.ggml.unknown_token_id", 0)]
put("gguf", "llama", gguf("llama", extra=TOKENIZER))
put("gguf", "llama-spm", gguf("llama", extra=SPM, tied=False))
put("gguf", "llama-v2-freqs", gguf("llama", version=2, freqs=True))
put("gguf", "llama-yarn", gguf("llama", extra=[string("llama.rope.scaling.type", "yarn"),
                                              f32("llama.rope.scaling.factor", 4.0),
                                              u32("llama.rope.scaling.original_context_length", 4)]))
put("gguf", "qwen2", gguf("qwen2"))
put("gguf", "qwen3", gguf("qwen3", extra=[u32("general.alignment", 64)]))
put("gguf", "nested", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair("a", 9, struct.pack("<IQIQIQ", 9, 1, 9, 1, 0, 2) + b"xy"))
put("gguf", "moe", gguf("llama", extra=[u32("llama.expert_count", 8)]))

# configs: the shape table's, and one of each odd spelling
configs = os.path.join(ROOT, "test/golden/configs")
for name in ("Qwen2.5-0.5B", "Qwen3-0.6B", "Llama-3.1-8B", "Mistral-7B-v0.3", "Mixtral-8x7B", "Qwen3-30B-A3B"):
    with open(os.path.join(configs, name, "config.json"), "rb") as file:
        put("config", name, file.read())
BASE = {"model_type": "qwen3", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "intermediate_size": 8, "vocab_size": 9}
put("config", "nested", json.dumps({"model_type": "llava", "text_config": {**BASE, "model_type": "llama"}}))
put("config", "parameters", json.dumps({**BASE, "rope_parameters": {
    "rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64,
    "mscale": 1, "mscale_all_dim": 0.5, "beta_fast": 16, "beta_slow": 2, "truncate": False}}))
put("config", "windows", json.dumps({**BASE, "use_sliding_window": True, "sliding_window": 4,
                                     "layer_types": ["full_attention", "sliding_attention"]}))
put("config", "linear", json.dumps({**BASE, "model_type": "mistral", "head_dim": None,
                                    "rope_scaling": {"type": "linear", "factor": 2}}))
put("config", "quantised", json.dumps({**BASE, "quantization_config": {"quant_method": "gptq"}}))

# topologies: the examples, and one with everything in it
topologies = os.path.join(ROOT, "examples/topo")
for name in sorted(os.listdir(topologies)):
    with open(os.path.join(topologies, name), "rb") as file:
        put("topology", name, file.read())
put("topology", "bad-unit", '{"devices":[{"id":"a","kind":"cpu","memory":"1e3 GiBs"}]}')
