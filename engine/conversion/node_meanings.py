"""Nodes of ONNX that pnnx reads in another sense, and what to write instead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.conversion.onnx_nodes import OnnxNode, constant_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from engine.values import Array

    Sizes = tuple[int | None, ...]  # None where a size is open
    _Integers = Callable[[], Mapping[str, tuple[int, ...]]]

__all__ = ["AT_ONCE", "BY_SIZES", "NodeSizes"]


_PYTORCHS_SLOPE: Final = -0.75  # of the cubic kernel
_LAST: Final = 2**31 - 1  # from here on, bounds of slices mean the end
_VERY_LAST: Final = 2**63 - 1
_MOST_WRITTEN: Final = 1 << 24  # elements of a constant; a file may state any size


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
    result = node.outputs[0]
    shape, matrix, done = (f"{result}/{word}" for word in ("shape", "matrix", "done"))
    return (
        OnnxNode("Shape", node.inputs, (shape,)),
        OnnxNode("Flatten", node.inputs, (matrix,), {"axis": axis}),
        OnnxNode(node.type, (matrix,), (done,), {"axis": -1}),
        OnnxNode("Reshape", (done, shape), node.outputs),
    )


def _each_alone(node: OnnxNode, _opset: int, _integers: _Integers) -> Sequence[OnnxNode] | None:
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
    node: OnnxNode, opset: int, _integers: _Integers
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


def _keep_resize(node: OnnxNode, opset: int, _integers: _Integers) -> Sequence[OnnxNode] | None:
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
    """Name a part of the image, which means nothing here, but PyTorch has none."""
    if any(node.inputs[1:2]):
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


def _is_old_resizing(node: OnnxNode, opset: int) -> bool:
    return opset < 11 and node.text("mode", "nearest") in ("linear", "bilinear")


def _resize_by_products(
    node: OnnxNode, _opset: int, sizes: NodeSizes
) -> Sequence[OnnxNode] | None:
    """Before opset 11 the first elements lie on each other, in PyTorch the middles of borders.

    Neither has words for the other, so weights of the elements take the place of the node.
    """
    old, new = _known(sizes.inputs[0]), _known(sizes.outputs[0])
    if old is None or new is None or len(old) > 4 or old[:2] != new[:2] or 0 in old:
        return None
    if any(one * other > _MOST_WRITTEN for one, other in zip(old[2:], new[2:], strict=True)):
        return None
    result = node.outputs[0]
    across, down, wide = (f"{result}/{word}" for word in ("across", "down", "wide"))
    last = _resizing_weights(old[-1], new[-1])
    if len(old) == 3:
        return (
            constant_node(across, last.T.copy()),
            OnnxNode("MatMul", (node.inputs[0], across), (result,)),
        )
    return (
        constant_node(across, last.T.copy()),
        OnnxNode("MatMul", (node.inputs[0], across), (wide,)),
        constant_node(down, _resizing_weights(old[2], new[2])),
        OnnxNode("MatMul", (down, wide), (result,)),
    )


def _resizing_weights(old: int, new: int) -> Array:
    """Return a row for each new element, with the weights of the old ones."""
    places = np.minimum(np.arange(new) * (old / new), old - 1)
    below = places.astype(int)
    weights = np.zeros((new, old))
    np.add.at(weights, (np.arange(new), below), 1 - (places - below))
    np.add.at(weights, (np.arange(new), np.minimum(below + 1, old - 1)), places - below)
    return weights.astype("<f4")


def _write_slice(node: OnnxNode, opset: int, integers: _Integers) -> Sequence[OnnxNode] | None:
    """Pnnx reads bounds as integers of 32 bits, and removes slices backwards."""
    if opset < 10:
        return _bound_attributes(node)
    known = integers()
    bounds = [known.get(name, ()) for name in node.inputs[1:3]]
    nearer = [tuple(map(_nearer, each)) for each in bounds]
    if backwards := _slice_backwards(node, known, nearer):
        return backwards
    inputs = list(node.inputs)
    made: list[OnnxNode] = []
    for place, (old, new) in enumerate(zip(bounds, nearer, strict=True), 1):
        if new != old:
            inputs[place] = f"{node.outputs[0]}/bounds {place}"
            made.append(constant_node(inputs[place], np.array(new)))
    return (*made, OnnxNode(node.type, tuple(inputs), node.outputs)) if made else None


def _bound_attributes(node: OnnxNode) -> Sequence[OnnxNode] | None:
    """Before opset 10 the bounds are attributes."""
    bounds = {name: node.integers(name) or () for name in ("starts", "ends")}
    nearer = {name: tuple(map(_nearer, each)) for name, each in bounds.items()}
    if nearer == bounds:
        return None
    attributes = {**node.attributes, **nearer}
    return (OnnxNode(node.type, node.inputs, node.outputs, attributes),)


def _nearer(bound: int) -> int:
    """Return a bound that pnnx reads right; it knows the very last ones."""
    if abs(bound) >= _VERY_LAST:
        return bound
    return max(-_LAST, min(bound, _LAST))


def _slice_backwards(
    node: OnnxNode, known: Mapping[str, tuple[int, ...]], bounds: Sequence[tuple[int, ...]]
) -> Sequence[OnnxNode] | None:
    """Pnnx removes a slice that keeps the sizes, also if it turns a dimension around.

    So the dimension gets one element more before. To gather by indices backwards would be
    simpler, but pnnx takes that for a selection of one index where another slice follows.
    """
    if len(node.inputs) < 5:
        return None
    starts, ends = bounds
    steps = known.get(node.inputs[4], ())
    axes = known.get(node.inputs[3], ()) if node.inputs[3] else tuple(range(len(starts)))
    is_known = len(starts) == len(ends) == len(steps) == len(axes)
    if not is_known or -1 not in steps:
        return None
    result = node.outputs[0]
    value = node.inputs[0]
    made: list[OnnxNode] = []
    for axis in (axis for axis, step in zip(axes, steps, strict=True) if step == -1):
        first, longer = f"{result}/first {axis}", f"{result}/longer {axis}"
        made += _slice_constants(value, first, ((0,), (1,), (axis,), (1,)))
        made.append(OnnxNode("Concat", (value, first), (longer,), {"axis": axis}))
        value = longer
    ranges = [
        _in_longer(start, end) if step == -1 else (start, end)
        for start, end, step in zip(starts, ends, steps, strict=True)
    ]
    begins, stops = zip(*ranges, strict=True)
    return (*made, *_slice_constants(value, result, (begins, stops, axes, steps)))


def _in_longer(start: int, end: int) -> tuple[int, int]:
    """Return where a slice backwards is, if the dimension has one element more at its end."""
    begin = -2 if start >= _LAST else start - 1 if -_LAST < start < 0 else start
    return begin, end - 1 if -_LAST < end < 0 else end


def _slice_constants(
    value: str, result: str, numbers: Sequence[Sequence[int]]
) -> Sequence[OnnxNode]:
    names = [f"{result}/{word}" for word in ("starts", "ends", "axes", "steps")]
    constants = [
        constant_node(name, np.array(each)) for name, each in zip(names, numbers, strict=True)
    ]
    return (*constants, OnnxNode("Slice", (value, *names), (result,)))


def _name_all(node: OnnxNode, _opset: int, _integers: _Integers) -> Sequence[OnnxNode] | None:
    """Pnnx forgets outputs that nobody uses, and takes the next for them."""
    if all(node.outputs):
        return None
    outputs = tuple(
        name or f"{node.outputs[0]}/{place}" for place, name in enumerate(node.outputs)
    )
    return (OnnxNode(node.type, node.inputs, outputs, node.attributes),)


def _is_same(node: OnnxNode) -> bool:
    return node.text("auto_pad", "NOTSET").startswith("SAME")


def _is_padded_by_size(node: OnnxNode, _opset: int) -> bool:
    return _is_same(node)


def _pad_explicitly(node: OnnxNode, _opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
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
    image = _known(first[2:] if first else None)
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
    kernel = node.integers("kernel_shape") or _known(weight[2:] if weight else None)
    if kernel is None:
        return None
    dilations = node.integers("dilations") or (1,) * len(kernel)
    if len(dilations) != len(kernel):
        return None
    return [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]


def _known(sizes: Sizes | None) -> tuple[int, ...] | None:
    """Return sizes of which none is open, or larger than what pnnx counts with."""
    if sizes is None:
        return None
    known = tuple(each for each in sizes if each is not None and 0 <= each <= _LAST)
    return known if len(known) == len(sizes) else None


def _is_a_pooling_to_write(node: OnnxNode, _opset: int) -> bool:
    return _is_same(node) or len(node.outputs) > 1 or _is_uneven(node)


def _is_uneven(node: OnnxNode) -> bool:
    pads = node.integers("pads") or ()
    return pads[: len(pads) // 2] != pads[len(pads) // 2 :]


def _pool(node: OnnxNode, opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
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
    shape = _known(sizes.inputs[0])
    if shape is None or math.prod(shape[:2]) > _MOST_WRITTEN:
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


def _has_output_shape(node: OnnxNode, _opset: int) -> bool:
    return node.integers("output_shape") is not None and not _is_same(node)


def _pad_transposed(node: OnnxNode, _opset: int, sizes: NodeSizes) -> Sequence[OnnxNode] | None:
    """Pnnx does not know ``output_shape``."""
    first, wanted = sizes.inputs[0], node.integers("output_shape") or ()
    image, window = _known(first[2:] if first else None), _window_of(node, sizes)
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
    shape, block = _known(sizes.inputs[0]), node.integer("blocksize", 1)
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

AT_ONCE: Final[
    Mapping[str, Callable[[OnnxNode, int, _Integers], Sequence[OnnxNode] | None]]
] = {
    "Max": _each_alone,
    "Min": _each_alone,
    "Resize": _keep_resize,
    "Slice": _write_slice,
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
    "Conv": _BySizes(_is_padded_by_size, _pad_explicitly),
    "AveragePool": _BySizes(_is_padded_by_size, _pad_explicitly),
    "MaxPool": _BySizes(_is_a_pooling_to_write, _pool),
    "ConvTranspose": _BySizes(_has_output_shape, _pad_transposed),
    "PRelu": _BySizes(_always, _slope_by_last),
    **dict.fromkeys(("Resize", "Upsample"), _BySizes(_is_old_resizing, _resize_by_products)),
    "SpaceToDepth": _BySizes(_always, _blocks_first),
}
"""The same for nodes of which the sizes must be known."""
