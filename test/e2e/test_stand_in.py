"""Plans for GPUs on this machine's CPU: the goldens' ids and logits in float32, and close to them in bfloat16."""
import numpy as np
import pytest

import harness
from golden_check import check_run, path_of

GPUS = harness.ROOT / "examples/topo/6x-pcie-24gb.json"
SMALL = ("--max-batched-tokens", 64, "--max-num-seqs", 64)
NOTICE = "the plan is for {} CUDA devices; here its ranks run on the CPU"


def fits(name, tp, pp):
    config = harness.specs.BY_NAME[name].config
    return tp <= config["num_attention_heads"] and pp <= config["num_hidden_layers"]


NAMES = [name for name in harness.specs.BY_NAME if fits(name, 3, 2)]


@pytest.mark.parametrize("name", NAMES)
def test_float32_ids_and_logits(name, plans, tmp_path):
    plan = plans(name, 3, 2, *SMALL, topo=GPUS)
    check_run(plan, path_of(name), tmp_path, "--backend", "cpu")


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_is_near(name, plans, tmp_path):
    """Rounding to 8 bits moves logits by a few hundredths of their spread; a wrong layout moves them by all of it."""
    meta, cases = harness.goldens(path_of(name))
    plan = plans(name, 3, 2, *SMALL, dtype="bfloat16", topo=GPUS)
    answers = harness.run_batch(plan, [c.prompt for c in cases], 1, tmp_path, "--backend", "cpu")
    for i, (case, (ids, logits)) in enumerate(zip(cases, answers)):
        off = logits[0][::case.stride] - case.first
        assert np.sqrt(np.mean(off ** 2)) <= 0.05 * np.std(case.first), f"prompt {i}"


def test_the_default_says_so(plans):
    """With no GPU here, `auto` runs on the CPU, says so once, and asking for CUDA is refused in words."""
    _, cases = harness.goldens(path_of("llama-tied"))
    plan = plans("llama-tied", 3, 2, *SMALL, topo=GPUS)
    command = ("llmrt", "run", plan, "--prompt-ids", ",".join(map(str, cases[0].prompt)), "--max-tokens", 1, *harness.GREEDY)
    said = harness.run(*command).err
    if NOTICE.format(6) in said:
        assert said.count("notice") == 1
        harness.refused(*command, "--backend", "cuda", says=["CUDA"])
    else:
        pytest.skip("this machine has GPUs")
    assert NOTICE.format(6) not in harness.run("llmrt", "run", plans("llama-tied"), *command[3:]).err
