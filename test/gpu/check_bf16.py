#!/usr/bin/env python3
"""On a GPU machine: bf16 logits of real-size random models against a float32 reference, beside transformers' own bf16.

    test/gpu/check_bf16.py FOLDER/big/NAME [--plan PLAN.fb …] [--binaries FOLDER]

FOLDER as test/gpu/prepare.py --big made it: an outline of a checkpoint (filled here with random weights) and plans. For
each plan, prompts of several lengths run in one ragged batch; every generated step is compared with a float32 forward pass
over the same tokens. Ours may be no further from it than transformers' bf16 x 1.2, in the largest and in the mean
difference.
"""
import argparse
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


def reference(model, prompts, outputs):
    """[(steps, vocab)] logits at the positions that gave `outputs`, as float32 on the host."""
    rows = []
    with torch.no_grad():
        for prompt, output in zip(prompts, outputs):
            ids = torch.tensor([prompt + output[:-1]], device="cuda")
            hidden = model.model(ids).last_hidden_state[0, len(prompt) - 1:]
            rows.append(model.lm_head(hidden).float().cpu().numpy())
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--binaries", type=Path, required=True)
    parser.add_argument("--lengths", default="1,2,17,128,1000,4096")
    parser.add_argument("--copies", type=int, default=1, help="each length so many times, for larger batches")
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    start = time.time()
    spec = json.load(open(args.folder / "outline.json"))
    big_model.outline(spec["name"], str(args.folder), spec["layers"])
    big_model.fill(str(args.folder))
    print(f"weights written in {time.time() - start:.0f} s")
    config = json.load(open(args.folder / "config.json"))
    random = np.random.default_rng(0)
    lengths = [int(n) for n in args.lengths.split(",")] * args.copies
    prompts = [random.integers(0, config["vocab_size"], n).tolist() for n in lengths]

    answers = {}
    for plan in sorted(args.folder.glob("*.fb")):
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch, "prompts.json").write_text(json.dumps(prompts))
            begin = time.time()
            done = subprocess.run([args.binaries / "bin/llmrt", "run", plan, "--backend", "cuda", "--share-devices", "--json",
                                   "--prompt-file", f"{scratch}/prompts.json", "--max-tokens", str(args.steps), "--temperature", "0",
                                   "--ignore-eos", "--dump-logits", f"{scratch}/logits.npy"], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{plan.name}: {done.stderr[-2000:]}")
            seconds = time.time() - begin
            many = len(prompts) > 1
            logits = [np.load(f"{scratch}/logits.{i}.npy" if many else f"{scratch}/logits.npy") for i in range(len(prompts))]
            answers[plan.name] = ([a["token_ids"] for a in json.loads(done.stdout)], logits, seconds)

    load = dict(attn_implementation="sdpa", device_map="cuda")
    models = {}
    worst = {}
    for dtype in (torch.bfloat16, torch.float32):
        model = transformers.AutoModelForCausalLM.from_pretrained(args.folder, dtype=dtype, **load)
        models[dtype] = {name: reference(model, prompts, ids) for name, (ids, _, _) in answers.items()}
        del model
        torch.cuda.empty_cache()
    failed = False
    for name, (ids, logits, seconds) in answers.items():
        theirs, truth = models[torch.bfloat16][name], models[torch.float32][name]
        ours_d = np.concatenate([np.abs(a - t).ravel() for a, t in zip(logits, truth)])
        hf_d = np.concatenate([np.abs(a - t).ravel() for a, t in zip(theirs, truth)])
        ratios = ours_d.max() / hf_d.max(), ours_d.mean() / hf_d.mean()
        good = max(ratios) <= 1.2
        failed |= not good
        print(f"{'ok  ' if good else 'FAIL'} {args.folder.name} {name}: max {ours_d.max():.4f} against {hf_d.max():.4f} = {ratios[0]:.2f}, "
              f"mean {ours_d.mean():.5f} against {hf_d.mean():.5f} = {ratios[1]:.2f} ({seconds:.0f} s with start-up)")
        for prompt, a, b, t in zip(prompts, logits, theirs, truth):
            worst[len(prompt)] = np.abs(a - t).mean() / np.abs(b - t).mean()
        if not good:
            for prompt, a, b, t in zip(prompts, logits, theirs, truth):
                steps = np.abs(a - t).mean(axis=1) / np.abs(b - t).mean(axis=1)
                print(f"     prompt of {len(prompt)}: mean ratio by step", " ".join(f"{r:.2f}" for r in steps))
        print("     mean ratio by prompt length:", ", ".join(f"{n}: {r:.2f}" for n, r in worst.items()))
    sys.exit(failed)


if __name__ == "__main__":
    main()
