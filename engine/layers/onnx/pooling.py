"""Poolings of ONNX that PyTorch lacks."""

from __future__ import annotations

import math

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.layer import Ints, OperatorCall, Outputs
from engine.layers.onnx.arguments import numbers_of, windows_of
from engine.layers.pooling import average, largest, largest_with_indices
from engine.layers.regions import roi_align, roi_pool
from engine.layers.registry import register
from engine.layers.windows import Windows, new_output, reduce_axis, working_dtype
from engine.values import Array

__all__ = ["average_pool", "max_pool"]


@register("MaxPool")
def max_pool(
    x: Array,
    call: OperatorCall,
    kernel_shape: Ints,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    storage_order: int = 0,
) -> Array | Outputs:
    """Largest value of each window: ONNX ``MaxPool``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)
    kernel_shape : ints
        Size of the window.
    strides, dilations : ints
        Positions from one window, and from one of its taps, to the next.
    pads : ints
        Padding before each axis, then after each axis.
    auto_pad : str
        ``SAME_UPPER`` or ``SAME_LOWER``: as in ``Conv``.
    ceil_mode : int
        Whether a last window may extend beyond the end.
    storage_order : int
        Whether indices count columns first.

    Returns
    -------
    ndarray of shape (N, C, H'...)
    int64 ndarray of the same shape
        Indices of the values in the flattened input.
    """
    windows = _make_windows(x, kernel_shape, strides, dilations, pads, auto_pad)
    if call.output_count < 2:
        return largest(x, windows, bool(ceil_mode))
    values, places = largest_with_indices(x, windows, bool(ceil_mode))
    sizes = x.shape[2:]
    if storage_order:
        places = np.ravel_multi_index(np.unravel_index(places, sizes), sizes, order="F")
    images = np.arange(math.prod(x.shape[:2])) * math.prod(sizes)
    return Outputs((values, places + images.reshape(*x.shape[:2], *(1,) * len(sizes))))


@register("AveragePool")
def average_pool(
    x: Array,
    kernel_shape: Ints,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> Array:
    """Mean of each window: ONNX ``AveragePool``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode
        As in ``MaxPool``.
    count_include_pad : int
        Whether padding counts in the divisor.

    Returns
    -------
    ndarray of shape (N, C, H'...)
    """
    windows = _make_windows(x, kernel_shape, strides, dilations, pads, auto_pad)
    return average(x, windows, bool(ceil_mode), bool(count_include_pad))


@register("LpPool")
def lp_pool(
    x: Array,
    kernel_shape: Ints,
    p: int = 2,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Array:
    """The p-norm of each window: ONNX ``LpPool``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)
    p : int
        Exponent of the norm.
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode
        As in ``MaxPool``.

    Returns
    -------
    ndarray of shape (N, C, H'...)
    """
    windows = _make_windows(x, kernel_shape, strides, dilations, pads, auto_pad)
    sizes = x.shape[2:]
    total = np.power(np.abs(x.astype(working_dtype(x.dtype), copy=False)), p)
    for axis, count in enumerate(windows.counts(sizes, ceil_mode=bool(ceil_mode))):
        taps = windows.axis_taps(axis, sizes[axis], count)
        total = reduce_axis(total, axis - windows.rank, count, taps, np.add, 0)
    return np.asarray(np.power(total, 1 / p)).astype(x.dtype, copy=False)


def _make_windows(
    x: Array, kernel: Ints, strides: Ints, dilations: Ints, pads: Ints, auto_pad: str
) -> Windows:
    if x.ndim < 3:
        raise LayerError(
            f"the input must be N×C×H…; its shape is {describe_shapes([x.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    sizes = kernel if isinstance(kernel, tuple) else (kernel,) * (x.ndim - 2)
    return windows_of(x.shape[2:], sizes, strides, dilations, pads, auto_pad)


@register("GlobalMaxPool")
def global_max_pool(x: Array) -> Array:
    """Largest value of each channel: ONNX ``GlobalMaxPool``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)

    Returns
    -------
    ndarray of shape (N, C, 1...)
    """
    return np.asarray(x.max(tuple(range(2, x.ndim)), keepdims=True))


@register("GlobalAveragePool")
def global_average_pool(x: Array) -> Array:
    """Mean of each channel: ONNX ``GlobalAveragePool``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)

    Returns
    -------
    ndarray of shape (N, C, 1...)
    """
    axes = tuple(range(2, x.ndim))
    return np.asarray(x.mean(axes, working_dtype(x.dtype), keepdims=True)).astype(x.dtype)


@register("GlobalLpPool")
def global_lp_pool(x: Array, p: int = 2) -> Array:
    """The p-norm of each channel: ONNX ``GlobalLpPool``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)
    p : int
        Exponent of the norm.

    Returns
    -------
    ndarray of shape (N, C, 1...)
    """
    axes = tuple(range(2, x.ndim))
    total = np.power(np.abs(x.astype(working_dtype(x.dtype))), p).sum(axes, keepdims=True)
    return np.asarray(np.power(total, 1 / p)).astype(x.dtype)


@register("MaxUnpool")
def max_unpool(
    x: Array,
    indices: Array,
    output_shape: Array | tuple[int, ...] | None = None,
    kernel_shape: Ints = 1,
    strides: Ints = 1,
    pads: Ints = 0,
) -> Array:
    """Put values back at the positions of max pooling: ONNX ``MaxUnpool``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H...)
    indices : int64 ndarray of the same shape
        Indices into the flattened output.
    output_shape : ints, optional
        Of the result; ``(H - 1) * stride + kernel - pads`` by default.
    kernel_shape, strides, pads : ints
        As they were in ``MaxPool``.

    Returns
    -------
    ndarray of shape (N, C, H'...)
        Zero everywhere else.
    """
    windows = _make_windows(x, kernel_shape, strides, 1, pads, "NOTSET")
    natural = tuple(
        (size - 1) * step + k - sum(border)
        for size, step, k, border in zip(
            x.shape[2:], windows.stride, windows.kernel, windows.padding, strict=True
        )
    )
    given = tuple(int(size) for size in numbers_of(output_shape))
    sizes = given or (*x.shape[:2], *natural)
    # Indices refer to an output of default size, which is the front part of a larger one.
    places = np.unravel_index(indices.reshape(-1), (*x.shape[:2], *natural))
    result = new_output(sizes, x.dtype, 0)
    result[places] = x.reshape(-1)
    return result


@register("MaxRoiPool")
def max_roi_pool(
    x: Array, rois: Array, pooled_shape: Ints, spatial_scale: float = 1.0
) -> Array:
    """Largest value of each cell of regions: ONNX ``MaxRoiPool``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H, W)
    rois : ndarray of shape (K, 5)
        Image and corners of each region.
    pooled_shape : ints
        Number of cells of a region, h and w.
    spatial_scale : float
        Factor of the corners' coordinates.

    Returns
    -------
    ndarray of shape (K, C, h, w)
    """
    return roi_pool(x, rois, pooled_shape, spatial_scale)


@register("RoiAlign")
def align_regions(
    x: Array,
    rois: Array,
    batch_indices: Array,
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    mode: str = "avg",
    coordinate_transformation_mode: str = "half_pixel",
) -> Array:
    """Mean of bilinear samples in each cell of regions: ONNX ``RoiAlign``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H, W)
    rois : ndarray of shape (K, 4)
        Corners of each region.
    batch_indices : int64 ndarray of shape (K,)
        Image of each region.
    output_height, output_width : int
        Cells of a region, h and w.
    sampling_ratio : int
        Samples of a cell along each axis; by default as many as pixels.
    spatial_scale : float
        Factor of the corners' coordinates.
    mode : str
        ``avg``.
    coordinate_transformation_mode : str
        ``half_pixel`` if pixel centres are at half-integer coordinates, else
        ``output_half_pixel``.

    Returns
    -------
    ndarray of shape (K, C, h, w)
    """
    if mode != "avg":
        raise LayerError(f"mode={mode} is not supported, only avg")
    boxes = np.concatenate([batch_indices.reshape(-1, 1).astype(rois.dtype), rois], 1)
    return roi_align(
        x,
        boxes,
        (output_height, output_width),
        spatial_scale,
        sampling_ratio or -1,
        coordinate_transformation_mode == "half_pixel",
    )
