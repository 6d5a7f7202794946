"""The layers of ncnn's own format that compute in int8 by a table, and their int8 twins.

These are the types that ncnn's ``tools/quantize/ncnn2int8.cpp`` quantises by a table:
Convolution, ConvolutionDepthWise and InnerProduct. The input has one scale, the weight one for
each output channel (each group of a depthwise convolution). The tool quantises recurrent
layers, Gemm, MultiHeadAttention and Embed without a table; they stay in float32 here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.layers.ncnn.normalization import to_int8
from engine.ncnn.reader import ncnn_name
from engine.ncnn.types import Params, is_quantized
from engine.pnnx.attribute import Attribute
from engine.pnnx.parameter import Parameter

if TYPE_CHECKING:
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.values import Array

__all__ = [
    "LARGEST",
    "LayerScales",
    "int8_twin",
    "quantisable_layers",
    "uses_winograd",
    "weight_scales",
]

LARGEST: Final = 127
_LARGEST_OF_6_BITS: Final = 31
_NO_WINOGRAD: Final = 1 << 6  # of ncnn's feature mask
_MASK: Final = "featmask"
_DEPTHWISE: Final = "ConvolutionDepthWise"
# The value of ``int8_scale_term`` that ncnn2int8 writes: how many scales the layer has.
_TERMS: Final = {"Convolution": 2, _DEPTHWISE: 1, "InnerProduct": 2}


@dataclass(frozen=True, slots=True, eq=False)
class LayerScales:
    """What the numbers of a layer are multiplied by before they are rounded to int8.

    Attributes
    ----------
    weight : ndarray of float32 of shape (channels,) or (groups,)
    activation : float
        For the layer's input.
    bars_winograd : bool
        Whether ncnn must not use Winograd's transform, because the weight has 8 bits.
    """

    weight: Array = field(repr=False)
    activation: float
    bars_winograd: bool = False


def quantisable_layers(graph: RuntimeGraph) -> tuple[RuntimeOperator, ...]:
    """Return the layers that a table can quantise, in execution order.

    They have finite weights in float32 or float16 of their own; a graph of another format has
    none.
    """
    return tuple(each for each in graph.operators if _is_quantisable(each))


def _is_quantisable(operator: RuntimeOperator) -> bool:
    if ncnn_name(operator.type) not in _TERMS or is_quantized(operator.params):
        return False
    weight = operator.attributes.get("weight")
    return (
        weight is not None
        and weight.is_stored
        and weight.dtype.kind == "f"
        and bool(np.isfinite(weight.array).all())
    )


def weight_scales(operator: RuntimeOperator, *, winograd: bool = True) -> Array:
    """Return the scales of a layer's weight: the largest of each channel becomes 127.

    Parameters
    ----------
    operator : RuntimeOperator
    winograd : bool
        Whether the largest becomes 31 where ncnn may use Winograd's transform, whose sums would
        overflow; so does ncnn2table.

    Returns
    -------
    ndarray of float32 of shape (channels,), or (groups,) for a depthwise convolution
        1 for a channel of zeros.
    """
    weight = operator.attributes["weight"].array
    rows = _channels(operator)
    sizes = np.abs(weight.astype(np.float32).reshape(rows, -1)).max(1)
    largest = _LARGEST_OF_6_BITS if winograd and uses_winograd(operator) else LARGEST
    scales = np.ones(rows, np.float32)
    np.divide(np.float32(largest), sizes, out=scales, where=sizes > 0)
    return scales


def _channels(operator: RuntimeOperator) -> int:
    kind, params = ncnn_name(operator.type), Params(operator.params)
    return params.size("group", 1) if kind == _DEPTHWISE else params.size("num_output")


def uses_winograd(operator: RuntimeOperator) -> bool:
    """Whether ncnn may compute a layer with Winograd's transform: 3x3 with stride 1."""
    if ncnn_name(operator.type) != "Convolution":
        return False
    params = Params(operator.params)
    wanted = {"kernel": 3, "stride": 1, "dilation": 1}
    for name, size in wanted.items():
        width = params.integer(f"{name}_w", 1)
        if width != size or params.integer(f"{name}_h", width) != size:
            return False
    return True


def int8_twin(operator: RuntimeOperator, scales: LayerScales) -> RuntimeOperator:
    """Return a copy of a layer that computes in int8.

    Parameters
    ----------
    operator : RuntimeOperator
        Of `quantisable_layers`.
    scales : LayerScales
    """
    weight = operator.attributes["weight"].array.astype(np.float32)
    rows = len(scales.weight)
    whole = to_int8(weight.reshape(rows, -1) * scales.weight[:, np.newaxis])
    params = {"int8_scale_term": Parameter.parse(str(_TERMS[ncnn_name(operator.type)]))}
    if scales.bars_winograd:
        mask = Params(operator.params).integer(_MASK) | _NO_WINOGRAD
        params[_MASK] = Parameter.parse(str(mask))
    return operator.copy_with(
        {
            "weight": Attribute.from_array(whole.reshape(weight.shape)),
            "weight_int8_scales": Attribute.from_array(scales.weight),
            "bottom_int8_scales": Attribute.from_array(
                np.array([scales.activation], np.float32)
            ),
        },
        params,
    )
