"""Einstein sums: pnnx drops the dots that stand for any dimensions."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING, Final

from engine.conversion.onnx_nodes import OnnxNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.conversion.node_meanings.sizes import NodeSizes

__all__ = ["has_dots", "name_dots"]

_DOTS: Final = "..."


def has_dots(node: OnnxNode, _opset: int) -> bool:
    """Whether some dimensions have no letter."""
    return _DOTS in node.text("equation", "") and "->" in node.text("equation", "")


def name_dots(node: OnnxNode, _opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """Give a letter to each dimension that dots stand for, counted from the last one."""
    equation = node.text("equation", "").replace(" ", "")
    terms, _, result = equation.partition("->")
    counts: list[int] = []
    for term, shape in zip(terms.split(","), sizes.inputs, strict=False):
        if shape is None:
            return None
        counts.append(len(shape) - len(term.replace(_DOTS, "")) if _DOTS in term else 0)
    free = [letter for letter in ascii_letters if letter not in equation][: max(counts)]
    letters = "".join(free)
    named = [
        term.replace(_DOTS, letters[len(letters) - count :])
        for term, count in zip(terms.split(","), counts, strict=False)
    ]
    attributes = {"equation": f"{','.join(named)}->{result.replace(_DOTS, letters)}"}
    return (OnnxNode(node.type, node.inputs, node.outputs, attributes),)
