"""Gives the inputs of an ONNX file their bool back, which pnnx got as uint8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.pnnx import load, save

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine.conversion.source_inputs import SourceInput

__all__ = ["restore_bools", "without_bools"]


def without_bools(inputs: Sequence[SourceInput]) -> tuple[SourceInput, ...]:
    """Return the inputs as pnnx gets them."""
    return tuple(
        given._replace(dtype="u8") if given.dtype == "bool" else given for given in inputs
    )


def restore_bools(inputs: Sequence[SourceInput], param: Path, weights: Path) -> None:
    """Write into a pair which of its inputs are bool.

    Parameters
    ----------
    inputs : sequence of SourceInput
        Of the ONNX file.
    param, weights : Path
        The pair; both files are replaced if there is such an input.

    Raises
    ------
    OSError, ModelFileError, ExportError
        If the files cannot be read or written.
    """
    if all(given.dtype != "bool" for given in inputs):
        return
    graph = load(param, weights)
    for number, given in enumerate(inputs):
        operator = graph.get_operator(f"in{number}")
        if given.dtype == "bool" and operator is not None:
            operator.outputs[0].dtype = "bool"
    save(graph, param, weights)
