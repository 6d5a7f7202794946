"""Operators as ncnn layers.

A form returns a `NcnnLayer`: the type, its numbered parameters and its weights in ncnn's
order. ncnn knows images without a batch axis, of at most three axes and an odd fourth; only
batches of one come here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.backends.forms import FormTable, NoFormError
from engine.backends.native_sizes import require_elements, require_spread, require_windows
from engine.layers.convolution import Convolution
from engine.layers.linear import Linear
from engine.layers.transposed_convolution import TransposedConvolution

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.backends.forms import Operand
    from engine.layers.windows import Windows
    from engine.values import Array

__all__ = ["FORMS", "NcnnLayer", "convolution_params", "product_params", "weights_of"]

# Stands before the first weight of most layers, and says that they are not packed in any way.
_FLOAT32_MARK: Final = np.zeros(1, np.float32)


@dataclass(frozen=True, slots=True)
class NcnnLayer:
    """One layer of ncnn.

    Attributes
    ----------
    type : str
    params : mapping of int to int
        By ncnn's numbers.
    weights : tuple of ndarray of float32
        As they are in a file, the mark of float32 first.
    input_shape : tuple of int
        What the operand is handed over as.
    output_shape : tuple of int
        What the result is to be given.
    """

    type: str
    params: Mapping[int, int]
    weights: tuple[Array, ...]
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]

    @property
    def may_transform(self) -> bool:
        """Whether ncnn may use Winograd's transformation: for 3x3 windows, side by side."""
        steps = [self.params.get(key) for key in (1, 11, 2, 12, 3, 13)]
        return self.type == "Convolution" and steps == [3, 3, 1, 1, 1, 1]


FORMS: Final[FormTable[None, NcnnLayer]] = FormTable()


def _single_image(input: Operand, windows: Windows, channels: int) -> tuple[int, ...]:
    """Shape of the one image, (C, H, W)."""
    if windows.rank != 2 or len(input.shape) not in {3, 4}:
        raise NoFormError("not an image")
    if len(input.shape) == 4 and input.shape[0] != 1:
        raise NoFormError("a batch")
    if input.shape[-3] != channels:
        raise NoFormError("other channels")  # ncnn would read behind its weights
    return input.shape[-3:]


def weights_of(weight: Array, bias: Array | None) -> tuple[Array, ...]:
    """Weights of a layer as they are in a file."""
    return (_FLOAT32_MARK, weight) if bias is None else (_FLOAT32_MARK, weight, bias)


def convolution_params(
    kernel: Sequence[int],
    dilation: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    weights: tuple[Array, ...],
) -> dict[int, int]:
    """What is said of a convolution, by ncnn's numbers; windows by axis, height first."""
    (above, below), (left, right) = padding
    return {
        0: len(weights[1]), 1: kernel[1], 11: kernel[0], 2: dilation[1], 12: dilation[0],
        3: stride[1], 13: stride[0], 4: left, 15: right, 14: above, 16: below,
        5: len(weights) - 2, 6: weights[1].size,
    }  # fmt: skip


def product_params(weights: tuple[Array, ...]) -> dict[int, int]:
    """What is said of a product of vectors and weights, by ncnn's numbers."""
    return {0: len(weights[1]), 1: len(weights) - 2, 2: weights[1].size}


def _params(windows: Windows, weights: tuple[Array, ...]) -> dict[int, int]:
    return convolution_params(
        windows.kernel, windows.dilation, windows.stride, windows.padding, weights
    )


@FORMS.register(Convolution)
def _convolution(graph: None, layer: Convolution, input: Operand) -> NcnnLayer:
    if layer.padding_mode != "zeros":
        raise NoFormError("padding other than zeros")
    outputs, inputs = layer.weight.shape[:2]
    channels, *sizes = _single_image(input, layer.windows, inputs * layer.groups)
    weights = weights_of(layer.weight, layer.bias)
    kind, params = "Convolution", _params(layer.windows, weights)
    if layer.groups > 1:
        kind, params[7] = "ConvolutionDepthWise", layer.groups
    require_windows(layer.windows, (1, channels, *sizes), outputs, gathered=inputs)
    counts = layer.windows.counts(sizes)
    lead = input.shape[:-3]
    return NcnnLayer(
        kind, params, weights, (channels, *sizes), (*lead, outputs, *counts),
    )  # fmt: skip


@FORMS.register(TransposedConvolution)
def _transposed(graph: None, layer: TransposedConvolution, input: Operand) -> NcnnLayer:
    if any(layer.output_padding) or layer.groups > 1:
        raise NoFormError("output padding, or groups")
    inputs, outputs = layer.weight.shape[:2]
    channels, *sizes = _single_image(input, layer.windows, inputs)
    require_spread(layer.windows, (1, channels, *sizes), outputs)
    counts = layer.windows.spread_sizes(sizes, layer.output_padding)
    weights = weights_of(np.ascontiguousarray(layer.weight.swapaxes(0, 1)), layer.bias)
    return NcnnLayer(
        "Deconvolution", _params(layer.windows, weights), weights, (channels, *sizes),
        (*input.shape[:-3], outputs, *counts),
    )  # fmt: skip


@FORMS.register(Linear)
def _linear(graph: None, layer: Linear, input: Operand) -> NcnnLayer:
    outputs, size = layer.weight.shape
    if input.shape[-1:] != (size,):
        raise NoFormError("other features")
    rows = math.prod(input.shape[:-1])
    require_elements(input.shape, (rows, outputs))
    weights = weights_of(layer.weight, layer.bias)
    shape = (size,) if rows == 1 else (rows, size)
    return NcnnLayer(
        "InnerProduct", product_params(weights), weights, shape,
        (*input.shape[:-1], outputs),
    )  # fmt: skip
