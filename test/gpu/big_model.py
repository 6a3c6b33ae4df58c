"""Random checkpoints of real size, in two steps: `outline` writes config and a safetensors file whose header is whole and
whose data is a hole (llmc reads headers only, so plans are compiled from it anywhere); `fill` writes the data, on a GPU
machine with torch, without touching the header."""
import json
import math
import os
import struct
from pathlib import Path

CONFIGS = Path(__file__).resolve().parents[1] / "golden/configs"


def tensors(config):
    """{name: shape} of a dense llama-like checkpoint, in the order of the file."""
    c = config
    hidden, ffn, vocab = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    dim = c.get("head_dim") or hidden // c["num_attention_heads"]
    q, kv = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim
    out = {"model.embed_tokens.weight": [vocab, hidden]}
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        out[p + "input_layernorm.weight"] = [hidden]
        out[p + "post_attention_layernorm.weight"] = [hidden]
        for name, rows in (("q", q), ("k", kv), ("v", kv)):
            out[p + f"self_attn.{name}_proj.weight"] = [rows, hidden]
            if c["model_type"] == "qwen2":
                out[p + f"self_attn.{name}_proj.bias"] = [rows]
            if c["model_type"] == "qwen3" and name != "v":
                out[p + f"self_attn.{name}_norm.weight"] = [dim]
        out[p + "self_attn.o_proj.weight"] = [hidden, q]
        out[p + "mlp.gate_proj.weight"] = [ffn, hidden]
        out[p + "mlp.up_proj.weight"] = [ffn, hidden]
        out[p + "mlp.down_proj.weight"] = [hidden, ffn]
    out["model.norm.weight"] = [hidden]
    if not c.get("tie_word_embeddings"):
        out["lm_head.weight"] = [vocab, hidden]
    return out


def outline(name, folder, layers=None):
    """Config and an empty bf16 checkpoint of CONFIGS/name, cut to so many layers."""
    os.makedirs(folder, exist_ok=True)
    config = json.load(open(CONFIGS / name / "config.json"))
    if layers:
        config["num_hidden_layers"] = layers
    json.dump(config, open(f"{folder}/config.json", "w"))
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for tensor, shape in tensors(config).items():
        size = 2 * math.prod(shape)
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{folder}/model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)


def fill(folder, seed=0, device="cuda"):
    """Random weights for an outline: matrices by 1/sqrt(fan-in), norms near one, biases small."""
    import torch
    path = f"{folder}/model.safetensors"
    with open(path, "r+b") as f:
        length = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(length))
        generator = torch.Generator(device).manual_seed(seed)
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            x = torch.randn(entry["shape"], generator=generator, device=device, dtype=torch.float32)
            if name.endswith("norm.weight"):
                x = 1 + 0.1 * x
            elif name.endswith(".bias"):
                x = 0.1 * x
            elif name == "model.embed_tokens.weight":
                pass
            else:
                x = x / entry["shape"][-1] ** 0.5
            f.seek(8 + length + entry["data_offsets"][0])
            f.write(x.to(torch.bfloat16).view(torch.uint8).cpu().numpy().tobytes())
    return path

