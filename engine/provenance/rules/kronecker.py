"""Kronecker products: each element of one tensor, times a copy of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.layers.linear_algebra import kron
from engine.provenance.arithmetic import add_up, format_index, multiply
from engine.provenance.call import Operand, take
from engine.provenance.records import Interval, join_boxes
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown
    from engine.values import Array

__all__ = ["Kronecker", "explain_kronecker", "locate_kronecker", "read_kronecker"]


class Kronecker(NamedTuple):
    """The two tensors, and their shapes with as many dimensions as the result.

    Attributes
    ----------
    arrays : (Operand or ndarray, Operand or ndarray)
    outer, inner : tuple of int
        The shapes; each element of the first has a copy of the second.
    """

    arrays: tuple[Operand | Array, Operand | Array]
    outer: tuple[int, ...]
    inner: tuple[int, ...]


def read_kronecker(call: Call) -> Kronecker:
    """Return the arguments."""
    arrays = call.arguments["input"], call.arguments["other"]
    outer, inner = [(1,) * (len(call.shape) - each.ndim) + each.shape for each in arrays]
    return Kronecker(arrays, outer, inner)


@explains(kron)
def explain_kronecker(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Multiply two elements."""
    found = read_kronecker(call)
    pairs = [divmod(at, size) for at, size in zip(index, found.inner, strict=True)]
    factors = [
        take(each, name, np.array([places[len(index) - each.ndim :]], np.int64).reshape(1, -1))
        for each, name, places in zip(
            found.arrays, ("input", "other"), ([a for a, _ in pairs], [b for _, b in pairs]),
            strict=True,
        )
    ]  # fmt: skip
    formula = f"y{format_index(index)} = {factors[0].name} · {factors[1].name}"
    return add_up(call, formula, multiply(factors, (1,), ("term",)))


@locates(kron)
def locate_kronecker(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the elements whose copies the region meets, and the part of the copies."""
    found = read_kronecker(call)
    outer, inner = [], []
    for each, size in zip(box, found.inner, strict=True):
        first, last = each.start // size, (each.stop - 1) // size
        outer.append(Interval(first, last + 1))
        part = Interval(each.start - first * size, each.stop - first * size)
        inner.append(part if first == last else Interval.whole(size))
    regions: dict[str, Box] = {}
    for array, places in zip(found.arrays, (outer, inner), strict=True):
        if isinstance(array, Operand):
            own = tuple(places[len(places) - array.ndim :])
            regions[array.name] = join_boxes(regions.get(array.name), own)
    return regions
