"""Records networks with the shipped recorder, as a user would."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np

from engine.comparison.recorders import recorder_script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["record_network"]


def record_network(model: Path, inputs: Sequence[np.ndarray], folder: Path) -> Path:
    """Run the recorder of PyTorch on a TorchScript file in a process of its own."""
    folder.mkdir(parents=True)
    script = folder / "torch_recorder.py"
    script.write_text(recorder_script("torch"), encoding="utf-8")
    files = []
    for index, array in enumerate(inputs):
        files.append(folder / f"input{index}.npy")
        np.save(files[-1], array)
    recording = folder / "recording"
    subprocess.run(
        [sys.executable, script, model, recording, *files], check=True, capture_output=True
    )
    return recording
