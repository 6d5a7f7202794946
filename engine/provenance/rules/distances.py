"""Distances and angles between vectors, and cross products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers.arguments import axis_of
from engine.layers.distance import cdist, cosine_similarity, pairwise_distance
from engine.layers.matrices import cross, linalg_cross
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import NoBreakdownError, Operand, rounding, take
from engine.provenance.records import Breakdown, Factor, Interval, Step, Terms, join_boxes
from engine.provenance.rules.reduction import norm_of
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = [
    "explain_cosine",
    "explain_cross",
    "explain_distance",
    "locate_distance",
    "vector_axis",
]

_NAMES: Final[dict[Any, tuple[str, str]]] = {
    **dict.fromkeys((cosine_similarity, pairwise_distance, cdist), ("x1", "x2")),
    **dict.fromkeys((cross, linalg_cross), ("input", "other")),
}


def _pair(call: Call) -> tuple[Operand, Operand]:
    one, two = (call.array(name) for name in _NAMES[call.layer_code])
    return one, two


def vector_axis(call: Call) -> int:
    """Return the dimension of the vectors, counted from the last, which is -1."""
    one, two = _pair(call)
    ndim = max(one.ndim, two.ndim)
    if call.layer_code in {cosine_similarity, linalg_cross}:
        return axis_of(call.arguments["dim"], ndim) - ndim
    if call.layer_code is cross:
        dim = call.arguments["dim"]
        shape = np.broadcast_shapes(one.shape, two.shape)
        return (shape.index(3) if dim is None else axis_of(dim, ndim)) - ndim
    return -1


def _items(
    call: Call, operand: Operand, index: Sequence[Any], whole: Any, *, second: bool
) -> list[Any]:
    """Return an item for each dimension of an operand: of a vector the whole, else its own."""
    items = list(index)
    code, axis = call.layer_code, vector_axis(call)
    if code is cdist:
        items = [*index[:-2], index[-1 if second else -2], whole]
    elif code is pairwise_distance and call.arguments["keepdim"]:
        items[-1] = whole
    elif code in {cross, linalg_cross}:
        items[axis] = whole
    else:
        items.insert(len(items) + axis + 1, whole)
    own = items[len(items) - operand.ndim :]
    narrow = Interval(0, 1) if isinstance(whole, Interval) else [0]
    return [each if size > 1 else narrow for each, size in zip(own, operand.shape, strict=True)]


@locates(cosine_similarity, pairwise_distance, cdist, cross, linalg_cross)
def locate_distance(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the whole vectors."""
    one, two = _pair(call)
    size = max(each.shape[vector_axis(call)] for each in (one, two))
    found: dict[str, Box] = {}
    for operand in (one, two):
        region = tuple(_items(call, operand, box, Interval.whole(size), second=operand is two))
        found[operand.name] = join_boxes(found.get(operand.name), region)
    return found


def _vectors(call: Call, index: tuple[int, ...]) -> tuple[Factor, Factor]:
    one, two = _pair(call)
    size = max(each.shape[vector_axis(call)] for each in (one, two))
    found = []
    for operand in (one, two):
        places = [[at] for at in index]
        rows = _items(call, operand, places, range(size), second=operand is two)
        found.append(take(operand, operand.name, grid(*rows)))
    if len(found[0].values) != len(found[1].values):
        raise NoBreakdownError("vectors of different lengths have no breakdown")
    return found[0], found[1]


@explains(cosine_similarity)
def explain_cosine(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the products of two vectors, divided by their lengths."""
    one, two = _vectors(call, index)
    eps = float(call.arguments["eps"])
    lengths = [max(float(np.linalg.norm(each.values)), eps) for each in (one, two)]
    share = 1 / (lengths[0] * lengths[1])
    count = len(one.values)
    factor = make_factor("1 / lengths", np.full(count, share))
    formula = (
        f"y{format_index(index)} = Σ {one.name} · {two.name} / (‖{one.name}‖ · ‖{two.name}‖)"
    )
    terms = multiply([one, two, factor], (count,), ("term",))
    steps = tuple([Step(f"length of {each.name}", length)
                   for each, length in zip((one, two), lengths, strict=True)])  # fmt: skip
    return add_up(call, formula, terms, steps=steps)


@explains(pairwise_distance, cdist)
def explain_distance(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum powers of the differences of two vectors, and take the root."""
    one, two = _vectors(call, index)
    eps = float(call.arguments.get("eps", 0.0))
    values = one.values - two.values + eps
    shown = make_factor(f"{one.name} − {two.name}", values)
    found = norm_of(call, index, shown, float(call.arguments["p"]), (len(values),), ("term",))
    terms = Terms((one, two, *found.terms.factors[1:]), found.terms.products,
                  found.terms.shape, found.terms.axes)  # fmt: skip
    # Differences of numbers that are alike lose digits.
    size = float(np.abs(one.values).max(initial=0) + np.abs(two.values).max(initial=0))
    more = 16 * rounding(call.dtype) * size * max(1.0, len(values)) ** 0.5
    return Breakdown(
        found.kind, found.formula, terms, found.total, found.error + more, chosen=found.chosen,
        steps=found.steps,
    )  # fmt: skip


@explains(cross, linalg_cross)
def explain_cross(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Subtract one product from another."""
    one, two = _vectors(call, index)
    at = index[vector_axis(call)]
    first, second = (at + 1) % 3, (at + 2) % 3
    picked = [np.array([first, second]), np.array([second, first])]
    left, right = (
        Factor(each.name, each.is_operand, each.indices[rows], each.values[rows])
        for each, rows in zip((one, two), picked, strict=True)
    )
    sign = make_factor("sign", np.array([1.0, -1.0]))
    formula = (
        f"y{format_index(index)} = {one.name}[{first}] · {two.name}[{second}] − "
        f"{one.name}[{second}] · {two.name}[{first}]"
    )
    return add_up(call, formula, multiply([left, right, sign], (2,), ("term",)))
