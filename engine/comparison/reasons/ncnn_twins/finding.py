"""Finds the twin of a layer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.int8_layers import spread_scales
from engine.comparison.reasons.ncnn_twins import arithmetic, norms, windows
from engine.errors import EngineError
from engine.layers.ncnn.activations import activate
from engine.ncnn.types import PREFIX, Params, is_quantized

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.comparison.reasons.ncnn_twins.twin import Twin
    from engine.layers import OperatorCall
    from engine.values import Array, Value

    Maker = Callable[[OperatorCall, Params, Sequence[Value]], Twin | None]

__all__ = ["twin_of"]

_SCALES: Final = "weight_int8_scales"
_MAKERS: Final[Mapping[str, Maker]] = {
    "BatchNorm": norms.batch_norm,
    "BinaryOp": arithmetic.binary,
    "Convolution": windows.convolution,
    "Convolution3D": windows.convolution,
    "ConvolutionDepthWise": windows.convolution,
    "ConvolutionDepthWise3D": windows.convolution,
    "Eltwise": arithmetic.eltwise,
    "Gemm": arithmetic.gemm,
    "GroupNorm": norms.group_norm,
    "InnerProduct": arithmetic.inner_product,
    "InstanceNorm": norms.instance_norm,
    "Interp": windows.interp,
    "LayerNorm": norms.layer_norm,
    "PReLU": arithmetic.prelu,
    "Padding": windows.padding,
    "Pooling": windows.pooling,
    "Pooling3D": windows.pooling,
    "RMSNorm": norms.rms_norm,
    "ReLU": arithmetic.leaky_relu,
    "Reduction": arithmetic.reduction,
    "Softmax": arithmetic.softmax,
    "UnaryOp": arithmetic.unary,
}


def twin_of(call: OperatorCall, inputs: Sequence[Value]) -> Twin | None:
    """Return a layer in PyTorch's words; None if it has none there.

    Parameters
    ----------
    call : OperatorCall
    inputs : sequence of Value
        Of ncnn's layer.
    """
    make = _MAKERS.get(call.type.removeprefix(PREFIX).removesuffix("1D"))
    if make is None or not call.type.startswith(PREFIX):
        return None
    step = _int8_step(call) if is_quantized(call.params) else None
    if step is not None:
        call = _in_float32(call, step)
    elif is_quantized(call.params):
        return None
    params = Params(call.params)
    try:
        made = make(call, params, inputs)
        kind = params.integer("activation_type")
        numbers = params.array("activation_params")
    except (EngineError, ValueError):  # the layer refuses them with the reason
        return None
    if made is None:
        return None
    activation = partial(activate, kind=kind, params=numbers) if kind else None
    return replace(made, activation=activation, step=step)


def _int8_step(call: OperatorCall) -> Array | None:
    """Return what 1 of an int8 weight stands for, broadcast to it; None if it has no scales."""
    weight, scales = call.attributes.get("weight"), call.attributes.get(_SCALES)
    if weight is None or scales is None or weight.dtype != np.int8:
        return None
    per_output = spread_scales(scales, weight)
    return None if per_output is None else np.asarray(1 / per_output)


def _in_float32(call: OperatorCall, step: Array) -> OperatorCall:
    """Return the call of an int8 layer with the weight that it stands for, and no scales."""
    weights = {n: a for n, a in call.attributes.items() if not n.endswith("_int8_scales")}
    weights["weight"] = (weights["weight"] * step).astype(np.float32)
    params = {n: v for n, v in call.params.items() if n != "int8_scale_term"}
    return replace(call, params=params, attributes=weights)
