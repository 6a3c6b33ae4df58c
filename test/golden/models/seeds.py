"""Seeds found by `make_goldens.py --find-seed`: with these, every greedy step has a clear winner and
no golden path meets an EOS id.
"""
SEEDS = {
    "qwen2-yarn": 7, "llama-tied": 2, "llama-untied-bf16": 2, "llama3-rope-f16": 2, "llama-bias-hd100": 10, "llama-linear-15-5": 4,
    "mistral-24-heads": 3, "mistral-window-hd224": 2, "mistral-sentencepiece": 5, "qwen2-14-2": 2,
    "qwen2-window-15-5": 1, "qwen3-tied": 1, "qwen3-7-7": 1, "gguf-llama-mixed": 3, "gguf-llama-tied-q41": 3,
    "gguf-llama3-rope": 5, "gguf-llama-spm-hd100": 1, "gguf-qwen2-14-2": 1, "gguf-qwen3": 14,
}
