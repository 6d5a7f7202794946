"""Weights of ncnn's layers as float32, and what storing them may have taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.int8_layers import spread_scales
from engine.comparison.rounded_weights import float16_steps
from engine.ncnn.types import PREFIX, is_quantized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.layers import OperatorCall
    from engine.values import Array

__all__ = ["in_float32"]

_SCALES: Final = "weight_int8_scales"


def in_float32(call: OperatorCall) -> tuple[OperatorCall, Mapping[str, Array]]:
    """Return a layer with the float32 numbers that its rounded weights stand for.

    Parameters
    ----------
    call : OperatorCall

    Returns
    -------
    OperatorCall
        Without scales of int8. The same call if it is no layer of ncnn, or has weights that are
        not known to be rounded.
    mapping of str to ndarray
        By rounded weight: how far the numbers reach that are stored as the same one, of a shape
        that broadcasts to the weight.
    """
    if not call.type.startswith(PREFIX):
        return call, {}
    if is_quantized(call.params):
        step = _int8_step(call)
        return (call, {}) if step is None else (_without_int8(call, step), {"weight": step})
    halves = {n: a for n, a in call.attributes.items() if a.dtype == np.float16}
    weights = {**call.attributes, **{n: a.astype(np.float32) for n, a in halves.items()}}
    steps = {name: float16_steps(array) for name, array in halves.items()}
    return replace(call, attributes=weights), steps


def _int8_step(call: OperatorCall) -> Array | None:
    """Return what 1 of an int8 weight stands for, broadcast to it; None if it has no scales."""
    weight, scales = call.attributes.get("weight"), call.attributes.get(_SCALES)
    if weight is None or scales is None or weight.dtype != np.int8:
        return None
    per_output = spread_scales(scales, weight)
    return None if per_output is None else np.asarray(1 / per_output)


def _without_int8(call: OperatorCall, step: Array) -> OperatorCall:
    """Return the call of an int8 layer with the weight that it stands for, and no scales."""
    weights = {n: a for n, a in call.attributes.items() if not n.endswith("_int8_scales")}
    weights["weight"] = (weights["weight"] * step).astype(np.float32)
    params = {n: v for n, v in call.params.items() if n != "int8_scale_term"}
    return replace(call, params=params, attributes=weights)
