"""Lowers single operators to layers of ncnn.

A lowering returns a `NcnnLayer`: the type, its parameters and its weights in ncnn's order.
ncnn's images have no batch axis and at most three axes, rarely four. So only batches of one are
lowered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.backends.lowering import LoweringError, LoweringTable
from engine.backends.native_sizes import require_elements, require_spread, require_windows
from engine.backends.ncnn_layers import (
    convolution_params,
    inner_product_params,
    weights_of,
)
from engine.layers.convolution import Convolution
from engine.layers.linear import Linear
from engine.layers.transposed_convolution import TransposedConvolution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.backends.lowering import Operand
    from engine.layers.windows import Windows
    from engine.values import Array

__all__ = ["LOWERINGS", "NcnnLayer"]


@dataclass(frozen=True, slots=True)
class NcnnLayer:
    """One layer of ncnn.

    Attributes
    ----------
    type : str
    params : mapping of str to int
        By name; see `ncnn_layers`.
    weights : tuple of ndarray of float32
        In a file's order, with the flag of float32 first.
    input_shape : tuple of int
        Shape in which the operand is passed.
    output_shape : tuple of int
        Shape of the result.
    """

    type: str
    params: Mapping[str, int]
    weights: tuple[Array, ...]
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]

    @property
    def may_transform(self) -> bool:
        """Return whether ncnn can use Winograd's transformation: 3x3 windows of stride 1."""
        wanted = {"kernel": 3, "dilation": 1, "stride": 1}
        return self.type == "Convolution" and all(
            self.params[f"{name}_{axis}"] == size
            for name, size in wanted.items()
            for axis in "wh"
        )


LOWERINGS: Final[LoweringTable[None, NcnnLayer]] = LoweringTable()


def _single_image(input: Operand, windows: Windows, channels: int) -> tuple[int, ...]:
    """Return the shape of the single image, (C, H, W)."""
    if windows.rank != 2 or len(input.shape) not in {3, 4}:
        raise LoweringError("not an image")
    if len(input.shape) == 4 and input.shape[0] != 1:
        raise LoweringError("a batch")
    if input.shape[-3] != channels:
        raise LoweringError("other channels")  # ncnn would read beyond its weights
    return input.shape[-3:]


def _params(windows: Windows, weights: tuple[Array, ...]) -> dict[str, int]:
    return convolution_params(
        windows.kernel, windows.dilation, windows.stride, windows.padding, weights
    )


@LOWERINGS.register(Convolution)
def _convolution(graph: None, layer: Convolution, input: Operand) -> NcnnLayer:
    if layer.padding_mode != "zeros":
        raise LoweringError("padding other than zeros")
    outputs, inputs = layer.weight.shape[:2]
    channels, *sizes = _single_image(input, layer.windows, inputs * layer.groups)
    weights = weights_of(layer.weight, layer.bias)
    kind, params = "Convolution", _params(layer.windows, weights)
    if layer.groups > 1:
        kind, params["group"] = "ConvolutionDepthWise", layer.groups
    require_windows(layer.windows, (1, channels, *sizes), outputs, gathered=inputs)
    counts = layer.windows.counts(sizes)
    lead = input.shape[:-3]
    return NcnnLayer(
        kind, params, weights, (channels, *sizes), (*lead, outputs, *counts),
    )  # fmt: skip


@LOWERINGS.register(TransposedConvolution)
def _transposed_convolution(
    graph: None, layer: TransposedConvolution, input: Operand
) -> NcnnLayer:
    if any(layer.output_padding) or layer.groups > 1:
        raise LoweringError("output padding, or groups")
    inputs, outputs = layer.weight.shape[:2]
    channels, *sizes = _single_image(input, layer.windows, inputs)
    require_spread(layer.windows, (1, channels, *sizes), outputs)
    counts = layer.windows.spread_sizes(sizes, layer.output_padding)
    weights = weights_of(np.ascontiguousarray(layer.weight.swapaxes(0, 1)), layer.bias)
    return NcnnLayer(
        "Deconvolution", _params(layer.windows, weights), weights, (channels, *sizes),
        (*input.shape[:-3], outputs, *counts),
    )  # fmt: skip


@LOWERINGS.register(Linear)
def _linear(graph: None, layer: Linear, input: Operand) -> NcnnLayer:
    outputs, size = layer.weight.shape
    if input.shape[-1:] != (size,):
        raise LoweringError("other features")
    rows = math.prod(input.shape[:-1])
    require_elements(input.shape, (rows, outputs))
    weights = weights_of(layer.weight, layer.bias)
    shape = (size,) if rows == 1 else (rows, size)
    return NcnnLayer(
        "InnerProduct", inner_product_params(weights), weights, shape,
        (*input.shape[:-1], outputs),
    )  # fmt: skip
