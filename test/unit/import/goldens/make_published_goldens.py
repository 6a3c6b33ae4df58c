#!/usr/bin/env python3
"""Writes published.json: the configs of models that people run, as their authors published them (shortened by keys that
change nothing), and what transformers makes of each: shapes of all tensors, rotary frequencies, windows. Needs torch and
transformers; run in this folder.
"""
import importlib
import json
import re
import tempfile

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}
LLAMA32 = {**LLAMA3, "factor": 32.0}
YARN4 = {"factor": 4.0, "original_max_position_embeddings": 32768}


def sized(hidden, layers, heads, kv_heads, ffn, vocab, **more):
    return {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "intermediate_size": ffn, "vocab_size": vocab, "hidden_act": "silu", **more}


def llama(*shape, **more):
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **sized(*shape),
            **{"max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "rope_scaling": LLAMA3,
               "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "torch_dtype": "bfloat16", "pretraining_tp": 1, **more}}


def llama2(*shape, **more):  # before rope_theta was a key
    config = llama(*shape, **{"max_position_embeddings": 4096, "rope_scaling": None, "torch_dtype": "float16", **more})
    for key in ("attention_bias", "mlp_bias", *(() if "rope_theta" in more else ("rope_theta",))):
        del config[key]
    return config


def qwen2(*shape, **more):
    return {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **sized(*shape),
            **{"max_position_embeddings": 32768, "max_window_layers": 28, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "sliding_window": 131072,
               "use_sliding_window": False, "tie_word_embeddings": False, "torch_dtype": "bfloat16", **more}}


def qwen3(*shape, **more):
    return {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], **sized(*shape), "head_dim": 128,
            **{"max_position_embeddings": 40960, "max_window_layers": 36, "rms_norm_eps": 1e-6, "rope_theta": 1000000, "rope_scaling": None,
               "attention_bias": False, "sliding_window": None, "use_sliding_window": False, "tie_word_embeddings": False,
               "torch_dtype": "bfloat16", **more}}


def mistral(*shape, **more):
    return {"model_type": "mistral", "architectures": ["MistralForCausalLM"], **sized(*shape),
            **{"max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "sliding_window": None,
               "tie_word_embeddings": False, "torch_dtype": "bfloat16", **more}}


def version5(config, **rope):
    """The same as transformers 5 saves it."""
    config = {k: v for k, v in config.items() if k not in ("rope_theta", "rope_scaling", "torch_dtype", "max_window_layers")}
    return {**config, "dtype": "bfloat16", "rope_parameters": rope}


def inside(kind, architecture, text, **more):
    return {"model_type": kind, "architectures": [architecture], "text_config": {k: v for k, v in text.items() if k != "architectures"},
            "torch_dtype": "bfloat16", **more}


B8 = (4096, 32, 32, 8, 14336)
QWEN3_8B = qwen3(4096, 36, 32, 8, 12288, 151936)
CONFIGS = {
    "Llama-2-7b": llama2(4096, 32, 32, 32, 11008, 32000),
    "Llama-2-70b": llama2(8192, 80, 64, 8, 28672, 32000),
    "vicuna-7b-16k": llama2(4096, 32, 32, 32, 11008, 32000, rope_scaling={"factor": 4.0, "type": "linear"}),
    "llama-7b": {k: v for k, v in llama2(4096, 32, 32, 32, 11008, 32000, rms_norm_eps=1e-6, max_position_embeddings=2048, pad_token_id=-1).items()
                 if k not in ("num_key_value_heads", "rope_scaling", "pretraining_tp")},
    "Meta-Llama-3-8B": llama(*B8, 128256, rope_scaling=None, max_position_embeddings=8192),
    "Llama-3.1-405B": llama(16384, 126, 128, 8, 53248, 128256),
    "Llama-3.2-1B": llama(2048, 16, 32, 8, 8192, 128256, rope_scaling=LLAMA32, head_dim=64, tie_word_embeddings=True),
    "Llama-3.2-3B": llama(3072, 28, 24, 8, 8192, 128256, rope_scaling=LLAMA32, head_dim=128, tie_word_embeddings=True),
    "Llama-3.3-70B": llama(8192, 80, 64, 8, 28672, 128256),
    "TinyLlama-1.1B": llama(2048, 22, 32, 4, 5632, 32000, rope_scaling=None, rope_theta=10000.0, max_position_embeddings=2048),
    "Yi-34B": llama2(7168, 60, 56, 8, 20480, 64000, rope_theta=5000000.0, torch_dtype="bfloat16"),
    "Yi-1.5-9B": llama2(4096, 48, 32, 4, 11008, 64000, rope_theta=5000000.0, rms_norm_eps=1e-6, torch_dtype="bfloat16"),
    "Llama-2-7b-dynamic": llama2(4096, 32, 32, 32, 11008, 32000, rope_scaling={"factor": 2.0, "type": "dynamic"}),
    "deepseek-coder-6.7b": llama2(4096, 32, 32, 32, 11008, 32256, rope_theta=100000, max_position_embeddings=16384,
                                  rope_scaling={"factor": 4.0, "type": "linear"}),
    "SmolLM2-360M": llama(960, 32, 15, 5, 2560, 49152, rope_scaling=None, rope_theta=100000, tie_word_embeddings=True, max_position_embeddings=8192,
                          rope_interleaved=False, is_llama_config=True),
    "SmolLM2-1.7B": llama(2048, 24, 32, 32, 8192, 49152, rope_scaling=None, rope_theta=130000, tie_word_embeddings=True,
                          max_position_embeddings=8192),
    "Qwen1.5-7B": qwen2(4096, 32, 32, 32, 11008, 151936, sliding_window=32768),
    "Qwen2.5-1.5B": qwen2(1536, 28, 12, 2, 8960, 151936, tie_word_embeddings=True, use_mrope=False),
    "Qwen2.5-3B": qwen2(2048, 36, 16, 2, 11008, 151936, tie_word_embeddings=True, max_window_layers=70),
    "Qwen2.5-32B": qwen2(5120, 64, 40, 8, 27648, 152064, max_window_layers=70),
    "Qwen2.5-7B-yarn": qwen2(3584, 28, 28, 4, 18944, 152064, rope_scaling={**YARN4, "type": "yarn"}),
    "R1-Distill-Qwen-1.5B": qwen2(1536, 28, 12, 2, 8960, 151936, rope_theta=10000, max_position_embeddings=131072, sliding_window=4096),
    "QwQ-32B": qwen2(5120, 64, 40, 8, 27648, 152064, max_position_embeddings=40960, sliding_window=32768, max_window_layers=64),
    "Qwen3-1.7B": qwen3(2048, 28, 16, 8, 6144, 151936, tie_word_embeddings=True),
    "Qwen3-4B-2507": qwen3(2560, 36, 32, 8, 9728, 151936, tie_word_embeddings=True, max_position_embeddings=262144, rope_theta=5000000),
    "Qwen3-14B": qwen3(5120, 40, 40, 8, 17408, 151936, max_window_layers=40),
    "Qwen3-8B-yarn": {**QWEN3_8B, "rope_scaling": {**YARN4, "rope_type": "yarn"}},
    "Qwen3-8B-v5": {**version5(QWEN3_8B, rope_theta=1000000, rope_type="default"), "layer_types": ["full_attention"] * 36},
    "Qwen3-8B-v5-yarn": version5(QWEN3_8B, rope_theta=1000000, rope_type="yarn", **YARN4),
    "Qwen3-8B-v5-windows": {**version5(QWEN3_8B, rope_theta=1000000, rope_type="default"), "use_sliding_window": True, "sliding_window": 4096,
                            "layer_types": ["full_attention", "sliding_attention"] * 18},
    "Mistral-7B-v0.1": mistral(*B8, 32000, rope_theta=10000.0, sliding_window=4096),
    "Mistral-7B-Instruct-v0.2": mistral(*B8, 32000),
    "Mistral-Nemo": mistral(5120, 40, 32, 8, 14336, 131072, head_dim=128, max_position_embeddings=131072),
    "Mistral-Small-24B": mistral(5120, 40, 32, 8, 32768, 131072, head_dim=128, rope_theta=100000000.0),
    "Mistral-Large-2411": mistral(12288, 88, 96, 8, 28672, 32768, head_dim=128, max_position_embeddings=131072),
    "llava-v1.6-mistral-7b": inside("llava_next", "LlavaNextForConditionalGeneration",
                                    {"model_type": "mistral", "intermediate_size": 14336, "max_position_embeddings": 32768, "num_key_value_heads": 8,
                                     "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "sliding_window": None, "vocab_size": 32064}),
    "pixtral-12b": inside("llava", "LlavaForConditionalGeneration",
                          {"model_type": "mistral", "head_dim": 128, "hidden_size": 5120, "intermediate_size": 14336, "max_position_embeddings": 1024000,
                           "num_hidden_layers": 40, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1000000000.0,
                           "sliding_window": None, "vocab_size": 131072},
                          vision_config={"model_type": "pixtral"}),
}


def expected(config):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/config.json", "w") as f:
            json.dump(config, f)
        outer = AutoConfig.from_pretrained(folder)
    text = outer.get_text_config()
    with torch.device("meta"):
        model = (AutoModelForImageTextToText if "text_config" in config else AutoModelForCausalLM).from_config(outer)
    tensors = {re.sub(r"^model\.language_model\.", "model.", name): tuple(tensor.shape) for name, tensor in model.state_dict().items()
               if not re.search("vision|multi_modal|image_newline", name)}
    if outer.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    module = importlib.import_module(type(text).__module__.replace("configuration_", "modeling_"))
    rotary = next(getattr(module, name) for name in dir(module) if name.endswith("RotaryEmbedding"))(text)
    frequencies = rotary.inv_freq.float()
    attention = [m for m in model.modules() if type(m).__name__ == type(text).__name__.replace("Config", "Attention")]
    assert len(attention) == text.num_hidden_layers
    window = [(text.sliding_window if text.model_type == "mistral" else getattr(m, "sliding_window", None)) or 0 for m in attention]
    shapes = "\n".join(f"{name} {list(shape)}" for name, shape in sorted(tensors.items()))
    return {"tensors": len(tensors), "parameters": sum(torch.Size(s).numel() for s in tensors.values()), "shapes": fnv(shapes),
            "head_dim": attention[0].head_dim, "kv_heads": text.num_key_value_heads, "scale": attention[0].scaling, "eps": text.rms_norm_eps,
            "windows": window, "attention_factor": rotary.attention_scaling,
            "inv_freq": [frequencies[i].item() for i in (0, len(frequencies) // 3, len(frequencies) // 2, len(frequencies) - 1)]}


def fnv(text):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


if __name__ == "__main__":
    with open("published.json", "w") as f:
        lines = [f"  {json.dumps(name)}: {json.dumps({'config': config, 'expected': expected(config)})}" for name, config in CONFIGS.items()]
        f.write(f'{{\n  "transformers": {json.dumps(transformers.__version__)},\n' + ",\n".join(lines) + "\n}\n")
