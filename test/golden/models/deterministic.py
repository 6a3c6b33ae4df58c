"""Random numbers that are the same on every machine and with every numpy version.

The golden checkpoints are not committed, they are made again wherever the tests run. Only integer
arithmetic, exact conversions and single IEEE operations are used here, so the bytes never change.
"""
import hashlib
import math

import numpy as np

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def words(key: str, count: int) -> np.ndarray:
    """`count` 64-bit words drawn from the stream named `key` (splitmix64 in counter mode)."""
    start = np.uint64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        z = start + (np.arange(1, count + 1, dtype=np.uint64)) * _GAMMA
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def integers(key: str, count: int, below: int) -> np.ndarray:
    """`count` integers in [0, below)."""
    return (words(key, count) % np.uint64(below)).astype(np.int64)


def random_bytes(key: str, count: int) -> np.ndarray:
    """`count` uniformly random bytes."""
    return words(key, (count + 7) // 8).astype("<u8").view(np.uint8)[:count]


def uniform(key: str, shape, low: float, high: float) -> np.ndarray:
    """float32 array of `shape`, uniform in [low, high)."""
    count = int(np.prod(shape))
    unit = (words(key, count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return (unit * np.float32(high - low) + np.float32(low)).reshape(shape)


def spread(key: str, shape, std: float) -> np.ndarray:
    """float32 array of `shape`, mean 0 and standard deviation `std` (uniform)."""
    half = std * math.sqrt(3.0)
    return uniform(key, shape, -half, half)


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 to bfloat16 bits (uint16), rounded to nearest even; finite inputs only."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
