#!/usr/bin/env python3
"""On a GPU machine: steps scheduled ahead, whose input ids are what the step before drew on the device. For every carried
golden checkpoint and every layout of one stage: greedy ids are the golden ones, and seeded ids, with several requests of
different lengths side by side, are the same as when every step waits for the one before.

    test/gpu/check_ahead.py FOLDER [WORD …]     FOLDER as test/gpu/prepare.py made it; only models with a WORD in their name
"""
import concurrent.futures
import json
import os
import sys
import tempfile
import time
from pathlib import Path

folder = Path(sys.argv[1]).resolve()
os.environ["LLMC_BUILD_DIR"] = str(folder)
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402

# A penalty would leave the sampling to the host, and a step that it reads is not run ahead of.
GREEDY = ["--temperature", "0", "--repetition-penalty", "1"]
SEEDED = ["--temperature", "1", "--top-p", "0.95", "--seed", "7", "--repetition-penalty", "1"]


def answers(plan, prompts, steps, *more):
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "prompts.json")
        file.write_text(json.dumps(prompts))
        done = harness.run("llmrt", "run", plan, "--prompt-file", file, "--max-tokens", steps, "--backend", "cuda",
                           "--share-devices", "--json", *more, timeout=300)
        return [answer["token_ids"] for answer in json.loads(done.out)]


def check(plan, meta, cases):
    try:
        prompts = [case.prompt for case in cases]
        for got, case in zip(answers(plan, prompts, meta["steps"], *GREEDY), cases):
            assert got == case.tokens, f"greedy: {got} where {case.tokens} are right"
        many = [prompt[:n] for prompt in prompts for n in (1, len(prompt) // 2 + 1, len(prompt))]
        for ends in [], ["--ignore-eos"]:
            ahead, waiting = (answers(plan, many, 24, *SEEDED, *ends, *mode) for mode in ([], ["--no-run-ahead"]))
            for prompt, a, b in zip(many, ahead, waiting):
                assert a == b, f"seeded, a prompt of {len(prompt)} {' '.join(ends)}: {a} ahead, {b} without"
    except Exception as e:  # every layout is tried
        return str(e)[:600]


def main():
    only, work, start = sys.argv[2:], [], time.time()
    for model in sorted((folder / "models").iterdir()):
        if only and not any(word in model.name for word in only):
            continue
        meta, cases = harness.goldens(harness.GOLDEN / f"goldens/{model.name}.npz")
        for plan in sorted(model.glob("float32-*x1.fb")):
            work.append((f"{model.name} {plan.stem}", plan, meta, cases))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 1) // 2))) as pool:
        for (what, *_), why in zip(work, pool.map(lambda w: check(*w[1:]), work)):
            if why:
                failed += 1
                print(f"FAILED {what}: {why}", flush=True)
    print(f"steps ahead on the GPU: {len(work) - failed} passed, {failed} failed, {time.time() - start:.0f} s")
    sys.exit(1 if failed or not work else 0)


if __name__ == "__main__":
    main()
