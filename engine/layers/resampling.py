"""Resizing images: nearest, linear, cubic and area interpolation over any spatial axes.

Every mode except ``area`` is separable. Each axis has a table of *taps*: the input positions of
each output and their weights. Positions are computed in float32, as PyTorch's loops do, so that
ties are broken equally.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.adaptive_pooling import adaptive_average, window_bounds
from engine.layers.arguments import as_ints
from engine.layers.registry import register
from engine.layers.windows import new_output, working_dtype
from engine.memory_bound import require_memory
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.promotion import DType

__all__ = [
    "RAW_MODES",
    "cubic_kernel",
    "interpolate",
    "interpolation_taps",
    "upsample_bilinear",
    "upsample_nearest",
    "weighted_taps",
]

# Number of spatial axes by mode.
_RANKS_OF_MODE: Final = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "area": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
}
_CUBIC: Final = -0.75  # coefficient of the cubic convolution kernel; Pillow's is -0.5
_CUBIC_ANTIALIASED: Final = -0.5
_MANY_TAPS: Final = 64


@register("F.interpolate", "F.upsample", "nn.Upsample")
def interpolate(
    input: Array,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """Resize the spatial axes: ``torch.nn.functional.interpolate``, ``torch.nn.Upsample``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H...)
    size : int or tuple of int, optional
        H'...
    scale_factor : float or tuple of float, optional
        H' / H if `size` is not given; H' is rounded down.
    mode : str
        ``nearest`` (position ``floor(o * H / H')``), ``nearest-exact`` (``floor((o + 0.5) *
        H / H')``), ``linear``, ``bilinear``, ``trilinear``, ``bicubic``, or ``area``, the
        mean of the pixels that each output covers.
    align_corners : bool
        Whether to align the centres of the corner pixels (positions ``o * (H - 1) / (H' -
        1)``), or the image's edges (``(o + 0.5) * H / H' - 0.5``).
    recompute_scale_factor : bool
        Whether to use ``H' / H`` after rounding instead of `scale_factor`.
    antialias : bool
        Whether ``bilinear`` and ``bicubic`` widen their kernel to shrink an image.

    Returns
    -------
    ndarray of shape (N, C, H'...)
        A new array of the same dtype.
    """
    rank = input.ndim - 2
    if rank not in _RANKS_OF_MODE.get(mode, ()):
        raise LayerError(
            f"mode {mode} cannot resize an input of {input.ndim} dimensions "
            f"({describe_shapes([input.shape])})"
        )
    if antialias and mode not in {"bilinear", "bicubic"}:
        raise LayerError(f"antialias is for modes bilinear and bicubic, not {mode}")
    sizes = input.shape[2:]
    counts, scales = _find_sizes(sizes, size, scale_factor, recompute=recompute_scale_factor)
    require_memory((*input.shape[:2], *counts), input.dtype)
    if mode == "area":
        return adaptive_average(input, counts)
    if mode.startswith("nearest"):
        kept = [*map(range, counts)]
        for axis, positions in enumerate(_nearest_positions(sizes, counts, scales, mode, kept)):
            input = np.take(input, positions, axis + 2)
        return input
    return _resample(input, counts, scales, mode, bool(align_corners), antialias)


def interpolation_taps(
    shape: tuple[int, ...],
    dtype: DType,
    size: Any,
    scale_factor: Any,
    mode: str,
    *,
    align_corners: bool,
    recompute_scale_factor: bool,
    antialias: bool,
    kept: Sequence[range] | None = None,
) -> list[tuple[Array, Array]]:
    """Return what each output of `interpolate` sums, axis by axis.

    Parameters
    ----------
    shape : tuple of int
        (N, C, H...)
    dtype : dtype
        Of the input; floating-point.
    size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
        As for `interpolate`.
    kept : sequence of range, optional
        Outputs of each axis that are wanted; default all.

    Returns
    -------
    list of (positions, weights)
        For each spatial axis, two arrays of shape (taps, H').
    """
    sizes = shape[2:]
    counts, scales = _find_sizes(sizes, size, scale_factor, recompute=recompute_scale_factor)
    kept = [*map(range, counts)] if kept is None else kept
    if mode.startswith("nearest"):
        return [
            (positions[np.newaxis], np.ones((1, len(positions))))
            for positions in _nearest_positions(sizes, counts, scales, mode, kept)
        ]
    find = _tap_finder(mode, antialias)
    return [
        find(
            _Axis(n, count, scale, align_corners, mode == "bicubic", working_dtype(dtype), part)
        )
        for n, count, scale, part in zip(sizes, counts, scales, kept, strict=True)
    ]


@register("F.upsample_nearest", "nn.UpsamplingNearest2d")
def upsample_nearest(input: Array, size: Any = None, scale_factor: Any = None) -> Array:
    """Enlarge by repeating: ``torch.nn.UpsamplingNearest2d``.

    Parameters and result as for interpolate with ``mode=nearest``.
    """
    return interpolate(input, size, scale_factor, "nearest")


@register("F.upsample_bilinear", "nn.UpsamplingBilinear2d")
def upsample_bilinear(input: Array, size: Any = None, scale_factor: Any = None) -> Array:
    """Enlarge bilinearly with aligned corners: ``torch.nn.UpsamplingBilinear2d``.

    Parameters and result as for interpolate with ``mode=bilinear align_corners=True``.
    """
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


RAW_MODES: Final[dict[Callable[..., Array], tuple[str, bool]]] = {}
"""Mode, and whether it is antialiased, of the code of ``aten::upsample_…``."""


def _make_raw(mode: str, antialias: bool = False) -> Callable[..., Array]:
    def upsample(
        input: Array,
        output_size: Any = None,
        align_corners: bool = False,
        scale_factors: Any = None,
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Array:
        single = [s for s in (scales_d, scales_h, scales_w)[5 - input.ndim :] if s is not None]
        scales = tuple(single) if single else scale_factors
        if mode.startswith("nearest"):
            return interpolate(input, output_size, scales, mode)
        return interpolate(input, output_size, scales, mode, align_corners, antialias=antialias)

    upsample.__doc__ = f"""Resize the spatial axes: ``F.interpolate`` with ``mode={mode}``, raw.

    Parameters
    ----------
    input : ndarray of shape (N, C, H...)
    output_size : tuple of int, optional
        H'...
    align_corners : bool
        As in ``F.interpolate``.
    scale_factors : tuple of float, optional
        H' / H where `output_size` is not given; H' is rounded down.
    scales_d, scales_h, scales_w : float, optional
        The same, one by one.

    Returns
    -------
    ndarray of shape (N, C, H'...)
        A new array of the same dtype.
    """
    return upsample


def _register_raw() -> None:
    """Register ``aten::upsample_…``, with a list of scales or with one for each axis."""
    for name, mode, antialias in (
        ("upsample_nearest1d", "nearest", False),
        ("upsample_nearest2d", "nearest", False),
        ("upsample_nearest3d", "nearest", False),
        ("_upsample_nearest_exact1d", "nearest-exact", False),
        ("_upsample_nearest_exact2d", "nearest-exact", False),
        ("_upsample_nearest_exact3d", "nearest-exact", False),
        ("upsample_linear1d", "linear", False),
        ("upsample_bilinear2d", "bilinear", False),
        ("upsample_trilinear3d", "trilinear", False),
        ("upsample_bicubic2d", "bicubic", False),
        ("_upsample_bilinear2d_aa", "bilinear", True),
        ("_upsample_bicubic2d_aa", "bicubic", True),
    ):
        rank = int(name.removesuffix("_aa")[-2])
        nearest = mode.startswith("nearest")
        first = "input output_size" if nearest else "input output_size align_corners"
        each = " ".join(("scales_d", "scales_h", "scales_w")[3 - rank :])
        # With one spatial axis both overloads have the same number of operands.
        orders = (f"{first} scale_factors", *((f"{first} {each}",) if rank > 1 else ()))
        function = _make_raw(mode, antialias)
        function.__name__ = function.__qualname__ = name
        RAW_MODES[function] = mode, antialias
        register(f"aten::{name}", operands=orders)(function)


_register_raw()


def _select_spatial(size: Value, scale_factor: Value, rank: int) -> tuple[Value, Value]:
    """Return sizes or scales of the spatial axes.

    ONNX has them for all axes, and pnnx writes either as `size`.
    """
    if not isinstance(size, np.ndarray):
        return size, scale_factor
    size = size.reshape(-1)[-rank:]
    return (None, size) if size.dtype.kind == "f" else (size, scale_factor)


def _parse_scales(scale_factor: Value, rank: int) -> tuple[float | None, ...]:
    """Return the scale of each spatial axis; None if it is not given."""
    if scale_factor is None:
        return (None,) * rank
    numbers = np.asarray(scale_factor, np.float64).reshape(-1).tolist()
    if len(numbers) == 1:
        numbers *= rank
    if len(numbers) != rank or min(numbers) <= 0:
        raise LayerError(f"scale_factor={scale_factor} needs {rank} positive numbers")
    return tuple(numbers)


def _compute_counts(
    sizes: tuple[int, ...], size: Value, scales: tuple[float | None, ...]
) -> tuple[int, ...]:
    """Output sizes, checked."""
    counts = as_ints(size, "size")
    if not counts:
        if None in scales:
            raise LayerError("either size or scale_factor must be given")
        counts = tuple(
            math.floor(length * scale)
            for length, scale in zip(sizes, scales, strict=True)
            if scale is not None
        )
    if len(counts) == 1:
        counts *= len(sizes)
    if len(counts) != len(sizes):
        raise LayerError(f"size={size} needs {len(sizes)} numbers")
    if min(counts) <= 0 or 0 in sizes:
        raise LayerError(
            f"spatial size {describe_shapes([sizes])} cannot become {describe_shapes([counts])}"
            "; both must be positive",
            InferStatus.kInferArraySizeMismatch,
        )
    return counts


def _find_sizes(
    sizes: tuple[int, ...], size: Value, scale_factor: Value, *, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return output sizes, and the scales that positions are computed with."""
    rank = len(sizes)
    size, scale_factor = _select_spatial(size, scale_factor, rank)
    scales = _parse_scales(scale_factor, rank)
    counts = _compute_counts(sizes, size, scales)
    return counts, (None,) * rank if recompute else scales


def _nearest_positions(
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
    scales: tuple[float | None, ...],
    mode: str,
    kept: Sequence[range],
) -> list[Array]:
    """Return the input position of each output that is wanted, axis by axis."""
    offset = 0.5 if mode == "nearest-exact" else 0.0
    found = []
    for size, count, given, part in zip(sizes, counts, scales, kept, strict=True):
        # Only PyTorch's loop over two axes ignores the scale here.
        ignored = len(sizes) == 2 and mode == "nearest" and count in {size, 2 * size}
        scale = None if ignored else given
        outputs: Array = np.arange(part.start, part.stop, dtype=np.float32)
        outputs += np.float32(offset)
        outputs *= np.float32(size / count if scale is None else 1 / scale)
        found.append(np.minimum(outputs.astype(np.int64), size - 1))
    return found


def _tap_finder(mode: str, antialias: bool) -> Callable[[_Axis], tuple[Array, Array]]:
    if mode == "area":
        return _area_taps
    if antialias:
        return _antialiased_taps
    return _cubic_taps if mode == "bicubic" else _linear_taps


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis to be resampled.

    Attributes
    ----------
    size, count : int
        Input and output size.
    scale : float or None
        As given by the caller.
    align_corners, bicubic : bool
    dtype : dtype
        Of positions.
    kept : range
        Outputs that are wanted.
    """

    size: int
    count: int
    scale: float | None
    align_corners: bool
    bicubic: bool
    dtype: DType
    kept: range

    def step(self) -> Any:
        """Distance of neighbouring outputs on the input."""
        if self.align_corners:
            return self.dtype.type((self.size - 1) / (self.count - 1) if self.count > 1 else 0)
        return self.dtype.type(self.size / self.count if self.scale is None else 1 / self.scale)

    def sources(self) -> Array:
        """Input coordinate of each output that is wanted; (B,)."""
        outputs: Array = np.arange(self.kept.start, self.kept.stop, dtype=self.dtype)
        if self.align_corners:
            outputs *= self.step()
            return outputs
        half = self.dtype.type(0.5)
        outputs += half
        outputs *= self.step()
        outputs -= half
        return outputs


def _resample(
    input: Array,
    counts: tuple[int, ...],
    scales: tuple[float | None, ...],
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Array:
    of_bytes = input.dtype == np.uint8
    if input.dtype.kind != "f" and not of_bytes:
        raise LayerError(f"mode {mode} needs floats or uint8, the input is {input.dtype}")
    image = input.astype(np.float64 if of_bytes else working_dtype(input.dtype), copy=False)
    bicubic = mode == "bicubic"
    taps = _tap_finder(mode, antialias)
    # The axis that shrinks most is first, because that leaves less work for the others.
    order = sorted(range(len(counts)), key=lambda axis: counts[axis] / input.shape[axis + 2])
    if (
        of_bytes
    ):  # rounded after each axis, so the order matters: last axis first, as in PyTorch
        order = [*reversed(range(len(counts)))]
    for number in order:
        axis = _Axis(
            input.shape[number + 2],
            counts[number],
            scales[number],
            align_corners,
            bicubic,
            image.dtype,
            range(counts[number]),
        )
        positions, weights = taps(axis)
        if of_bytes:
            image = weighted_taps(image, number + 2, positions, _round_to_16_bits(weights))
            image = np.clip(np.floor(image + 0.5), 0, 255)
        else:
            image = weighted_taps(image, number + 2, positions, weights)
    return image.astype(input.dtype, copy=False)


def _round_to_16_bits(weights: Array) -> Array:
    """Round weights to 16-bit fractions, as PyTorch does for images of bytes."""
    _, exponent = np.frexp(np.floor(weights.max() * 2.0**23 + 0.5))
    unit = 2.0 ** min(38 - int(exponent), 22)
    return np.asarray(np.trunc(weights * unit + np.copysign(0.5, weights)) / unit)


def weighted_taps(image: Array, axis: int, positions: Array, weights: Array) -> Array:
    """Weighted sum of input positions along an axis.

    Parameters
    ----------
    image : ndarray of shape (..., A, ...)
    axis : int
    positions, weights : ndarray of shape (T, B)

    Returns
    -------
    ndarray of shape (..., B, ...)
    """
    shape = list(image.shape)
    if len(positions) > max(shape[axis], _MANY_TAPS):  # add up the weights of a position first
        places = np.arange(shape[axis])[:, np.newaxis]
        shares = np.zeros((shape[axis], positions.shape[1]), weights.dtype)
        np.add.at(shares, (positions, np.arange(positions.shape[1])), weights)
        positions, weights = np.broadcast_to(places, shares.shape), shares
    shape[axis] = positions.shape[1]
    total = new_output(shape, image.dtype, 0)
    column = (-1, *(1,) * (image.ndim - axis - 1))
    for sources, shares in zip(positions, weights.astype(image.dtype), strict=True):
        tap = np.take(image, sources, axis)
        tap *= shares.reshape(column)
        total += tap
    return total


def _linear_taps(axis: _Axis) -> tuple[Array, Array]:
    """Positions and weights, each of shape (2, B), or (1, B) for a copy."""
    if axis.size == axis.count:  # for any scale
        copied = np.arange(axis.kept.start, axis.kept.stop)
        return copied[np.newaxis], np.ones((1, len(copied)))
    source = np.maximum(axis.sources(), 0)
    last = axis.size - 1
    lower = np.minimum(source.astype(np.int64), last)
    share = np.clip(source - lower, 0, 1).astype(axis.dtype)
    return np.stack([lower, np.minimum(lower + 1, last)]), np.stack([1 - share, share])


def _cubic_taps(axis: _Axis) -> tuple[Array, Array]:
    """Positions and weights, each of shape (4, B)."""
    source = axis.sources()
    lower = np.floor(source)
    offsets = np.arange(-1, 3)[:, np.newaxis]
    positions = np.clip(lower.astype(np.int64) + offsets, 0, axis.size - 1)
    return positions, cubic_kernel((source - lower) - offsets)


def _antialiased_taps(axis: _Axis) -> tuple[Array, Array]:
    """Positions and weights, each of shape (T, B); T grows as the image shrinks."""
    step = float(axis.step())
    widening = max(step, 1.0)
    support = (2.0 if axis.bicubic else 1.0) * widening
    centres = step * (np.arange(axis.kept.start, axis.kept.stop) + 0.5)
    starts = np.maximum((centres - support + 0.5).astype(np.int64), 0)
    stops = np.minimum((centres + support + 0.5).astype(np.int64), axis.size)
    positions = starts + np.arange(int((stops - starts).max()))[:, np.newaxis]
    distances = (positions - centres + 0.5) / widening
    if axis.bicubic:
        weights = cubic_kernel(distances, _CUBIC_ANTIALIASED)
    else:
        weights = np.maximum(1 - np.abs(distances), 0)
    weights = np.where(positions < stops, weights, 0)
    weights /= weights.sum(axis=0)
    return np.minimum(positions, axis.size - 1), weights


def _area_taps(axis: _Axis) -> tuple[Array, Array]:
    """Positions and weights, each of shape (T, B): means of the pixels that outputs cover."""
    kept = slice(axis.kept.start, axis.kept.stop)
    starts, stops = (bounds[kept] for bounds in window_bounds(axis.size, axis.count))
    lengths = stops - starts
    positions = starts + np.arange(int(lengths.max()))[:, np.newaxis]
    weights = np.where(positions < stops, 1 / lengths, 0)
    return np.minimum(positions, axis.size - 1), weights


def cubic_kernel(distances: Array, a: float = _CUBIC) -> Array:
    """Cubic convolution kernel (Keys 1981): 1 at 0, 0 at 1 and from 2 on.

    Parameters
    ----------
    distances : ndarray of any shape
    a : float
        Slope at 1.

    Returns
    -------
    ndarray of the same shape
    """
    x = np.abs(distances)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x >= 2, 0, far))  # NaN stays NaN
