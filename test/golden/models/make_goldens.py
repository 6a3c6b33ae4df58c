#!/usr/bin/env python3
"""Makes goldens/NAME.npz for the small checkpoints: `make_goldens.py [--find-seed] [NAME...]`.

Needs torch, transformers and gguf. Refuses a model whose greedy path has a near-tie, meets an EOS id,
or does not change when the feature it stands for is switched off. --find-seed tries seeds until
one passes and prints it, for specs.py or gguf_specs.py.
"""
import dataclasses
import json
import os
import sys
import tempfile

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gguf_models  # noqa: E402
import make_models  # noqa: E402
import oracle  # noqa: E402
from deterministic import integers  # noqa: E402
from specs import BY_NAME, EOS_IDS  # noqa: E402

LENGTHS = (1, 5, 17, 40, 73, 150)
STEPS = 24
MARGIN = 2.5e-3     # more than twice the tolerance of the tests (1e-3)
NOISE = 1e-4        # float32 against float64
MATTERS = 0.05      # what switching a feature off must change


def prompts_of(name: str, vocab: int) -> list:
    return [integers(f"{name}/prompt/{n}", n, min(vocab, 500)).tolist() for n in LENGTHS]


def with_overrides(folder: str, changes: dict, into: str) -> str:
    """A copy of the checkpoint whose config.json has `changes` (None deletes a key's meaning)."""
    os.makedirs(into, exist_ok=True)
    for f in os.listdir(folder):
        if not os.path.exists(f"{into}/{f}"):
            os.symlink(f"{folder}/{f}", f"{into}/{f}")
    with open(f"{folder}/config.json") as f:
        config = {**json.load(f), **changes}
    os.unlink(f"{into}/config.json")
    with open(f"{into}/config.json", "w") as f:
        json.dump(config, f)
    return into


def problem_of(arrays: dict, margin: float, vocab: int) -> str:
    if margin < MARGIN:
        return f"smallest top-1 margin {margin:.2e} is below {MARGIN}"
    tokens = np.concatenate([v for k, v in arrays.items() if k.endswith("_tokens")])
    if np.isin(tokens, [*EOS_IDS, 0, 2, vocab - 1]).any():
        return "the greedy path meets an EOS id"
    if len(set(tokens.tolist())) < 40:
        return f"only {len(set(tokens.tolist()))} different tokens in {tokens.size}"
    return ""


def run(name: str, root: str, seed=None):
    """(arrays, meta, problem) of one model, made under `root`."""
    folder = os.path.join(root, f"{name}-{seed or 0}")
    if name in BY_NAME:
        spec = BY_NAME[name] if seed is None else dataclasses.replace(BY_NAME[name], seed=seed)
        make_models.build(spec, folder)
        load = lambda f, dtype=torch.float32: oracle.load(f, dtype)  # noqa: E731
        config = spec.config
    else:
        spec = gguf_models.BY_NAME[name] if seed is None else dataclasses.replace(gguf_models.BY_NAME[name], seed=seed)
        gguf_models.build(spec, folder)
        load = lambda f, dtype=torch.float32: gguf_models.load_oracle(oracle, spec, f, dtype)  # noqa: E731
        config = dataclasses.asdict(spec)
    model = load(folder)
    prompts = prompts_of(name, model.config.vocab_size)
    arrays, margin = oracle.goldens(model, prompts, STEPS)
    meta = {"model": name, "seed": spec.seed, "weights_sha256": make_models.digest(folder), "steps": STEPS,
            "prompts": len(prompts), "min_margin": margin, "versions": oracle.versions()}
    problem = problem_of(arrays, margin, model.config.vocab_size)
    if not problem:
        sample = prompts[4] + arrays["p4_tokens"].tolist()
        here = oracle.logits(model, sample)
        meta["max_noise"] = float(np.abs(oracle.logits(load(folder, torch.float64), sample) - here).max())
        if meta["max_noise"] > NOISE:
            problem = f"float32 is {meta['max_noise']:.1e} from float64"
        for k, changes in enumerate(getattr(spec, "must_matter", ()) if name in BY_NAME else ()):
            other = oracle.logits(load(with_overrides(folder, changes, f"{folder}-{k}")), sample)
            if np.abs(other - here).max() < MATTERS:
                sys.exit(f"{name}: {changes} changes the logits by only {np.abs(other - here).max():.2e}")
    return arrays, meta, problem


def main() -> None:
    args = sys.argv[1:]
    find = "--find-seed" in args
    names = [a for a in args if not a.startswith("-")] or [*BY_NAME, *gguf_models.BY_NAME]
    os.makedirs(f"{HERE}/goldens", exist_ok=True)
    with tempfile.TemporaryDirectory() as root:
        for name in names:
            for seed in range(1, 200) if find else [None]:
                arrays, meta, problem = run(name, root, seed)
                if not problem:
                    break
                if not find:
                    sys.exit(f"{name}: {problem}; try --find-seed")
            if find:
                print(f"{name}: seed={meta['seed']}", flush=True)
                continue
            arrays["meta"] = np.array(json.dumps(meta))
            np.savez_compressed(f"{HERE}/goldens/{name}.npz", **arrays)
            size = os.path.getsize(f"{HERE}/goldens/{name}.npz")
            print(f"{name}: margin {meta['min_margin']:.1e}, noise {meta['max_noise']:.1e}, {size / 1024:.0f} KiB", flush=True)


if __name__ == "__main__":
    main()
