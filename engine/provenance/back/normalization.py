"""Normalisations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers import normalization as layers
from engine.layers.arguments import axes_of
from engine.layers.ncnn import normalization as ncnn
from engine.provenance.back.reduction import norm_slopes
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.rules.normalization import (
    READERS,
    read_normalization,
    unit_axes,
    unit_factors,
    unit_length,
)
from engine.provenance.slopes import accumulate, unbroadcast, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.rules.normalization import Normalization
    from engine.provenance.slopes import Gradient


@passes_back(*READERS)
def _normalised(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Scale back, less what goes through the statistics."""
    if call.place:
        raise NoBreakdownError("the statistics are not followed")
    found, given = read_normalization(call), call.array("input")
    x = wide(given)
    weight, shape = _weight_of(found, given)
    scaled = gradient * weight
    axes, parts = found.axes, x.shape
    if found.mean is not None:
        mean = wide(found.mean).reshape(shape)
        spread = np.sqrt(wide(found.variance).reshape(shape) + found.eps)
        normal = (x - mean) / spread
        back = scaled / spread
    else:
        if found.groups:
            parts = (*x.shape[: found.channel], found.groups, -1)
            x, scaled, axes = x.reshape(parts), scaled.reshape(parts), (found.channel + 1,)
        mean = x.mean(axes, keepdims=True) if found.centred else np.zeros(())
        spread = np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + found.eps)
        normal = (x - mean) / spread
        back = scaled - normal * (scaled * normal).mean(axes, keepdims=True)
        if found.centred:
            back -= scaled.mean(axes, keepdims=True)
        back, normal = (back / spread).reshape(given.shape), normal.reshape(given.shape)
    result = {given.name: back}
    # Weights and statistics may be computed.
    for argument, part in (
        (found.weight, gradient * normal),
        (found.bias, gradient),
        (found.mean, -back),
        (found.variance, -back * normal / spread / 2 if found.mean is not None else back),
    ):
        if isinstance(argument, Operand):
            by_place = part
            if found.by_channel or found.mean is not None:
                kept = next(axis for axis, size in enumerate(shape) if size == -1)
                by_place = part.sum(axis=tuple([a for a in range(part.ndim) if a != kept]))
            accumulate(result, argument.name, unbroadcast(by_place, argument.shape))
    return result


def _weight_of(
    found: Normalization, given: Operand
) -> tuple[npt.NDArray[np.float64], list[int]]:
    """Return the factors as they are broadcast, and the shape of a number for each channel."""
    shape = [1] * given.ndim
    shape[found.channel if given.ndim > found.channel else 0] = -1
    weight = np.ones(()) if found.weight is None else wide(found.weight)
    return weight.reshape(shape) if found.by_channel and weight.ndim else weight, shape


@passes_back(layers.local_response_norm, ncnn.local_response_norm)
def _responded(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Divide by the power of the squares, less what goes through those of the neighbours."""
    given, arguments = call.array("input"), call.arguments
    x = wide(given)
    alpha, beta = float(arguments["alpha"]), float(arguments["beta"])
    if call.layer_code is layers.local_response_norm:
        size, k = int(arguments["size"]), float(arguments["k"])
        axes: tuple[int, ...] = (1,)
    else:
        size, k = int(arguments["local_size"]), float(arguments["bias"])
        axes = (0,) if arguments["region_type"] == 0 else (given.ndim - 2, given.ndim - 1)
    factor = alpha / size ** len(axes)
    squares, before = np.square(x), size // 2
    for axis in axes:
        squares = _sum_beside(squares, axis, before, size - before - 1)
    base = k + factor * squares
    passed = gradient * x * base ** (-beta - 1)
    for axis in axes:  # each element is a neighbour of those that have it as one
        passed = _sum_beside(passed, axis, size - before - 1, before)
    return {given.name: gradient * base**-beta - 2 * factor * beta * x * passed}


def _sum_beside(x: Gradient, axis: int, before: int, after: int) -> Gradient:
    """Sum neighbours along an axis, with the number itself."""
    sums = np.cumsum(x, axis)
    zero = np.zeros_like(np.take(sums, [0], axis))
    sums = np.concatenate([zero, sums], axis)
    at, size = np.arange(x.shape[axis]), x.shape[axis]
    stops, starts = np.minimum(at + after + 1, size), np.maximum(at - before, 0)
    return np.asarray(np.take(sums, stops, axis) - np.take(sums, starts, axis))


@passes_back(layers.normalize)
def _made_unit(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Divide by the length, less what goes through the length."""
    given, arguments = call.array("input"), call.arguments
    x, order = wide(given), float(arguments["p"])
    axes = axes_of(arguments["dim"], given.ndim)
    slopes = norm_slopes(x, order, axes)
    length = _length(np.abs(x), order, axes)
    divisor = np.maximum(length, float(arguments["eps"]))
    through = (gradient * x).sum(axis=axes, keepdims=True) / np.square(divisor)
    through = np.where(length > float(arguments["eps"]), through, 0.0)
    return {given.name: gradient / divisor - slopes * through}


@passes_back(ncnn.normalize)
def _made_unit_by_ncnn(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by factor and length, less what goes through the length."""
    given, axes = call.array("input"), unit_axes(call)
    x, passed = wide(given), gradient * unit_factors(call)
    squares = np.square(x).sum(axis=axes, keepdims=True)
    length = unit_length(call, squares)
    eps, mode = float(call.arguments["eps"]), call.arguments["eps_mode"]
    bound = (np.sqrt(squares) if mode == 1 else squares) > (eps if mode else -1.0)
    slopes = np.where(bound, x / np.where(length > 0, length, np.inf), 0.0)
    through = (passed * x).sum(axis=axes, keepdims=True) / np.square(length)
    return {given.name: passed / length - slopes * through}


def _length(sizes: Gradient, order: float, axes: tuple[int, ...]) -> Gradient:
    if np.isinf(order):
        return np.asarray((np.max if order > 0 else np.min)(sizes, axis=axes, keepdims=True))
    if order == 0:
        return np.asarray((sizes != 0).sum(axis=axes, keepdims=True), np.float64)
    return np.asarray(np.power(np.power(sizes, order).sum(axis=axes, keepdims=True), 1 / order))


@passes_back(ncnn.mean_variance)
def _centred(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Take away the mean of the gradient, and divide by the deviation."""
    given, arguments = call.array("input"), call.arguments
    x = wide(given)
    axes = tuple(range(0 if arguments["across_channels"] else 1, given.ndim))
    centred = x - x.mean(axes, keepdims=True)
    back = gradient
    if arguments["normalize_variance"]:
        deviation = np.sqrt(np.square(centred).mean(axes, keepdims=True))
        divisor = deviation + float(arguments["eps"])
        unit = centred / np.where(deviation > 0, deviation, np.inf)
        through = (gradient * centred).mean(axes, keepdims=True) / np.square(divisor)
        back = gradient / divisor - unit * through
    return {given.name: back - back.mean(axes, keepdims=True)}
