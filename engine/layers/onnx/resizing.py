"""Resizing and sampling of images, with all of ONNX's coordinate transformations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import LayerError, ParameterError
from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_ints, axes_of, cast
from engine.layers.grid_sampling import affine_grid, grid_sample
from engine.layers.layer import Ints
from engine.layers.onnx.arguments import numbers_of
from engine.layers.registry import register
from engine.layers.resampling import cubic_kernel, weighted_taps
from engine.layers.windows import working_dtype
from engine.promotion import float_dtype
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["resize"]


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis to be resized.

    Attributes
    ----------
    size, count : int
        Input and output size.
    length : float
        Output size before rounding.
    start, end : float
        Part of the input that ``tf_crop_and_resize`` selects, from 0 to 1.
    """

    size: int
    count: int
    length: float
    start: float = 0.0
    end: float = 1.0

    @property
    def scale(self) -> float:
        return self.length / self.size


def _asymmetric(axis: _Axis, outputs: Array) -> Array:
    return outputs / axis.scale


def _half_pixel(axis: _Axis, outputs: Array) -> Array:
    return (outputs + 0.5) / axis.scale - 0.5


def _half_pixel_of_pytorch(axis: _Axis, outputs: Array) -> Array:
    return _half_pixel(axis, outputs) if axis.count > 1 else np.zeros(axis.count)


def _half_pixel_symmetric(axis: _Axis, outputs: Array) -> Array:
    moved = axis.size / 2 * (1 - axis.count / axis.length)
    return moved + _half_pixel(axis, outputs)


def _align_corners(axis: _Axis, outputs: Array) -> Array:
    return outputs * (axis.size - 1) / max(axis.length - 1, 1) if axis.count > 1 else outputs


def _crop_and_resize(axis: _Axis, outputs: Array) -> Array:
    last = axis.size - 1
    if axis.count == 1:
        return np.full(1, 0.5 * (axis.start + axis.end) * last)
    step = (axis.end - axis.start) * last / (axis.count - 1)
    return axis.start * last + outputs * step


# Functions from output indices to input positions
_POSITIONS: Final[dict[str, Callable[[_Axis, Array], Array]]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _half_pixel_of_pytorch,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_half_pixel_for_nn": lambda axis, outputs: (outputs + 0.5) / axis.scale,
    "tf_crop_and_resize": _crop_and_resize,
}
_NEAREST: Final[dict[str, Callable[[Array], Array]]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@register("Resize")
def resize(
    x: Array,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    antialias: int = 0,
    axes: Ints | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Array:
    """Resize a tensor: ONNX ``Resize``.

    Parameters
    ----------
    x : ndarray of any shape
    roi : numbers, optional
        Starts and ends of the part that ``tf_crop_and_resize`` selects.
    scales : numbers, optional
        Factor of each size; the product is rounded down.
    sizes : ints, optional
        Of the result, instead of `scales`.
    mode : str
        ``nearest``, ``linear`` or ``cubic``.
    coordinate_transformation_mode : str
        Mapping of output indices to input positions: ``half_pixel``,
        ``half_pixel_symmetric``, ``pytorch_half_pixel``, ``align_corners``, ``asymmetric``
        or ``tf_crop_and_resize``.
    nearest_mode : str
        ``round_prefer_floor``, ``round_prefer_ceil``, ``floor`` or ``ceil``.
    cubic_coeff_a : float
        Slope of the cubic kernel at 1.
    exclude_outside : int
        Whether positions outside the tensor have weight 0.
    extrapolation_value : float
        Value of ``tf_crop_and_resize`` outside.
    antialias : int
        Whether to widen the kernel to shrink an image.
    axes : ints, optional
        The dimensions of `roi`, `scales` and `sizes`; all by default.
    keep_aspect_ratio_policy : str
        ``stretch``, or ``not_larger`` and ``not_smaller`` than `sizes`.

    Returns
    -------
    ndarray
        Of the input's dtype.
    """
    roi, scales, sizes = _identify_operands(x, roi, scales, sizes, axes)
    if coordinate_transformation_mode not in _POSITIONS:
        raise ParameterError(
            "coordinate_transformation_mode", f"{coordinate_transformation_mode} is not known"
        )
    chosen = axes_of(axes, x.ndim, "axes")
    parts = _make_axes(x, chosen, roi, scales, sizes, keep_aspect_ratio_policy)
    cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    work = x.dtype if mode == "nearest" else working_dtype(float_dtype(x.dtype))
    result = x.astype(work, copy=False)
    for place, axis in zip(chosen, parts, strict=True):
        if axis.length == axis.size and not cropped:  # stays, also where positions would not
            continue
        positions = _POSITIONS[coordinate_transformation_mode](
            axis, np.arange(axis.count, dtype=np.float64)
        )
        if mode == "nearest":
            # The rounding of float32 scales must not select another pixel.
            near = _NEAREST[nearest_mode](np.round(positions, 5)).astype(np.int64)
            result = np.take(result, np.clip(near, 0, axis.size - 1), place)
        else:
            taps = _compute_taps(
                axis, positions, mode, cubic_coeff_a, exclude_outside, antialias
            )
            result = weighted_taps(result, place, *taps)
        if cropped:
            outside = (positions < 0) | (positions > axis.size - 1)
            column = outside.reshape(-1, *(1,) * (x.ndim - place - 1))
            result = np.where(column, result.dtype.type(extrapolation_value), result)
    return cast(result, x.dtype)


def _identify_operands(
    x: Array, roi: Any, scales: Any, sizes: Any, axes: Ints | None
) -> tuple[Any, Any, Any]:
    """Identify operands whose position changed because the file omits others."""
    given = [value for value in (roi, scales, sizes) if np.size(() if value is None else value)]
    count = x.ndim if axes is None else len(as_ints(axes, "axes"))
    roi = scales = sizes = None
    for value in given:
        numbers = numbers_of(value)
        if numbers.dtype.kind in "iu":
            sizes = value
        elif numbers.size == 2 * count:
            roi = value
        else:
            scales = value
    return roi, scales, sizes


def _make_axes(
    x: Array, chosen: tuple[int, ...], roi: Any, scales: Any, sizes: Any, policy: str
) -> list[_Axis]:
    lengths = [x.shape[axis] for axis in chosen]
    ends = [0.0] * len(chosen) + [1.0] * len(chosen)
    if roi is not None:
        ends = numbers_of(roi).astype(np.float64).tolist()
    if sizes is not None:
        wanted: list[float] = [*as_ints(sizes, "sizes")]
        if policy != "stretch":
            ratios = [w / length for w, length in zip(wanted, lengths, strict=True)]
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            exact = [ratio * length for length in lengths]
            counts = [math.floor(number + 0.5) for number in exact]
            wanted = exact
        else:
            counts = [int(number) for number in wanted]
    elif scales is not None:
        factors = numbers_of(scales).astype(np.float64).tolist()
        if len(factors) != len(chosen):
            raise LayerError(f"{len(factors)} scales do not fit {len(chosen)} axes")
        taken = [
            last - first
            for first, last in zip(ends[: len(chosen)], ends[len(chosen) :], strict=True)
        ]
        wanted = [f * length for f, length in zip(factors, lengths, strict=True)]
        # A scale such as 0.6 is a little smaller in float32.
        counts = [
            math.floor(number * part + 1e-5) for number, part in zip(wanted, taken, strict=True)
        ]
    else:
        raise LayerError("neither scales nor sizes are given")
    return [
        _Axis(length, count, number, first, last)
        for length, count, number, first, last in zip(
            lengths, counts, wanted, ends[: len(chosen)], ends[len(chosen) :], strict=True
        )
    ]


def _compute_taps(
    axis: _Axis,
    positions: Array,
    mode: str,
    slope: float,
    exclude_outside: int,
    antialias: int,
) -> tuple[Array, Array]:
    """Input positions of each output and their weights, each of shape (T, count)."""
    if mode not in {"linear", "cubic"}:
        raise ParameterError("mode", f"mode={mode} is not one of nearest, linear, cubic")
    widening = max(1 / axis.scale, 1.0) if antialias else 1.0
    reach = (2 if mode == "cubic" else 1) * widening
    lower = np.floor(positions - reach).astype(np.int64) + 1
    places = lower + np.arange(math.ceil(2 * reach) + 1)[:, np.newaxis]
    distances = (places - positions) / widening
    if mode == "cubic":
        weights = cubic_kernel(distances, slope)
    else:
        weights = np.maximum(1 - np.abs(distances), 0)
    if exclude_outside:
        weights = np.where((places >= 0) & (places < axis.size), weights, 0)
    weights = weights / weights.sum(0)
    return np.clip(places, 0, axis.size - 1), weights


@register("Upsample")
def upsample(x: Array, scales: Any, mode: str = "nearest") -> Array:
    """Enlarge a tensor: ONNX ``Upsample``.

    Parameters
    ----------
    x : ndarray of any shape
    scales : numbers
        Factor of each size.
    mode : str
        ``nearest`` or ``linear``.

    Returns
    -------
    ndarray
    """
    return resize(
        x,
        scales=scales,
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


@register("AffineGrid")
def affine(theta: Array, size: Any, align_corners: int = 0) -> Array:
    """Positions of an image under an affine map: ONNX ``AffineGrid``.

    Parameters
    ----------
    theta : ndarray of shape (N, 2, 3) or (N, 3, 4)
        Matrices of the maps, the shift in the last column.
    size : ints
        (N, C, H, W) or (N, C, D, H, W).
    align_corners : int
        Whether -1 and 1 are the centres of the outermost pixels, rather than their edges.

    Returns
    -------
    ndarray of shape (N, H, W, 2) or (N, D, H, W, 3)
    """
    return affine_grid(theta, as_ints(size, "size"), bool(align_corners))


# PyTorch's name of each interpolation mode of ONNX
_SAMPLING: Final = {"linear": "bilinear", "cubic": "bicubic"}


@register("GridSample")
def sample_grid(
    x: OperandOf[Value],
    grid: OperandOf[Value],
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: int = 0,
) -> Array:
    """Sample an image at given positions: ONNX ``GridSample``.

    Parameters
    ----------
    x : ndarray of shape (N, C, H, W) or (N, C, D, H, W)
    grid : ndarray of shape (N, H', W', 2) or (N, D', H', W', 3)
        Positions, from -1 to 1.
    mode : str
        ``linear``, ``nearest`` or ``cubic``; ``bilinear`` and ``bicubic`` before opset 20.
    padding_mode : str
        Values outside the image: ``zeros``, ``border`` or ``reflection``.
    align_corners : int
        Whether -1 and 1 are the centres of the outermost pixels, rather than their edges.

    Returns
    -------
    ndarray of shape (N, C, H', W') or (N, C, D', H', W')
    """
    image, places = np.asarray(x), np.asarray(grid)
    method = _SAMPLING.get(mode, mode)
    return grid_sample(image, places, method, padding_mode, bool(align_corners))
