#!/usr/bin/env python3
"""Makes goldens.npz for SmolLM2-135M-Instruct.Q4_1.gguf: `make_goldens.py MODEL.gguf [LLAMA_TOKENIZE]`.

transformers reads the same GGUF in float32 (needs torch, transformers, gguf, accelerate); the ids come from
the `tokenizers` package with the pre-tokeniser that the file names (transformers' conversion loses
it) and, where a llama-tokenize is given, are compared with that second oracle.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
import oracle  # noqa: E402
from prompts import PROMPTS  # noqa: E402

STEPS = 64
MARGIN = 2e-3
NOISE = 2e-4        # float32 against float64
EOS = (0, 2)
WHOLE = 5           # so many prompts keep all 49,152 logits of their last position; the others every 37th
GRID = 2.0**-13     # stored logits are rounded to this (an error of 6e-5), which halves the file


def tokenizer_of(path: str) -> tokenizers.Tokenizer:
    """GGUF's vocabulary and merges behind "smollm": single digits, then GPT-2's pattern."""
    import gguf
    fields = gguf.GGUFReader(path).fields
    assert fields["tokenizer.ggml.pre"].contents() == "smollm"
    tokens, kinds = fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    out = tokenizers.Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    out.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)])
    out.decoder = decoders.ByteLevel()
    out.add_special_tokens([t for t, kind in zip(tokens, kinds) if kind == 3])
    return out


def check_ids(program: str, path: str, text: str, ids: list) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        got = subprocess.run([program, "-m", path, "-f", f.name, "--ids", "--no-bos", "--log-disable"],
                             capture_output=True, text=True, check=True).stdout
    assert json.loads(got.strip().splitlines()[-1]) == ids, f"llama-tokenize disagrees on {text[:40]!r}"


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: make_goldens.py MODEL.gguf [LLAMA_TOKENIZE]")
    path = sys.argv[1]
    tok = tokenizer_of(path)
    model = oracle.load(os.path.dirname(os.path.abspath(path)), gguf_file=os.path.basename(path))
    out, names, margins, outputs = {}, [], [], []
    for name, text in PROMPTS:
        ids = tok.encode(text).ids
        if len(sys.argv) > 2:
            check_ids(sys.argv[2], path, text, ids)
        arrays, margin = oracle.goldens(model, [ids], STEPS)
        tokens = arrays["p0_tokens"].tolist()
        print(f"{name}: {len(ids)} ids, margin {margin:.1e}{', meets an EOS id' if set(tokens) & set(EOS) else ''}: "
              f"{tok.decode(tokens)[:60]!r}", flush=True)
        if margin < MARGIN:
            print("  left out: near-tie")
            continue
        del arrays["p0_logits_last"]
        first = arrays.pop("p0_logits_first")
        arrays["p0_logits_first" if len(names) < WHOLE else "p0_logits_first_37"] = (
            np.round((first if len(names) < WHOLE else first[::37]) / GRID) * GRID).astype(np.float32)
        out.update({k.replace("p0_", f"p{len(names)}_"): v for k, v in arrays.items()})
        names.append(name)
        end = next((i for i, t in enumerate(tokens) if t in EOS), len(tokens))
        outputs.append(tok.decode(tokens[:end], skip_special_tokens=True))
        margins.append(margin)
    sample = out["p2_prompt"].tolist() + out["p2_tokens"].tolist()
    exact = oracle.load(os.path.dirname(os.path.abspath(path)), torch.float64, gguf_file=os.path.basename(path))
    noise = float(np.abs(oracle.logits(exact, sample) - oracle.logits(model, sample)).max())
    if noise > NOISE:
        sys.exit(f"float32 is {noise:.1e} from float64, more than {NOISE}")
    if len(names) < 10 or max(out[f"p{i}_prompt"].size for i in range(len(names))) < 300:
        sys.exit(f"only {len(names)} prompts are usable, or none of 300 tokens: add some to prompts.py")
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    out["meta"] = np.array(json.dumps({"model": os.path.basename(path), "weights_sha256": digest, "steps": STEPS,
                                       "prompts": len(names), "names": names, "outputs": outputs, "min_margin": min(margins), "max_noise": noise, "margins": margins,
                                       "texts": [dict(PROMPTS)[n] for n in names],
                                       "versions": {**oracle.versions(), "tokenizers": tokenizers.__version__}}))
    np.savez_compressed(f"{HERE}/goldens.npz", **out)
    print(f"{len(names)} prompts, noise {noise:.1e}, {os.path.getsize(f'{HERE}/goldens.npz') / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
