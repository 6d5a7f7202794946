"""Finds the twin of a layer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.comparison.reasons.ncnn_twins import arithmetic, norms, sequences, windows
from engine.errors import EngineError
from engine.layers import OperatorCall
from engine.layers.ncnn.activations import activate
from engine.ncnn.types import PREFIX, Params, is_quantized

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.comparison.reasons.ncnn_twins.twin import Twin
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

    Maker = Callable[[OperatorCall, Params, Sequence[Value]], Twin | None]

__all__ = ["converted_weights", "twin_of"]

_MAKERS: Final[Mapping[str, Maker]] = {
    "BatchNorm": norms.batch_norm,
    "BinaryOp": arithmetic.binary,
    "Convolution": windows.convolution,
    "Convolution3D": windows.convolution,
    "ConvolutionDepthWise": windows.convolution,
    "ConvolutionDepthWise3D": windows.convolution,
    "Deconvolution": windows.deconvolution,
    "Deconvolution3D": windows.deconvolution,
    "DeconvolutionDepthWise": windows.deconvolution,
    "DeconvolutionDepthWise3D": windows.deconvolution,
    "Eltwise": arithmetic.eltwise,
    "Embed": arithmetic.embed,
    "GRU": sequences.gru,
    "Gemm": arithmetic.gemm,
    "GroupNorm": norms.group_norm,
    "InnerProduct": arithmetic.inner_product,
    "InstanceNorm": norms.instance_norm,
    "Interp": windows.interp,
    "LSTM": sequences.lstm,
    "LayerNorm": norms.layer_norm,
    "MultiHeadAttention": sequences.attention,
    "PReLU": arithmetic.prelu,
    "Padding": windows.padding,
    "Pooling": windows.pooling,
    "Pooling3D": windows.pooling,
    "RNN": sequences.rnn,
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
    if make is None or not call.type.startswith(PREFIX) or is_quantized(call.params):
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
    return replace(made, activation=activation)


def converted_weights(operator: RuntimeOperator) -> Mapping[str, Array]:
    """Return the weights of a layer of ncnn that PyTorch has in other arrays, by its names.

    Empty for a layer whose weights only have other names.
    """
    if not operator.type.startswith(PREFIX) or operator.error is not None:
        return {}
    stored = {name: a.array for name, a in operator.attributes.items() if a.is_stored}
    call = OperatorCall(operator.name, operator.type, operator.params, stored)
    twin = twin_of(call, (None,) * len(operator.inputs))
    return {} if twin is None or twin.convert is None else twin.convert(stored)
