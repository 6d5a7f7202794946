"""A model whose files tests write again, as pnnx does: in place, one after the other."""

from __future__ import annotations

import zipfile

import numpy as np

SIZE = 64
WEIGHTED = f"bias=False in_features={SIZE} out_features={SIZE} @weight=({SIZE},{SIZE})f32"


def scaled(first, second):
    """Weights that multiply their input by a number each."""
    eye = np.eye(SIZE, dtype=np.float32)
    return {"first.weight": eye * np.float32(first), "second.weight": eye * np.float32(second)}


def export(param, weights, lines=None):
    """Write the weights over a model's, and with `lines` the structure as well."""
    if lines is not None:
        names = {
            n for line in lines for n in line.split()[4:][: sum(map(int, line.split()[2:4]))]
        }
        text = "\n".join(["7767517", f"{len(lines)} {len(names)}", *lines, ""])
        param.write_text(text, encoding="utf-8")
    with param.with_suffix(".bin").open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in weights.items():
            archive.writestr(name, array.tobytes())
