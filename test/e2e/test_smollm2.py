"""The real SmolLM2-135M-Instruct: greedy ids equal transformers' (float32, same GGUF) for six layouts, logits within 1e-3."""
import numpy as np
import pytest

import harness

META, CASES = harness.goldens(harness.GOLDEN / "smollm2/goldens.npz")
LAYOUTS = ((1, 1), (3, 2), (2, 1), (4, 1), (1, 6), (5, 2))


@pytest.mark.parametrize("tp,pp", LAYOUTS)
def test_ids_and_logits(tp, pp, plans, tmp_path):
    """All prompts in one ragged batch, 64 tokens each or up to the end-of-text token."""
    answers = harness.run_batch(plans("smollm2", tp, pp), [c.prompt for c in CASES], META["steps"], tmp_path)
    for name, case, (ids, logits) in zip(META["names"], CASES, answers):
        harness.check_logits(logits, case, name)
        assert harness.until_eos(ids) == harness.until_eos(case.tokens), name


def test_served(plans):
    """Over HTTP, from three by two ranks: text, finish reason and log-probabilities."""
    with harness.Server(plans("smollm2", 3, 2)) as server:
        choices = harness.completions(server, [c.prompt for c in CASES], META["steps"], logprobs=1)
    for name, text, case, choice in zip(META["names"], META["outputs"], CASES, choices):
        want = harness.until_eos(case.tokens)
        assert harness.until_eos(choice["token_ids"]) == want, name
        assert choice["finish_reason"] == ("stop" if len(want) < len(case.tokens) else "length"), name
        assert text.startswith(choice["text"].rstrip("\ufffd")) and len(choice["text"]) >= len(text.rstrip("\ufffd")), name
        got = np.array(choice["logprobs"]["token_logprobs"][:len(want)])
        worst = np.abs(got - case.top_logprobs()[:len(want), 0])
        assert worst.max() <= 2 * harness.TOLERANCE, f"{name}: log-probability of step {worst.argmax()} differs by {worst.max():.2e}"


def test_file_is_the_golden():
    import hashlib
    digest = hashlib.sha256((harness.SMOLLM2 / META["model"]).read_bytes()).hexdigest()
    assert digest == META["weights_sha256"]
