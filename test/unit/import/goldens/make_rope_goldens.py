#!/usr/bin/env python3
"""Writes rope.json: configs in the spellings of several years, and the inverse frequencies that transformers
computes for them, as float32 bit patterns. Needs torch and transformers; run in this folder.
"""
import json
import platform

import torch
import transformers
from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.mistral.modeling_mistral import MistralRotaryEmbedding
from transformers.models.qwen2.modeling_qwen2 import Qwen2RotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

ROTARY = {"llama": LlamaRotaryEmbedding, "mistral": MistralRotaryEmbedding, "qwen2": Qwen2RotaryEmbedding,
          "qwen3": Qwen3RotaryEmbedding}


def config(kind, head_dim, positions=8192, **more):
    return {"model_type": kind, "hidden_size": 4 * head_dim, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": head_dim, "num_hidden_layers": 1, "intermediate_size": 64, "vocab_size": 256,
            "max_position_embeddings": positions, "sliding_window": None, **more}


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
CASES = {
    "default-10000": config("llama", 128, rope_theta=10000.0),
    "default-absent-theta": config("llama", 64),
    "default-smollm2": config("llama", 64, rope_theta=100000),
    "default-null-scaling": config("qwen2", 128, rope_theta=1000000.0, rope_scaling=None),
    "default-hd100": config("llama", 100, rope_theta=10000.0),
    "default-hd224": config("mistral", 224, rope_theta=1e6),
    "parameters-theta": config("qwen3", 128, rope_parameters={"rope_theta": 5000000, "rope_type": "default"}),
    "parameters-theta-only": config("mistral", 128, rope_parameters={"rope_theta": 1000000.0}),
    "llama3.1": config("llama", 128, 131072, rope_theta=500000.0, rope_scaling={**LLAMA3, "rope_type": "llama3"}),
    "llama3.2": config("llama", 64, 131072, rope_theta=500000.0,
                       rope_scaling={**LLAMA3, "factor": 32.0, "rope_type": "llama3"}),
    "llama3-in-parameters": config("llama", 128, 131072,
                                   rope_parameters={**LLAMA3, "rope_type": "llama3", "rope_theta": 500000.0}),
    "llama3-small-context": config("llama", 96, 4096, rope_theta=10000.0, rope_scaling={
        "factor": 3.5, "low_freq_factor": 1.5, "high_freq_factor": 5.0, "original_max_position_embeddings": 500,
        "rope_type": "llama3"}),
    "linear-type": config("llama", 128, 4096, rope_theta=10000.0, rope_scaling={"type": "linear", "factor": 4.0}),
    "linear-rope-type": config("llama", 100, 4096, rope_theta=10000.0,
                               rope_scaling={"rope_type": "linear", "factor": 2.5}),
    "yarn-qwen2.5": config("qwen2", 128, 32768, rope_theta=1000000.0, rope_scaling={
        "factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"}),
    "yarn-qwen3": config("qwen3", 128, 131072, rope_theta=1000000, rope_scaling={
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}),
    "yarn-no-original": config("llama", 128, 16384, rope_theta=10000.0,
                               rope_scaling={"rope_type": "yarn", "factor": 4.0}),
    "yarn-attention-factor": config("llama", 64, 16384, rope_theta=10000.0, rope_scaling={
        "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 2048, "attention_factor": 1.25}),
    "yarn-mscale": config("llama", 64, 163840, rope_theta=10000.0, rope_scaling={
        "rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0,
        "mscale_all_dim": 0.5, "beta_fast": 32, "beta_slow": 1}),
    "yarn-no-truncate": config("llama", 64, 131072, rope_theta=150000.0, rope_scaling={
        "rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0,
        "beta_slow": 1.0, "truncate": False}),
    "yarn-betas": config("llama", 80, 16384, rope_theta=10000.0, rope_scaling={
        "rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8192, "beta_fast": 16, "beta_slow": 2}),
}

out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                    "machine": platform.machine()}, "cases": []}
for name, raw in CASES.items():
    fields = json.loads(json.dumps(raw))
    made = AutoConfig.for_model(fields.pop("model_type"), **fields)
    rotary = ROTARY[raw["model_type"]](made)
    bits = rotary.inv_freq.to(torch.float32).contiguous().view(torch.int32).tolist()
    out["cases"].append({"name": name, "config": raw, "attention_factor": float(rotary.attention_scaling),
                         "inv_freq_bits": bits})
with open("rope.json", "w") as file:
    file.write('{"versions": ' + json.dumps(out["versions"]) + ',\n "cases": [\n')
    file.write(",\n".join("  " + json.dumps(case) for case in out["cases"]))
    file.write("\n ]}\n")
print(len(out["cases"]), "cases")
