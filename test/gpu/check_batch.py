#!/usr/bin/env python3
"""On a GPU machine: a prompt with a seed gets the same tokens alone and among 64 that decode at once, in float32. For every
carried golden checkpoint, on one rank and on as many as share its GPU, and for SmolLM2's shape.

    test/gpu/check_batch.py FOLDER [--backend cpu] [WORD …]

FOLDER as test/gpu/prepare.py made it; words choose among the models. In bfloat16 a row of a product may be rounded otherwise
where a batch of another size takes another kernel, so there the texts that differ are only counted.
"""
import json
import random
import sys

import folder_args

args = folder_args.parse(__doc__, backend={"default": "cuda", "help": "cpu: to try this script without a GPU"})
folder = args.folder
import big_model  # noqa: E402
import golden_runs  # noqa: E402

BATCH, WATCHED, TOKENS = 64, 18, 40
SAMPLINGS = ({"temperature": 1, "top_p": 0.95}, {"temperature": 0.8, "top_k": 20, "min_p": 0.02}, {"temperature": 0})


def requests_of(vocab):
    """Those that are watched, of several lengths and ways to draw, and their company. Short, so that plans that take 64
    tokens a step have all of them under way long before the first has ended."""
    draw = random.Random(11)
    lengths = [(1, 2, 5, 17)[i % 4] for i in range(WATCHED)] + [1 + i % 7 for i in range(BATCH - WATCHED)]
    return [{"prompt": [draw.randrange(vocab) for _ in range(n)], "max_tokens": TOKENS, "ignore_eos": True, "seed": 7 + i,
             **SAMPLINGS[i % len(SAMPLINGS)]} for i, n in enumerate(lengths)]


def check(plan, demanded, counted):
    """None, or what differs; adds to `counted` where the same text is not demanded."""
    differ = 0
    try:
        requests = requests_of(json.loads((plan.parent / "config.json").read_text())["vocab_size"])
        with golden_runs.asked(plan, args.backend) as ask:
            alone = ask(requests[:WATCHED], 1)
            among = ask(requests, BATCH)
        for body, a, b in zip(requests, alone, among):
            assert len(a) == len(b) == TOKENS
            assert a == b or not demanded, f"{body}: {a} alone, {b} among {BATCH}"
            differ += a != b
    except Exception as e:  # every plan is tried
        return str(e)[:900]
    if not demanded:
        counted.append(f"{plan.parent.name} {differ}")


def main():
    work, counted = [], []
    for pattern in ("float32-1x1.fb", "float32-3x2.fb", "float32-5x1.fb", "bf16-1x1.fb"):
        for plan in sorted(folder.glob(f"models/*/{pattern}")) + sorted(folder.glob(f"big/SmolLM2-135M/{pattern}")):
            if not (plan.parent / "config.json").exists() or args.words and not any(word in str(plan) for word in args.words):
                continue  # a GGUF file: one of the HF models has its shape
            work.append((f"{plan.parent.name} {plan.stem}", plan, pattern.startswith("float32"), counted))
            if (plan.parent / "outline.json").exists() and not (plan.parent / "model.safetensors").exists():
                spec = json.loads((plan.parent / "outline.json").read_text())
                big_model.outline(spec["name"], str(plan.parent), spec["layers"])
                big_model.fill(str(plan.parent), device="cuda" if args.backend == "cuda" else "cpu")
    failed = golden_runs.run_all(f"same seed, same text, alone and among {BATCH}", work, check)
    if counted:
        print(f"in bfloat16, texts that differ, of {WATCHED}: " + ", ".join(sorted(counted)))
    sys.exit(failed)


if __name__ == "__main__":
    main()
