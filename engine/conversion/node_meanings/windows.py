"""Convolutions and poolings: paddings and indices that pnnx takes for others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.conversion.node_meanings.sizes import MOST_WRITTEN, known_sizes
from engine.conversion.onnx_nodes import OnnxNode, constant_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.conversion.node_meanings.sizes import NodeSizes

__all__ = [
    "has_output_shape",
    "is_a_pooling_to_write",
    "is_padded_by_size",
    "pad_explicitly",
    "pad_transposed",
    "write_pooling",
]


def _is_same(node: OnnxNode) -> bool:
    return node.text("auto_pad", "NOTSET").startswith("SAME")


def is_padded_by_size(node: OnnxNode, _opset: int) -> bool:
    """Whether its paddings follow from the sizes."""
    return _is_same(node)


def pad_explicitly(node: OnnxNode, _opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """Pnnx pads as much as a stride of 1 needs."""
    pads = _find_pads(node, sizes)
    return None if pads is None else (_with_pads(node, pads),)


def _with_pads(node: OnnxNode, pads: Sequence[int]) -> OnnxNode:
    attributes = {**node.attributes, "pads": tuple(pads)}
    attributes.pop("auto_pad", None)
    return OnnxNode(node.type, node.inputs, node.outputs, attributes)


def _find_pads(node: OnnxNode, sizes: NodeSizes) -> list[int] | None:
    """Return the numbers of elements before and behind each dimension; None if unknown."""
    first = sizes.inputs[0]
    image = known_sizes(first[2:] if first else None)
    window = _window_of(node, sizes)
    if image is None or window is None:
        return None
    strides = node.integers("strides") or (1,) * len(image)
    if not len(image) == len(window) == len(strides) or 0 in strides:
        return None
    if node.type == "Conv" and set(strides) == {1}:
        return None  # what pnnx takes it for
    totals = [
        max((-(-size // stride) - 1) * stride + extent - size, 0)
        for size, stride, extent in zip(image, strides, window, strict=True)
    ]
    less = [total // 2 for total in totals]
    more = [total - half for total, half in zip(totals, less, strict=True)]
    return less + more if node.text("auto_pad", "") == "SAME_UPPER" else more + less


def _window_of(node: OnnxNode, sizes: NodeSizes) -> list[int] | None:
    """Return the extent of the window in each dimension."""
    weight = sizes.inputs[1] if len(sizes.inputs) > 1 else None
    kernel = node.integers("kernel_shape") or known_sizes(weight[2:] if weight else None)
    if kernel is None:
        return None
    dilations = node.integers("dilations") or (1,) * len(kernel)
    if len(dilations) != len(kernel):
        return None
    return [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]


def is_a_pooling_to_write(node: OnnxNode, _opset: int) -> bool:
    """Whether its paddings follow from the sizes or differ by side, or it gives indices."""
    return _is_same(node) or len(node.outputs) > 1 or _is_uneven(node)


def _is_uneven(node: OnnxNode) -> bool:
    pads = node.integers("pads") or ()
    return pads[: len(pads) // 2] != pads[len(pads) // 2 :]


def write_pooling(node: OnnxNode, opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """Pnnx pads twice where the sides differ, and its indices are PyTorch's."""
    pads = _find_pads(node, sizes) if _is_same(node) else None
    padded = node if pads is None else _with_pads(node, pads)
    if len(node.outputs) > 1:
        return _pool_with_indices(padded, sizes)
    if _is_uneven(padded):
        return _pad_before(padded, opset)
    return None if padded is node else (padded,)


def _pad_before(node: OnnxNode, opset: int) -> Sequence[OnnxNode]:
    """Pad by the least number of float32 before a pooling."""
    result = node.outputs[0]
    both, least, padded = (f"{result}/{word}" for word in ("both", "least", "padded"))
    pads = node.integers("pads") or ()
    half = len(pads) // 2
    around = (0, 0, *pads[:half], 0, 0, *pads[half:])
    lowest = np.finfo("f").min
    attributes = dict(node.attributes)
    del attributes["pads"]
    pooling = OnnxNode(node.type, (padded,), node.outputs, attributes)
    if opset < 11:
        before = OnnxNode(
            "Pad", node.inputs, (padded,), {"pads": around, "value": float(lowest)}
        )
        return before, pooling
    return (
        constant_node(both, np.array(around)),
        constant_node(least, np.array(lowest)),
        OnnxNode("Pad", (*node.inputs, both, least), (padded,)),
        pooling,
    )


def _pool_with_indices(node: OnnxNode, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """PyTorch's indices are those in each plane, ONNX's those in the whole tensor.

    With ``storage_order`` they are those of planes with the first size innermost.
    """
    shape = known_sizes(sizes.inputs[0])
    if shape is None or math.prod(shape[:2]) > MOST_WRITTEN:
        return None
    indices = node.outputs[1]
    attributes = dict(node.attributes)
    is_turned = attributes.pop("storage_order", 0) and len(shape) > 3
    found, starts, size, plane, before, within, turned = (
        f"{indices}/{word}"
        for word in ("found", "starts", "size", "plane", "before", "within", "turned")
    )
    length = math.prod(shape[2:])
    numbers = np.arange(math.prod(shape[:2])) * length
    return (
        OnnxNode(node.type, node.inputs, (node.outputs[0], found), attributes),
        constant_node(size, np.array(length)),
        constant_node(starts, numbers.reshape(*shape[:2], *(1,) * len(shape[2:]))),
        # Pnnx runs the model to learn sizes, so these must be right for ONNX's indices too.
        OnnxNode("Div", (found, size), (plane,)),
        OnnxNode("Mul", (plane, size), (before,)),
        OnnxNode("Sub", (found, before), (within,)),
        *(_turn_indices(within, turned, shape[2:]) if is_turned else ()),
        OnnxNode("Add", (turned if is_turned else within, starts), (indices,)),
    )


def _turn_indices(within: str, result: str, image: Sequence[int]) -> Iterator[OnnxNode]:
    """Count the elements of a plane with the first size innermost instead of the last."""
    rest, done = within, ""
    for axis in range(len(image)):
        last, first, place, before, left, moved, total = (
            f"{result}/{word} {axis}"
            for word in ("last", "first", "place", "before", "left", "moved", "total")
        )
        yield constant_node(last, np.array(math.prod(image[axis + 1 :])))
        yield constant_node(first, np.array(math.prod(image[:axis])))
        yield OnnxNode("Div", (rest, last), (place,))
        yield OnnxNode("Mul", (place, last), (before,))
        yield OnnxNode("Sub", (rest, before), (left,))
        yield OnnxNode("Mul", (place, first), (moved,))
        if done:
            total = result if axis == len(image) - 1 else total
            yield OnnxNode("Add", (done, moved), (total,))
        done = total if done else moved
        rest = left


def has_output_shape(node: OnnxNode, _opset: int) -> bool:
    """Whether its paddings follow from the sizes of its result."""
    return node.integers("output_shape") is not None and not _is_same(node)


def pad_transposed(node: OnnxNode, _opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """Pnnx does not know ``output_shape``."""
    first, wanted = sizes.inputs[0], node.integers("output_shape") or ()
    image, window = known_sizes(first[2:] if first else None), _window_of(node, sizes)
    if image is None or window is None:
        return None
    wanted = wanted[-len(image) :]
    strides = node.integers("strides") or (1,) * len(image)
    more = node.integers("output_padding") or (0,) * len(image)
    if not len(image) == len(window) == len(strides) == len(more) == len(wanted):
        return None
    surplus = [
        stride * (size - 1) + added + extent - last
        for stride, size, added, extent, last in zip(
            strides, image, more, window, wanted, strict=True
        )
    ]
    behind = [max(each, 0) // 2 for each in surplus]
    before = [max(each, 0) - half for each, half in zip(surplus, behind, strict=True)]
    attributes = dict(_with_pads(node, before + behind).attributes)
    del attributes["output_shape"]
    attributes["output_padding"] = tuple(
        added + max(-each, 0) for added, each in zip(more, surplus, strict=True)
    )
    return (OnnxNode(node.type, node.inputs, node.outputs, attributes),)
