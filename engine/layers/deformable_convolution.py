"""Deformable convolution: an operand moves each tap of a window."""

from __future__ import annotations

import math

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.annotations import WeightOf
from engine.layers.convolution import check_bias, check_channels, check_kernel, require_channels
from engine.layers.custom_operators import register_extension
from engine.layers.grid_sampling import sample_pixels
from engine.layers.layer import Ints, Layer
from engine.layers.registry import register
from engine.layers.windows import Windows, new_output, per_axis, ready, working_dtype
from engine.promotion import promote_types
from engine.values import Array

__all__ = ["DeformConv2d"]


@register("torchvision.ops.DeformConv2d")
class DeformConv2d(Layer):
    """Convolution whose taps are moved by an operand: ``torchvision.ops.DeformConv2d``.

    ``y[n, o, p] = bias[o] + sum over c, t of weight[o, c, t] * mask[n, t, p] * x[n, c, p *
    stride + t * dilation - padding + offset[n, t, p]]``. x is interpolated bilinearly between
    its pixels and is 0 outside.

    Parameters
    ----------
    weight : ndarray of shape (O, C / groups, Kh, Kw)
    bias : ndarray of shape (O,), optional
    stride, padding, dilation : int or tuple of int
    groups : int
        Number of independent convolutions of groups of channels.
    in_channels, out_channels, kernel_size : int
        Only checked against the weight's shape.
    """

    def __init__(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        in_channels: int | None = None,
        out_channels: int | None = None,
        kernel_size: Ints | None = None,
    ) -> None:
        check_kernel(weight, kernel_size, groups)
        check_channels("in_channels", in_channels, weight.shape[1] * groups)
        check_channels("out_channels", out_channels, weight.shape[0])
        check_bias(bias, weight.shape[0])
        self.weight, self.bias, self.groups = weight, bias, groups
        self.windows = Windows(
            kernel=weight.shape[2:],
            stride=per_axis("stride", stride, 2, least=1),
            dilation=per_axis("dilation", dilation, 2, least=1),
            padding=tuple((p, p) for p in per_axis("padding", padding, 2)),
        )

    @override
    def forward(self, input: Array, offset: Array, mask: Array | None = None) -> Array:
        """Compute the output.

        Parameters
        ----------
        input : ndarray of shape (N, C, H, W)
        offset : ndarray of shape (N, 2 * G * Kh * Kw, Hout, Wout)
            Row and column offsets of each tap; C / G channels share them.
        mask : ndarray of shape (N, G * Kh * Kw, Hout, Wout), optional
            Factor of each tap.

        Returns
        -------
        ndarray of shape (N, O, Hout, Wout)
        """
        if input.ndim != 4:
            raise LayerError(
                f"the input must be N×C×H×W; its shape is {describe_shapes([input.shape])}",
                InferStatus.kInferArraySizeMismatch,
            )
        channels = self.weight.shape[1] * self.groups
        require_channels(input, 2, channels)
        counts = self.windows.counts(input.shape[2:])
        groups = self._count_offset_groups(input, offset, mask, counts)
        dtype = promote_types(input.dtype, self.weight.dtype)
        work = working_dtype(dtype)
        weight = ready(self.weight, work)
        output = new_output((len(input), len(weight), *counts), work, 0)
        if self.bias is not None:
            output += self.bias.astype(work).reshape(-1, 1, 1)
        # Each group of channels has its own offsets, so groups are treated as separate images.
        count, taps, places = len(input) * groups, self.windows.tap_count, math.prod(counts)
        images = input.astype(work, copy=False).reshape(
            count, channels // groups, *input.shape[2:]
        )
        moves = offset.reshape(count, taps, 2, *counts).astype(work, copy=False)
        shares = None if mask is None else mask.reshape(count, taps, 1, places)
        for tap in range(taps):
            values = sample_pixels(images, *self.find_positions(moves[:, tap], tap))
            if shares is not None:
                values *= shares[:, tap]
            self._add(output, values, weight, tap)
        return output.astype(dtype, copy=False)

    def _count_offset_groups(
        self, input: Array, offset: Array, mask: Array | None, counts: tuple[int, ...]
    ) -> int:
        """Check the shapes and return G."""
        taps = self.windows.tap_count
        groups = offset.shape[1] // (2 * taps) if offset.ndim == 4 else 0
        wanted = (len(input), 2 * groups * taps, *counts)
        if groups < 1 or input.shape[1] % groups or offset.shape != wanted:
            raise LayerError(
                f"the offsets must be {len(input)}×(a multiple of {2 * taps})×"
                f"{describe_shapes([counts])}; their shape is "
                f"{describe_shapes([offset.shape])}",
                InferStatus.kInferArraySizeMismatch,
            )
        if mask is not None and mask.shape != (len(input), groups * taps, *counts):
            raise LayerError(
                f"the mask must be {len(input)}×{groups * taps}×{describe_shapes([counts])}; "
                f"its shape is {describe_shapes([mask.shape])}",
                InferStatus.kInferArraySizeMismatch,
            )
        return groups

    def find_positions(self, moves: Array, tap: int) -> tuple[Array, Array]:
        """Rows and columns that a tap reads per output, with offsets (N, 2, Hout, Wout)."""
        windows = self.windows
        rows, columns = (
            np.arange(count) * windows.stride[axis]
            + place * windows.dilation[axis]
            - windows.padding[axis][0]
            for axis, (count, place) in enumerate(
                zip(moves.shape[2:], divmod(tap, windows.kernel[1]), strict=True)
            )
        )
        down = moves[:, 0] + rows.astype(moves.dtype)[:, np.newaxis]
        right = moves[:, 1] + columns.astype(moves.dtype)
        return down.reshape(len(moves), -1), right.reshape(len(moves), -1)

    def _add(self, output: Array, values: Array, weight: Array, tap: int) -> None:
        """Add a tap's products to an output of shape (N, O, Hout, Wout)."""
        row, column = divmod(tap, self.windows.kernel[1])
        matrix = weight[:, :, row, column].reshape(self.groups, -1, weight.shape[1])
        sizes = len(output), self.groups, weight.shape[1], values.shape[2]
        grouped = values.reshape(sizes)
        output += np.matmul(matrix, grouped).reshape(output.shape)


@register_extension("torchvision::deform_conv2d")
def deform_conv2d(
    input: Array,
    weight: WeightOf[Array],
    offset: Array,
    mask: Array,
    bias: WeightOf[Array | None],
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Array:
    """Convolution whose taps are moved by an operand; as ``torchvision.ops.DeformConv2d``."""
    layer = DeformConv2d(
        weight,
        bias,
        stride=(stride_h, stride_w),
        padding=(pad_h, pad_w),
        dilation=(dilation_h, dilation_w),
        groups=groups,
    )
    return layer.forward(input, offset, mask if use_mask else None)
