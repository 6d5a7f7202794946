"""Lowerings of operators that move elements, for use inside subgraphs.

NumPy computes single ones: it returns views where it can, and copies as fast as memory allows.
Between fused operators they must not end the subgraph.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.backends.lowering import LoweringError, LoweringTable, Operand
from engine.layers.arguments import as_int, as_ints, axis_of
from engine.layers.flip import roll
from engine.layers.permute import permute, transpose
from engine.layers.reshape import (
    flatten,
    flatten_module,
    reshape,
    reshape_as,
    squeeze,
    unflatten,
    unflatten_module,
    unsqueeze,
)
from engine.layers.slicing import index_of_slice, slice_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.backends.subgraph import Result, Subgraph

__all__ = ["MOVE_LOWERINGS"]

_END: Final = (1 << 63) - 1
_LONG_RUN: Final = 16  # minimum elements of a separate part in a list
_MOST_PLACES: Final = 1 << 20

MOVE_LOWERINGS: Final[LoweringTable[Subgraph, Result]] = LoweringTable()


@MOVE_LOWERINGS.register(
    reshape,
    reshape_as,
    flatten,
    flatten_module,
    unflatten,
    unflatten_module,
    squeeze,
    unsqueeze,
)
def _reshape(graph: Subgraph, input: Operand, *_: Any, **__: Any) -> Result:
    if graph.natural is None:
        raise LoweringError("an unknown shape")
    read = graph.read(input, integers=True)
    if graph.may_give(read):
        # The reshaped array is the first to return moved elements. A node would copy them,
        # because ONNX Runtime cannot compute into another value's memory.
        return read, graph.natural
    return graph.node("Reshape", read, graph.integers(*graph.natural), allowzero=1)


@MOVE_LOWERINGS.register(permute)
def _permute(graph: Subgraph, input: Operand, dims: Any) -> str:
    order = [axis_of(dim, len(input.shape)) for dim in as_ints(dims, "dims")]
    return graph.node("Transpose", graph.read(input, integers=True), perm=order)


@MOVE_LOWERINGS.register(transpose)
def _transpose(graph: Subgraph, input: Operand, dim0: Any, dim1: Any) -> str:
    order = list(range(len(input.shape)))
    first, second = (axis_of(as_int(dim, "dim"), len(order)) for dim in (dim0, dim1))
    order[first], order[second] = order[second], order[first]
    return graph.node("Transpose", graph.read(input, integers=True), perm=order)


@MOVE_LOWERINGS.register(roll)
def _roll(graph: Subgraph, input: Operand, shifts: Any, dims: Any = None) -> Result:
    axes = [axis_of(dim, len(input.shape)) for dim in as_ints(dims, "dims")]
    distances = as_ints(shifts, "shifts")
    if not axes or len(axes) != len(distances):
        raise LoweringError("no dims")
    first, last = min(axes), max(axes) + 1
    rolled, runs = input.shape[first:last], math.prod(input.shape[last:])
    count = math.prod(rolled)
    if runs >= _LONG_RUN and count <= _MOST_PLACES:
        # Elements of the axes after these move together, each once.
        within = [axis - first for axis in axes]
        places = np.roll(np.arange(count).reshape(rolled), distances, within)
        read = graph.read(input, (math.prod(input.shape[:first]), count, runs), integers=True)
        index = graph.constant(places.reshape(-1))
        return graph.node("Gather", read, index, axis=1), input.shape
    result = graph.read(input, integers=True)
    for axis, distance in zip(axes, distances, strict=True):
        cut = -distance % input.shape[axis]
        tail, head = (
            _slice(graph, result, {axis: (begin, end, 1)})
            for begin, end in ((cut, _END), (0, cut))
        )
        result = graph.node("Concat", tail, head, axis=axis) if cut else result
    return result


@MOVE_LOWERINGS.register(slice_tensor)
def _slice_tensor(graph: Subgraph, input: Operand, *where: Any, **named: Any) -> str:
    index = index_of_slice(input.shape, *where, **named)
    ranges = {
        axis: (part.start or 0, _END if part.stop is None else part.stop, part.step)
        for axis, part in enumerate(index)
        if isinstance(part, slice) and part != slice(None)
    }
    if any(isinstance(part, int) for part in index) or not ranges:
        raise LoweringError("an index that removes an axis, or an empty result")
    if any(step < 1 for _, _, step in ranges.values()):
        raise LoweringError("backwards")
    return _slice(graph, graph.read(input, integers=True), ranges)


def _slice(graph: Subgraph, name: str, ranges: Mapping[int, tuple[int, int, int]]) -> str:
    """Return a slice of a value, by start, end and step along some axes."""
    firsts, ends, steps = zip(*ranges.values(), strict=True)
    lists = (graph.integers(*numbers) for numbers in (firsts, ends, ranges, steps))
    return graph.node("Slice", name, *lists)
