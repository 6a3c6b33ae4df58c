"""Writes safetensors files: an 8-byte header length, a JSON header, then the tensors' bytes.

Only what the golden models need: F32, F16 and BF16 tensors, one file or several with an index.
"""
import json
import os
import struct

import numpy as np

from deterministic import to_bfloat16


def encode(array: np.ndarray, dtype: str) -> bytes:
    """Little-endian bytes of a float32 array stored as `dtype` (F32, F16 or BF16)."""
    if dtype == "F32":
        return array.astype("<f4").tobytes()
    if dtype == "F16":
        return array.astype("<f2").tobytes()
    if dtype == "BF16":
        return to_bfloat16(array).astype("<u2").tobytes()
    raise ValueError(f"dtype {dtype!r} is not one of F32, F16, BF16")


def write_file(path: str, tensors: dict, dtype_of) -> int:
    """Writes {name: float32 array}; `dtype_of(name)` gives the stored dtype. Returns the data bytes."""
    header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, array in tensors.items():
        blob = encode(array, dtype_of(name))
        header[name] = {"dtype": dtype_of(name), "shape": list(array.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for blob in blobs:
            f.write(blob)
    return at


def write_model(folder: str, tensors: dict, dtype_of, shards: int) -> None:
    """One model.safetensors, or `shards` files dealt in order with model.safetensors.index.json."""
    if shards == 1:
        write_file(os.path.join(folder, "model.safetensors"), tensors, dtype_of)
        return
    names, weight_map, total = list(tensors), {}, 0
    per = -(-len(names) // shards)
    for i in range(shards):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        part = {n: tensors[n] for n in names[i * per:(i + 1) * per]}
        total += write_file(os.path.join(folder, file), part, dtype_of)
        weight_map.update({n: file for n in part})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, f, indent=1)
