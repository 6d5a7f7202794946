"""Sums, means, extremes, norms and running sums along dimensions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers import extremes, reduction, scan
from engine.layers.arguments import along, require_steps
from engine.layers.differences import diff
from engine.layers.ncnn import shapes as ncnn_shapes
from engine.provenance.back.elementwise import follow_function
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.rules.quantiles import QUANTILES, quantile_of
from engine.provenance.rules.reduction import (
    LOGSUMS,
    MEANS,
    NORMS,
    PRODUCTS_OF,
    SPREADS,
    SUMS,
    difference_weights,
    read_order,
    reduced_axes,
    spread_divisor,
)
from engine.provenance.slopes import Gradient, softmax, wide
from engine.provenance.table import codes_of, passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.values import Array

_CHOICES: Final = (extremes.maximum, extremes.minimum, extremes.median, extremes.nanmedian,
                   extremes.mode, extremes.kthvalue)  # fmt: skip


def _kept(call: Call, gradient: Gradient) -> Gradient:
    """Return the gradient with the reduced dimensions of size 1."""
    axes, shape = reduced_axes(call), call.array("input").shape
    return gradient.reshape([1 if at in axes else size for at, size in enumerate(shape)])


@passes_back(*SUMS, *MEANS, ncnn_shapes.Reduction)
def _reduced(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give every element of a sum, or of a mean, the same."""
    given = call.array("input")
    layer, is_mean = call.layer, call.layer_code in MEANS
    if isinstance(layer, ncnn_shapes.Reduction):
        if layer.operation not in {0, 3}:
            raise NoBreakdownError("only sums and means are followed")
        gradient, is_mean = gradient * float(layer.coefficient), layer.operation == 3
    count = np.prod([given.shape[axis] for axis in reduced_axes(call)]) if is_mean else 1
    back = np.broadcast_to(_kept(call, gradient) / count, given.shape)
    return {given.name: back.copy()}


@passes_back(*codes_of("torch.nansum", "torch.nanmean"))
def _reduced_numbers(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give the same to every element that is not NaN."""
    given = call.array("input")
    known = ~np.isnan(wide(given))
    count: Any = 1
    if call.layer_code in codes_of("torch.nanmean"):
        count = np.maximum(known.sum(axis=reduced_axes(call), keepdims=True), 1)
    return {given.name: np.where(known, _kept(call, gradient) / count, 0.0)}


@passes_back(*codes_of("torch.amax", "torch.amin"))
def _shared_extreme(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Share the gradient among the elements that are the extreme."""
    given, axes = call.array("input"), reduced_axes(call)
    x = wide(given)
    choose = np.max if call.layer_code in codes_of("torch.amax") else np.min
    chosen = x == choose(x, axis=axes, keepdims=True)
    count = np.maximum(chosen.sum(axis=axes, keepdims=True), 1)
    return {given.name: chosen * (_kept(call, gradient) / count)}


@passes_back(*_CHOICES, extremes.topk, extremes.sort, scan.cummax, scan.cummin)
def _chosen(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give the gradient to the elements that were chosen."""
    if call.arguments.get("other") is not None:
        return follow_function(call, gradient)
    if call.place:
        raise NoBreakdownError("the position of an element has no slope")
    given, dim = call.array("input"), call.arguments.get("dim")
    result = np.zeros(given.shape)
    if dim is None and call.layer_code in _CHOICES[:4]:  # of all elements
        equal = np.flatnonzero(given.value == call.forward(_values(call)))
        if equal.size:
            np.put(result, equal, float(gradient.reshape(-1)[0]) / equal.size)
        return {given.name: result}
    if isinstance(dim, Operand):
        raise NoBreakdownError("dim is computed")
    if not given.ndim:
        return {given.name: gradient.reshape(())}
    axis = int(-1 if dim is None else dim) % given.ndim
    places = _places_of(call, given, axis)
    if places.ndim < given.ndim:
        places = np.expand_dims(places, axis)
    grid: list[Array] = list(np.indices(places.shape, sparse=True))
    grid[axis] = places
    np.add.at(result, tuple(grid), gradient.reshape(places.shape))
    return {given.name: result}


def _places_of(call: Call, given: Operand, axis: int) -> Array:
    """Return the positions of the chosen elements, which not every file keeps."""
    if len(call.operator.outputs) > 1:
        return np.asarray(replace(call, place=1).forward(_values(call)))
    chosen = np.asarray(call.forward(_values(call)))
    if chosen.ndim < given.ndim:
        chosen = np.expand_dims(chosen, axis)
    found: Array = np.argmax(given.value == chosen, axis=axis)
    return found


def _values(call: Call) -> list[Any]:
    return [each.value if isinstance(each, Operand) else each for each in call.inputs]


@passes_back(*PRODUCTS_OF)
def _multiplied(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the product of all other elements."""
    given, axes = call.array("input"), reduced_axes(call)
    x = wide(given)
    zeros = x == 0
    count = zeros.sum(axis=axes, keepdims=True)
    product = np.where(zeros, 1.0, x).prod(axis=axes, keepdims=True)
    without_one = np.where(zeros, product, 0.0)  # the zero is the one that is left out
    others = np.where(
        count == 0, product / np.where(zeros, 1.0, x), np.where(count == 1, without_one, 0.0)
    )
    return {given.name: others * _kept(call, gradient)}


@passes_back(*LOGSUMS)
def _log_summed(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Share the gradient by the exponentials."""
    given, axes = call.array("input"), reduced_axes(call)
    shares: Array = softmax(wide(given), axes)
    return {given.name: shares * _kept(call, gradient)}


@passes_back(*SPREADS)
def _spread(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by twice the distance from the mean; of a root, divide by twice the root."""
    given, axes = call.array("input"), reduced_axes(call)
    x = wide(given)
    count = math.prod([given.shape[axis] for axis in axes])
    kept = _kept(call, gradient)
    if call.place:
        return {given.name: np.broadcast_to(kept / count, given.shape).copy()}
    distance = x - x.mean(axis=axes, keepdims=True)
    divisor = spread_divisor(call, count)
    slopes = 2 * distance / divisor if divisor else np.zeros_like(x)
    if call.layer_code in {reduction.std, reduction.std_mean}:
        root = np.sqrt(np.square(distance).sum(axis=axes, keepdims=True) / (divisor or 1))
        slopes = slopes / np.where(root > 0, 2 * root, np.inf)
    return {given.name: slopes * kept}


@passes_back(*NORMS)
def _normed(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the slope of a norm."""
    given = call.array("input")
    slopes = norm_slopes(wide(given), read_order(call), reduced_axes(call))
    return {given.name: slopes * _kept(call, gradient)}


def norm_slopes(x: Array, order: float, axes: tuple[int, ...]) -> Gradient:
    """Return the derivatives of the norms along axes by their elements."""
    sizes = np.abs(x)
    if order == 0:
        return np.zeros_like(x)
    if math.isinf(order):
        choose = np.max if order > 0 else np.min
        chosen = sizes == choose(sizes, axis=axes, keepdims=True)
        count = np.maximum(chosen.sum(axis=axes, keepdims=True), 1)
        return np.asarray(np.sign(x) * chosen / count)
    with np.errstate(all="ignore"):
        length = np.power(np.power(sizes, order).sum(axis=axes, keepdims=True), 1 / order)
        found = np.sign(x) * np.power(sizes / np.where(length > 0, length, np.inf), order - 1)
    return np.where(np.isfinite(found), found, 0.0)


@passes_back(scan.cumsum, ncnn_shapes.cumulative_sum)
def _summed_up(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Sum the gradients of all later positions."""
    given = call.array("input")
    if not given.ndim:
        return {given.name: gradient}
    name = "axis" if call.layer_code is ncnn_shapes.cumulative_sum else "dim"
    axis = int(call.arguments[name]) % given.ndim
    back = np.flip(np.cumsum(np.flip(gradient, axis), axis), axis)
    return {given.name: back}


@passes_back(scan.cumprod)
def _multiplied_up(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the product before, and by those up to each later position; no quotient."""
    given = call.array("input")
    if not given.ndim:
        return {given.name: gradient}
    axis = int(call.arguments["dim"]) % given.ndim
    x, flowing = (np.moveaxis(each, axis, 0) for each in (wide(given), gradient))
    before = np.cumprod(np.concatenate([np.ones_like(x[:1]), x[:-1]]), axis=0)
    after = flowing.copy()
    for place in range(len(x) - 2, -1, -1):
        after[place] += x[place + 1] * after[place + 1]
    return {given.name: np.moveaxis(before * after, 0, axis)}


@passes_back(diff)
def _subtracted(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each neighbour its share."""
    given = call.array("input")
    axis, weights = difference_weights(call)
    found = np.zeros(given.shape)
    for place, weight in enumerate(weights):
        stop = place + gradient.shape[axis]
        found[along(axis, slice(place, stop))] += weight * gradient
    return {given.name: found}


@passes_back(*QUANTILES)
def _ordered(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give the elements that make a quantile their weights."""
    input = call.array("input")
    if isinstance(call.arguments["q"], Operand):
        raise NoBreakdownError("computed shares are not followed")
    chosen = np.argwhere(gradient)
    require_steps(len(chosen), "quantiles")
    result = np.zeros(input.shape)
    for index in map(tuple, chosen.tolist()):
        places, weights = quantile_of(call, index)
        np.add.at(result, tuple(places.T), weights * gradient[index])
    return {input.name: result}
