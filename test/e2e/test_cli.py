"""The commands themselves: help, defaults, dumps, refusals of splits and sizes, and what llmrt is linked with."""
import json
import os
import re
import shutil
import subprocess

import pytest

import harness
from harness import refused, run


@pytest.mark.skipif(harness.SANITIZED, reason="sanitizer runtimes change the linkage")
def test_llmrt_is_not_linked_with_mlir():
    """The runtime is lean: neither directly nor through a library does it load MLIR or LLVM."""
    binary = harness.PROGRAMS["llmrt"]
    linked = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in linked and not re.search(r"MLIR|LLVM", linked), linked
    symbols = subprocess.run(["nm", "-DC", binary], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(mlir|llvm)::", symbols)
    assert not re.search(rb"_ZN4mlir|_ZN4llvm", binary.read_bytes())
    # llmc does load it, so the check can see it where it is.
    linked = subprocess.run(["ldd", harness.PROGRAMS["llmc"]], capture_output=True, text=True, check=True).stdout
    assert re.search(r"MLIR|LLVM", linked)


@pytest.mark.parametrize("command", [("llmc",), ("llmc", "compile"), ("llmc", "verify"), ("llmc", "dump"), ("llmc", "explain"), ("llmc", "topology"),
                                     ("llmrt",), ("llmrt", "serve"), ("llmrt", "run"), ("llmrt", "bench"), ("llmrt", "profile")])
def test_help_teaches(command):
    text = run(*command, "--help").out
    assert len(text.splitlines()) > 5 and re.search(r"(?i)example", text), text


@pytest.mark.parametrize("command", [("llmc", "--nonsense"), ("llmc", "explode"), ("llmc",), ("llmrt", "serve"), ("llmrt", "run"),
                                     ("llmc", "compile", "--tp", "zero"), ("llmc", "compile", "--tp", "-1"), ("llmc", "compile", "--dtype", "int3")])
def test_usage_errors(command, tmp_path):
    result = run(*command, ok=False, cwd=tmp_path)
    assert 0 < result.code < 128 and result.err.strip() + result.out.strip(), result


def test_version():
    for program in ("llmc", "llmrt"):
        assert re.search(r"\d+\.\d+\.\d+", run(program, "--version").out)


def test_owners_commands(models, tmp_path):
    """In a model's folder, as they stand: compile reads ., writes plan.fb; verify; serve."""
    for name in ("qwen2-14-2", "gguf-llama-tied-q41"):
        folder = shutil.copytree(models(name), tmp_path / name)
        shutil.copy(harness.TOPOLOGY, folder / "topo.json")
        told = run("llmc", "compile", "--topo", "topo.json", "--tp", "3", "--pp", "2", cwd=folder).out
        assert (folder / "plan.fb").exists()
        assert re.search(r"(?i)ledger|weights", told) and re.search(r"(?i)\bkv\b", told), told
        run("llmc", "verify", "plan.fb", cwd=folder)
        with harness.Server(folder / "plan.fb") as server:
            assert harness.completions(server, [[1, 2, 3]], 2)[0]["finish_reason"] == "length"
        # The folder may be moved together with its plan.
        moved = shutil.move(folder, tmp_path / f"{name}-moved")
        assert len(harness.run_ids(os.path.join(moved, "plan.fb"), [1, 2, 3], 2)) == 2


def test_dump_is_deterministic(models, tmp_path):
    """Two compilations give the same plan but for what provenance must say, and dump gives the same text."""
    texts = []
    for i in range(2):
        plan = harness.compile_plan(models("qwen2-14-2"), tmp_path / "plan.fb", 3, 2)
        texts.append(run("llmc", "dump", plan).out)
    assert texts[0] == texts[1] and len(texts[0]) > 1000
    json.loads(run("llmc", "dump", "--json", plan).out)


def test_explain(plans):
    plan = plans("qwen2-14-2", 3, 2)
    text = run("llmc", "explain", plan).out
    assert re.search(r"(?i)tokens", text) and re.search(r"(?i)weights", text), text
    json.loads(run("llmc", "explain", "--json", plan).out)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [("llmc", "explain"), ("llmc", "dump"), ("llmrt", "run", "--prompt-ids", "1,2", "--max-tokens", "2"),
                                     ("llmrt", "run", "--prompt-ids", "1,2", "--max-tokens", "2", "--json")])
def test_output_that_is_not_taken_is_an_error(plans, command):
    """A full disk behind a redirection: not status 0 and half an answer."""
    program, name, *more = command
    with open("/dev/full", "w") as full:
        done = subprocess.run([harness.PROGRAMS[program], name, plans("llama-tied"), *more], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and f"{program}: error: cannot write all of standard output" in done.stderr, done


@pytest.mark.parametrize("phase,word", [("llm", r"llm\."), ("dist", r"dist\."), ("exec", r"exec\.")])
def test_compile_to(models, tmp_path, phase, word):
    text = run("llmc", "compile", "--model", models("qwen3-tied"), "--topo", harness.TOPOLOGY, "--tp", 2, "--pp", 2,
               f"--compile-to={phase}", cwd=tmp_path).out
    assert re.search(word, text), text[:2000]
    assert not list(tmp_path.iterdir()), "stopping early writes no plan"


@pytest.mark.parametrize("name,tp,pp,says", [("llama-tied", 7, 1, ("7", "6", "(?i)head")), ("llama-tied", 1, 5, ("5", "4", "(?i)layer")),
                                             ("qwen2-14-2", 3, 6, ("6", "5", "(?i)layer"))])
def test_illegal_split(models, tmp_path, name, tp, pp, says):
    """The dimension, both numbers and the legal pairs."""
    refused("llmc", "compile", "--model", models(name), "--topo", harness.TOPOLOGY, "--tp", tp, "--pp", pp, "-o", tmp_path / "p.fb",
            says=(*says, r"(?i)legal|valid|possible"))


def test_more_ranks_than_devices(models, tmp_path):
    refused("llmc", "compile", "--model", models("llama-tied"), "--topo", harness.TOPOLOGY, "--tp", 5, "--pp", 4, "-o", tmp_path / "p.fb",
            says=("20", "12"))


def small_topology(path, memory):
    data = json.loads(harness.TOPOLOGY.read_text())
    for device in data["devices"]:
        device["memory"] = memory
    path.write_text(json.dumps(data))
    return path


def test_too_little_memory(tmp_path):
    """What is short on which device: 92 MiB of weights, as quantised as in the file, and 64 of the runtime on 128."""
    topo = small_topology(tmp_path / "topo.json", 128 << 20)
    message = refused("llmc", "compile", "--model", harness.SMOLLM2, "--topo", topo, "--tp", 1, "--pp", 1, "-o", tmp_path / "p.fb",
                      says=(r"(?i)memory",))
    device = json.loads(topo.read_text())["devices"][0]
    assert str(device.get("name") or device.get("id")) in message or str(device.get("id")) in message, message


def test_context_that_does_not_fit(tmp_path):
    """The largest value that fits is named, and it does fit."""
    topo = small_topology(tmp_path / "topo.json", 800 << 20)
    args = ["--model", harness.SMOLLM2, "--topo", topo, "--tp", 1, "--pp", 1, "--dtype", "float32", "-o", tmp_path / "p.fb",
            "--max-num-seqs", 8, "--max-batched-tokens", 64]
    message = refused("llmc", "compile", *args, "--max-model-len", 8000, says=("8,?000",))
    fitting = re.search(r"(?i)(?:largest|fits|at most|maximum)\D*(\d[\d,]*)", message)
    assert fitting, message
    run("llmc", "compile", *args, "--max-model-len", int(fitting.group(1).replace(",", "")))


def test_context_beyond_the_model(tmp_path):
    refused("llmc", "compile", "--model", harness.SMOLLM2, "--topo", harness.TOPOLOGY, "--max-model-len", 500_000, "-o", tmp_path / "p.fb",
            says=("500,?000", "8,?192"))


def test_one_number_for_the_context(plans):
    """Cases 5 and 6: the plan, /v1/models and the refusal agree on the maximum length."""
    with harness.Server(plans("llama-tied", 1, 1, "--max-model-len", 100)) as server:
        assert server.http.get("/v1/models").json()["data"][0]["max_model_len"] == 100
        r = server.post("/v1/completions", model=server.model, prompt=[1] * 90, max_tokens=11)
        assert r.status_code == 400 and "100" in r.json()["error"]["message"]
        assert harness.completions(server, [[1] * 90], 10)[0]["finish_reason"] == "length"


def test_served_model_name(models, tmp_path):
    plan = harness.compile_plan(models("llama-tied"), tmp_path / "plan.fb", 1, 1, "--served-model-name", "my-model")
    with harness.Server(plan) as server:
        assert server.model == "my-model"


@pytest.mark.parametrize("damage", ["empty", "half", "noise", "other"])
def test_bad_plans(plans, tmp_path, damage):
    data = plans("llama-tied").read_bytes()
    bad = tmp_path / "bad.fb"
    bad.write_bytes({"empty": b"", "half": data[:len(data) // 2], "noise": bytes(i * 37 % 256 for i in range(5000)),
                     "other": b"\x7fELF" + data[4:]}[damage])
    for command in (("llmc", "verify"), ("llmc", "dump"), ("llmrt", "run"), ("llmrt", "serve")):
        more = ("--prompt-ids", "1") if command[1] == "run" else ("--port", harness.free_port()) if command[1] == "serve" else ()
        refused(*command, bad, *more, says=[r"bad\.fb"])


def test_run_from_text(plans):
    """`llmrt run --prompt` answers once on the terminal."""
    done = run("llmrt", "run", plans("smollm2"), "--chat", "--prompt", "What is the capital of France?", "--max-tokens", 24, "--temperature", 0)
    assert "Paris" in done.out, done
