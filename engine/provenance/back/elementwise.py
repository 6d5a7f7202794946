"""Functions of the elements at one position."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers import copying
from engine.layers.activations import glu, prelu
from engine.layers.ncnn import activations as ncnn_activations
from engine.layers.ncnn import shapes as ncnn_shapes
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.rules.elementwise import (
    FUNCTIONS,
    SCALINGS,
    aligned_shape,
    halved_axis,
    read_scaling,
    require_broadcast,
)
from engine.provenance.slopes import accumulate, find_slopes, steps_of, unbroadcast, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.slopes import Gradient
    from engine.values import Array, Value

__all__ = ["follow_function"]


@passes_back(*FUNCTIONS)
def follow_function(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the slope, a quotient of differences in float64."""
    if call.operator.random:
        raise NoBreakdownError(f"{call.operator.type} draws random numbers")
    require_broadcast(call)
    values: list[Any] = [
        wide(each) if isinstance(each, Operand) and each.dtype.kind == "f"
        else each.value if isinstance(each, Operand) else each
        for each in call.inputs
    ]  # fmt: skip
    middle = _forward(call, values)
    found: dict[str, Gradient] = {}
    for each in {each.name: each for each in call.arrays if each.dtype.kind == "f"}.values():
        aligned = aligned_shape(call, each)
        quotients = partial(_quotients, call, values, middle, each)
        back = unbroadcast(find_slopes(quotients) * gradient, aligned)
        found[each.name] = back.reshape(each.shape)
    return found


def _quotients(
    call: Call, values: list[Any], middle: Array, operand: Operand, step: float
) -> tuple[Array, Array]:
    """Return quotients of differences for steps of one operand, up and down."""
    aligned = aligned_shape(call, operand)
    sides = []
    for own in steps_of(wide(operand), step):
        kept = np.nan_to_num(own)
        moved = [
            value + kept if isinstance(given, Operand) and given.name == operand.name else value
            for given, value in zip(call.inputs, values, strict=True)
        ]
        with np.errstate(all="ignore"):
            change = _forward(call, moved) - middle
            sides.append(change / np.broadcast_to(own.reshape(aligned), call.shape))
    return sides[0], sides[1]


def _forward(call: Call, values: Sequence[Value]) -> Array:
    with np.errstate(all="ignore"):
        found = call.forward(list(values))
    if not isinstance(found, np.ndarray) or found.shape != call.shape:
        raise NoBreakdownError("the result has another shape in float64")
    return found.astype(np.float64)


@passes_back(prelu, ncnn_activations.prelu)
def _leaked(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the slopes of the channels where an element is negative."""
    input, weight, *_ = call.arguments.values()
    if not isinstance(input, Operand):
        raise NoBreakdownError("the input is no operand")
    x, slopes = wide(input), wide(weight).reshape(-1)
    axis = 0 if call.layer_code is ncnn_activations.prelu else 1
    shape = [1] * input.ndim
    if input.ndim > axis:
        shape[axis] = -1
    is_negative = x < 0
    found = {input.name: np.where(is_negative, slopes.reshape(shape), 1.0 * (x > 0)) * gradient}
    if isinstance(weight, Operand):
        products = np.where(is_negative, x, 0.0) * gradient
        if slopes.size > 1:
            products = np.moveaxis(products, axis, 0).reshape(slopes.size, -1).sum(axis=1)
        accumulate(
            found, weight.name, unbroadcast(products, (slopes.size,)).reshape(weight.shape)
        )
    return found


@passes_back(copying.type_as)
def _converted(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Pass on what keeps its fraction."""
    given = call.array("input")
    return {given.name: gradient} if call.dtype.kind == "f" else {}


@passes_back(glu, ncnn_shapes.glu)
def _gated(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply one half by the gates, and the other by the slopes of the gates."""
    given, axis = call.array("input"), halved_axis(call)
    first, second = np.split(wide(given), 2, axis)
    with np.errstate(over="ignore"):
        gate = 1 / (1 + np.exp(-second))
    parts = gradient * gate, gradient * first * gate * (1 - gate)
    return {given.name: np.concatenate(parts, axis)}


@passes_back(*SCALINGS)
def _scaled(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the factors of the channels."""
    given, scale, _ = read_scaling(call)
    if scale is None:
        return {given.name: gradient}
    shape = (-1, *(1,) * (given.ndim - 1))
    found: dict[str, Gradient] = {given.name: gradient * wide(scale).reshape(shape)}
    if isinstance(scale, Operand):
        products = gradient * wide(given)
        accumulate(found, scale.name, products.reshape(len(products), -1).sum(axis=1))
    return found
