#!/usr/bin/env python3
"""On a GPU machine: every carried golden checkpoint, and the real SmolLM2 where it was carried, in every layout through
`llmrt run --backend cuda`, ids exactly and logits within the tolerance against transformers in float32. Ranks share the GPUs
that are there.

    test/gpu/check_goldens.py FOLDER [--collectives WAY] [WORD …]

FOLDER as test/gpu/prepare.py made it; words choose among the models, WAY is llmrt's (auto, nccl, peer, host).
"""
import sys
import tempfile
from pathlib import Path

import folder_args

args = folder_args.parse(__doc__, collectives={"default": "auto"})
folder = args.folder
import golden_runs  # noqa: E402
import harness  # noqa: E402


def check(plan, meta, cases, mode):
    """None, or why this plan's answers are not the golden ones."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            answers = harness.run_batch(plan, [c.prompt for c in cases], meta["steps"], Path(scratch), "--backend", "cuda",
                                        "--share-devices", "--collectives", args.collectives, *mode)
            for i, (case, (ids, logits)) in enumerate(zip(cases, answers)):
                want = harness.until_eos(case.tokens) if "names" in meta else case.tokens  # the real model stops by itself
                assert (harness.until_eos(ids) if "names" in meta else ids) == want, f"prompt {i}: {ids} where {want} is right"
                harness.check_logits(logits, case, f"prompt {i}")
        except Exception as e:  # every layout is tried
            return str(e)[:600]


def main():
    work = []
    for name, plan, meta, cases in (*golden_runs.golden_plans(folder, args.words, "float32-*.fb"),
                                    *golden_runs.smollm2_plans(folder, args.words, "float32-*.fb")):
        for mode in ([], ["--eager"]) if plan.stem.endswith("1x1") else ([],):
            work.append((" ".join([name, *mode]), plan, meta, cases, mode))
    sys.exit(golden_runs.run_all(f"goldens on the GPU, collectives {args.collectives}", work, check))


if __name__ == "__main__":
    main()
