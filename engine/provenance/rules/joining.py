"""Elements that are added, or otherwise combined, at places that indices name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.layers.indexing import (
    index_add,
    index_put,
    scatter_add,
    scatter_reduce,
    to_numpy_index,
)
from engine.provenance.arithmetic import add_up, format_index, make_factor, multiply
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Breakdown, Interval, join_boxes
from engine.provenance.rules.moving import explain_move, locate_move
from engine.provenance.rules.pooling import choose
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = [
    "JOINING",
    "Joined",
    "explain_joined_elements",
    "explain_put",
    "locate_joined_elements",
    "locate_put",
    "put_places",
    "read_joined",
]

JOINING = (index_add, scatter_add, scatter_reduce)


class Joined(NamedTuple):
    """The arguments of an operator that combines elements.

    Attributes
    ----------
    input, numbers, source : Operand
    axis : int
    is_by_slice : bool
        Whether one index serves a whole slice of the source, instead of one element.
    method : str
        ``sum``, ``mean``, ``amax`` or ``amin``.
    factor : float
        Of the source.
    keeps : bool
        Whether the old element counts.
    """

    input: Operand
    numbers: Operand
    source: Operand
    axis: int
    is_by_slice: bool
    method: str
    factor: float
    keeps: bool

    def places(self, index: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Return the indices of the elements of the source that come to a place."""
        numbers = np.atleast_1d(self.numbers.value)
        lead = index or (0,)
        if not self.is_by_slice:
            around: Any = (*lead[: self.axis], slice(None), *lead[self.axis + 1 :])
            sizes = numbers.shape
            if any(at >= sizes[axis] for axis, at in enumerate(lead) if axis != self.axis):
                return np.zeros((0, len(index)), np.int64)
            numbers = numbers[around]
        size = self.input.shape[self.axis] if self.input.ndim else 1
        found = np.flatnonzero(numbers % size == lead[self.axis])
        rows = np.tile(np.array(lead, np.int64), (len(found), 1))
        rows[:, self.axis] = found
        return rows[:, : len(index)]


def read_joined(call: Call) -> Joined:
    """Return the arguments; those of all operators alike."""
    given, dim = call.arguments, call.arguments["dim"]
    by_slice = call.layer_code is index_add
    alpha = given.get("alpha", 1)
    if not isinstance(dim, int) or not isinstance(alpha, (int, float)):
        raise NoBreakdownError("dim or alpha is computed")
    input = call.array("input")
    method = str(given.get("reduce", "sum"))
    if method not in {"sum", "mean", "amax", "amin"}:
        raise NoBreakdownError(f"elements that are joined by {method} have no breakdown")
    return Joined(
        input, call.array("index"), call.array("source" if by_slice else "src"),
        dim % max(1, input.ndim), by_slice, method, float(alpha),
        bool(given.get("include_self", True)),
    )  # fmt: skip


@locates(*JOINING)
def locate_joined_elements(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the old elements, all indices, and the source along the dimension."""
    found = read_joined(call)
    regions: dict[str, Box] = {found.numbers.name: found.numbers.whole}
    source: Box = found.source.whole
    if found.source.ndim == len(box):
        around = [
            Interval.whole(size) if axis == found.axis
            else Interval(min(each.start, size), min(each.stop, size))
            for axis, (each, size) in enumerate(zip(box, found.source.shape, strict=True))
        ]  # fmt: skip
        source = tuple(around)
    for operand, region in ((found.input, box), (found.source, source)):
        regions[operand.name] = join_boxes(regions.get(operand.name), region)
    return regions


@explains(*JOINING)
def explain_joined_elements(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Combine the old element with those that the indices bring here."""
    found = read_joined(call)
    at = found.places(index)
    counts = found.keeps or not len(at)  # a place that no index names keeps its element
    old = take(found.input, "input", np.array([index], np.int64).reshape(1, -1))
    new = take(found.source, "source", at)
    place = format_index(index)
    begin = f"{found.input.name}{place}" if counts else ""
    brought = f"the {len(at)} elements of {found.source.name} whose index is here"
    if found.method in {"amax", "amin"}:
        return _choose(found, index, at, is_kept=counts)
    kept = float(old.values[0]) if counts else 0.0
    divisor = 1.0
    if found.method == "mean":
        if call.dtype.kind != "f":
            raise NoBreakdownError("a mean of integers is rounded")
        divisor = float(max(1, len(at) + found.keeps))
    factor = found.factor / divisor
    factors = [new] if factor == 1 else [new, make_factor("factor", np.full(len(at), factor))]
    terms = multiply(factors, (len(at),), ("element",))
    scale = "" if factor == 1 else f"{factor:g} · "
    formula = f"y{place} = {f'{begin} + ' if begin else ''}{scale}Σ {brought}"
    offset = kept / divisor if counts else None
    return add_up(call, formula, terms, offset, begin)


def _choose(
    found: Joined, index: tuple[int, ...], at: npt.NDArray[np.int64], *, is_kept: bool
) -> Breakdown:
    """Return the largest or smallest of the elements of the source, or the old one."""
    new = take(found.source, "source", at)
    values = new.values
    best = np.argmax if found.method == "amax" else np.argmin
    old = take(found.input, "input", np.array([index], np.int64).reshape(1, -1))
    both = np.concatenate([old.values if is_kept else values[:0], values])
    chosen = int(best(both))
    if is_kept and chosen == 0:
        return choose(index, multiply([old], (1,), ("element",)), old.name, 0)
    terms = multiply([new], (math.prod(values.shape),), ("element",))
    return choose(index, terms, new.name, chosen - is_kept)


def put_places(call: Call) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where ``index_put`` adds its values.

    Returns
    -------
    ndarray of int64
        The flat indices of the places.
    ndarray of int64
        The flat index of the value that comes to each of them.
    """
    input, values = call.array("input"), call.array("values")
    given = call.arguments["indices"]
    members = given if isinstance(given, tuple) else (given,)
    lists = tuple([each.value if isinstance(each, Operand) else each for each in members])
    numbers = np.arange(math.prod(input.shape)).reshape(input.shape)
    places = numbers[to_numpy_index(lists)]
    sources = np.arange(math.prod(values.shape)).reshape(values.shape)
    return places.reshape(-1), np.broadcast_to(sources, places.shape).reshape(-1)


@explains(index_put)
def explain_put(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Add the values that the indices bring here to the old element, or return the last."""
    if not call.arguments["accumulate"]:
        return explain_move(call, index)
    input, values = call.array("input"), call.array("values")
    places, sources = put_places(call)
    here = sources[places == np.ravel_multi_index(index, input.shape)]
    new = take(values, "values", np.stack(np.unravel_index(here, values.shape), axis=1))
    old = take(input, "input", np.array([index], np.int64))
    place = format_index(index)
    formula = (
        f"y{place} = {old.name}{place} + Σ the {len(here)} elements of {new.name} whose index "
        "is here"
    )
    terms = multiply([new], (len(here),), ("element",))
    return add_up(call, formula, terms, float(old.values[0]), f"{old.name}{place}")


@locates(index_put)
def locate_put(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the old elements, and all indices and values."""
    if not call.arguments["accumulate"]:
        return locate_move(call, box)
    found: dict[str, Box] = {each.name: each.whole for each in call.arrays}
    input = call.array("input")
    if sum(each.name == input.name for each in call.arrays) == 1:
        found[input.name] = box
    return found
