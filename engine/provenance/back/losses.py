"""Losses: slopes of a formula at one position or of one sample, and of their mean or sum."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers.losses import cross_entropy, method_of
from engine.layers.softmax import log_softmax
from engine.provenance.call import Operand
from engine.provenance.rules.losses import (
    BY_CLASS,
    BY_ELEMENT,
    class_axis,
    has_classes,
    is_reduced,
    losses_of,
    numbers_of,
    read_losses,
)
from engine.provenance.slopes import accumulate, find_slopes, steps_of, unbroadcast
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.rules.losses import Losses
    from engine.provenance.slopes import Gradient
    from engine.values import Array


def _flowing(call: Call, found: Losses, gradient: Gradient) -> Gradient:
    """Return the gradient by the losses before they are reduced."""
    flow = gradient.reshape(()) * found.share if is_reduced(call) else gradient
    return np.broadcast_to(flow, found.values.shape)


@passes_back(*BY_ELEMENT)
def _by_element(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the slopes of the formula, quotients of differences in float64."""
    found, numbers = read_losses(call), numbers_of(call)
    flow = _flowing(call, found, gradient)
    back: dict[str, Gradient] = {}
    for name, each in call.arguments.items():
        if isinstance(each, Operand) and each.dtype.kind == "f":
            slopes = find_slopes(partial(_quotients, call, numbers, found.values, name))
            part = unbroadcast(slopes * flow, each.shape)
            accumulate(back, each.name, part)
    return back


def _quotients(
    call: Call, numbers: Mapping[str, Any], middle: Array, name: str, step: float
) -> tuple[Array, Array]:
    """Return quotients of differences for steps of one argument, up and down."""
    given = numbers[name]
    with np.errstate(all="ignore"):
        above, below = (
            (losses_of(call, {**numbers, name: given + size}) - middle) / size
            for size in steps_of(given, step)
        )
    return above, below


@passes_back(*BY_CLASS)
def _by_class(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each class the difference of its probability from the target's."""
    found, numbers = read_losses(call), numbers_of(call)
    axis = class_axis(call)
    input = np.moveaxis(numbers["input"], axis, -1)
    flow = _flowing(call, found, gradient)[..., np.newaxis]
    smoothing = float(numbers.get("label_smoothing", 0.0))
    weight = 1.0 if numbers["weight"] is None else numbers["weight"]
    counted: Any = 1.0
    if has_classes(call):
        target = numbers["target"]
        counted = (target != numbers["ignore_index"])[..., np.newaxis]
        right = np.arange(input.shape[-1]) == target[..., np.newaxis]
        right = (right & counted).astype(np.float64)
    else:
        right = np.moveaxis(numbers["target"], axis, -1)
    wanted = right * (1 - smoothing) + counted * smoothing / input.shape[-1]
    logs, by_input = input, -wanted * weight
    if call.layer_code is cross_entropy:
        logs = log_softmax(input, -1)
        by_input = np.exp(logs) * (wanted * weight).sum(axis=-1, keepdims=True) + by_input
    parts = {
        "input": np.moveaxis(by_input * flow, -1, axis),
        "target": np.moveaxis(-(1 - smoothing) * weight * logs * flow, -1, axis),
        "weight": _by_weight(call, found, right, -wanted * logs * flow, gradient),
    }
    back: dict[str, Gradient] = {}
    for name, part in parts.items():
        each = call.arguments[name]
        if isinstance(each, Operand) and each.dtype.kind == "f":
            accumulate(back, each.name, part)
    return back


def _by_weight(
    call: Call, found: Losses, right: Gradient, parts: Gradient, gradient: Gradient
) -> Gradient:
    """Return the slopes by the weights of classes, which also divide the mean."""
    samples = tuple(range(parts.ndim - 1))
    result: Gradient = parts.sum(axis=samples)
    if has_classes(call) and method_of(call.arguments["reduction"]) == "mean":
        mean = float(found.values.sum()) * found.share
        result = result - float(gradient.reshape(())) * mean * found.share * right.sum(samples)
    return result
