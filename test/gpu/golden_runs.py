"""What the GPU checks over the golden checkpoints share: which plans there are, and running many of them at once."""
import concurrent.futures
import contextlib
import os
import tempfile
import time
from pathlib import Path

import harness


def golden_plans(folder, words, pattern):
    """(name, plan, meta, cases) of the plans in FOLDER/models/*, of models with one of the words in their name."""
    for model in sorted((folder / "models").iterdir()):
        if words and not any(word in model.name for word in words):
            continue
        meta, cases = harness.goldens(harness.GOLDEN / f"goldens/{model.name}.npz")
        for plan in sorted(model.glob(pattern)):
            yield f"{model.name} {plan.stem}", plan, meta, cases


def smollm2_plans(folder, words, pattern):
    """The same of the real SmolLM2, where it was carried."""
    if words and not any(word in "smollm2" for word in words):
        return
    meta, cases = harness.goldens(harness.GOLDEN / "smollm2/goldens.npz")
    for plan in sorted((folder / "smollm2").glob(pattern)):
        yield f"SmolLM2-135M-Instruct {plan.stem}", plan, meta, cases


@contextlib.contextmanager
def asked(plan, backend, *more):
    """A server of the plan, as a function: bodies of requests of token ids, and how many are asked at once, to a list of
    the ids generated. Start-up is most of what a small model costs, so one server answers all that a check wants of a plan."""
    share = ["--share-devices"] if backend == "cuda" else []
    with tempfile.TemporaryDirectory() as scratch:
        args = ["--backend", backend, *share, "--no-prefix-cache", *more]
        with harness.Server(plan, *args, log=Path(scratch, "log")) as server:
            def one(body):
                reply = server.post("/v1/completions", return_token_ids=True, repetition_penalty=1, **body)
                assert reply.status_code == 200, f"{body}: {reply.status_code} {reply.text[:300]}"
                return reply.json()["choices"][0]["token_ids"]

            def ask(bodies, at_once):
                with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                    return list(pool.map(one, bodies))

            yield ask


def run_all(title, work, check):
    """Calls check(*arguments), which says what is wrong or None, for every (name, *arguments); the exit status for it all. No
    work is a failure. Start-up is most of each run, so several run at once."""
    failed, start = 0, time.time()
    with concurrent.futures.ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 1) // 2))) as pool:
        for (name, *_), why in zip(work, pool.map(lambda w: check(*w[1:]), work)):
            if why:
                failed += 1
                print(f"FAILED {name}: {why}", flush=True)
    print(f"{title}: {len(work) - failed} passed, {failed} failed, {time.time() - start:.0f} s")
    return 1 if failed or not work else 0
