"""Moves and joins: each element gives its gradient back to where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers.concatenate import cat
from engine.layers.indexing import index_add, index_put, scatter_add, scatter_reduce
from engine.layers.ncnn import shapes as ncnn_shapes
from engine.layers.ncnn.products import Embed
from engine.layers.searching import one_hot
from engine.provenance.call import NoBreakdownError
from engine.provenance.rules.constants import CONSTANTS
from engine.provenance.rules.counting import COUNTS
from engine.provenance.rules.joining import put_places, read_joined
from engine.provenance.rules.moving import joined_members, moved_numbers
from engine.provenance.slopes import accumulate, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.slopes import Gradient
    from engine.values import Array

__all__ = ["give_back"]


def give_back(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each element back what it was moved from."""
    found = {}
    for operand, flat, places in moved_numbers(call):
        sums: Any = np.bincount(
            flat, gradient.reshape(-1)[places], minlength=int(np.prod(operand.shape))
        )
        found[operand.name] = sums.reshape(operand.shape)
    return found


@passes_back(cat, ncnn_shapes.concat)
def _joined(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Cut the gradient at the seams."""
    members, axis = joined_members(call)
    seams = np.cumsum([member.shape[axis] for member in members])[:-1]
    found: dict[str, Gradient] = {}
    for member, part in zip(members, np.split(gradient, seams, axis), strict=True):
        found[member.name] = found.get(member.name, 0.0) + part
    return found


@passes_back(index_put)
def _put(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give the gradient to the old elements, and to the values that are added to them."""
    if not call.arguments["accumulate"]:
        return give_back(call, gradient)
    input, values = call.array("input"), call.array("values")
    places, sources = put_places(call)
    found: dict[str, Gradient] = {input.name: gradient}
    sums: Any = np.bincount(
        sources, gradient.reshape(-1)[places], minlength=int(np.prod(values.shape))
    )
    found[values.name] = found.get(values.name, 0.0) + sums.reshape(values.shape)
    return found


@passes_back(index_add, scatter_add)
def _added(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give the gradient to the old elements, and to those that an index adds to them."""
    given = read_joined(call)
    numbers, axis = np.atleast_1d(given.numbers.value), given.axis
    found: dict[str, Gradient] = {given.input.name: gradient}
    if not given.input.ndim or given.source.ndim != given.input.ndim:
        raise NoBreakdownError("elements that are added to a number have no slope")
    numbers = numbers % given.input.shape[axis]
    if given.is_by_slice:
        part = np.take(gradient, numbers, axis)
    else:
        lead = tuple([slice(size) for size in numbers.shape])
        cut: Any = (*lead[:axis], slice(None), *lead[axis + 1 :])
        part = np.zeros(given.source.shape)
        part[lead] = np.take_along_axis(gradient[cut], numbers, axis)
    source = given.source.name
    found[source] = found.get(source, 0.0) + given.factor * part
    return found


@passes_back(scatter_reduce)
def _combined(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Share the gradient among the elements that are combined, or give it to the greatest."""
    given = read_joined(call)
    if not given.input.ndim or given.source.ndim != given.input.ndim:
        raise NoBreakdownError("elements that are combined to a number have no slope")
    numbers, axis = given.numbers.value % given.input.shape[given.axis], given.axis
    lead = tuple([slice(size) for size in numbers.shape])
    cut: Any = (*lead[:axis], slice(None), *lead[axis + 1 :])
    places: Any = np.indices(numbers.shape, sparse=True)
    places = (*places[:axis], numbers, *places[axis + 1 :])

    def count(new: Array) -> Array:
        found = np.zeros(given.input.shape)
        np.add.at(found[cut], places, new)
        return found

    old, new = wide(given.input), wide(given.source)[lead]
    named = count(np.ones(numbers.shape))
    kept = np.full(old.shape, 1.0) if given.keeps else (named == 0) * 1.0
    came = np.ones(numbers.shape)
    if given.method in {"amax", "amin"}:
        result = scatter_reduce(old, axis, numbers, new, given.method, given.keeps)
        kept, came = kept * (old == result), (new == result[cut][places]) * 1.0
    shares = gradient
    if given.method != "sum":  # elements that are equally great share it
        shares = gradient / np.maximum(kept + count(came), 1)
    part = np.zeros(given.source.shape)
    part[lead] = shares[cut][places] * came
    found: dict[str, Gradient] = {given.input.name: shares * kept}
    accumulate(found, given.source.name, part)
    return found


@passes_back(*CONSTANTS, *COUNTS, one_hot, Embed)
def _constant(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:  # noqa: ARG001 - nothing
    """Return nothing: only sizes go into a constant, and places into an embedding of ncnn."""
    return {}
