#!/usr/bin/env python3
"""Writes NAME/config.json for every model of the shape table, with the keys that the published files have.

Shapes are the models' own; parameter totals and KV bytes that follow from them stand in oracle.json.
Run in this folder after editing; it needs nothing but Python.
"""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def qwen2(hidden, layers, heads, kv, ffn, vocab, tied, **more):
    return {"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
            "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": hidden, "initializer_range": 0.02,
            "intermediate_size": ffn, "max_position_embeddings": 32768, "max_window_layers": more.pop("window", 28),
            "model_type": "qwen2", "num_attention_heads": heads, "num_hidden_layers": layers,
            "num_key_value_heads": kv, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
            "tie_word_embeddings": tied, "torch_dtype": "bfloat16", "transformers_version": "4.43.1",
            "use_cache": True, "use_sliding_window": False, "vocab_size": vocab, **more}


def qwen3(hidden, layers, heads, kv, ffn, tied):
    return {"architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
            "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
            "hidden_size": hidden, "initializer_range": 0.02, "intermediate_size": ffn,
            "max_position_embeddings": 40960, "max_window_layers": layers, "model_type": "qwen3",
            "num_attention_heads": heads, "num_hidden_layers": layers, "num_key_value_heads": kv,
            "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000, "sliding_window": None,
            "tie_word_embeddings": tied, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
            "use_cache": True, "use_sliding_window": False, "vocab_size": 151936}


def llama3(hidden, layers, heads, kv, ffn, factor, tied, **more):
    return {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
            "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu",
            "hidden_size": hidden, "initializer_range": 0.02, "intermediate_size": ffn,
            "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "llama",
            "num_attention_heads": heads, "num_hidden_layers": layers, "num_key_value_heads": kv,
            "pretraining_tp": 1, "rms_norm_eps": 1e-05,
            "rope_scaling": {"factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 8192, "rope_type": "llama3"},
            "rope_theta": 500000.0, "tie_word_embeddings": tied, "torch_dtype": "bfloat16",
            "transformers_version": "4.43.0", "use_cache": True, "vocab_size": 128256, **more}


CONFIGS = {
    # name: (config, parameters, KV bytes per token in bf16); a text in place of numbers: what blocks it
    "Qwen2.5-0.5B": (qwen2(896, 24, 14, 2, 4864, 151936, True, window=21), 494032768, 12288),
    "Qwen2.5-7B": (qwen2(3584, 28, 28, 4, 18944, 152064, False), 7615616512, 57344),
    "Qwen2.5-14B": (qwen2(5120, 48, 40, 8, 13824, 152064, False, window=70), 14770033664, 196608),
    "Qwen2.5-32B": (qwen2(5120, 64, 40, 8, 27648, 152064, False, window=70), 32763876352, 262144),
    "Qwen2.5-72B": (qwen2(8192, 80, 64, 8, 29568, 152064, False, window=70), 72706203648, 327680),
    "Qwen3-0.6B": (qwen3(1024, 28, 16, 8, 3072, True), 596049920, 114688),
    "Qwen3-8B": (qwen3(4096, 36, 32, 8, 12288, False), 8190735360, 147456),
    "Qwen3-32B": (qwen3(5120, 64, 64, 8, 25600, False), 32762123264, 262144),
    "Llama-3.1-8B": (llama3(4096, 32, 32, 8, 14336, 8.0, False), 8030261248, 131072),
    "Llama-3.1-70B": (llama3(8192, 80, 64, 8, 28672, 8.0, False), 70553706496, 327680),
    "Llama-3.2-1B": (llama3(2048, 16, 32, 8, 8192, 32.0, True, head_dim=64), 1235814400, 32768),
    "Mistral-7B-v0.3": ({
        "architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
        "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.42.0", "use_cache": True, "vocab_size": 32768}, 7248023552, 131072),
    "SmolLM2-135M": ({
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1,
        "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
        "intermediate_size": 1536, "is_llama_config": True, "max_position_embeddings": 8192, "mlp_bias": False,
        "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
        "pad_token_id": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": False,
        "rope_scaling": None, "rope_theta": 100000, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
        "transformers_version": "4.42.3", "use_cache": True, "vocab_size": 49152}, 134515008, 23040),
    "Qwen2-57B-A14B": ({
        "architectures": ["Qwen2MoeForCausalLM"], "decoder_sparse_step": 1, "hidden_act": "silu",
        "hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 32768, "max_window_layers": 28,
        "model_type": "qwen2_moe", "moe_intermediate_size": 2560, "norm_topk_prob": False, "num_attention_heads": 28,
        "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 28, "num_key_value_heads": 4,
        "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "shared_expert_intermediate_size": 20480,
        "sliding_window": 65536, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "use_sliding_window": False, "vocab_size": 151936}, "mixture of experts (qwen2_moe: num_experts=64)", "qwen2"),
    "Qwen3-30B-A3B": ({
        "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": False, "decoder_sparse_step": 1, "head_dim": 128,
        "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 40960,
        "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
        "norm_topk_prob": True, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
        "num_hidden_layers": 48, "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_scaling": None,
        "rope_theta": 1000000.0, "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "use_sliding_window": False, "vocab_size": 151936}, "mixture of experts (qwen3_moe: num_experts=128)", "qwen3"),
    "Mixtral-8x7B": ({
        "architectures": ["MixtralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
        "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral",
        "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "num_local_experts": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "sliding_window": None,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": 32000},
        "mixture of experts (mixtral: num_local_experts=8)", "mistral"),
}

oracle = {}
for name, (config, first, second) in CONFIGS.items():
    os.makedirs(os.path.join(HERE, name), exist_ok=True)
    with open(os.path.join(HERE, name, "config.json"), "w") as out:
        json.dump(config, out, indent=2)
        out.write("\n")
    oracle[name] = ({"unsupported": first, "nearest": second} if isinstance(first, str) else
                    {"parameters": first, "kv_bytes_per_token": second})
with open(os.path.join(HERE, "oracle.json"), "w") as out:
    json.dump(oracle, out, indent=2)
    out.write("\n")
