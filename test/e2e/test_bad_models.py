"""Cases 16 to 22: configurations and weight files as people really have them. What is valid compiles; what is
not is refused at compile time, with the file, the numbers and the remedy."""
import json
import re
import shutil

import pytest

import harness
from harness import refused

LFS_POINTER = ("version https://git-lfs.github.com/spec/v1\n"
               "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345678\n")


@pytest.fixture
def copy(models, tmp_path):
    """name -> a copy of that checkpoint which the test may damage."""
    def make(name):
        return shutil.copytree(models(name), tmp_path / name)
    return make


def edit(folder, file="config.json", remove=(), **changes):
    path = folder / file
    data = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in data.items() if k not in remove}))


def refuse(folder, *says, args=()):
    return refused("llmc", "compile", "--model", folder, "--topo", harness.TOPOLOGY, "--tp", 2, "--pp", 1, "-o",
                   folder.parent / "never.fb", *args, says=says)


def compile_(folder, *args, tp=1, pp=1):
    return harness.compile_plan(folder, folder.parent / "plan.fb", tp, pp, *args)


def dump(plan):
    return json.loads(harness.run("llmc", "dump", "--json", plan).out)


def answers_like(folder, name, tp=1, pp=1):
    """The folder's model gives the golden answers of `name`."""
    _, cases = harness.goldens(harness.GOLDEN / f"goldens/{name}.npz")
    assert harness.run_ids(compile_(folder, tp=tp, pp=pp), cases[3].prompt, 24) == cases[3].tokens


# --- case 16, 17, 18: heads and rope wherever they stand -------------------------------------------------------

def test_heads_that_do_not_divide_hidden(models):
    """24 heads of 12 beside a hidden size of 100 (the golden tests run it); here: one word of advice less."""
    r = harness.run("llmc", "compile", "--model", models("mistral-24-heads"), "--topo", harness.TOPOLOGY, "--tp", 3, "--pp", 1,
                    "-o", models("mistral-24-heads") / "plan.fb")
    assert "error" not in r.err.lower()


def test_nested_text_config(copy):
    """Everything inside text_config, as multimodal checkpoints have it."""
    folder = copy("qwen3-tied")
    config = json.loads((folder / "config.json").read_text())
    outer = {"architectures": config.pop("architectures"), "model_type": config["model_type"], "text_config": config}
    (folder / "config.json").write_text(json.dumps(outer))
    answers_like(folder, "qwen3-tied", tp=3)


def test_rope_parameters_are_read(copy):
    """theta moved into rope_parameters (with and without the old key beside it) changes nothing."""
    folder = copy("llama-untied-bf16")
    edit(folder, remove=["rope_theta"], rope_parameters={"rope_theta": 100000.0, "rope_type": "default"})
    answers_like(folder, "llama-untied-bf16")


def test_rope_scaling_spelt_type_or_rope_type(copy):
    folder = copy("llama-linear-15-5")
    edit(folder, rope_scaling={"rope_type": "linear", "factor": 4.0})
    answers_like(folder, "llama-linear-15-5")


def test_rope_scaling_without_factor_and_type(copy):
    """mrope sections and nothing else: for text alone this is plain rope."""
    folder = copy("qwen2-14-2")
    edit(folder, rope_scaling={"mrope_section": [1, 1, 2]})
    r = harness.run("llmc", "compile", "--model", folder, "--topo", harness.TOPOLOGY, "--tp", 1, "--pp", 1, "-o", folder / "p.fb", ok=False)
    assert r.code == 0 or "mrope" in r.err or "rope_scaling" in r.err, r


def test_unknown_rope_scaling_is_refused(copy):
    folder = copy("llama-tied")
    edit(folder, rope_scaling={"rope_type": "spiral", "factor": 2.0})
    refuse(folder, "spiral", "config.json")


@pytest.mark.parametrize("key,value", [("hidden_size", 0), ("hidden_size", -96), ("hidden_size", 2**62), ("num_hidden_layers", 0),
                                       ("num_hidden_layers", 10**9), ("num_attention_heads", 0), ("num_attention_heads", "six"),
                                       ("num_key_value_heads", 4), ("num_key_value_heads", 7), ("vocab_size", 0),
                                       ("intermediate_size", 1.5), ("head_dim", -1), ("head_dim", 15), ("rms_norm_eps", "small"),
                                       ("hidden_act", "cube"), ("max_position_embeddings", -3), ("rope_theta", 0)])
def test_nonsense_numbers(copy, key, value):
    folder = copy("llama-tied")
    edit(folder, **{key: value})
    refuse(folder, rf"{key}|{re.escape(str(value))}")


def test_config_is_not_json(copy):
    folder = copy("llama-tied")
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "hidden_size": }')
    refuse(folder, r"config\.json")


# --- case 19: the union of all EOS ids ----------------------------------------------------------------------------

@pytest.mark.parametrize("name,want", [("llama-untied-bf16", {508, 506}), ("qwen2-14-2", {508, 506}), ("llama3-rope-f16", {508, 507}),
                                       ("llama-tied", {508}), ("mistral-sentencepiece", {2})])
def test_eos_union(models, plans, name, want):
    text = json.dumps(dump(plans(name)))
    found = re.search(r'"eos_token_ids": \[([^\]]*)\]', text)
    assert found, "the plan's dump has no eos_token_ids"
    assert set(map(int, found.group(1).split(","))) == want


# --- case 20: tied or not --------------------------------------------------------------------------------------------

def test_untied_without_lm_head(copy):
    folder = copy("llama-tied")
    edit(folder, tie_word_embeddings=False)
    refuse(folder, "lm_head", "tie_word_embeddings")


def test_tied_over_stages_keeps_both_ends(plans):
    """Tied with pipeline stages: both ends need the table (the golden tests check the answers)."""
    text = harness.run("llmc", "dump", plans("llama-tied", 1, 3)).out
    assert len(re.findall(r"embed_tokens", text)) >= 2


# --- case 21: architectures we do not have ---------------------------------------------------------------------------

@pytest.mark.parametrize("arch,model_type,more,blocks", [
    ("Gemma2ForCausalLM", "gemma2", {"final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0}, "softcap|norm"),
    ("Qwen3NextForCausalLM", "qwen3_next", {"layer_types": ["linear_attention", "full_attention"]}, "linear_attention"),
    ("DeepseekV3ForCausalLM", "deepseek_v3", {"kv_lora_rank": 512, "q_lora_rank": 1536}, "(?i)mla|lora|latent"),
    ("MixtralForCausalLM", "mixtral", {"num_local_experts": 8, "num_experts_per_tok": 2}, "(?i)moe|expert"),
    ("Qwen3MoeForCausalLM", "qwen3_moe", {"num_experts": 128, "num_experts_per_tok": 8}, "(?i)moe|expert"),
    ("FancyForCausalLM", "fancy", {}, "fancy"),
])
def test_unknown_architecture(copy, arch, model_type, more, blocks):
    folder = copy("llama-tied")
    edit(folder, architectures=[arch], model_type=model_type, **more)
    refuse(folder, model_type, "(?i)llama|mistral|qwen", blocks)


def test_config_without_architecture(copy):
    folder = copy("llama-tied")
    edit(folder, remove=["architectures", "model_type"])
    refuse(folder, "model_type|architectures")


# --- case 22: damaged weight files ---------------------------------------------------------------------------------

def test_lfs_pointer(copy):
    folder = copy("llama-tied")
    (folder / "model.safetensors").write_text(LFS_POINTER)
    refuse(folder, "(?i)lfs", r"model\.safetensors", "12,?345,?678|git lfs pull")


def test_lfs_pointer_gguf(copy):
    folder = copy("gguf-qwen3")
    (folder / "gguf-qwen3.gguf").write_text(LFS_POINTER)
    refuse(folder, "(?i)lfs", r"gguf-qwen3\.gguf")


@pytest.mark.parametrize("name,file", [("llama-tied", "model.safetensors"), ("qwen3-7-7", "model-00002-of-00003.safetensors"),
                                       ("gguf-llama-mixed", "gguf-llama-mixed.gguf")])
def test_truncated_weights(copy, name, file):
    """1000 bytes are missing at the end, and the message says how many."""
    folder = copy(name)
    data = (folder / file).read_bytes().rstrip(b"\0") if file.endswith("gguf") else (folder / file).read_bytes()
    (folder / file).write_bytes(data[:-1000])
    message = refuse(folder, re.escape(file), "(?i)truncated|missing|short")
    numbers = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", message)]
    assert any(1000 <= n <= 1100 for n in numbers), f"the missing bytes are not named: {message}"


@pytest.mark.parametrize("keep", [0, 4, 8, 100, 2000])
@pytest.mark.parametrize("name,file", [("llama-tied", "model.safetensors"), ("gguf-llama-mixed", "gguf-llama-mixed.gguf")])
def test_truncated_headers(copy, name, file, keep):
    folder = copy(name)
    (folder / file).write_bytes((folder / file).read_bytes()[:keep])
    refuse(folder, re.escape(file))


@pytest.mark.parametrize("size", [2**63, 2**64 - 1, 10**12, 2**31])
def test_absurd_header_length(copy, size):
    folder = copy("llama-tied")
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(size.to_bytes(8, "little") + data[8:])
    refuse(folder, r"model\.safetensors")


def test_index_names_an_absent_shard(copy):
    folder = copy("qwen3-7-7")
    (folder / "model-00003-of-00003.safetensors").unlink()
    refuse(folder, r"model-00003-of-00003\.safetensors", r"index|absent|missing|not")


def test_index_names_an_absent_tensor(copy):
    folder = copy("qwen3-7-7")
    index = folder / "model.safetensors.index.json"
    data = json.loads(index.read_text())
    data["weight_map"]["model.norm.weight"] = "model-00001-of-00003.safetensors"
    index.write_text(json.dumps(data))
    refuse(folder, r"model\.norm\.weight", r"model-00001-of-00003\.safetensors")


def test_missing_tensor(copy):
    """A layer more in the config than in the files."""
    folder = copy("llama-tied")
    edit(folder, num_hidden_layers=5)
    refuse(folder, r"layers\.4")


def test_wrong_shape(copy):
    folder = copy("llama-tied")
    edit(folder, intermediate_size=201)
    refuse(folder, "200", "201", r"mlp\.")


def test_shard_outside_the_folder(copy):
    folder = copy("qwen3-7-7")
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text().replace("model-00003-of-00003.safetensors", "../../../../etc/passwd"))
    refuse(folder, "passwd")


# --- folders --------------------------------------------------------------------------------------------------------

def test_no_such_folder(tmp_path):
    refuse(tmp_path / "nothing-here", "nothing-here")


def test_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    refuse(tmp_path / "empty", r"config\.json", "(?i)gguf")


def test_two_ggufs(copy):
    folder = copy("gguf-qwen3")
    shutil.copy(folder / "gguf-qwen3.gguf", folder / "another.gguf")
    refuse(folder, r"another\.gguf", r"gguf-qwen3\.gguf")


def test_config_without_weights(copy):
    folder = copy("llama-tied")
    (folder / "model.safetensors").unlink()
    refuse(folder, "safetensors", "(?i)dummy|weights")


def test_dummy_weights_from_a_config_alone(tmp_path, models):
    """--load-format dummy: compiles and runs on random weights, the same ones each time."""
    folder = tmp_path / "dummy"
    folder.mkdir()
    shutil.copy(models("qwen2-14-2") / "config.json", folder)
    plan = harness.compile_plan(folder, folder / "plan.fb", 2, 2, "--load-format", "dummy")
    first = harness.run_ids(plan, [1, 2, 3], 8)
    assert len(first) == 8 and first == harness.run_ids(plan, [1, 2, 3], 8)


def test_damage_after_compiling(copy):
    """Weights that changed between compile and serve are noticed before they are used."""
    folder = copy("llama-tied")
    plan = compile_(folder)
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-1000])
    refused("llmrt", "run", plan, "--prompt-ids", "1,2", "--max-tokens", 2, says=[r"model\.safetensors"])
    (folder / "model.safetensors").unlink()
    refused("llmrt", "run", plan, "--prompt-ids", "1,2", "--max-tokens", 2, says=[r"model\.safetensors"])
