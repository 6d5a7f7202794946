"""States defaults of ONNX that were others in the file's opset than they are now.

pnnx keeps operators that PyTorch has not, and the pair does not say of which opset they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.conversion.onnx_rewriting import read_opset
from engine.pnnx import Parameter, load, save

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["state_defaults"]


class _Default(NamedTuple):
    """A parameter, the opset in which its default changed, and what it was before."""

    name: str
    opset: int
    before: str


_CHANGED: Final[Mapping[str, tuple[_Default, ...]]] = {
    "Resize": (
        _Default("coordinate_transformation_mode", 11, "asymmetric"),
        _Default("nearest_mode", 11, "floor"),
    ),
    "RoiAlign": (_Default("coordinate_transformation_mode", 16, "output_half_pixel"),),
}


def state_defaults(copy: Path, param: Path, weights: Path) -> None:
    """Write defaults that have changed into a pair.

    Parameters
    ----------
    copy : Path
        The ONNX file that pnnx got.
    param, weights : Path
        The pair; both files are replaced if there is such an operator in it.

    Raises
    ------
    OSError, ModelFileError, ExportError
        If the files cannot be read or written.
    """
    opset = read_opset(copy)
    if all(opset >= each.opset for defaults in _CHANGED.values() for each in defaults):
        return
    graph = load(param, weights)
    is_changed = False
    for operator in graph.operators:
        for default in _CHANGED.get(operator.type, ()):
            if opset < default.opset and default.name not in operator.params:
                operator.params[default.name] = Parameter.of(default.before)
                is_changed = True
    if is_changed:
        save(graph, param, weights)
