"""Writes GGUF v2/v3 files whose quantised tensors are random blocks: any bytes are valid data, so
nothing has to be quantised, only the scales are chosen so that the weights have a given spread.
"""
import struct

import numpy as np

from deterministic import random_bytes, spread, to_bfloat16, uniform

# name -> (ggml type id, block elements, block bytes)
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22),
         "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176),
         "Q6_K": (14, 256, 210), "BF16": (30, 1, 2)}
# Standard deviation of a weight in units of the block's scale, and the minimum (in scales) that
# centres it on zero. From the moments of uniform quants and uniform 6- or 8-bit sub-scales.
_UNIT = {"Q4_0": 4.6, "Q4_1": 4.6, "Q5_0": 9.2, "Q5_1": 9.2, "Q8_0": 73.9, "Q4_K": 258.0, "Q5_K": 527.0, "Q6_K": 1365.0}
_MIN = {"Q4_1": -7.5, "Q5_1": -15.5, "Q4_K": 7.5, "Q5_K": 15.5}
# Where the f16 scale (and minimum) stand in a block.
_SCALE_AT = {"Q6_K": 208}


def tensor_bytes(key: str, shape, kind: str, std: float) -> bytes:
    """Data of a tensor [rows, cols] or [n] of type `kind` with standard deviation about `std`."""
    if kind not in _UNIT:
        x = spread(key, shape, std)
        return encode(x, kind)
    _, per, size = TYPES[kind]
    assert shape[-1] % per == 0, f"{key}: rows of {shape[-1]} are not whole {kind} blocks of {per}"
    count = int(np.prod(shape)) // per
    blocks = random_bytes(key, count * size).reshape(count, size).copy()
    scale = uniform(key + "/scale", (count,), 0.6, 1.4) * np.float32(std / _UNIT[kind])
    if kind not in ("Q4_K", "Q5_K"):  # scales of either sign occur in real files; K-quants keep theirs positive
        scale = scale * np.where(random_bytes(key + "/sign", count) & 1, np.float32(1), np.float32(-1))
    at = _SCALE_AT.get(kind, 0)
    blocks[:, at:at + 2] = scale.astype("<f2").view(np.uint8).reshape(count, 2)
    if kind in _MIN:
        low = scale * np.float32(_MIN[kind])
        blocks[:, at + 2:at + 4] = low.astype("<f2").view(np.uint8).reshape(count, 2)
    return blocks.tobytes()


def encode(x: np.ndarray, kind: str) -> bytes:
    """A float32 array stored as F32, F16 or BF16."""
    if kind == "BF16":
        return to_bfloat16(x).astype("<u2").tobytes()
    return x.astype({"F32": "<f4", "F16": "<f2"}[kind]).tobytes()


def _string(s: str) -> bytes:
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(v) -> bytes:
    """Type id and value: bool, int (u32), float (f32), str, or a list of one of these (ints: i32)."""
    if isinstance(v, bool):
        return struct.pack("<IB", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + _string(v)
    kind = 8 if isinstance(v[0], str) else 6 if isinstance(v[0], float) else 5
    items = b"".join(_string(x) if kind == 8 else struct.pack("<f" if kind == 6 else "<i", x) for x in v)
    return struct.pack("<IIQ", 9, kind, len(v)) + items


def write(path: str, metadata: dict, tensors: list, version: int = 3, alignment: int = 32) -> None:
    """`tensors` holds (name, shape as rows × cols, type name, data bytes)."""
    if alignment != 32:
        metadata = {**metadata, "general.alignment": alignment}
    out = [b"GGUF", struct.pack("<IQQ", version, len(tensors), len(metadata))]
    out += [_string(k) + _value(v) for k, v in metadata.items()]
    at = 0
    for name, shape, kind, data in tensors:
        dims = list(shape)[::-1]
        out.append(_string(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
                   + struct.pack("<IQ", TYPES[kind][0], at))
        at += len(data) + -len(data) % alignment
    head = b"".join(out)
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % alignment))
        for _, _, _, data in tensors:
            f.write(data + b"\0" * (-len(data) % alignment))
