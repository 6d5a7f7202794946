"""Operators that order, split and merge dimensions without touching a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule
from engine.axes.rules.elementwise import keep

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dim, Dims
    from engine.axes.layout import Size

__all__ = ["reshape"]


@rule("permute")
def permute(call: Call) -> Results:
    """Order dimensions."""
    dims = call.first
    if dims is None:
        return []
    order = call.places("dims", len(dims)) or call.places("dim", len(dims))
    if order is None or sorted(order) != list(range(len(dims))):
        return []
    return [call.fit([dims[place] for place in order])]


@rule("transpose", "swapaxes", "swapdims")
def transpose(call: Call) -> Results:
    """Swap two dimensions."""
    dims = call.first
    if dims is None or not dims:
        return []
    one = call.place("dim0", len(dims), call.integer("axis0", 0))
    other = call.place("dim1", len(dims), call.integer("axis1", 0))
    if one is None or other is None:
        return []
    found = list(dims)
    found[one], found[other] = found[other], found[one]
    return [call.fit(found)]


@rule("t", "numpyt", "mt", "adjoint")
def transpose_matrix(call: Call) -> Results:
    """Swap the last two dimensions."""
    dims = call.first
    if dims is None or len(dims) < 2:
        return []
    return [call.fit((*dims[:-2], dims[-1], dims[-2]))]


@rule("reshape", "view", "flatten", "unflatten", "reshapeas", "viewas", "squeeze",
      "unsqueeze")  # fmt: skip
def reshape(call: Call) -> Results:
    """Split and merge dimensions."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None:
        return []
    if len(shape) > len(dims) and call.operator.type.endswith("unsqueeze"):
        place = call.place("dim", len(shape))
        if place is not None:
            made = call.factors.make(1)
            return [call.fit((*dims[:place], (made,), *dims[place:]))]
    if call.operator.type.endswith(".squeeze") and call.integers("dim") is not None:
        gone = call.places("dim", len(dims)) or ()
        return [call.fit([dim for place, dim in enumerate(dims) if place not in gone])]
    skewed = _skew(call, dims, shape)
    if skewed is not None:
        return [skewed]
    found = tuple(map(call.factors.unfold, call.factors.regroup(dims, shape)))
    _claim_heads_of_samples(call, found)
    return [found]


def _skew(call: Call, dims: Dims, shape: tuple[Size, ...]) -> Dims | None:
    """Return scores by distance, where a row of padding moves rows of scores by key.

    So does Longformer, which attends inside a band. None for other reshapes.
    """
    producer = call.operator.inputs[0].producer
    sizes = [call.factors.extent(dim) for dim in dims]
    if (
        len(dims) < 3
        or producer is None
        or not producer.type.endswith("F.pad")
        or producer.params.get("pad") != (0, 0, 0, 1)
        or [*shape] != [*sizes[:-2], sizes[-1], sizes[-2]]
    ):
        return None
    rows, distances = (call.factors.make(size) for size in shape[-2:])
    call.factors.relate(rows, dims[-2][0])
    call.factors.claim((distances,), Kind.DISTANCE, Rank.STATED)
    return (*dims[:-2], (rows,), (distances,))


def _claim_heads_of_samples(call: Call, dims: Dims) -> None:
    """Name parts of features that are treated as further samples, beside the other parts."""
    factors = call.factors
    if len(dims) != 3 or len(dims[0]) < 2:
        return
    outer, inner = dims[0][-1], dims[2][-1]
    if factors.sizes[outer] == 1 or factors.kind(factors.origin(outer)) is not Kind.FEATURE:
        return
    if factors.wholes(outer) and factors.origin(outer) == factors.origin(inner) != inner:
        factors.claim((outer,), Kind.HEAD, Rank.DERIVED)


@rule("expand", "expandas", "broadcastto")
def expand(call: Call) -> Results:
    """Stretch dimensions of size 1."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None or len(shape) < len(dims):
        return []
    ahead = call.factors.make_dims(shape[: len(shape) - len(dims)])
    return [call.fit((*ahead, *dims))]


@rule("repeat", "tile", "repeatinterleave")
def repeat(call: Call) -> Results:
    """Repeat along dimensions."""
    return expand(call)


@rule(
    "pad",
    "flip",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "logcumsumexp",
    "sort",
    "argsort",
    "clone",
    "to",
    "contiguous",
)
def keep_meaning(call: Call) -> Results:
    """Keep the meaning of each dimension; padding changes sizes."""
    dims = call.first
    if dims is None:
        return []
    return [call.fit(dims, place) for place in range(len(call.shapes))]


@rule("roll")
def roll(call: Call) -> Results:
    """Roll dimensions; rolling back gives the first positions again."""
    dims, shifts = call.first, call.integers("shifts")
    places = call.places("dims", len(dims)) if dims is not None else None
    if dims is None or shifts is None or places is None or len(shifts) != len(places):
        return keep(call)
    found: list[Dim] = list(dims)
    for place, shift in zip(places, shifts, strict=True):
        found[place] = call.factors.roll(found[place], shift)
    return [call.fit(found)]
