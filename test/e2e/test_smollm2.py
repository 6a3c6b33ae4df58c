"""The real SmolLM2-135M-Instruct: greedy ids equal transformers' (float32, same GGUF) for six layouts, logits within 1e-3."""
import numpy as np
import pytest

import harness

META, CASES = harness.goldens(harness.GOLDEN / "smollm2/goldens.npz")
LAYOUTS = ((1, 1), (3, 2), (2, 1), (4, 1), (1, 6), (5, 2))


@pytest.mark.parametrize("tp,pp", LAYOUTS)
def test_greedy(tp, pp, plans):
    """All prompts in one ragged batch, 64 tokens each or up to the end-of-text token."""
    with harness.Server(plans("smollm2", tp, pp)) as server:
        choices = harness.completions(server, [c.prompt for c in CASES], META["steps"], logprobs=1)
    for name, text, case, choice in zip(META["names"], META["outputs"], CASES, choices):
        want = harness.until_eos(case.tokens)
        assert harness.until_eos(choice["token_ids"]) == want, name
        ended = len(want) < len(case.tokens)
        assert choice["finish_reason"] == ("stop" if ended else "length"), name
        if not text.endswith("\ufffd"):
            assert choice["text"] == text, name
        got = np.array(choice["logprobs"]["token_logprobs"][:len(want)])
        worst = np.abs(got - case.top_logprobs()[:len(want), 0])
        assert worst.max() <= 2 * harness.TOLERANCE, f"{name}: log-probability of step {worst.argmax()} differs by {worst.max():.2e}"


@pytest.mark.parametrize("tp,pp", [(1, 1), (3, 2), (5, 2)])
def test_logits(tp, pp, plans, tmp_path):
    for i in (0, META["names"].index("cpp"), META["names"].index("long-text")):
        harness.run_ids(plans("smollm2", tp, pp), CASES[i].prompt, 4, tmp_path / f"{i}.npy")
        harness.check_logits(np.load(tmp_path / f"{i}.npy"), CASES[i], META["names"][i])


def test_file_is_the_golden():
    import hashlib
    digest = hashlib.sha256((harness.SMOLLM2 / META["model"]).read_bytes()).hexdigest()
    assert digest == META["weights_sha256"]
