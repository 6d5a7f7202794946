"""Reductions over dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.registry import rule

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dims

__all__ = ["drop"]


@rule("mean", "sum", "max", "min", "amax", "amin", "prod", "var", "std", "norm", "logsumexp",
      "argmax", "argmin", "any", "all", "median", "topk", "kthvalue", "mode")  # fmt: skip
def reduce(call: Call) -> Results:
    """Reduce dimensions, which are dropped or keep the size 1."""
    dims = call.first
    if dims is None:
        return []
    places = call.places("dim", len(dims))
    if places is None:
        places = call.places("axis", len(dims))
    return [drop(call, dims, places, at) for at in range(len(call.shapes))]


def drop(call: Call, dims: Dims, places: tuple[int, ...] | None, at: int = 0) -> Dims | None:
    """Return the dimensions of an output without the reduced ones, or with size 1 there."""
    shape = call.shapes[at]
    if shape is None:
        return None
    if len(shape) == len(dims):
        return call.fit(dims, at)
    if places is None:
        return None
    return call.fit([dim for place, dim in enumerate(dims) if place not in places], at)
