#!/usr/bin/env python3
"""On a GPU machine: steps scheduled ahead, whose input ids are what the step before drew on the device. For every carried
golden checkpoint and every layout of one stage: greedy ids are the golden ones, and seeded ids, with several requests of
different lengths side by side, are the same as when every step waits for the one before.

    test/gpu/check_ahead.py FOLDER [--backend cpu] [WORD …]

FOLDER as test/gpu/prepare.py made it; words choose among the models.
"""
import sys

import folder_args

args = folder_args.parse(__doc__, backend={"default": "cuda", "help": "cpu: to try this script without a GPU"})
folder = args.folder
import golden_runs  # noqa: E402

# With a penalty a step needs what the one before drew, and would not be run ahead of it.
SEEDED = {"temperature": 1, "top_p": 0.95, "seed": 7, "max_tokens": 24}


def check(plan, meta, cases):
    """None, or what differs."""
    try:
        prompts = [case.prompt for case in cases]
        greedy = [{"prompt": prompt, "max_tokens": meta["steps"], "temperature": 0} for prompt in prompts]
        many = [{"prompt": prompt[:n], "ignore_eos": ignore, **SEEDED}
                for ignore in (False, True) for prompt in prompts for n in (1, len(prompt) // 2 + 1, len(prompt))]
        with golden_runs.asked(plan, args.backend) as ask:
            for got, case in zip(ask(greedy, len(greedy)), cases):
                assert got == case.tokens, f"greedy: {got} where {case.tokens} are right"
            ahead = ask(many, len(many))
        with golden_runs.asked(plan, args.backend, "--no-run-ahead") as ask:
            for body, a, b in zip(many, ahead, ask(many, len(many))):
                assert a == b, f"seeded, a prompt of {len(body['prompt'])}, ignore_eos {body['ignore_eos']}: {a} ahead, {b} without"
    except Exception as e:  # every layout is tried
        return str(e)[:600]


def main():
    work = list(golden_runs.golden_plans(folder, args.words, "float32-*x1.fb"))
    sys.exit(golden_runs.run_all("steps ahead on the GPU", work, check))


if __name__ == "__main__":
    main()
