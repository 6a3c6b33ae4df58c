"""The golden HuggingFace checkpoints: one small model per trap that real checkpoints set.

Shapes are awkward on purpose. `must_matter` lists config changes that have to change the logits, so
that a golden cannot pass while the feature it stands for is ignored.
"""
from dataclasses import dataclass, field

from seeds import SEEDS


@dataclass(frozen=True)
class Spec:
    name: str
    config: dict                      # config.json, verbatim
    seed: int = 0                     # 0: take it from seeds.py
    dtype: str = "F32"                # stored: F32, F16 or BF16
    shards: int = 1
    tokenizer: str = "gpt2"           # see tiny_tokenizer.py
    tokenizer_size: int = 509
    template: str = "chatml"          # chatml, strict (raises on a system role) or none
    generation: dict = field(default_factory=dict)   # generation_config.json
    must_matter: tuple = ()           # config overrides, each a dict
    f32_norms: bool = False           # norms stored as F32 beside narrower matrices

    def __post_init__(self):
        if not self.seed:
            object.__setattr__(self, "seed", SEEDS.get(self.name, 1))


def _config(arch, hidden, layers, heads, kv, ffn, vocab, **more):
    kind = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "mistral", "Qwen2ForCausalLM": "qwen2",
            "Qwen3ForCausalLM": "qwen3"}[arch]
    base = {"architectures": [arch], "model_type": kind, "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": kv, "intermediate_size": ffn, "vocab_size": vocab,
            "hidden_act": "silu", "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "initializer_range": 0.02,
            "use_cache": True, "bos_token_id": None, "eos_token_id": 508}
    base.update(more)
    return {k: v for k, v in base.items() if v != "absent"}


LLAMA3_SCALING = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 64, "rope_type": "llama3"}

SPECS = [
    Spec("llama-tied", _config("LlamaForCausalLM", 96, 4, 6, 2, 200, 509, tie_word_embeddings=True, rope_theta=10000.0,
                               torch_dtype="float32", attention_bias=False, mlp_bias=False, rope_scaling=None),
         must_matter=({"rope_theta": 500.0},)),
    # EOS ids are only in generation_config.json, as a list; bf16 matrices with f32 norms in two shards.
    Spec("llama-untied-bf16", _config("LlamaForCausalLM", 144, 5, 9, 3, 250, 509, tie_word_embeddings=False,
                                      rope_theta=100000.0, torch_dtype="bfloat16", eos_token_id="absent",
                                      bos_token_id="absent"),
         dtype="BF16", shards=2, tokenizer="smollm", f32_norms=True,
         generation={"eos_token_id": [508, 506], "do_sample": True, "temperature": 0.6, "top_p": 0.9}),
    # Three-point-one style rope; the original context is short so that the scaling bites in the prompts.
    Spec("llama3-rope-f16", _config("LlamaForCausalLM", 128, 4, 8, 2, 224, 521, tie_word_embeddings=False,
                                    rope_theta=500000.0, rope_scaling=LLAMA3_SCALING, dtype="float16",
                                    eos_token_id=[508, 507]),
         dtype="F16", tokenizer="llama3", must_matter=({"rope_scaling": None},)),
    # Biases everywhere, head_dim 100 given, q width 300 beside a hidden size of 180.
    Spec("llama-bias-hd100", _config("LlamaForCausalLM", 180, 3, 3, 1, 190, 509, tie_word_embeddings=False,
                                     head_dim=100, attention_bias=True, mlp_bias=True, rope_theta=10000.0)),
    # The older key `type`, linear scaling, 15 query heads over 5 KV heads.
    Spec("llama-linear-15-5", _config("LlamaForCausalLM", 120, 4, 15, 5, 177, 503, tie_word_embeddings=True,
                                      rope_theta=10000.0, rope_scaling={"type": "linear", "factor": 4.0}, eos_token_id=502),
         tokenizer_size=503, must_matter=({"rope_scaling": None},)),
    # 24 heads that do not divide the hidden size (case 16), theta only inside rope_parameters.
    Spec("mistral-24-heads", _config("MistralForCausalLM", 100, 3, 24, 4, 160, 509, tie_word_embeddings=False, head_dim=12,
                                     sliding_window=None,
                                     rope_parameters={"rope_type": "default", "rope_theta": 250000.0}, dtype="float32"),
         template="strict", must_matter=({"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},)),
    # A window of 16, shorter than most prompts; head_dim 224.
    Spec("mistral-window-hd224", _config("MistralForCausalLM", 64, 3, 4, 2, 150, 509, tie_word_embeddings=False,
                                         head_dim=224, sliding_window=16, rope_theta=10000.0, torch_dtype="bfloat16"),
         dtype="BF16", must_matter=({"sliding_window": None}, {"sliding_window": 17})),
    # Mistral as shipped since v0.2: window null, theta 1e6; SentencePiece-style tokenizer.
    Spec("mistral-sentencepiece", _config("MistralForCausalLM", 96, 4, 6, 3, 128, 509, tie_word_embeddings=False,
                                          head_dim=None, sliding_window=None, rope_theta=1000000.0, bos_token_id=1,
                                          eos_token_id=2, torch_dtype="float16"),
         dtype="F16", tokenizer="sentencepiece", must_matter=({"rope_theta": 10000.0},)),
    # Qwen2.5-0.5B in small: 14 query heads over 2 KV heads, biases without a key, a window that is not used.
    Spec("qwen2-14-2", _config("Qwen2ForCausalLM", 112, 5, 14, 2, 304, 523, tie_word_embeddings=True,
                               rope_theta=1000000.0, sliding_window=8, use_sliding_window=False, max_window_layers=3,
                               attention_dropout=0.0, bos_token_id=506, torch_dtype="bfloat16", eos_token_id=508),
         dtype="BF16", tokenizer="qwen2", must_matter=({"use_sliding_window": True},),
         generation={"eos_token_id": [508, 506], "repetition_penalty": 1.1}),
    # The window is used from layer 2 on.
    Spec("qwen2-window-15-5", _config("Qwen2ForCausalLM", 120, 4, 15, 5, 211, 509, tie_word_embeddings=False,
                                      rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
                                      sliding_window=12, use_sliding_window=True, max_window_layers=2, dtype="float32"),
         tokenizer="qwen2", shards=3,
         must_matter=({"use_sliding_window": False}, {"max_window_layers": 3}, {"max_window_layers": 0})),
    # YaRN as Qwen2.5 recommends it for long contexts; the original context is short so that it bites.
    Spec("qwen2-yarn", _config("Qwen2ForCausalLM", 96, 3, 6, 2, 180, 509, tie_word_embeddings=False, rope_theta=1000000.0,
                               rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
                               use_sliding_window=False, torch_dtype="float32"),
         tokenizer="qwen2", must_matter=({"rope_scaling": None},)),
    # q and k norms, q width 192 beside a hidden size of 80, tied.
    Spec("qwen3-tied", _config("Qwen3ForCausalLM", 80, 4, 6, 3, 240, 509, tie_word_embeddings=True, head_dim=32,
                               rope_theta=1000000.0, attention_bias=False, use_sliding_window=False, sliding_window=None,
                               max_window_layers=4, rms_norm_eps=1e-6, torch_dtype="bfloat16"),
         dtype="BF16", tokenizer="qwen2"),
    # As many KV heads as query heads, seven of them.
    Spec("qwen3-7-7", _config("Qwen3ForCausalLM", 100, 6, 7, 7, 130, 521, tie_word_embeddings=False, head_dim=24,
                              rope_theta=10000.0, rope_scaling=None, rms_norm_eps=1e-6, torch_dtype="float32"),
         tokenizer="qwen2", shards=3, template="none"),
]

BY_NAME = {s.name: s for s in SPECS}
EOS_IDS = (506, 507, 508)
