"""Resized images: places and roundings that pnnx takes for PyTorch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.conversion.node_meanings.sizes import MOST_WRITTEN, known_sizes
from engine.conversion.onnx_nodes import OnnxNode, constant_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.conversion.node_meanings.sizes import Integers, NodeSizes
    from engine.values import Array

__all__ = ["is_old_resizing", "keep_resize", "resize_by_products"]

_PYTORCHS_SLOPE: Final = -0.75  # of the cubic kernel


def keep_resize(node: OnnxNode, opset: int, _integers: Integers) -> Sequence[OnnxNode] | None:
    """Pnnx takes any image with ``floor``, or without a rounding, for one that PyTorch resizes.

    Where PyTorch has nothing like it, another rounding makes it stay ONNX's. It means nothing
    except to ``nearest``.
    """
    if opset < 11:
        return None
    position = node.text("coordinate_transformation_mode", "half_pixel")
    rounding = node.text("nearest_mode", "round_prefer_floor")
    is_nearest = node.text("mode", "nearest") == "nearest"
    if is_nearest and rounding == "floor" and position != "asymmetric":
        return _with_part(node)
    if not is_nearest and _is_of_pytorch(node, position):
        return None
    new = rounding if is_nearest else "ceil"
    if node.attributes.get("nearest_mode") == new:
        return None
    attributes = {**node.attributes, "nearest_mode": new}
    return (OnnxNode(node.type, node.inputs, node.outputs, attributes),)


def _with_part(node: OnnxNode) -> Sequence[OnnxNode] | None:
    """Name a part of the image, which means nothing here, but PyTorch has none.

    An empty one, which the file may name itself, is dropped.
    """
    if node.text("coordinate_transformation_mode", "") == "tf_crop_and_resize":
        return None
    part = f"{node.outputs[0]}/part"
    inputs = (*node.inputs[:1], part, *node.inputs[2:])
    return (
        constant_node(part, np.array([0, 1], "<f4")),
        OnnxNode(node.type, inputs, node.outputs, node.attributes),
    )


def _is_of_pytorch(node: OnnxNode, position: str) -> bool:
    slope = node.attributes.get("cubic_coeff_a", _PYTORCHS_SLOPE)
    return (
        position in ("half_pixel", "pytorch_half_pixel", "align_corners")
        and slope == _PYTORCHS_SLOPE
        and not node.integer("exclude_outside", 0)
        and not node.integer("antialias", 0)
    )


def is_old_resizing(node: OnnxNode, opset: int) -> bool:
    """Whether ONNX had its own places then, which PyTorch has not."""
    return opset < 11 and node.text("mode", "nearest") in ("linear", "bilinear")


def resize_by_products(
    node: OnnxNode, _opset: int, sizes: NodeSizes
) -> Sequence[OnnxNode] | None:
    """Before opset 11 the first elements lie on each other, in PyTorch the middles of borders.

    Neither has words for the other, so weights of the elements take the place of the node.
    """
    old, new = known_sizes(sizes.inputs[0]), known_sizes(sizes.outputs[0])
    if old is None or new is None or len(old) > 4 or old[:2] != new[:2] or 0 in old:
        return None
    if any(one * other > MOST_WRITTEN for one, other in zip(old[2:], new[2:], strict=True)):
        return None
    result = node.outputs[0]
    across, down, wide = (f"{result}/{word}" for word in ("across", "down", "wide"))
    (given,) = sizes.numbers[1:2] or (node.floats("scales"),)  # Upsample has had both
    scales = given or tuple(n / o for o, n in zip(old, new, strict=True))
    if len(scales) != len(old) or 0 in scales:
        return None
    last = _resizing_weights(old[-1], new[-1], scales[-1])
    if len(old) == 3:
        return (
            constant_node(across, last.T.copy()),
            OnnxNode("MatMul", (node.inputs[0], across), (result,)),
        )
    return (
        constant_node(across, last.T.copy()),
        OnnxNode("MatMul", (node.inputs[0], across), (wide,)),
        constant_node(down, _resizing_weights(old[2], new[2], scales[2])),
        OnnxNode("MatMul", (down, wide), (result,)),
    )


def _resizing_weights(old: int, new: int, scale: float) -> Array:
    """Return a row for each new element, with the weights of the old ones."""
    places = np.minimum(np.arange(new) / scale, old - 1)
    below = places.astype(int)
    weights = np.zeros((new, old))
    np.add.at(weights, (np.arange(new), below), 1 - (places - below))
    np.add.at(weights, (np.arange(new), np.minimum(below + 1, old - 1)), places - below)
    return weights.astype("<f4")
