"""Nodes of ONNX that pnnx reads in another sense, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.conversion.onnx_nodes import OnnxNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Sizes = tuple[int | None, ...]  # None where a size is open

__all__ = ["AT_ONCE", "BY_SIZES", "NodeSizes"]


class NodeSizes(NamedTuple):
    """The sizes of a node's inputs and outputs; None where not even their number is known."""

    inputs: tuple[Sizes | None, ...]
    outputs: tuple[Sizes | None, ...]


class _BySizes(NamedTuple):
    """How to write a node whose sizes decide whether pnnx takes it wrong.

    Attributes
    ----------
    concerns : callable
        Whether it may be wrong, of node and opset.
    rewrite : callable
        The nodes instead of it, of node, opset and sizes; None if it is right.
    """

    concerns: Callable[[OnnxNode, int], bool]
    rewrite: Callable[[OnnxNode, int, NodeSizes], Sequence[OnnxNode] | None]


def _is_flattening(node: OnnxNode, opset: int) -> bool:
    return opset < 13 and node.integer("axis", 1) != -1


def _softmax_of_matrix(
    node: OnnxNode, _opset: int, sizes: NodeSizes
) -> Sequence[OnnxNode] | None:
    """Before opset 13 all dimensions from ``axis`` on are one."""
    axis, first = node.integer("axis", 1), sizes.inputs[0]
    if first is not None and axis % max(len(first), 1) == len(first) - 1:
        return None
    (result,) = node.outputs
    shape, matrix, done = (f"{result}/{word}" for word in ("shape", "matrix", "done"))
    return (
        OnnxNode("Shape", node.inputs, (shape,)),
        OnnxNode("Flatten", node.inputs, (matrix,), {"axis": axis}),
        OnnxNode(node.type, (matrix,), (done,), {"axis": -1}),
        OnnxNode("Reshape", (done, shape), node.outputs),
    )


_FLATTENING: Final = _BySizes(_is_flattening, _softmax_of_matrix)

AT_ONCE: Final[Mapping[str, Callable[[OnnxNode, int], Sequence[OnnxNode] | None]]] = {}
"""By the type of a node: what to write instead, of node and opset; None if it is right."""

BY_SIZES: Final[Mapping[str, _BySizes]] = {
    "Softmax": _FLATTENING,
    "LogSoftmax": _FLATTENING,
    "Hardmax": _FLATTENING,
}
"""The same for nodes of which the sizes must be known."""
