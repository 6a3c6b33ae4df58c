#!/usr/bin/env python3
"""Makes the goldens of GGUF dequantisation: for each type, random block bytes (TYPE.in) and the f32 values that
the `gguf` package (0.17 or later) reads from them (TYPE.out, little-endian f32). Run it in this folder."""
import numpy as np
from gguf import GGMLQuantizationType as T, GGML_QUANT_SIZES, quants

rng = np.random.default_rng(20240607)
# Offsets of the f16 fields in a block: random bits there would often be NaN or inf.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208], "F16": [0]}
for name in ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]:
    kind = T[name]
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = 128 if elements == 1 else 6 if elements == 32 else 3
    raw = rng.integers(0, 256, (blocks, size), dtype=np.uint8)
    for at in HALVES.get(name, []):
        raw[:, at:at + 2] = rng.normal(0, 0.1, (blocks, 1)).astype(np.float16).view(np.uint8)
    if name == "BF16":
        raw = (rng.normal(0, 1, blocks).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    raw = raw.reshape(-1)
    out = quants.dequantize(raw, kind).astype("<f4").reshape(-1)
    assert np.isfinite(out).all() and out.size == blocks * elements
    raw.tofile(name + ".in")
    out.tofile(name + ".out")
