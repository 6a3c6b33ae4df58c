"""What the end-to-end tests share: running llmc and llmrt, serving a plan, and reading the goldens."""
import functools
import itertools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LLMC_BUILD_DIR", ROOT / "build"))
PROGRAMS = {"llmc": Path(os.environ.get("LLMC_PROGRAM", BUILD / "bin/llmc")), "llmrt": BUILD / "bin/llmrt"}
GOLDEN = ROOT / "test/golden/models"
TOPOLOGY = ROOT / "examples/topo/cpu-12.json"
SMOLLM2 = ROOT / ".cache/models/SmolLM2-135M-Instruct"
SANITIZED = bool(os.environ.get("LLMC_SANITIZE"))
SLOW = 8 if SANITIZED else 1      # sanitized binaries get this much more time
CRASHES = ("terminate called", "Assertion", "PLEASE submit a bug report", "Sanitizer", "runtime error:", "Stack dump")
TOLERANCE = 1e-3                  # logits, against transformers in float32

sys.path.insert(0, str(GOLDEN))
sys.dont_write_bytecode = True
import gguf_models  # noqa: E402
import make_models  # noqa: E402
import specs  # noqa: E402


class Result:
    def __init__(self, done: subprocess.CompletedProcess):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run(program: str, *args, cwd=None, env={}, timeout=120, ok=True) -> Result:
    """Runs llmc or llmrt, with more variables in its environment; with ok, a status other than 0 fails the test with the whole output."""
    command = [str(PROGRAMS[program]), *map(str, args)]
    result = Result(subprocess.run(command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=timeout * SLOW,
                                   stdin=subprocess.DEVNULL))
    assert not ok or result.code == 0, f"{' '.join(command)}: {result}"
    assert not any(word in result.err for word in CRASHES), f"{' '.join(command)} crashed: {result}"
    return result


def refused(program: str, *args, says=(), cwd=None, env={}) -> str:
    """Runs a command that has to fail in a civil way: status 1 to 99, a short message, no crash. Every
    regular expression in `says` has to match the message, which is returned."""
    result = run(program, *args, cwd=cwd, env=env, ok=False)
    assert 0 < result.code < 100, f"expected a refusal, got {result}"
    text = result.err
    assert text.strip(), f"no message: {result}"
    assert len(text.splitlines()) <= 12, f"too long a message: {text}"
    for pattern in says:
        assert re.search(pattern, text), f"the message does not match {pattern!r}: {text}"
    return text


def compile_plan(model, plan, tp=1, pp=1, *more, dtype="float32", topo=TOPOLOGY) -> Path:
    """Compiles and verifies; returns the plan's path."""
    run("llmc", "compile", "--model", model, "--topo", topo, "--tp", tp, "--pp", pp, "--dtype", dtype, "-o", plan, *more)
    run("llmc", "verify", plan)
    return Path(plan)


@functools.lru_cache(None)
def checkpoint(name: str, root: str) -> Path:
    """A golden model's folder under `root`, made once."""
    folder = f"{root}/{name}"
    if name in specs.BY_NAME:
        make_models.build(specs.BY_NAME[name], folder)
    else:
        gguf_models.build(gguf_models.BY_NAME[name], folder)
    return Path(folder)


class Golden:
    """One prompt of a golden file."""

    def __init__(self, data, i):
        self.prompt = data[f"p{i}_prompt"].tolist()
        self.tokens = data[f"p{i}_tokens"].tolist()
        self.top_ids, self.top_logits = data[f"p{i}_top_ids"], data[f"p{i}_top_logits"]
        self.logsumexp = data[f"p{i}_logsumexp"]
        self.prompt_logprobs, self.prompt_argmax = data[f"p{i}_prompt_logprobs"], data[f"p{i}_prompt_argmax"]
        self.first, self.stride = data.get(f"p{i}_logits_first"), 1
        if self.first is None:
            self.first, self.stride = data[f"p{i}_logits_first_37"], 37
        self.last = data.get(f"p{i}_logits_last")

    def top_logprobs(self) -> np.ndarray:
        """[steps, 5]"""
        return self.top_logits - self.logsumexp[:, None]


@functools.lru_cache(None)
def goldens(path) -> tuple:
    """(meta, [Golden])"""
    with np.load(path) as z:
        data = {k: z[k] for k in z.files}
    meta = json.loads(str(data["meta"]))
    return meta, [Golden(data, i) for i in range(meta["prompts"])]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """`llmrt serve` on a port that it finds free, as a context manager; leaving it checks that SIGTERM ends it well."""

    numbers = itertools.count()

    def __init__(self, plan, *args, log=None, env={}, files=None):
        """`files`: the most that it may have open."""
        self.log_path = Path(log or f"{plan}.{os.getpid()}-{next(Server.numbers)}.log")
        with open(self.log_path, "w") as log_file:
            self.process = subprocess.Popen([str(PROGRAMS["llmrt"]), "serve", str(plan), "--port", "0", *map(str, args)],
                                            stdout=log_file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **env},
                                            preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))))
        try:
            self._wait_until_healthy(60 * SLOW)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.http = httpx.Client(base_url=self.url, timeout=120 * SLOW)
        self.model = self.http.get("/v1/models").json()["data"][0]["id"]

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def _wait_until_healthy(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, f"llmrt serve ended with {self.process.returncode}:\n{self.log()}"
            if said := re.search(r"serving on (http://\S+:(\d+))", self.log()):
                self.url, self.port = said[1], int(said[2])
                try:
                    if httpx.get(self.url + "/health", timeout=5).status_code == 200:
                        return
                except httpx.TransportError:
                    pass
            time.sleep(0.02)
        raise AssertionError(f"not healthy after {seconds} s:\n{self.log()}")

    def openai(self, cls=None, **more):
        import openai
        return (cls or openai.OpenAI)(base_url=self.url + "/v1", api_key="none", max_retries=0, timeout=120 * SLOW, **more)

    def post(self, path: str, **body) -> httpx.Response:
        return self.http.post(path, json=body)

    def stop(self, within: float = 10) -> int:
        """SIGTERM, then the exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(within * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still running {within * SLOW} s after SIGTERM:\n{self.log()}") from None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.http.close()
        if self.process.poll() is None:
            code = self.stop()
            assert kind is not None or code == 0, f"llmrt serve ended with {code}:\n{self.log()}"
        else:
            assert kind is not None, f"llmrt serve had ended with {self.process.returncode}:\n{self.log()}"


def completions(server: Server, prompts, steps, **more) -> list:
    """Greedy choices of /v1/completions for prompts given as token ids, penalties and chance switched off."""
    response = server.post("/v1/completions", model=server.model, prompt=prompts, max_tokens=steps, temperature=0,
                           repetition_penalty=1.0, return_token_ids=True, **more)
    assert response.status_code == 200, response.text
    choices = response.json()["choices"]
    assert [c["index"] for c in choices] == list(range(len(choices)))
    return choices


GREEDY = ("--temperature", 0, "--repetition-penalty", 1, "--json")


def run_ids(plan, prompt, steps, *more) -> list:
    """Token ids of `llmrt run` for one prompt of token ids."""
    done = run("llmrt", "run", plan, "--prompt-ids", ",".join(map(str, prompt)), "--max-tokens", steps, *GREEDY, *more)
    return json.loads(done.out)["token_ids"]


def run_batch(plan, prompts, steps, folder, *more, timeout=300) -> list:
    """[(token ids, float32 logits [steps, vocab])] of `llmrt run` for prompts of token ids, all in one batch."""
    (folder / "prompts.json").write_text(json.dumps(prompts))
    done = run("llmrt", "run", plan, "--prompt-file", folder / "prompts.json", "--max-tokens", steps, *GREEDY,
               "--dump-logits", folder / "logits.npy", *more, timeout=timeout)
    answers = json.loads(done.out)
    assert [a["prompt_ids"] for a in answers] == prompts
    files = [folder / f"logits.{i}.npy" for i in range(len(answers))] if len(answers) > 1 else [folder / "logits.npy"]
    return [(a["token_ids"], np.load(f)) for a, f in zip(answers, files)]


def until_eos(tokens, eos=(0, 2)) -> list:
    """Tokens before the first EOS id."""
    for i, t in enumerate(tokens):
        if t in eos:
            return list(tokens[:i])
    return list(tokens)


def check_logits(got: np.ndarray, golden: Golden, what: str) -> None:
    """`got` is [steps, vocab]; compares the first and last step whole and every step's top five."""
    steps = len(got)
    worst = np.abs(got[0][::golden.stride] - golden.first).max()
    assert worst <= TOLERANCE, f"{what}: logits of step 0 differ by {worst:.2e}"
    if golden.last is not None and steps == len(golden.tokens):
        worst = np.abs(got[-1] - golden.last).max()
        assert worst <= TOLERANCE, f"{what}: logits of the last step differ by {worst:.2e}"
    top = np.take_along_axis(got, golden.top_ids[:steps].astype(np.int64), 1)
    by_step = np.abs(top - golden.top_logits[:steps]).max(1)
    assert by_step.max() <= TOLERANCE, f"{what}: logits of step {by_step.argmax()} differ by {by_step.max():.2e}"
