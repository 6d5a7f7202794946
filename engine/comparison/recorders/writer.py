"""Writes the folder of a recording, and has its command line; pasted into every recorder."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np

__all__ = ["Writer", "hash_of", "main"]


class Writer:
    """Writes tensors and calls to a new folder, and the manifest at the end.

    Parameters
    ----------
    folder : path
        New or empty.
    library : str
        Name and version.
    """

    def __init__(self, folder, library):
        self._folder = Path(folder)
        if self._folder.exists() and any(self._folder.iterdir()):
            raise FileExistsError(f"{folder} is not empty; name a new folder")
        (self._folder / "tensors").mkdir(parents=True, exist_ok=True)
        self._library = library
        self._tensors, self._operators = [], []
        self.inputs, self.outputs = [], []

    def tensor(self, array, name="", role=""):
        """Write a tensor and return its key; `role` is input, constant or nothing."""
        array = np.asarray(array)
        if array.dtype.kind not in "?biufc":
            array = array.astype(np.float32)
        number = len(self._tensors)
        clean = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:60]
        file = f"tensors/{number:06d}_{clean}.npy"
        np.save(self._folder / file, array, allow_pickle=False)
        key = f"{number}:{name}" if name else str(number)
        names = [name] if name else []
        self._tensors.append({"key": key, "file": file, "names": names, "role": role})
        return key

    def rename(self, key, name):
        """Add a name to a tensor, such as the module whose output it is."""
        names = self._tensors[int(key.partition(":")[0])]["names"]
        if name not in names:
            names.append(name)

    def operator(self, name, type, inputs, outputs, weights=None, params=None):
        """Record a call: keys of its inputs and outputs, hashes of its weights, parameters."""
        self._operators.append(
            {
                "name": name,
                "type": type,
                "inputs": list(inputs),
                "outputs": list(outputs),
                "weights": dict(weights or {}),
                "params": {key: repr(value)[:200] for key, value in (params or {}).items()},
            }
        )

    def close(self):
        """Write the manifest."""
        manifest = {
            "schema": "kuiper-studio-recording",
            "version": 1,
            "library": self._library,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "operators": self._operators,
            "tensors": self._tensors,
        }
        text = json.dumps(manifest, indent=0)
        (self._folder / "recording.json").write_text(text, encoding="utf-8")
        return self._folder


def hash_of(array):
    """Return the size of a weight, and its SHA-256 as float32 and as float16.

    pnnx rounds halves away from 0, and small numbers to 0.
    """
    exact = np.ascontiguousarray(array, dtype="<f4")
    with np.errstate(over="ignore"):
        rounded = exact.astype("<f2")
        away = (exact.view("<u4") + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        stored = np.where(np.isfinite(exact), away.view("<f4"), exact).astype("<f2")
    stored[np.abs(exact) < 2.0**-14] *= np.float16(0)  # keeps the sign
    return {
        "size": int(exact.size),
        "float32": hashlib.sha256(exact.tobytes()).hexdigest(),
        "float16": hashlib.sha256(rounded.tobytes()).hexdigest(),
        "pnnx": hashlib.sha256(stored.tobytes()).hexdigest(),
    }


def main(record, model, arguments):
    """Record a model from the command line.

    Parameters
    ----------
    record : callable
        Takes the path of a model, a list of arrays and a folder.
    model : str
        Stands for the model's file in the usage.
    arguments : sequence of str
        Of the process: its name, model, folder, inputs as .npy.

    Returns
    -------
    int
        Exit status.
    """
    script, *given = arguments
    if len(given) < 3:
        print(f"usage: {Path(script).name} {model} FOLDER INPUT.npy ...", file=sys.stderr)
        return 2
    path, folder, *files = given
    try:
        inputs = [np.load(file, allow_pickle=False) for file in files]
        print(record(path, inputs, folder))
    except Exception as exc:  # noqa: BLE001 - libraries have errors of their own classes
        print(exc, file=sys.stderr)
        return 2
    return 0
