"""Model shapes, layouts and batches drawn from a seed, for check_shapes.py: what llmc takes, not what the tree has. A case's
folder is made in two steps: `prepare` writes the config and compiles the plans, from the header of a checkpoint whose data is a
hole; `fill` writes the data where the plans run.

Every weight has 8 significant bits, so that it is the same number in bfloat16, float16 and float32, and what types differ by is
arithmetic alone.
"""
import json
import math
import random
import statistics
import struct
from dataclasses import asdict, dataclass, field

import big_model
import numpy as np

BYTES = {"F32": 4, "F16": 2, "BF16": 2}
STORED = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
COUNTS = (1, 2, 3, 4, 5, 8, 13, 16, 17, 33, 64, 65, 100, 130, 200)
MOST_WEIGHTS = 330e6  # of a model; a larger vocabulary is cut
MOST_WORK = 120e9     # products of a case, which the CPU does twice
LLAMA3 = {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64, "rope_type": "llama3"}

# Shapes of models that many people run: kind, hidden, heads, KV heads, head_dim, FFN, vocabulary, tied, and what else is special.
REAL = {
    "Llama-3.2-1B": ("llama", 2048, 32, 8, 64, 8192, 128256, True, {"rope_theta": 5e5, "rope_scaling": LLAMA3}),
    "Llama-3.2-3B": ("llama", 3072, 24, 8, 128, 8192, 128256, True, {"rope_theta": 5e5, "rope_scaling": LLAMA3}),
    "Qwen2.5-0.5B": ("qwen2", 896, 14, 2, 64, 4864, 151936, True, {}),
    "Qwen2.5-1.5B": ("qwen2", 1536, 12, 2, 128, 8960, 151936, True, {}),
    "Qwen2.5-3B": ("qwen2", 2048, 16, 2, 128, 11008, 151936, True, {}),
    "Qwen2.5-14B": ("qwen2", 5120, 40, 8, 128, 13824, 152064, False, {}),
    "Qwen2.5-32B": ("qwen2", 5120, 40, 8, 128, 27648, 152064, False, {}),
    "Qwen3-0.6B": ("qwen3", 1024, 16, 8, 128, 3072, 151936, True, {}),
    "Qwen3-4B": ("qwen3", 2560, 32, 8, 128, 9728, 151936, True, {}),
    "Qwen3-14B": ("qwen3", 5120, 40, 8, 128, 17408, 151936, False, {}),
    "Qwen3-32B": ("qwen3", 5120, 64, 8, 128, 25600, 151936, False, {}),
    "Mistral-Nemo-12B": ("mistral", 5120, 32, 8, 128, 14336, 131072, False, {}),
    "Mistral-Small-24B": ("mistral", 5120, 32, 8, 128, 32768, 131072, False, {}),
    "TinyLlama-1.1B": ("llama", 2048, 32, 4, 64, 5632, 32000, False, {}),
    "SmolLM2-360M": ("llama", 960, 15, 5, 64, 2560, 49152, True, {"rope_theta": 1e5}),
    "SmolLM2-1.7B": ("llama", 2048, 32, 32, 64, 8192, 49152, True, {"rope_theta": 1.3e5}),
    "Yi-34B": ("llama", 7168, 56, 8, 128, 20480, 64000, False, {"rope_theta": 5e6}),
}
CLASSES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}


@dataclass
class Case:
    name: str
    seed: int
    config: dict
    stored: str            # of the checkpoint: F32, F16 or BF16
    dtype: str             # of the plan
    tp: int
    pp: int
    lengths: list          # of the prompts, which are one batch
    steps: int
    options: dict = field(default_factory=dict)  # llmc's, beyond those

    def said(self):
        c = self.config
        shape = (f"{c['model_type']} hidden {c['hidden_size']}, {c['num_hidden_layers']} layers, heads {c['num_attention_heads']}/"
                 f"{c['num_key_value_heads']} of {c['head_dim']}, FFN {c['intermediate_size']}, vocabulary {c['vocab_size']}")
        return (f"{self.name}: {shape}; {self.stored} as {self.dtype}, tp {self.tp} pp {self.pp}, {len(self.lengths)} prompts of "
                f"{min(self.lengths)}-{max(self.lengths)}, " + " ".join(f"{k} {v}" for k, v in self.options.items()))


def random_config(draw):
    size = draw.choice(("tiny", "tiny", "middle", "middle", "wide"))
    kind = draw.choice(tuple(CLASSES))
    dim = draw.choice((64, 64, 80, 96, 100, 128, 128, 224, 256, 24, 36, 48, 72, 112, 8, 10, 30, 132, 160, 192, 200))
    group = draw.choice((1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 24))
    kv = draw.choice((1, 2, 3, 4, 5, 7, 8))
    most = {"tiny": 3000, "middle": 4200, "wide": 8192}[size]
    while group * kv * dim > most:
        kv, group = (kv - 1, group) if kv > 1 else (1, max(1, group - 3))
    config = {
        "hidden_size": draw.choice({"tiny": (64, 90, 96, 99, 100, 101, 128, 180, 203, 252, 256), "wide": (2560, 3072, 3584, 4096, 5120),
                                    "middle": (512, 576, 768, 960, 1024, 1028, 1030, 1031, 1536, 2048, 2052)}[size]),
        "intermediate_size": draw.choice({"tiny": (33, 64, 130, 177, 200, 1365, 2731), "wide": (1365, 8960, 11008, 13824, 14336),
                                          "middle": (1365, 1536, 2730, 4864, 5632, 8192)}[size]),
        "vocab_size": draw.choice({"tiny": (503, 509, 1000, 4096, 32000, 152064), "wide": (503, 1000, 8192, 32000),
                                   "middle": (509, 4099, 32064, 49152, 65536)}[size]),
        "num_hidden_layers": draw.randint(1, {"tiny": 5, "middle": 3, "wide": 1}[size]),
        "num_attention_heads": group * kv, "num_key_value_heads": kv, "head_dim": dim, "model_type": kind,
        "tie_word_embeddings": draw.random() < 0.4, "rms_norm_eps": draw.choice((1e-5, 1e-6)),
        "hidden_act": draw.choice(("silu", "silu", "silu", "gelu", "gelu_pytorch_tanh")),
        "rope_theta": draw.choice((1e4, 5e5, 1e6)),
        "rope_scaling": draw.choice((None, None, {"rope_type": "linear", "factor": 4.0}, LLAMA3,
                                     {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64})),
    }
    if kind in ("llama", "qwen3"):
        config["attention_bias"] = draw.random() < 0.6
    if kind == "llama":
        config["mlp_bias"] = draw.random() < 0.6
    window = draw.choice((None, None, 5, 16, 17, 64, 100))
    if kind == "mistral":
        config["sliding_window"] = window
    elif kind.startswith("qwen"):
        config.update(sliding_window=window, use_sliding_window=window is not None, max_window_layers=draw.randint(0, 2))
    return config


def real_config(name, draw):
    kind, hidden, heads, kv, dim, ffn, vocab, tied, more = REAL[name]
    layers = 2 if hidden <= 2048 else 1
    rest = layers * hidden * (3 * ffn + 2 * (heads + kv) * dim)
    while vocab > 4096 and rest + vocab * hidden * (2 - tied) > MOST_WEIGHTS:
        vocab = vocab // 16 * 8
    return {"model_type": kind, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv,
            "head_dim": dim, "intermediate_size": ffn, "vocab_size": vocab, "tie_word_embeddings": tied, "rms_norm_eps": 1e-5,
            "rope_theta": 1e6, "hidden_act": "silu", **({"sliding_window": None} if kind == "mistral" else {}), **more}


def case(seed, name=None):
    """The case of a seed; of one of REAL's shapes where a name is given."""
    draw = random.Random(f"{name or 'shape'} {seed}")
    config = real_config(name, draw) if name else random_config(draw)
    config.update(architectures=[CLASSES[config["model_type"]]], max_position_embeddings=4096, bos_token_id=None, eos_token_id=1)
    dtype = draw.choice(("bfloat16", "bfloat16", "bfloat16" if name else "float32", "float16", "float32"))
    config["torch_dtype"] = dtype if draw.random() < 0.7 else draw.choice(tuple(STORED))
    tp = pp = 1
    if draw.random() < (0.4 if name else 0.65):
        tp = draw.randint(1, min(8, config["num_attention_heads"], config["intermediate_size"]))
        pp = draw.randint(1, min(config["num_hidden_layers"], max(1, 10 // tp)))
    options = {}
    if draw.random() < 0.5:
        options["--page-size"] = draw.choice((1, 2, 5, 8, 24, 32, 48, 64, 128))
    count = COUNTS[(4 * list(REAL).index(name) + 7 * seed) % len(COUNTS)] if name else draw.choice(COUNTS)
    seqs = count if draw.random() < 0.8 else max(1, count // 2)
    options["--max-num-seqs"] = seqs + draw.choice((0, 0, 1, 56))
    options["--max-batched-tokens"] = max(options["--max-num-seqs"], draw.choice((16, 64, 200, 512, 2048)))
    # Most prompts are short; one may be longer than a step takes. The logits of all steps are kept: fewer of a large vocabulary.
    work = MOST_WORK / sum(math.prod(shape) for tensor, shape in tensors(config).items() if len(shape) == 2 and "embed" not in tensor)
    steps = max(3 if config["hidden_size"] > 2052 else 6, 12 // count)
    while count > 1 and count * steps * config["vocab_size"] > 60e6:
        count = count * 2 // 3
    budget = max(count, int(min(work, 6000)) - steps * count)
    longest = draw.choice((3, 20, 90, 200, 700, 2500))
    lengths = []
    for left in range(count, 0, -1):
        most = max(1, min(longest if draw.random() < 0.2 else 24, budget - (left - 1)))
        lengths.append(draw.randint(1, most))
        budget -= lengths[-1]
    options["--max-model-len"] = max(lengths) + steps + draw.choice((1, 30, 1000))
    return Case(f"{name or 'random'}-{seed}", seed, config, STORED[config["torch_dtype"]], dtype, tp, pp, lengths, steps, options)


def rms(x):
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))


def distance(logits, reference):
    """The root mean square of the difference, over that of the reference."""
    return rms(logits - reference) / rms(reference)


def prompts(of):
    draw = random.Random(of.seed)
    return [[draw.randrange(of.config["vocab_size"]) for _ in range(n)] for n in of.lengths]


# --- the checkpoint ---------------------------------------------------------------------------------------------------------


def tensors(config):
    """{name: shape}, in the order of the file."""
    out = dict(big_model.tensors(config))
    kind, hidden, ffn = config["model_type"], config["hidden_size"], config["intermediate_size"]
    dim = config["head_dim"]
    q, kv = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    rows = {"q": q, "k": kv, "v": kv, "o": hidden}
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        if config.get("attention_bias") and kind in ("llama", "qwen3"):
            out.update({f"{p}self_attn.{name}_proj.bias": [n] for name, n in rows.items()})
        if config.get("mlp_bias") and kind == "llama":
            out.update({p + "mlp.gate_proj.bias": [ffn], p + "mlp.up_proj.bias": [ffn], p + "mlp.down_proj.bias": [hidden]})
    return out


def write_header(of, file):
    """Returns {name: (offset in the file, shape)} and the file's size."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors(of.config).items():
        size = BYTES[of.stored] * math.prod(shape)
        header[name] = {"dtype": of.stored, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    begin = 8 + len(text)
    return {name: (begin + entry["data_offsets"][0], entry["shape"]) for name, entry in header.items() if name != "__metadata__"}, begin + at


def values_of(name, shape, config):
    """The 256 values that a tensor's elements have: norms near one, biases small, matrices by 1/sqrt(fan-in), such that logits
    have a standard deviation near 3."""
    if name.endswith("norm.weight"):
        values = np.linspace(0.5, 1.5, 256)
    else:
        normal = np.array([statistics.NormalDist().inv_cdf((i + 0.5) / 256) for i in range(256)])
        if name.endswith("bias"):
            spread = 0.3
        elif "embed" in name:
            spread = 3 / math.sqrt(shape[1]) if config["tie_word_embeddings"] else 1
        else:
            gains = {"lm_head": 3, "o_proj": 1.5, "down_proj": 1.5, "v_proj": 1, "up_proj": 1}
            spread = next((gain for part, gain in gains.items() if part in name), 1.3) / math.sqrt(shape[1])
        values = normal * spread
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 256), exponent - 8).astype(np.float32)


def encoded(values, stored):
    if stored == "BF16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(np.float16 if stored == "F16" else np.float32)


def fill(of, folder, spoil=None):
    """Writes the checkpoint's data. `spoil`: with this mistake, as a wrong kernel might make it, for the check to find."""
    (folder / "config.json").write_text(json.dumps(of.config))
    with open(folder / "model.safetensors", "wb") as f:
        places, size = write_header(of, f)
        f.truncate(size)
        for number, (name, (offset, shape)) in enumerate(places.items()):
            random_bytes = np.random.Generator(np.random.SFC64([of.seed, number]))
            table = encoded(values_of(name, shape, of.config), of.stored)
            f.seek(offset)
            rows = max(1, (1 << 24) // shape[-1])
            for begin in range(0, shape[0], rows) if len(shape) == 2 else (0,):
                block = [min(rows, shape[0] - begin), shape[1]] if len(shape) == 2 else shape
                data = table[np.frombuffer(random_bytes.bytes(math.prod(block)), np.uint8)].reshape(block)
                if spoil and name.startswith(f"model.layers.{of.config['num_hidden_layers'] - 1}."):
                    if spoil == "head" and name.endswith("o_proj.weight"):
                        data[:, -of.config["head_dim"]:] = 0  # the last head is forgotten
                    if spoil == "tail" and name.endswith("down_proj.weight"):
                        data[:, -8:] = 0  # the last terms of a sum are
                f.write(data)


# --- the plans --------------------------------------------------------------------------------------------------------------


def prepare(of, folder, topologies, llmc):
    """Config and plans in `folder`: device.fb for GPUs, reference.fb in float32 for one CPU rank. `topologies`: {kind: file};
    llmc(*arguments) returns (exit status, what it said). None, or what llmc refused."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(of.config))
    (folder / "case.json").write_text(json.dumps(asdict(of)))
    with open(folder / "model.safetensors", "wb") as f:
        _, size = write_header(of, f)
        f.truncate(size)
    options = [str(part) for option in of.options.items() for part in option]
    try:
        for name, kind, tp, pp, dtype in (("device.fb", "cuda", of.tp, of.pp, of.dtype), ("reference.fb", "cpu", 1, 1, "float32")):
            status, said = llmc("compile", "--model", folder, "--topo", topologies[kind], "--tp", tp, "--pp", pp, "--dtype", dtype,
                                *options, "-o", folder / name)
            if status:
                return f"{name}: exit status {status}: {said}"
    finally:
        (folder / "model.safetensors").unlink()
    return None


def weights(config):
    return sum(math.prod(shape) for shape in tensors(config).values())


def load(folder):
    return Case(**json.loads((folder / "case.json").read_text()))
