"""Comparing a plan's answers with a golden file, over HTTP and through `llmrt run`."""
import numpy as np

import harness
import layouts as model_layouts  # of test/golden/models, where harness looks

# For every model; those with more stages than layers or more ranks than query heads drop out.
LAYOUTS = ((1, 1), (2, 1), (1, 3), (3, 2), (5, 1))


def layouts(names) -> list:
    """(name, tp, pp) of all legal layouts."""
    return [(name, tp, pp) for name in names for tp, pp in model_layouts.legal(name, LAYOUTS, *model_layouts.shape(name))]


def path_of(name):
    return harness.GOLDEN / f"goldens/{name}.npz"


def check_served(plan, golden_path) -> None:
    """All prompts at once, in one ragged batch: ids, top-5 log-probabilities of every step, and (through
    echo) the log-probability of every prompt token."""
    meta, cases = harness.goldens(golden_path)
    with harness.Server(plan) as server:
        choices = harness.completions(server, [c.prompt for c in cases], meta["steps"], logprobs=5)
        echoed = harness.completions(server, [c.prompt for c in cases], 1, logprobs=1, echo=True)
    for i, (case, choice, echo) in enumerate(zip(cases, choices, echoed)):
        assert choice["token_ids"] == case.tokens, f"prompt {i}: ids differ"
        assert choice["finish_reason"] == "length"
        got = np.array(choice["logprobs"]["token_logprobs"])
        worst = np.abs(got - case.top_logprobs()[:, 0])
        assert worst.max() <= 2 * harness.TOLERANCE, f"prompt {i}: log-probability of step {worst.argmax()} differs by {worst.max():.2e}"
        for step, top in enumerate(choice["logprobs"]["top_logprobs"]):
            want = np.sort(case.top_logprobs()[step])[::-1]
            # Tokens with the same text share one entry of this dictionary, so only its extremes are sure.
            have = np.sort(list(top.values()))[::-1]
            assert abs(have[0] - want[0]) <= 2 * harness.TOLERANCE and have[-1] >= want[-1] - 2 * harness.TOLERANCE
        got = echo["logprobs"]["token_logprobs"]
        assert got[0] is None and len(got) == len(case.prompt) + 1
        if len(case.prompt) > 1:
            worst = np.abs(np.array(got[1:-1], float) - case.prompt_logprobs)
            assert worst.max() <= 2 * harness.TOLERANCE, f"prompt {i}: position {worst.argmax() + 1} differs by {worst.max():.2e}"


def check_run(plan, golden_path, folder, *more) -> None:
    """`llmrt run` over all prompts in one ragged batch: ids exactly, logits of every step within the tolerance."""
    meta, cases = harness.goldens(golden_path)
    answers = harness.run_batch(plan, [c.prompt for c in cases], meta["steps"], folder, *more)
    for i, (case, (ids, logits)) in enumerate(zip(cases, answers)):
        harness.check_logits(logits, case, f"prompt {i}")
        assert ids == case.tokens, f"prompt {i}: ids differ"
