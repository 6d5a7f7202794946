"""Transposed convolution over one, two or three spatial axes."""

from __future__ import annotations

import itertools
import math

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError, ParameterError
from engine.layers.arguments import require_products
from engine.layers.convolution import (
    check_bias,
    check_channels,
    check_kernel,
    convolution,
    require_channels,
)
from engine.layers.layer import Ints, PreparingLayer
from engine.layers.registry import register
from engine.layers.windows import (
    Windows,
    new_output,
    per_axis,
    ready,
    require_image,
    working_dtype,
)
from engine.promotion import DType, promote_types
from engine.values import Array

__all__ = ["TransposedConvolution", "either_convolution", "transposed_convolution"]


@register("nn.ConvTranspose1d", "nn.ConvTranspose2d", "nn.ConvTranspose3d")
class TransposedConvolution(PreparingLayer[Array]):
    """Spread each value by a kernel and sum what overlaps: ``torch.nn.ConvTranspose1d``, ...

    Each input position adds its value times the kernel to a window of the output, the
    gradient of a convolution with the same parameters. Sizes: ``Hout = (H - 1) * stride -
    2 * padding + dilation * (Kh - 1) + output_padding + 1``.

    Parameters
    ----------
    weight : ndarray of shape (C, O / groups, K...)
        K... is the kernel size, one number per spatial axis.
    bias : ndarray of shape (O,), optional
    stride, dilation : int or tuple of int
    padding : int or tuple of int
        Positions cut off on both sides of the output.
    output_padding : int or tuple of int
        Positions added at the end; smaller than stride or dilation.
    groups : int
    padding_mode : str
        Only ``zeros``.
    in_channels, out_channels : int
        C and O, compared with the weight's shape.
    kernel_size : int or tuple of int
        K..., compared with the weight's shape.
    """

    def __init__(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        in_channels: int | None = None,
        out_channels: int | None = None,
        kernel_size: Ints | None = None,
    ) -> None:
        check_kernel(weight, kernel_size, groups)
        check_channels("in_channels", in_channels, weight.shape[0])
        check_channels("out_channels", out_channels, weight.shape[1] * groups)
        check_bias(bias, weight.shape[1] * groups)
        if padding_mode != "zeros":
            raise ParameterError(
                "padding_mode",
                f"padding_mode={padding_mode} is unknown, only zeros is supported",
            )
        kernel = weight.shape[2:]
        rank = len(kernel)
        super().__init__()
        self.weight, self.bias, self.groups = weight, bias, groups
        self.windows = Windows(
            kernel,
            per_axis("stride", stride, rank, least=1),
            per_axis("dilation", dilation, rank, least=1),
            tuple((p, p) for p in per_axis("padding", padding, rank)),
        )
        self.output_padding = per_axis("output_padding", output_padding, rank)
        for extra, *steps in zip(
            self.output_padding, self.windows.stride, self.windows.dilation, strict=True
        ):
            if extra >= max(steps):
                raise ParameterError(
                    "output_padding",
                    f"output_padding={output_padding} must be smaller than stride "
                    f"{self.windows.stride} or dilation {self.windows.dilation}",
                )

    @override
    def forward(self, input: Array) -> Array:
        rank = self.windows.rank
        require_image(input, rank)
        require_channels(input, rank, len(self.weight))
        dtype = promote_types(input.dtype, self.weight.dtype)
        work = working_dtype(dtype)
        batch = input if input.ndim == rank + 2 else input[np.newaxis]
        channels = self.weight.shape[1] * self.groups
        counts = self._resolve_output_sizes(batch.shape[2:])
        require_products(len(batch) * math.prod(batch.shape[2:]) * self.weight.size)
        output = new_output((len(batch), channels, *counts), work, 0)
        if self.bias is not None:
            output += ready(self.bias, work).reshape(-1, *(1,) * rank)
        self._add_windows(batch.astype(work, copy=False), output)
        shape = (*input.shape[: -rank - 1], *output.shape[1:])
        return output.reshape(shape).astype(dtype, copy=False)

    def _resolve_output_sizes(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        found = self.windows.spread_sizes(sizes, self.output_padding)
        for axis, (size, result) in enumerate(zip(sizes, found, strict=True)):
            if result <= 0 or size == 0:
                raise LayerError(
                    f"the output would have size {self._describe_size(axis, size)} = {result}, "
                    "which is not positive",
                    InferStatus.kInferArraySizeMismatch,
                )
        return found

    def _describe_size(self, axis: int, size: int) -> str:
        windows, behind = self.windows, self.output_padding[axis]
        return (
            f"({size} − 1) × {windows.stride[axis]} − 2 × {windows.padding[axis][0]} + "
            f"{windows.dilation[axis]} × ({windows.kernel[axis]} − 1) + {behind} + 1"
        )

    def _add_windows(self, batch: Array, output: Array) -> None:
        """Add every input position's window: tap by tap, sample by sample.

        The windows are positions of the *output*; there is one per input position.
        """
        weight = self.prepared(output.dtype)
        _, groups, per_group, per_input = weight.shape
        sizes = batch.shape[2:]
        whole = tuple(slice(0, size) for size in sizes)
        taps = list(self.windows.taps(output.shape[2:], whole))
        images = batch.reshape(len(batch), groups, per_input, math.prod(sizes))
        totals = output.reshape(len(batch), groups, per_group, *output.shape[2:])
        for sample, (tap, inputs, outputs) in itertools.product(range(len(batch)), taps):
            products = np.matmul(weight[tap], images[sample])
            products = products.reshape(groups, per_group, *sizes)
            totals[sample][:, :, *outputs] += products[:, :, *inputs]

    @override
    def prepare(self, dtype: DType) -> Array:
        """Reshape the weight to (K, G, O / G, C / G)."""
        channels, per_group, *kernel = self.weight.shape
        groups = self.groups
        shape = (groups, channels // groups, per_group, math.prod(kernel))
        return ready(self.weight.reshape(shape).transpose(3, 0, 2, 1), dtype)


@register(
    "F.conv_transpose1d", "F.conv_transpose2d", "F.conv_transpose3d",
    "torch.conv_transpose1d", "torch.conv_transpose2d", "torch.conv_transpose3d",
    "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d",
)  # fmt: skip
def transposed_convolution(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Array:
    """Spread each value by a computed kernel and sum what overlaps: ``F.conv_transpose2d``, ...

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    weight : ndarray of shape (C, O / groups, K...)
    bias : ndarray of shape (O,), optional
    stride, padding, output_padding, groups, dilation
        As for `TransposedConvolution`.

    Returns
    -------
    ndarray of shape (N, O, H'...) or (O, H'...)
    """
    layer = TransposedConvolution(
        weight, bias, stride, padding, output_padding, groups, dilation
    )
    return layer.forward(input)


@register("aten::convolution", "torch.convolution")
@register(
    "aten::_convolution",
    operands="input weight bias stride padding dilation transposed output_padding groups"
    " _ _ _ _",
)
def either_convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Array:
    """Convolution or its transpose: ``aten::_convolution``, which all other types call.

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    weight : ndarray of shape (O, C / groups, K...), or (C, O / groups, K...)
        The latter if `transposed`.
    bias : ndarray of shape (O,), optional
    stride, padding, dilation, groups
        As in ``F.conv2d``.
    transposed : bool
        Whether to compute the transposed convolution.
    output_padding : int or tuple of int
        Only if `transposed`.

    Returns
    -------
    ndarray of shape (N, O, H'...) or (O, H'...)
    """
    if transposed:
        return transposed_convolution(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return convolution(input, weight, bias, stride, padding, dilation, groups)
