"""Small GGUF models, every tensor type among them: greedy ids and logits equal transformers' for several (tp, pp)."""
import pytest

import harness
from golden_check import check_served, layouts, tokens_and_logits

NAMES = list(harness.gguf_models.BY_NAME)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_goldens(name, models):
    meta, _ = harness.goldens(harness.GOLDEN / f"goldens/{name}.npz")
    assert harness.make_models.digest(models(name)) == meta["weights_sha256"]


@pytest.mark.parametrize("name,tp,pp", layouts(NAMES))
def test_served(name, tp, pp, plans):
    check_served(plans(name, tp, pp, "--max-batched-tokens", 64), harness.GOLDEN / f"goldens/{name}.npz")


@pytest.mark.parametrize("name", NAMES)
def test_whole_logits(name, plans, tmp_path):
    tp, pp = [(t, p) for n, t, p in layouts([name])][-1]
    tokens_and_logits(plans(name, tp, pp, "--max-batched-tokens", 64), harness.GOLDEN / f"goldens/{name}.npz", tmp_path, [1, 5])
