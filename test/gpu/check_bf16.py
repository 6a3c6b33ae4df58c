#!/usr/bin/env python3
"""On a GPU machine: bf16 logits against a float32 reference on the same weights, beside transformers' own bf16.

    test/gpu/check_bf16.py --binaries FOLDER MODEL …

MODEL: FOLDER/big/NAME or FOLDER/models/NAME as test/gpu/prepare.py made them: the outline of a checkpoint of real size
(filled here with random weights) or a whole small one, with bf16 plans. Each plan answers 64 prompts of all lengths in one
ragged batch, so that prefills and decodes mix and then 64 sequences decode together; plans of small models also answer three (few
rows go through kernels of their own), at real size the plan of one rank several numbers. Every generated step is compared with a float32 forward pass over the same tokens. Ours may be no further from it
than transformers' bf16 x 1.2, in the largest and in the mean difference over all that a plan has answered.
"""
import argparse
import concurrent.futures
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import big_model  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

MOST = 1.2
BATCHES = (1, 3, 16, 37)  # beside 64, on one rank at real size
FEW = 3  # beside 64, for small models
BIG_LENGTHS = (8192, 4096, 1000, 128, 17, 2, 1)
SMALL_LENGTHS = (120, 33, 17, 2, 1)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("models", type=Path, nargs="+")
parser.add_argument("--binaries", type=Path, required=True)
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--backend", default="cuda", help="cpu: the CPU backend and torch on the CPU, to try this script")
args = parser.parse_args()
device = "cuda" if args.backend == "cuda" else "cpu"
transformers.utils.logging.disable_progress_bar()


def prompts_of(vocab, lengths, count):
    """`count` prompts: each length once, the longest first so that all are under way together, and then the short ones again."""
    random = np.random.default_rng(count)
    short = [n for n in lengths if n <= 128]
    mixed = [n for n in lengths] + [short[i % len(short)] for i in range(count)]
    return [random.integers(0, vocab, n).tolist() for n in (mixed if count > len(lengths) else short)[:count]]


def answer(plan, prompts):
    """[(ids, logits [steps, vocab])] of one run, and its seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "prompts.json").write_text(json.dumps(prompts))
        begin = time.time()
        done = subprocess.run([args.binaries / "bin/llmrt", "run", plan, "--backend", args.backend, "--json", "--prompt-file",
                               f"{scratch}/prompts.json", "--max-tokens", str(args.steps), "--temperature", "0", "--ignore-eos",
                               "--repetition-penalty", "1", "--dump-logits", f"{scratch}/logits.npy",
                               *(["--share-devices"] if device == "cuda" else [])], capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{plan}: {done.stderr[-2000:]}")
        files = [f"{scratch}/logits.{i}.npy" for i in range(len(prompts))] if len(prompts) > 1 else [f"{scratch}/logits.npy"]
        answers = json.loads(done.stdout)
        return [(a["token_ids"], np.load(file)) for a, file in zip(answers, files)], time.time() - begin


class Difference:
    """The largest and the mean of many absolute differences."""

    def __init__(self):
        self.most, self.sum, self.count = 0.0, 0.0, 0

    def add(self, a, b):
        d = (a - b).abs()
        self.most = max(self.most, d.max().item())
        self.sum += d.sum(dtype=torch.float64).item()
        self.count += d.numel()
        return d.mean().item()

    mean = property(lambda self: self.sum / self.count)


def forward(model, prompt, ids):
    """[len(ids), vocab] float32 logits at the positions that gave `ids`."""
    tokens = torch.tensor([prompt + ids[:-1]], device=device)
    with torch.no_grad():
        return model(tokens, use_cache=False, logits_to_keep=len(ids)).logits[0].float()


def answer_all(folder):
    """Fills an outline, and runs everything that the folder's plans are to answer: [(plan, prompts, answers, seconds)], seconds."""
    start = time.time()
    outline = folder / "outline.json"
    if outline.exists():
        spec = json.loads(outline.read_text())
        big_model.outline(spec["name"], str(folder), spec["layers"])
        big_model.fill(str(folder), device=device)
    config = json.loads((folder / "config.json").read_text())
    lengths = [n for n in (BIG_LENGTHS if outline.exists() else SMALL_LENGTHS)
               if n + args.steps <= config["max_position_embeddings"]]
    runs = []  # (plan, prompts)
    for plan in sorted(folder.glob("bf16-*.fb")):
        more = (FEW,) if not outline.exists() else BATCHES if plan.stem == "bf16-1x1" else ()
        for count in (64, *more):
            runs.append((plan, prompts_of(config["vocab_size"], lengths, count)))
    if not runs:
        raise RuntimeError("no bf16 plans")
    with concurrent.futures.ThreadPoolExecutor(3 if outline.exists() else 6) as pool:
        return [(*run, *got) for run, got in zip(runs, pool.map(lambda run: answer(*run), runs))], time.time() - start


def check(folder, answered):
    """Whether all plans of the folder hold; prints a line for each."""
    answers, seconds_to_answer = answered
    start = time.time()
    load = {"attn_implementation": "sdpa", "device_map": device}
    theirs, truth = (transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **load).eval()
                     for dtype in (torch.bfloat16, torch.float32))
    seen = {}  # (prompt, ids) -> both references: plans often agree
    ours_by_plan, theirs_by_plan, by_length, seconds_of = {}, {}, {}, {}
    for plan, prompts, got, seconds in answers:
        ours, other = (by_plan.setdefault(plan.stem, Difference()) for by_plan in (ours_by_plan, theirs_by_plan))
        seconds_of[plan.stem] = max(seconds_of.get(plan.stem, 0), seconds)
        for prompt, (ids, logits) in zip(prompts, got):
            key = (tuple(prompt), tuple(ids))
            if key not in seen:
                right = forward(truth, prompt, ids)
                seen[key] = right, forward(theirs, prompt, ids)
            right, rounded = seen[key]
            pair = by_length.setdefault(plan.stem, {}).setdefault(len(prompt), [0.0, 0.0])
            pair[0] += ours.add(torch.from_numpy(logits).to(device), right)
            pair[1] += other.add(rounded, right)
    good = True
    layers = theirs.config.num_hidden_layers
    for plan, ours in ours_by_plan.items():
        other = theirs_by_plan[plan]
        ratios = ours.most / other.most, ours.mean / other.mean
        holds = max(ratios) <= MOST  # false for NaN
        good &= holds
        print(f"{'ok  ' if holds else 'FAIL'} {folder.name}, {layers} layers, {plan}: max {ours.most:.4f} against {other.most:.4f} = "
              f"{ratios[0]:.2f}, mean {ours.mean:.5f} against {other.mean:.5f} = {ratios[1]:.2f}; mean by prompt length "
              + ", ".join(f"{n}: {a / b:.2f}" for n, (a, b) in sorted(by_length[plan].items()))
              + f" ({seconds_of[plan]:.1f} s with start-up)")
    print(f"     {folder.name}: {seconds_to_answer:.0f} s to fill and answer, {time.time() - start:.0f} s for transformers", flush=True)
    del theirs, truth, seen
    if device == "cuda":
        torch.cuda.empty_cache()
    return good


def main():
    failed, begin = 0, time.time()
    with concurrent.futures.ThreadPoolExecutor(1) as ahead:  # the next model answers while transformers is at this one
        pending = ahead.submit(answer_all, args.models[0])
        for model, following in zip(args.models, [*args.models[1:], None]):
            current, pending = pending, None
            concurrent.futures.wait([current])
            if following:
                pending = ahead.submit(answer_all, following)
            try:
                failed += not check(model, current.result())
            except Exception as e:  # every model is tried
                failed += 1
                print(f"FAIL {model.name}: {str(e)[-2000:]}", flush=True)
    print(f"bf16 logits beside transformers': {len(args.models) - failed} models passed, {failed} failed, {time.time() - begin:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
