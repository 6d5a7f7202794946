"""Unfolding an image into its windows, and folding windows back into an image."""

from __future__ import annotations

import math

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import as_ints
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.layers.windows import Windows, new_output, per_axis, require_image
from engine.values import Array, Value

__all__ = ["fold", "fold_windows", "unfold"]


@register("nn.Unfold", "F.unfold", "aten::im2col")
def unfold(
    input: Array,
    kernel_size: Ints | Array,
    dilation: Ints | Array = 1,
    padding: Ints | Array = 0,
    stride: Ints | Array = 1,
) -> Array:
    """Write each window as a column: ``torch.nn.Unfold``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H, W) or (C, H, W)
    kernel_size, dilation, padding, stride : int or tuple of int
        Of the windows; positions in the padding are 0.

    Returns
    -------
    ndarray of shape (N, C * Kh * Kw, L) or (C * Kh * Kw, L)
        L windows in row-major order, as many as a convolution has outputs.
    """
    require_image(input, 2)
    windows = _make_windows(kernel_size, dilation, padding, stride)
    sizes = input.shape[-2:]
    counts = windows.counts(sizes)
    lead = input.shape[:-2]
    columns = new_output((*lead, *windows.kernel, *counts), input.dtype, 0)
    flat = columns.reshape(*lead, windows.tap_count, *counts)
    taps = windows.taps(sizes, tuple(slice(0, count) for count in counts))
    whole = (slice(None),) * len(lead)
    for tap, outputs, inputs in taps:
        flat[..., tap, :, :][(*whole, *outputs)] = input[(*whole, *inputs)]
    return columns.reshape(*lead[:-1], lead[-1] * windows.tap_count, math.prod(counts))


@register("nn.Fold", "F.fold", "aten::col2im")
def fold(
    input: Array,
    output_size: Ints | Array,
    kernel_size: Ints | Array,
    dilation: Ints | Array = 1,
    padding: Ints | Array = 0,
    stride: Ints | Array = 1,
) -> Array:
    """Add windows at their positions in an image: ``torch.nn.Fold``.

    Parameters
    ----------
    input : ndarray of shape (N, C * Kh * Kw, L) or (C * Kh * Kw, L)
        Windows as columns, as ``torch.nn.Unfold`` writes them.
    output_size : int or tuple of int
        H and W.
    kernel_size, dilation, padding, stride : int or tuple of int
        Of the windows; elements in the padding are dropped.

    Returns
    -------
    ndarray of shape (N, C, H, W) or (C, H, W)
        A new array; 0 outside the windows.
    """
    sizes = per_axis("output_size", as_ints(output_size, "output_size"), 2, least=1)
    windows, counts = fold_windows(output_size, kernel_size, dilation, padding, stride)
    number = windows.tap_count
    if input.ndim not in {2, 3} or (
        input.shape[-2] % number or input.shape[-1] != math.prod(counts)
    ):
        raise LayerError(
            f"an image of {describe_shapes([sizes])} has {math.prod(counts)} windows of "
            f"{number} positions in each channel; the input's shape is "
            f"{describe_shapes([input.shape])}",
            InferStatus.kInferArraySizeMismatch,
            pinned_by="output_size",
        )
    lead = (*input.shape[:-2], input.shape[-2] // number)
    columns = input.reshape(*lead, number, *counts)
    image = new_output((*lead, *sizes), input.dtype, 0)
    taps = windows.taps(sizes, tuple(slice(0, count) for count in counts))
    whole = (slice(None),) * len(lead)
    for tap, outputs, inputs in taps:
        image[(*whole, *inputs)] += columns[..., tap, :, :][(*whole, *outputs)]
    return image


def fold_windows(
    output_size: Value, kernel_size: Value, dilation: Value, padding: Value, stride: Value
) -> tuple[Windows, tuple[int, ...]]:
    """Return the windows of an image, and their number along each axis; as in `fold`."""
    windows = _make_windows(kernel_size, dilation, padding, stride)
    sizes = per_axis("output_size", as_ints(output_size, "output_size"), 2, least=1)
    return windows, tuple(windows.counts(sizes))


def _make_windows(
    kernel_size: Value, dilation: Value, padding: Value, stride: Value
) -> Windows:
    def pair(name: str, value: Value, least: int) -> tuple[int, ...]:
        return per_axis(name, as_ints(value, name), 2, least)

    return Windows(
        kernel=pair("kernel_size", kernel_size, 1),
        stride=pair("stride", stride, 1),
        dilation=pair("dilation", dilation, 1),
        padding=tuple((p, p) for p in pair("padding", padding, 0)),
    )
