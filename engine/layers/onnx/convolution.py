"""Convolutions of ONNX that PyTorch lacks: uneven padding, or padding by rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.layers.arguments import as_ints
from engine.layers.convolution import convolution
from engine.layers.deformable_convolution import DeformConv2d
from engine.layers.layer import Ints
from engine.layers.onnx.arguments import windows_of
from engine.layers.padding import pad
from engine.layers.registry import register
from engine.layers.transposed_convolution import transposed_convolution
from engine.layers.windows import Windows, new_output, per_axis
from engine.values import Array

__all__ = ["conv", "conv_transpose"]


@register("Conv")
def conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    kernel_shape: Ints | None = None,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> Array:
    """Convolution: ONNX ``Conv``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)
    w : ndarray of shape (O, C / group, K...)
    b : ndarray of shape (O,), optional
    kernel_shape : ints, optional
        K...; only for the file, the weight determines it.
    strides : ints
        Positions from one window to the next.
    pads : ints
        Zeros before each axis, then after each axis.
    dilations : ints
        Positions from one tap of the kernel to the next.
    group : int
        Number of independent convolutions of groups of channels.
    auto_pad : str
        ``SAME_UPPER`` or ``SAME_LOWER``: padding for ``H / stride`` outputs, rounded up, with
        an odd position at the end or at the start.

    Returns
    -------
    ndarray of shape (N, O, H'...)
    """
    windows = windows_of(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad)
    return convolution(_pad(x, windows), w, b, windows.stride, 0, windows.dilation, group)


@register("ConvTranspose")
def conv_transpose(
    x: Array,
    w: Array,
    b: Array | None = None,
    kernel_shape: Ints | None = None,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
    output_padding: Ints = 0,
    output_shape: Ints | None = None,
) -> Array:
    """Transposed convolution: ONNX ``ConvTranspose``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)
    w : ndarray of shape (C, O / group, K...)
    b : ndarray of shape (O,), optional
    kernel_shape : ints, optional
        K...; only for the file, the weight determines it.
    strides : ints
        Positions from one window of the output to the next.
    pads : ints
        Positions cut off before each axis of the output, then after each axis.
    dilations : ints
        Positions from one tap of the kernel to the next.
    group : int
        Number of independent convolutions of groups of channels.
    auto_pad : str
        ``SAME_UPPER`` or ``SAME_LOWER``: crop to ``H * stride`` positions, with an odd
        position at the end or at the start.
    output_padding : ints
        Positions added after each axis of the output.
    output_shape : ints, optional
        H'..., instead of `pads`.

    Returns
    -------
    ndarray of shape (N, O, H'...)
    """
    rank = w.ndim - 2
    steps = per_axis("strides", strides, rank, least=1)
    spread = per_axis("dilations", dilations, rank, least=1)
    behind = per_axis("output_padding", output_padding, rank)
    whole = transposed_convolution(x, w, None, steps, 0, 0, group, spread)
    sizes = [size + extra for size, extra in zip(whole.shape[2:], behind, strict=True)]
    wanted = as_ints(output_shape, "output_shape")[-rank:]
    if not wanted and auto_pad.startswith("SAME"):
        wanted = tuple(size * step for size, step in zip(x.shape[2:], steps, strict=True))
    if wanted:
        totals = [size - target for size, target in zip(sizes, wanted, strict=True)]
        # An odd position is cropped at the end or at the start.
        lower = [total // 2 for total in totals]
        upper = [total - total // 2 for total in totals]
        before, after = (lower, upper) if auto_pad == "SAME_UPPER" else (upper, lower)
    else:
        numbers = per_axis("pads", 0 if auto_pad == "VALID" else pads, 2 * rank)
        before, after = list(numbers[:rank]), list(numbers[rank:])
    pairs = [
        (-first, extra - last) for first, last, extra in zip(before, after, behind, strict=True)
    ]
    result = pad(whole, tuple(number for pair in reversed(pairs) for number in pair))
    if b is not None:
        result = result + b.astype(result.dtype).reshape(-1, *(1,) * rank)
    return result


@register("ConvInteger")
def conv_integer(
    x: Array,
    w: Array,
    x_zero_point: Any = 0,
    w_zero_point: Any = 0,
    kernel_shape: Ints | None = None,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> Array:
    """Convolution of integers, less their zero points: ONNX ``ConvInteger``.

    Parameters
    ----------
    x, w : int8 or uint8 ndarray
        As in ``Conv``.
    x_zero_point : int
        The integer that represents 0 in `x`; padding is 0.
    w_zero_point : int, or ndarray of shape (O,)
        The integer that represents 0 in `w`.
    kernel_shape, strides, pads, dilations, group, auto_pad
        As in ``Conv``.

    Returns
    -------
    int32 ndarray of shape (N, O, H'...)
    """
    column = (-1, *(1,) * (w.ndim - 1))
    # Float64 represents sums of such products exactly.
    left = x.astype(np.float64) - np.asarray(x_zero_point, np.float64)
    right = w.astype(np.float64) - np.asarray(w_zero_point, np.float64).reshape(column)
    sums = conv(left, right, None, kernel_shape, strides, pads, dilations, group, auto_pad)
    return sums.astype(np.int64).astype(np.int32)


@register("DeformConv")
def deform_conv(
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None = None,
    mask: Array | None = None,
    kernel_shape: Ints | None = None,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
    group: int = 1,
    offset_group: int = 1,
) -> Array:
    """Convolution whose taps are moved by an operand: ONNX ``DeformConv``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H, W)
    w : ndarray of shape (O, C / group, Kh, Kw)
    offset : ndarray of shape (N, 2 * G * Kh * Kw, H', W')
        Row and column offsets of each tap.
    b : ndarray of shape (O,), optional
    mask : ndarray of shape (N, G * Kh * Kw, H', W'), optional
        Factor of each tap.
    kernel_shape, strides, pads, dilations, group
        As in ``Conv``.
    offset_group : int
        G, the number of groups of channels with their own offsets.

    Returns
    -------
    ndarray of shape (N, O, H', W')
    """
    if b is not None and b.ndim == offset.ndim:  # without a bias the mask follows
        b, mask = None, b
    windows = windows_of(x.shape[2:], w.shape[2:], strides, dilations, pads)
    layer = DeformConv2d(w, b, windows.stride, 0, windows.dilation, group)
    return layer.forward(_pad(x, windows), offset, mask)


@register("Col2Im")
def columns_to_image(
    input: Array,
    image_shape: Any,
    block_shape: Any,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
) -> Array:
    """Add windows at their positions in an image: ONNX ``Col2Im``.

    Parameters
    ----------
    input : ndarray of shape (N, C * K, L)
        L windows of K positions.
    image_shape, block_shape : ints
        H... of the image and K... of the windows, whose product is K.
    strides, dilations : ints
        Positions from one window, and from one of its positions, to the next.
    pads : ints
        Positions cut off before each axis, then after each axis.

    Returns
    -------
    ndarray of shape (N, C, H...)
    """
    sizes, kernel = as_ints(image_shape, "image_shape"), as_ints(block_shape, "block_shape")
    windows = windows_of(sizes, kernel, strides, dilations, pads)
    counts = windows.counts(sizes)
    lead = (len(input), input.shape[1] // windows.tap_count)
    columns = input.reshape(*lead, windows.tap_count, *counts)
    image = new_output((*lead, *sizes), input.dtype, 0)
    taps = windows.taps(sizes, tuple(slice(0, count) for count in counts))
    for tap, outputs, inputs in taps:
        image[:, :, *inputs] += columns[:, :, tap][:, :, *outputs]
    return image


def _pad(x: Array, windows: Windows) -> Array:
    """Pad an image with zeros for windows that extend beyond it."""
    flat = tuple(number for pair in reversed(windows.padding) for number in pair)
    return pad(x, flat) if any(flat) else x
