"""Random shapes, layouts, page sizes and ragged batches (test/gpu/shapes.py) in float32: several ranks say what one rank says.
test/gpu/check_shapes.py has more of them, larger ones, and GPUs."""
import itertools
import sys

import pytest

import harness

sys.path.insert(0, str(harness.ROOT / "test/gpu"))
import shapes  # noqa: E402

FAR = 5e-5  # shapes.distance() of a step; sums in another order come to 1e-6
SMALL = 6_000_000  # weights


def small_and_split(count):
    """The first cases that are quickly made and have several ranks."""
    cases = (shapes.case(seed) for seed in itertools.count())
    return list(itertools.islice((of for of in cases if of.tp * of.pp > 1 and shapes.weights(of.config) < SMALL), count))


@pytest.mark.parametrize("of", small_and_split(14), ids=lambda of: f"{of.name}-{of.tp}x{of.pp}")
def test_ranks_agree(of, tmp_path):
    of.dtype = "float32"
    shapes.fill(of, tmp_path)
    options = [word for option in of.options.items() for word in option]
    split = harness.compile_plan(tmp_path, tmp_path / "split.fb", of.tp, of.pp, *options)
    whole = harness.compile_plan(tmp_path, tmp_path / "whole.fb")
    prompts = shapes.prompts(of)
    want, got = (harness.run_batch(plan, prompts, of.steps, tmp_path, "--ignore-eos") for plan in (whole, split))
    for i, ((ids, logits), (split_ids, split_logits)) in enumerate(zip(want, got)):
        assert logits.shape == split_logits.shape == (of.steps, of.config["vocab_size"])
        for step, (a, b) in enumerate(zip(logits, split_logits)):
            far = shapes.distance(b, a)
            assert far < FAR, f"{of.said()}: prompt {i} step {step} is {far:.2g} away"
            if ids[step] != split_ids[step]:  # as good as equal; other texts from here on
                break
