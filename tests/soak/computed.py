"""Models whose results are known: computed by NumPy, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import engine
from engine.dump import DumpOptions, write_dump
from engine.inputs import InputSource

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ComputedModel"]


class ComputedModel:
    """A model with one input, what it gives by NumPy, and a dump of that.

    Parameters
    ----------
    path : Path
    folder : Path
        Where the dump is written.
    rng : numpy.random.Generator
        Draws the input.
    """

    def __init__(self, path: Path, folder: Path, rng: np.random.Generator) -> None:
        self.path = path
        self.graph = engine.load(path)
        (operand,) = self.graph.input_operands
        given = rng.random(operand.shape, dtype=np.float32)
        self.source = InputSource("array", array=given)
        self._session = engine.Session(self.graph, backend="numpy")
        self._session.feed([given])
        self._session.run()
        self.output = self.graph.output_operands[0].name
        self.dump = folder / f"dump_of_{path.stem}"
        write_dump(self._session, self.dump, DumpOptions(format="folder"))

    def gives(self, value: object) -> bool:
        """Whether a value of the output is what NumPy computes, up to rounding."""
        expected = np.asarray(self._session.value(self.output))
        return np.allclose(np.asarray(value), expected, rtol=1e-4, atol=1e-5)
