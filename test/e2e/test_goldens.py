"""Small HuggingFace checkpoints of every family: greedy ids and logits equal transformers' for several (tp, pp)."""
import numpy as np
import pytest

import harness
from golden_check import check_run, check_served, layouts, path_of

NAMES = list(harness.specs.BY_NAME)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_goldens(name, models):
    """A generator that drifted would make every other failure here a riddle."""
    meta, _ = harness.goldens(path_of(name))
    assert harness.make_models.digest(models(name)) == meta["weights_sha256"]


@pytest.mark.parametrize("name,tp,pp", layouts(NAMES))
def test_ids_and_logits(name, tp, pp, plans, tmp_path):
    check_run(plans(name, tp, pp, "--max-batched-tokens", 64), path_of(name), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_served(name, plans):
    """Over HTTP, with the log-probabilities of every prompt token (echo)."""
    check_served(plans(name, 2, 2, "--max-batched-tokens", 64), path_of(name))


def test_one_prompt_after_the_other(plans, tmp_path):
    """Alone or in company: the same answers."""
    check_run(plans("qwen2-window-15-5", 3, 2, "--max-batched-tokens", 64), path_of("qwen2-window-15-5"), tmp_path, "--sequential")


@pytest.mark.parametrize("page_size", [1, 8, 64])
def test_page_sizes(page_size, plans, tmp_path):
    check_run(plans("mistral-window-hd224", 2, 1, "--page-size", page_size), path_of("mistral-window-hd224"), tmp_path)


def test_same_plan_same_bits(plans, tmp_path):
    """Reductions have a fixed order: two runs of one plan agree in every bit."""
    _, cases = harness.goldens(path_of("llama-tied"))
    first, second = (harness.run_batch(plans("llama-tied", 3, 2), [cases[4].prompt], 8, tmp_path)[0][1] for _ in range(2))
    assert np.array_equal(first, second)
