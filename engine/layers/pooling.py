"""Pooling with windows of one size: maximum, average and power average.

Maximum and sum are separable. Windows are reduced along one spatial axis after the other, in
``Kh + Kw`` passes over the image for ``Kh * Kw`` taps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.errors import ParameterError
from engine.layers.layer import Ints, Layer, OperatorCall
from engine.layers.registry import register
from engine.layers.windows import (
    AxisTap,
    Windows,
    per_axis,
    reduce_axis,
    require_image,
    spatial_rank,
    working_dtype,
)
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.promotion import DType

__all__ = [
    "AveragePool",
    "MaxPool",
    "PowerPool",
    "average",
    "count_taps_inside",
    "divide_sums",
    "largest",
    "largest_of_axis",
    "largest_with_indices",
    "lowest",
]

_EXACT: Final = 1 << 62


def _make_windows(
    call: OperatorCall, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints
) -> Windows:
    rank = spatial_rank(call)
    kernel = per_axis("kernel_size", kernel_size, rank, least=1)
    paddings = per_axis("padding", padding, rank)
    dilations = per_axis("dilation", dilation, rank, least=1)
    for k, p, d in zip(kernel, paddings, dilations, strict=True):
        if p > (d * (k - 1) + 1) // 2:
            raise ParameterError(
                "padding",
                f"padding={padding} is more than half of the window (kernel_size={kernel_size}"
                f", dilation={dilation})",
            )
    strides = kernel
    if stride is not None and stride != ():
        strides = per_axis("stride", stride, rank, least=1)
    return Windows(
        kernel,
        strides,
        dilations,
        tuple((p, p) for p in paddings),
    )


@register(
    "aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d",
    "aten::max_pool1d_with_indices", "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices",
    operands="input kernel_size stride padding dilation ceil_mode",
)  # fmt: skip
@register(
    "nn.MaxPool1d", "nn.MaxPool2d", "nn.MaxPool3d",
    "F.max_pool1d", "F.max_pool2d", "F.max_pool3d",
    "torch.max_pool1d", "torch.max_pool2d", "torch.max_pool3d",
)  # fmt: skip
class MaxPool(Layer):
    """Largest value of each window: ``torch.nn.MaxPool1d``, ``MaxPool2d``, ``MaxPool3d``.

    ``y[n, c, p] = max over t of x[n, c, p * stride + t * dilation - padding]``; positions
    outside the image do not count, NaN wins. Sizes: ``Hout = (H + 2 * padding - dilation *
    (Kh - 1) - 1) / stride + 1``, rounded down, or up with `ceil_mode`.

    Parameters
    ----------
    kernel_size : int or tuple of int
    stride : int or tuple of int, optional
        `kernel_size` by default.
    padding, dilation : int or tuple of int
    ceil_mode : bool
        Whether a last window may extend beyond the image.
    return_indices : bool
        Whether to return a pair: the values, and int64 indices into the flattened (H..., )
        of each channel. Of equal values the first counts.
    """

    def __init__(
        self,
        call: OperatorCall,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> None:
        self.windows = _make_windows(call, kernel_size, stride, padding, dilation)
        self.ceil_mode = ceil_mode
        self.return_indices = return_indices or call.type.endswith("_with_indices")

    @override
    def forward(self, input: Array) -> Array | tuple[Array, Array]:
        if self.return_indices:
            return largest_with_indices(input, self.windows, self.ceil_mode)
        return largest(input, self.windows, self.ceil_mode)


@register(
    "aten::avg_pool1d",
    "aten::avg_pool2d",
    "aten::avg_pool3d",
    operands="input kernel_size stride padding ceil_mode count_include_pad divisor_override",
)
@register(
    "nn.AvgPool1d", "nn.AvgPool2d", "nn.AvgPool3d",
    "F.avg_pool1d", "F.avg_pool2d", "F.avg_pool3d",
    "torch.avg_pool1d",
)  # fmt: skip
class AveragePool(Layer):
    """Mean of each window: ``torch.nn.AvgPool1d``, ``AvgPool2d``, ``AvgPool3d``.

    ``y[n, c, p] = sum over t of x[n, c, p * stride + t - padding] / divisor``. Sizes:
    ``Hout = (H + 2 * padding - Kh) / stride + 1``, rounded down, or up with `ceil_mode`.

    Parameters
    ----------
    kernel_size : int or tuple of int
    stride : int or tuple of int, optional
        `kernel_size` by default.
    padding : int or tuple of int
        Zeros on both sides.
    ceil_mode : bool
        Whether a last window may extend beyond the padded image; positions beyond it never
        count.
    count_include_pad : bool
        Whether padding counts in the divisor.
    divisor_override : int, optional
        The divisor itself.
    dilation : int or tuple of int
        Only 1 in PyTorch; pnnx writes it for ONNX models.
    """

    def __init__(
        self,
        call: OperatorCall,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        dilation: Ints = 1,
    ) -> None:
        self.windows = _make_windows(call, kernel_size, stride, padding, dilation)
        if divisor_override == 0:
            raise ParameterError("divisor_override", "divisor_override must not be 0")
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    @override
    def forward(self, input: Array) -> Array:
        return average(
            input,
            self.windows,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


@register(
    "nn.LPPool1d", "nn.LPPool2d", "nn.LPPool3d", "F.lp_pool1d", "F.lp_pool2d", "F.lp_pool3d"
)
class PowerPool(Layer):
    """Power average of each window: ``torch.nn.LPPool1d``, ``LPPool2d``, ``LPPool3d``.

    ``y = (sum over t of x[t] ** norm_type) ** (1 / norm_type)``, NaN if that is not a real
    number.

    Parameters
    ----------
    norm_type : float
        1 gives the sum, 2 the Euclidean length.
    kernel_size : int or tuple of int
    stride : int or tuple of int, optional
        `kernel_size` by default.
    ceil_mode : bool
        Whether a last window may extend beyond the end. The mean of its existing elements
        replaces the missing ones.
    """

    def __init__(
        self,
        call: OperatorCall,
        norm_type: float,
        kernel_size: Ints,
        stride: Ints | None = None,
        ceil_mode: bool = False,
    ) -> None:
        if norm_type == 0:
            raise ParameterError("norm_type", "norm_type must not be 0")
        self.power = norm_type
        self.windows = _make_windows(call, kernel_size, stride, 0, 1)
        self._average = AveragePool(call, kernel_size, stride, ceil_mode=ceil_mode)

    @override
    def forward(self, input: Array) -> Array:
        work = working_dtype(input.dtype)
        mean = self._average.forward(np.power(input.astype(work, copy=False), self.power))
        result: Array = np.power(mean * self.windows.tap_count, 1 / self.power)
        return result.astype(input.dtype, copy=False)


def lowest(dtype: DType) -> float | int:
    """Return the lowest number of a dtype."""
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def divide_sums(total: Array, divisor: Array, dtype: DType) -> Array:
    """Divide sums by counts, in place; integers round towards zero."""
    if total.dtype.kind == "f":
        total /= divisor.astype(total.dtype)
        return total.astype(dtype, copy=False)
    quotient: Array = np.abs(total) // np.abs(divisor) * np.sign(total) * np.sign(divisor)
    return quotient.astype(dtype, copy=False)


def largest(input: Array, windows: Windows, ceil_mode: bool = False) -> Array:
    """Find the largest value of each window.

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    windows : Windows
    ceil_mode : bool
        Whether a last window may extend beyond the end.

    Returns
    -------
    ndarray of shape (N, C, H'...) or (C, H'...)
    """
    counts, taps = _list_taps(input, windows, ceil_mode)
    for axis, (count, steps) in enumerate(zip(counts, taps, strict=True), -windows.rank):
        input = reduce_axis(input, axis, count, steps, np.maximum, lowest(input.dtype))
    return input


def largest_with_indices(
    input: Array, windows: Windows, ceil_mode: bool = False
) -> tuple[Array, Array]:
    """Find the largest value of each window and its index in the flattened (H...).

    Axes are reduced from the last to the first. So the first of equal values in row-major
    order wins, and the last of several NaNs, as in PyTorch's loops. Parameters as for
    `largest`.
    """
    counts, taps = _list_taps(input, windows, ceil_mode)
    sizes = input.shape[-windows.rank :]
    indices = np.broadcast_to(np.arange(np.prod(sizes)).reshape(sizes), input.shape)
    for axis in range(-1, -windows.rank - 1, -1):
        input, indices = largest_of_axis(input, indices, axis, counts[axis], taps[axis])
    return input, indices


def average(
    input: Array,
    windows: Windows,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Average each window.

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    windows : Windows
    ceil_mode, count_include_pad, divisor_override
        As for `AveragePool`.

    Returns
    -------
    ndarray of shape (N, C, H'...) or (C, H'...)
    """
    counts, taps = _list_taps(input, windows, ceil_mode)
    sizes = input.shape[-windows.rank :]
    total = input.astype(working_dtype(input.dtype), copy=False)
    # Counts that exceed an integer are computed as floats.
    divisor = np.ones((), np.float64 if windows.tap_count > _EXACT else np.int64)
    for axis, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        total = reduce_axis(total, axis - windows.rank, count, taps[axis], np.add, 0)
        inside = count_taps_inside(windows, axis, size, count, padded=count_include_pad)
        divisor = divisor[..., np.newaxis] * inside
    if divisor_override is not None:
        divisor = np.asarray(divisor_override)
    return divide_sums(total, divisor, input.dtype)


def _list_taps(
    input: Array, windows: Windows, ceil_mode: bool
) -> tuple[tuple[int, ...], list[Iterator[AxisTap]]]:
    """Number of windows of each axis, and their taps."""
    require_image(input, windows.rank)
    sizes = input.shape[-windows.rank :]
    counts = windows.counts(sizes, ceil_mode=ceil_mode)
    taps = [windows.axis_taps(*axis) for axis in zip(range(3), sizes, counts, strict=False)]
    return counts, taps


def count_taps_inside(
    windows: Windows, axis: int, size: int, count: int, *, padded: bool
) -> Array:
    """Count the taps of each window of an axis inside the image or its padding.

    Parameters
    ----------
    windows : Windows
    axis : int
    size, count : int
        Of the input and of the output along the axis.
    padded : bool
        Whether the padding counts, too.

    Returns
    -------
    ndarray of shape (count,)
        At least 1 each.
    """
    before, after = windows.padding[axis] if padded else (0, 0)
    kernel, dilation = windows.kernel[axis], windows.dilation[axis]
    numbers = np.arange(count)
    if size + 2 * max(dilation * kernel, *windows.padding[axis]) > _EXACT:
        numbers = numbers.astype(object)  # an int64 would overflow
    start = numbers * windows.stride[axis] - windows.padding[axis][0]
    first = np.clip(-((start + before) // dilation), 0, kernel)
    last = np.clip((size + after - 1 - start) // dilation + 1, 0, kernel)
    counted: Array = np.maximum(last - first, 1)
    return counted


def largest_of_axis(
    image: Array, indices: Array, axis: int, count: int, taps: Iterator[AxisTap]
) -> tuple[Array, Array]:
    """Reduce windows along one axis to their largest value, carrying its index along.

    Parameters
    ----------
    image, indices : ndarray of shape (..., A, ...)
        A at `axis`.
    axis, count : int
    taps : iterator of AxisTap

    Returns
    -------
    values, indices : ndarray of shape (..., count, ...)
    """
    shape = list(image.shape)
    shape[axis] = count
    values = np.full(shape, lowest(image.dtype), image.dtype)
    places = np.full(shape, -1, np.int64)
    lead = (slice(None),) * (axis % image.ndim)
    for outputs, inputs in taps:
        source, target = (*lead, inputs), (*lead, outputs)
        new, old = image[source], values[target]
        wins = (new > old) | np.isnan(new) | (places[target] < 0)
        values[target] = np.where(wins, new, old)
        places[target] = np.where(wins, indices[source], places[target])
    return values, places
