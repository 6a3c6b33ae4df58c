"""Small GGUF models, every tensor type among them: greedy ids and logits equal transformers' for several (tp, pp)."""
import pytest

import harness
from golden_check import check_run, check_served, layouts, path_of

NAMES = list(harness.gguf_models.BY_NAME)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_goldens(name, models):
    meta, _ = harness.goldens(path_of(name))
    assert harness.make_models.digest(models(name)) == meta["weights_sha256"]


@pytest.mark.parametrize("name,tp,pp", layouts(NAMES))
def test_ids_and_logits(name, tp, pp, plans, tmp_path):
    check_run(plans(name, tp, pp, "--max-batched-tokens", 64), path_of(name), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_served(name, plans):
    """Over HTTP, with the log-probabilities of every prompt token (echo)."""
    check_served(plans(name, 2, 2, "--max-batched-tokens", 64), path_of(name))
