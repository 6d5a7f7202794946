"""Slices: bounds beyond 32 bits, and dimensions that are turned around."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.conversion.node_meanings.sizes import LAST
from engine.conversion.onnx_nodes import OnnxNode, constant_node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.conversion.node_meanings.sizes import Integers

__all__ = ["write_slice"]

_VERY_LAST: Final = 2**63 - 1


def write_slice(node: OnnxNode, opset: int, integers: Integers) -> Sequence[OnnxNode] | None:
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
    return max(-LAST, min(bound, LAST))


def _slice_backwards(
    node: OnnxNode, known: Mapping[str, tuple[int, ...]], bounds: Sequence[tuple[int, ...]]
) -> Sequence[OnnxNode] | None:
    """Pnnx removes a slice that keeps the sizes, also if it turns a dimension around.

    So the part that it takes is cut out forwards, gets one element more, and is turned around
    without that. To gather by indices backwards would be simpler, but pnnx takes that for a
    selection of one index where another slice follows.
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
    ranges: list[tuple[int, int]] = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step != -1:
            ranges.append((start, end))
            continue
        part, first, longer = (
            f"{result}/{word} {axis}" for word in ("part", "first", "longer")
        )
        made += _slice_constants(value, part, ((_after(end),), (_after(start),), (axis,), (1,)))
        made += _slice_constants(part, first, ((0,), (1,), (axis,), (1,)))
        made.append(OnnxNode("Concat", (part, first), (longer,), {"axis": axis}))
        value = longer
        ranges.append((-2, -LAST))
    begins, stops = zip(*ranges, strict=True)
    return (*made, *_slice_constants(value, result, (begins, stops, axes, steps)))


def _after(bound: int) -> int:
    """Return the bound behind one element more, within what pnnx reads."""
    return LAST if bound == -1 or bound >= LAST else max(bound + 1, -LAST)


def _slice_constants(
    value: str, result: str, numbers: Sequence[Sequence[int]]
) -> Sequence[OnnxNode]:
    names = [f"{result}/{word}" for word in ("starts", "ends", "axes", "steps")]
    constants = [
        constant_node(name, np.array(each)) for name, each in zip(names, numbers, strict=True)
    ]
    return (*constants, OnnxNode("Slice", (value, *names), (result,)))
