#!/usr/bin/env python3
"""On a GPU machine: steps scheduled ahead, whose input ids are what the step before drew on the device. For every carried
golden checkpoint and every layout of one stage: greedy ids are the golden ones, and seeded ids, with several requests of
different lengths side by side, are the same as when every step waits for the one before.

    test/gpu/check_ahead.py FOLDER [WORD …]     FOLDER as test/gpu/prepare.py made it; only models with a WORD in their name
"""
import json
import os
import sys
import tempfile
from pathlib import Path

folder = Path(sys.argv[1]).resolve()
os.environ["LLMC_BUILD_DIR"] = str(folder)
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "e2e"), str(Path(__file__).resolve().parent)]
import golden_runs  # noqa: E402
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
    work = list(golden_runs.golden_plans(folder, sys.argv[2:], "float32-*x1.fb"))
    sys.exit(golden_runs.run_all("steps ahead on the GPU", work, check))


if __name__ == "__main__":
    main()
