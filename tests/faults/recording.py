"""References of networks: from the shipped recorders, as a user runs them, and our files."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np

import engine
from engine.comparison.recorders import recorder_script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine.session import Session

__all__ = ["REFERENCES", "record_network"]

_RECORDERS = {"torch": "pt", "onnxruntime": "onnx", "ncnn": "ncnn.param"}
REFERENCES = (*_RECORDERS, "dump", "modules", "model")
"""Kinds of references: from a recorder, a dump, modules by name in an .npz, another pair."""


def record_network(
    stem: Path, kind: str, inputs: Sequence[np.ndarray], true: Session, folder: Path
) -> Path:
    """Write a reference of a network, and return its path.

    Parameters
    ----------
    stem : path
        Of the network's files, without suffixes.
    kind : str
        Of `REFERENCES`.
    inputs : sequence of ndarray
    true : Session
        Our values of the true pair.
    folder : path
        To write to.
    """
    folder.mkdir(parents=True)
    if kind == "model":
        return stem.with_name(f"{stem.name}.pnnx.param")
    if kind == "dump":
        engine.write_dump(true, folder / "dump")
        return folder / "dump"
    if kind == "modules":
        modules = [o for o in true.graph.operators if o.type.startswith("nn.")]
        values = {o.name: true.value(o.outputs[0].name) for o in modules}
        np.savez(folder / "modules.npz", **values)
        return folder / "modules.npz"
    script = folder / f"{kind}_recorder.py"
    script.write_text(recorder_script(kind), encoding="utf-8")
    files = []
    for index, array in enumerate(inputs):
        files.append(folder / f"input{index}.npy")
        batched = kind == "ncnn" and array.shape[0] == 1
        np.save(files[-1], array[0] if batched else array)
    recording = folder / "recording"
    model = stem.with_name(f"{stem.name}.{_RECORDERS[kind]}")
    subprocess.run(
        [sys.executable, script, model, recording, *files], check=True, capture_output=True
    )
    return recording
