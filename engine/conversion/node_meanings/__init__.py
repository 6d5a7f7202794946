"""Nodes of ONNX that pnnx reads in another sense, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.conversion.node_meanings import einstein, resizing, slicing, windows
from engine.conversion.node_meanings.sizes import NodeSizes, known_sizes
from engine.conversion.node_meanings.tensor_sizes import cast_sizes
from engine.conversion.onnx_nodes import OnnxNode, constant_node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.conversion.node_meanings.sizes import Integers

__all__ = ["AT_ONCE", "BY_SIZES", "NodeSizes"]


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
    result = node.outputs[0]
    shape, matrix, done = (f"{result}/{word}" for word in ("shape", "matrix", "done"))
    return (
        OnnxNode("Shape", node.inputs, (shape,)),
        OnnxNode("Flatten", node.inputs, (matrix,), {"axis": axis}),
        OnnxNode(node.type, (matrix,), (done,), {"axis": -1}),
        OnnxNode("Reshape", (done, shape), node.outputs),
    )


def _each_alone(node: OnnxNode, _opset: int, _integers: Integers) -> Sequence[OnnxNode] | None:
    """Pnnx takes a largest or smallest value of two tensors only."""
    if len(node.inputs) == 1:
        return (OnnxNode("Identity", node.inputs, node.outputs),)
    if len(node.inputs) == 2:
        return None
    result = node.outputs[0]
    done = node.inputs[0]
    made: list[OnnxNode] = []
    for number, each in enumerate(node.inputs[1:], 2):
        name = result if number == len(node.inputs) else f"{result}/{number}"
        made.append(OnnxNode(node.type, (done, each), (name,)))
        done = name
    return made


_OF_ONE_ELEMENT: Final = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}


def _is_of_no_axes(node: OnnxNode, _opset: int) -> bool:
    return bool(node.integer("noop_with_empty_axes", 0))


def _element_by_element(
    node: OnnxNode, opset: int, _integers: Integers
) -> Sequence[OnnxNode] | None:
    """Pnnx reduces all dimensions also where ``noop_with_empty_axes`` says none."""
    if not _is_of_no_axes(node, opset) or any(node.inputs[1:]):
        return None
    return _reduce_nothing(node)


def _reduce_nothing(node: OnnxNode) -> Sequence[OnnxNode]:
    first = node.inputs[:1]
    if node.type == "ReduceSumSquare":
        return (OnnxNode("Mul", first * 2, node.outputs),)
    return (OnnxNode(_OF_ONE_ELEMENT.get(node.type, "Identity"), first, node.outputs),)


def _reduce_no_axes(node: OnnxNode, _opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """The axes may be an empty list. Where all sizes stay, there is nothing to reduce."""
    first = sizes.inputs[0]
    return _reduce_nothing(node) if first is not None and sizes.outputs[0] == first else None


def _name_all(node: OnnxNode, _opset: int, _integers: Integers) -> Sequence[OnnxNode] | None:
    """Pnnx forgets outputs that nobody uses, and takes the next for them."""
    if all(node.outputs):
        return None
    outputs = tuple(
        name or f"{node.outputs[0]}/{place}" for place, name in enumerate(node.outputs)
    )
    return (OnnxNode(node.type, node.inputs, outputs, node.attributes),)


def _always(_node: OnnxNode, _opset: int) -> bool:
    return True


def _slope_by_last(node: OnnxNode, opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """Pnnx takes the slopes for those of channels; ONNX broadcasts them from the last size."""
    first, slopes = sizes.inputs[0], sizes.inputs[1]
    if opset < 7 or first is None or slopes is None or None in slopes:
        return None
    along = [len(first) - len(slopes) + axis for axis, size in enumerate(slopes) if size != 1]
    if not along or along == [1]:
        return None
    result = node.outputs[0]
    value, slope = node.inputs
    above, minus, below, moved = (
        f"{result}/{word}" for word in ("above", "minus", "below", "moved")
    )
    return (
        OnnxNode("Relu", (value,), (above,)),
        OnnxNode("Neg", (value,), (minus,)),
        OnnxNode("Relu", (minus,), (below,)),
        OnnxNode("Mul", (below, slope), (moved,)),
        OnnxNode("Sub", (above, moved), (result,)),
    )


def _blocks_first(node: OnnxNode, _opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """Pnnx takes it for PyTorch's, which has the channels before the places in a block."""
    shape, block = known_sizes(sizes.inputs[0]), node.integer("blocksize", 1)
    if shape is None or len(shape) != 4 or shape[1] == 1:
        return None
    images, channels, height, width = shape
    if not 0 < block <= min(height, width):
        return None
    rows, columns = height // block, width // block
    result = node.outputs[0]
    split, apart, moved, last = (
        f"{result}/{word}" for word in ("split", "apart", "moved", "last")
    )
    return (
        constant_node(split, np.array([images, channels, rows, block, columns, block])),
        OnnxNode("Reshape", (node.inputs[0], split), (apart,)),
        OnnxNode("Transpose", (apart,), (moved,), {"perm": (0, 3, 5, 1, 2, 4)}),
        constant_node(last, np.array([images, channels * block * block, rows, columns])),
        OnnxNode("Reshape", (moved, last), (result,)),
    )


_REDUCTIONS: Final = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip

AT_ONCE: Final[Mapping[str, Callable[[OnnxNode, int, Integers], Sequence[OnnxNode] | None]]] = {
    "Max": _each_alone,
    "Min": _each_alone,
    "Resize": resizing.keep_resize,
    "Shape": cast_sizes,
    "Slice": slicing.write_slice,
    "Unique": _name_all,
    **dict.fromkeys(_REDUCTIONS, _element_by_element),
}
"""By the type of a node: what to write instead; None if it is right.

The functions get the node, the opset, and a function that finds the graph's small constants.
"""

BY_SIZES: Final[Mapping[str, _BySizes]] = {
    **dict.fromkeys(
        ("Softmax", "LogSoftmax", "Hardmax"), _BySizes(_is_flattening, _softmax_of_matrix)
    ),
    **dict.fromkeys(_REDUCTIONS, _BySizes(_is_of_no_axes, _reduce_no_axes)),
    "Conv": _BySizes(windows.is_padded_by_size, windows.pad_explicitly),
    "AveragePool": _BySizes(windows.is_padded_by_size, windows.pad_explicitly),
    "MaxPool": _BySizes(windows.is_a_pooling_to_write, windows.write_pooling),
    "ConvTranspose": _BySizes(windows.has_output_shape, windows.pad_transposed),
    "Einsum": _BySizes(einstein.has_dots, einstein.name_dots),
    "PRelu": _BySizes(_always, _slope_by_last),
    **dict.fromkeys(
        ("Resize", "Upsample"), _BySizes(resizing.is_old_resizing, resizing.resize_by_products)
    ),
    "SpaceToDepth": _BySizes(_always, _blocks_first),
}
"""The same for nodes of which the sizes must be known."""
