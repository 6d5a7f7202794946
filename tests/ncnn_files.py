"""Writes pairs of ncnn, as its documentation describes them."""

from __future__ import annotations

import math
import struct

import numpy as np

F16, INT8 = 0x01306B47, 0x000D4B38


def tagged(values, tag=0):
    """A weight with its tag in front, padded to 4 bytes."""
    data = np.ascontiguousarray(values).tobytes()
    return struct.pack("<I", tag) + data + b"\0" * (-len(data) % 4)


def f32(values):
    return np.ascontiguousarray(values, np.float32).tobytes()


def write_pair(folder, lines, weights=b"", name="m.ncnn", blobs=None):
    """Write the files; return the ``.param``. `blobs` is what its header says of them."""
    if blobs is None:
        blobs = sum(int(line.split()[3]) for line in lines)
    text = "\n".join(["7767517", f"{len(lines)} {blobs}", *lines, ""])
    path = folder / f"{name}.param"
    path.write_text(text)
    (folder / f"{name}.bin").write_bytes(weights)
    return path


def stored_by_pnnx(weight):
    """Round to float16 as pnnx does: halves away from 0, below 2⁻¹⁴ to 0."""
    stored = []
    for number in weight.reshape(-1).tolist():
        size = 0.0
        if abs(number) >= 2.0**-14:
            step = 2.0 ** (math.floor(math.log2(abs(number))) - 10)
            size = math.floor(abs(number) / step + 0.5) * step
        stored.append(math.copysign(size, number))
    return np.array(stored, np.float16).reshape(weight.shape)
