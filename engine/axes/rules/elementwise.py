"""Operators that compute each element from the elements at the same position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.factors import Rank
from engine.axes.layout import SPATIAL, Kind
from engine.axes.registry import rule

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dim, Dims, Factors
    from engine.axes.layout import Size

__all__ = ["broadcast", "keep"]


def keep(call: Call) -> Results:
    """Keep the dimensions of the first input with as many dimensions as the result."""
    shape = call.shape
    if shape is None:
        return []
    sizes = call.factors.extent
    for dims in call.inputs:
        if dims is not None and tuple([sizes(dim) for dim in dims]) == shape:
            return [dims]
    return [None]


def broadcast(call: Call) -> Results:
    """Unify the dimensions of all inputs, aligned at the last dimension."""
    shape = call.shape
    given = [dims for dims in call.inputs if dims is not None]
    if shape is None or not given:
        return []
    found: list[Dim] = []
    is_outer = not any(_is_whole(call, dims) for dims in given)
    for place in range(-len(shape), 0):
        dims = [each[place] for each in given if len(each) >= -place]
        found.append(_broadcast_dim(call, dims, place, is_outer=is_outer))
    return [tuple(found)]


def _is_whole(call: Call, dims: Dims) -> bool:
    """Whether an input has every position of the result."""
    shape = call.shape or ()
    sizes = [call.factors.extent(dim) for dim in dims]
    ahead = len(shape) - len(dims)
    return all(size == 1 for size in shape[:ahead]) and sizes == [*shape[ahead:]]


def _broadcast_dim(call: Call, dims: list[Dim], place: int, *, is_outer: bool) -> Dim:
    """Return one dimension of a result.

    A mean that is taken from all positions has their meaning, unlike one of other positions,
    such as the squares that are summed of a vector for its distances to others. Where no input
    has all positions, as in sums of one number for each row and one for each column, nothing
    follows.
    """
    factors, size = call.factors, (call.shape or ())[place]
    same = [dim for dim in dims if factors.extent(dim) == size]
    # Known structure first: it decides how the others are split.
    same.sort(key=len, reverse=True)
    found = same[0] if same else (factors.make(size),)
    for dim in same[1:]:
        factors.unify(found, dim)
    if size != 1 and len(found) == 1 and not is_outer:
        for dim in dims:
            is_single = factors.extent(dim) == 1 and len(dim) == 1
            if is_single and _is_mean(factors, dim[0], size):
                factors.relate(found[0], dim[0])
    return found


def _is_mean(factors: Factors, factor: int, size: Size) -> bool:
    """Whether a single position may stand for those of a result, whose meaning it then has.

    A forecast is as long as it will, but has the mean of the times that were read.
    """
    return factors.taken.get(factor, size) == size or factors.kind(factor) in SPATIAL


rule("expression", "add", "sub", "mul", "div", "pow", "where", "maximum", "minimum",
     "maskedfill", "atan2", "remainder", "floordivide", "eq", "ne", "lt", "le", "gt", "ge",
     "logicaland", "logicalor", "fmod", "addcmul", "addcdiv", "lerp", "bitwiseand",
     "prelu", "rsub", "hypot", "complex", "polar")(broadcast)  # fmt: skip


@rule("layernorm", "rmsnorm")
def normalize_last(call: Call) -> Results:
    """Normalise the features of each position."""
    dims = call.first
    shape = call.integers("normalized_shape")
    if dims and (shape is None or len(shape) == 1):
        _claim_features(call, dims)
    return keep(call)


@rule("linear")
def linear(call: Call) -> Results:
    """Replace the features of each position."""
    dims, shape = call.first, call.shape
    if dims is None or not dims or shape is None:
        return []
    _claim_features(call, dims)
    made = (call.factors.make(shape[-1]),) if shape else ()
    if made and len(dims[-1]) == 1 and call.factors.kind(dims[-1][0]) is Kind.HEAD:
        call.factors.relate(made[0], dims[-1][0])  # heads are mixed, as talking heads do
    elif made and shape[-1] != 1:  # a single number may be broadcast along anything
        call.factors.claim(made, Kind.FEATURE, Rank.EXPECTED)
    bias = call.input("bias", 2)
    if made and bias is not None and len(bias) == 1:
        call.factors.unify(bias[0], made)
    return [call.fit((*dims[:-1], made))]


def _claim_features(call: Call, dims: Dims) -> None:
    call.factors.claim(dims[-1], Kind.FEATURE, Rank.EXPECTED)
    if len(dims) == 3:
        call.claim(dims[:2], (Kind.BATCH, Kind.TOKEN), Rank.GUESSED)
    elif len(dims) == 2 and call.factors.find(dims[0][0]) not in call.factors.mixed:
        call.claim(dims[:1], (Kind.BATCH,), Rank.GUESSED)


@rule("softmax", "logsoftmax", "softmin")
def softmax(call: Call) -> Results:
    """Normalise over positions or classes."""
    return keep(call)
