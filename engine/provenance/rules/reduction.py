"""Reductions: sums, means and extremes along dimensions, and running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers import extremes, norm, reduction, scan
from engine.layers.arguments import axes_of
from engine.layers.ncnn import shapes as ncnn
from engine.provenance.arithmetic import add_up, format_index, grid, multiply
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Interval
from engine.provenance.rules.elementwise import explain_function, locate_elementwise
from engine.provenance.rules.pooling import choose, mean_of
from engine.provenance.table import codes_of, explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown, Factor

__all__ = [
    "MEANS",
    "SUMS",
    "explain_extreme",
    "explain_mean",
    "explain_sum",
    "locate_reduction",
    "reduced_axes",
]

SUMS, MEANS = codes_of("torch.sum"), codes_of("torch.mean")
_EXTREMES = codes_of("torch.amax", "torch.amin")
_OTHERS = codes_of(
    "torch.prod", "torch.nansum", "torch.nanmean", "torch.all", "torch.any", "torch.logsumexp"
)
_BOTH = (extremes.maximum, extremes.minimum)
_SPREADS = (reduction.var, reduction.std, reduction.var_mean, reduction.std_mean)
_ALONG = (
    extremes.argmax, extremes.argmin, extremes.median, extremes.mode, extremes.kthvalue,
    norm.norm, norm.vector_norm, norm.frobenius_norm,
)  # fmt: skip
_SORTS = (extremes.topk, extremes.sort, extremes.argsort)


def reduced_axes(call: Call) -> tuple[int, ...]:
    """Return the dimensions that are reduced."""
    layer, ndim = call.layer, call.array("input").ndim
    if isinstance(layer, ncnn.Reduction):
        return layer.places(ndim)
    dim = call.arguments.get("dim")
    if isinstance(dim, Operand):
        dim = tuple(dim.value.reshape(-1).tolist())
    if call.layer_code in {extremes.mode, extremes.kthvalue} and dim is None:
        dim = -1
    return axes_of(dim, ndim)


def _aligned(call: Call, items: tuple[Any, ...], axes: tuple[int, ...]) -> list[Any]:
    """Return an item for each dimension of the input; None for those that are reduced."""
    ndim = call.array("input").ndim
    if len(axes) == ndim:
        return [None] * ndim  # of all ncnn makes one dimension
    if len(items) == ndim:
        return [None if axis in axes else items[axis] for axis in range(ndim)]
    if len(items) != ndim - len(axes):
        raise NoBreakdownError("the result's dimensions are unclear")
    left = iter(items)
    return [None if axis in axes else next(left) for axis in range(ndim)]


@locates(*SUMS, *MEANS, *_EXTREMES, *_OTHERS, *_SPREADS, *_ALONG, ncnn.Reduction)
def locate_reduction(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the reduced dimensions as a whole."""
    input = call.array("input")
    found = _aligned(call, box, reduced_axes(call))
    whole = input.whole
    return {input.name: tuple([each or whole[axis] for axis, each in enumerate(found)])}


@locates(*_BOTH)
def locate_extreme(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the reduced dimensions, or the elements of both tensors."""
    if _compares(call):
        return locate_elementwise(call, box)
    return locate_reduction(call, box)


def _compares(call: Call) -> bool:
    """Whether two tensors are compared element by element."""
    given = call.arguments
    return given.get("other") is not None or isinstance(given.get("dim"), Operand)


@locates(*_SORTS)
def locate_sort(call: Call, box: Box) -> Mapping[str, Box]:
    """Return whole rows."""
    input, dim = call.array("input"), call.arguments["dim"]
    axis = dim % input.ndim if input.ndim else 0
    return {input.name: _whole_along(input, box, axis)}


def _whole_along(input: Operand, box: Box, axis: int) -> Box:
    if not input.ndim:
        return ()
    return (*box[:axis], Interval.whole(input.shape[axis]), *box[axis + 1 :])


def _elements(call: Call, index: tuple[int, ...]) -> tuple[Factor, list[int], list[str]]:
    """Return the elements that are reduced, and the reduced sizes and their names."""
    input, axes = call.array("input"), reduced_axes(call)
    rows = _aligned(call, index, axes)
    places = [
        range(input.shape[axis]) if row is None else [row] for axis, row in enumerate(rows)
    ]
    sizes = [input.shape[axis] for axis in sorted(axes)]
    names = [f"dim {axis}" for axis in sorted(axes)]
    return take(input, "input", grid(*places)), sizes, names


@explains(*SUMS)
def explain_sum(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum elements."""
    elements, sizes, names = _elements(call, index)
    formula = f"y{format_index(index)} = Σ {elements.name} over {len(elements.values)} elements"
    return add_up(call, formula, multiply([elements], sizes, names))


@explains(*MEANS)
def explain_mean(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum elements, each divided by their number."""
    elements, sizes, names = _elements(call, index)
    return mean_of(call, index, elements, float(max(1, len(elements.values))), sizes, names)


@explains(*_EXTREMES, *_BOTH)
def explain_extreme(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Choose the largest or the smallest element."""
    if call.layer_code in _BOTH and _compares(call):
        return explain_function(call, index)
    if call.place:
        raise NoBreakdownError("the index of an element is no sum")
    elements, sizes, names = _elements(call, index)
    smallest = call.layer_code in {extremes.minimum, *codes_of("torch.amin")}
    chosen = (np.argmin if smallest else np.argmax)(elements.values)
    return choose(index, multiply([elements], sizes, names), elements.name, chosen)


@explains(ncnn.Reduction)
def explain_ncnn_reduction(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum elements times a factor, or choose the largest or the smallest."""
    layer = call.layer
    if not isinstance(layer, ncnn.Reduction) or layer.operation not in {0, 3, 4, 5}:
        raise NoBreakdownError("only sums, means and extremes are broken down")
    elements, sizes, names = _elements(call, index)
    coefficient, count = float(layer.coefficient), max(1, len(elements.values))
    if layer.operation in {4, 5} and coefficient == 1:
        chosen = (np.argmax if layer.operation == 4 else np.argmin)(elements.values)
        return choose(index, multiply([elements], sizes, names), elements.name, chosen)
    if layer.operation in {4, 5}:
        raise NoBreakdownError("an extreme times a factor has no breakdown")
    if layer.operation == 3:
        return mean_of(call, index, elements, count / coefficient, sizes, names)
    scale = "" if coefficient == 1 else f"{coefficient:g} · "
    formula = f"y{format_index(index)} = {scale}Σ {elements.name} over {count} elements"
    return add_up(call, formula, multiply([elements], sizes, names, coefficient))


def _scanned(call: Call) -> int:
    """Return the dimension of a running sum, or of the like."""
    name = "axis" if call.layer_code is ncnn.cumulative_sum else "dim"
    return int(call.arguments[name])


@explains(scan.cumsum, ncnn.cumulative_sum)
def explain_running_sum(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the elements up to a position."""
    input, axis = call.array("input"), _scanned(call)
    if not index:
        raise NoBreakdownError("the sum of a number is the number")
    axis %= input.ndim
    rows = [[place] for place in index]
    before = range(index[axis] + 1)
    elements = take(input, "input", grid(*rows[:axis], before, *rows[axis + 1 :]))
    formula = f"y{format_index(index)} = Σ {elements.name} over {len(before)} elements"
    return add_up(call, formula, multiply([elements], (len(before),), (f"dim {axis}",)))


@locates(
    scan.cumsum, scan.cumprod, scan.logcumsumexp, scan.cummax, scan.cummin, ncnn.cumulative_sum
)  # fmt: skip
def locate_scan(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the elements up to a position."""
    input, axis = call.array("input"), _scanned(call)
    if not input.ndim:
        return {input.name: ()}
    axis %= input.ndim
    return {input.name: (*box[:axis], Interval(0, box[axis].stop), *box[axis + 1 :])}
