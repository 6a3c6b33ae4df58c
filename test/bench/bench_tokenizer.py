"""Tokenizer speed beside the `tokenizers` package: 1 MB of mixed text, one thread, same tokenizer.json.

    python test/bench/bench_tokenizer.py [--build build] [--gguf SmolLM2-135M-Instruct.Q4_1.gguf]

Prints MB/s of both and their ratio for every fixture of test/golden/text (and the real SmolLM2 vocabulary
with --gguf), and fails if the ids differ or if ours is slower.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/golden/text"))

from tokenizers import Tokenizer  # noqa: E402

import make_strings  # noqa: E402
import make_tokenizers  # noqa: E402

REPETITIONS = 5


def mixed_text():
    """Prose, code and reference text, and about a fifth in other scripts."""
    rng = random.Random(3)
    english = list(make_tokenizers.corpus())
    parts, size = [], 0
    while size < 1_000_000:
        part = rng.choice(english)[:2000] if rng.random() < 0.8 else rng.choice(make_strings.SENTENCES) + "\n"
        part += rng.choice(["\n", "\n\n", " ", rng.choice(make_strings.CODE), rng.choice(make_strings.EMOJI)])
        parts.append(part)
        size += len(part.encode())
    return "".join(parts)


def checksum(ids):
    s = 14695981039346656037
    for i in ids:
        s = (s ^ i) * 1099511628211 % 2 ** 64
    return f"{s:016x}"


def measure(name, text_json, text, folder, binary):
    path = folder / f"{name}.json"
    path.write_text(text_json)
    (folder / "text").write_text(text, newline="")
    ours = json.loads(subprocess.run([binary, path, folder / "text", str(REPETITIONS)], check=True, capture_output=True).stdout)
    start = time.perf_counter()
    tok = Tokenizer.from_str(text_json)
    theirs_load = time.perf_counter() - start
    encode, decode = [], []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        encoding = tok.encode(text, add_special_tokens=False)
        encode.append(time.perf_counter() - start)
        ids = encoding.ids
        start = time.perf_counter()
        tok.decode(ids, skip_special_tokens=False)
        decode.append(time.perf_counter() - start)
    same = checksum(ids) == ours["checksum"]
    mb = len(text.encode()) / 1e6
    print(f"{name:14} encode {mb / ours['encode_s']:6.1f} MB/s, tokenizers {mb / min(encode):5.1f} MB/s, ratio "
          f"{min(encode) / ours['encode_s']:5.1f} (first call {encode[0] / ours['first_encode_s']:4.1f}); decode ratio "
          f"{min(decode) / ours['decode_s']:4.1f}; load {ours['load_s'] * 1e3:5.1f} ms, ratio {theirs_load / ours['load_s']:4.1f}; "
          f"{len(ids)} ids {'equal' if same else 'DIFFER'}", flush=True)
    return same and min(encode) >= ours["encode_s"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--gguf", type=pathlib.Path)
    options = parser.parse_args()
    text = mixed_text()
    ok = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        documents = {p.name[:-8]: gzip.decompress(p.read_bytes()).decode() for p in sorted(make_tokenizers.HERE.glob("*.json.gz"))
                     if p.name != "gguf-spm.json.gz"}
        if options.gguf:
            documents["SmolLM2"] = json.dumps(make_tokenizers.gguf_document(options.gguf))
        for name, doc in documents.items():
            ok &= measure(name, doc, text, folder, options.build / "bin/bench_tokenizer")
    sys.exit(0 if ok else "bench_tokenizer: slower than the tokenizers package, or ids differ")


if __name__ == "__main__":
    main()
