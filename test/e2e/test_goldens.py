"""Small HuggingFace checkpoints of every family: greedy ids and logits equal transformers' for several (tp, pp)."""
import numpy as np
import pytest

import harness
from golden_check import check_served, layouts, tokens_and_logits

NAMES = list(harness.specs.BY_NAME)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_goldens(name, models):
    """A generator that drifted would make every other failure here a riddle."""
    meta, _ = harness.goldens(harness.GOLDEN / f"goldens/{name}.npz")
    assert harness.make_models.digest(models(name)) == meta["weights_sha256"]


@pytest.mark.parametrize("name,tp,pp", layouts(NAMES))
def test_served(name, tp, pp, plans):
    check_served(plans(name, tp, pp, "--max-batched-tokens", 64), harness.GOLDEN / f"goldens/{name}.npz")


@pytest.mark.parametrize("name", NAMES)
def test_whole_logits(name, plans, tmp_path):
    """Every logit of the first and last step, at the layout furthest from one rank."""
    tp, pp = [(t, p) for n, t, p in layouts([name])][-1]
    tokens_and_logits(plans(name, tp, pp, "--max-batched-tokens", 64), harness.GOLDEN / f"goldens/{name}.npz", tmp_path, [1, 5])


def test_same_plan_same_bits(plans, tmp_path):
    """Reductions have a fixed order: two runs of one plan agree in every bit."""
    _, cases = harness.goldens(harness.GOLDEN / "goldens/llama-tied.npz")
    plan = plans("llama-tied", 3, 2)
    for i in range(2):
        harness.run_ids(plan, cases[4].prompt, 8, tmp_path / f"{i}.npy")
    assert np.array_equal(np.load(tmp_path / "0.npy"), np.load(tmp_path / "1.npy"))
