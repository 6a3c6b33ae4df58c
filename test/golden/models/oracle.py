"""Greedy continuations and logits from transformers (float32, eager attention, CPU).

Only the scripts that make goldens use this; the tests read the committed results.
"""
import sys

import numpy as np
import torch
import transformers

torch.set_num_threads(2)
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
TOP = 5


def versions() -> dict:
    import gguf
    import safetensors
    return {"python": sys.version.split()[0], "torch": torch.__version__.split("+")[0],
            "transformers": transformers.__version__, "numpy": np.__version__, "safetensors": safetensors.__version__,
            "gguf": getattr(gguf, "__version__", None) or __import__("importlib.metadata").metadata.version("gguf"),
            "attention": "eager", "dtype": "float32"}


def load(folder: str, dtype=torch.float32, **more):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager", **more)
    return model.eval()


@torch.no_grad()
def logits(model, ids) -> np.ndarray:
    """[len(ids), vocab], without a cache."""
    return model(torch.tensor([list(map(int, ids))]), use_cache=False).logits[0].float().numpy()


@torch.no_grad()
def greedy(model, prompt, steps: int) -> list:
    """Token ids of the greedy continuation, every step recomputed from the start or, where the model
    is large, through transformers' own cache (both give the same ids; goldens() checks the margins)."""
    ids, cache = list(map(int, prompt)), None
    if model.num_parameters() > 50_000_000:
        feed = torch.tensor([ids])
        for _ in range(steps):
            out = model(feed, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            ids.append(int(out.logits[0, -1].argmax()))
            feed = torch.tensor([[ids[-1]]])
    else:
        for _ in range(steps):
            ids.append(int(logits(model, ids)[-1].argmax()))
    return ids[len(prompt):]


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def goldens(model, prompts, steps: int) -> tuple:
    """({array name: array}, smallest top-1 margin). For prompt i: p{i}_prompt, p{i}_tokens,
    p{i}_logits_first and p{i}_logits_last (the distributions that gave the first and the last new
    token, whole), p{i}_top_ids and p{i}_top_logits ([steps, 5]), p{i}_logsumexp ([steps]), and for
    the prompt's own positions p{i}_prompt_argmax and p{i}_prompt_logprobs (of each next token)."""
    out, margin = {}, np.inf
    for i, prompt in enumerate(prompts):
        tokens = greedy(model, prompt, steps)
        whole = logits(model, list(prompt) + tokens)
        rows = whole[len(prompt) - 1:-1]
        order = np.argsort(-rows, axis=1, kind="stable")[:, :TOP]
        top = np.take_along_axis(rows, order, 1)
        assert order[:, 0].tolist() == tokens, f"prompt {i}: the cached and the whole pass disagree"
        margin = min(margin, float((top[:, 0] - top[:, 1]).min()))
        logprobs = log_softmax(whole[:len(prompt)])
        out.update({
            f"p{i}_prompt": np.array(prompt, np.int32), f"p{i}_tokens": np.array(tokens, np.int32),
            f"p{i}_logits_first": rows[0], f"p{i}_logits_last": rows[-1],
            f"p{i}_top_ids": order.astype(np.int32), f"p{i}_top_logits": top,
            f"p{i}_logsumexp": (rows[:, 0] - log_softmax(rows)[:, 0]).astype(np.float32),
            f"p{i}_prompt_argmax": whole[:len(prompt)].argmax(1).astype(np.int32),
            f"p{i}_prompt_logprobs": logprobs[np.arange(len(prompt) - 1), list(prompt[1:])].astype(np.float32)})
    return out, margin
