"""Quantiles, ranges, counts and histograms of elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import as_int, axis_of, require_order
from engine.layers.layer import Ints, Outputs
from engine.layers.reduction import REDUCTIONS, reduce
from engine.layers.registry import register
from engine.layers.size import as_python
from engine.memory_bound import require_memory
from engine.values import Array, Value

__all__ = [
    "aminmax",
    "count_nonzero",
    "find_edges",
    "histc",
    "histogram",
    "nanquantile",
    "quantile",
]

_INTERPOLATIONS: Final = ("linear", "lower", "higher", "midpoint", "nearest")


@register("torch.quantile", "Tensor.quantile", "aten::quantile")
def quantile(
    input: Array,
    q: float | Array,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Array:
    """Quantile of the elements: ``torch.quantile``.

    Parameters
    ----------
    input : ndarray of any shape, float32 or float64
    q : float, or ndarray of shape (Q,) or ()
        Shares from 0 to 1.
    dim : int, optional
        Dimension to reduce; all elements by default.
    keepdim : bool
        Keep the dimension with size 1.
    interpolation : str
        Interpolation between two elements: ``linear``, ``lower``, ``higher``, ``midpoint``
        or ``nearest``.

    Returns
    -------
    ndarray of the shape of `input` without `dim`, after Q where there is one
        NaN if an element is NaN.
    """
    return _quantile(input, q, dim, keepdim, interpolation, ignore_nan=False)


@register("torch.nanquantile", "Tensor.nanquantile", "aten::nanquantile")
def nanquantile(
    input: Array,
    q: float | Array,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Array:
    """Quantile of the elements, ignoring NaN: ``torch.nanquantile``.

    Parameters and result as ``torch.quantile``; NaN if all elements are NaN.
    """
    return _quantile(input, q, dim, keepdim, interpolation, ignore_nan=True)


def _quantile(
    input: Array, q: Any, dim: Value, keepdim: bool, interpolation: str, *, ignore_nan: bool
) -> Array:
    if input.dtype not in {np.dtype(np.float32), np.dtype(np.float64)} or not input.size:
        raise LayerError(f"quantiles need float32 or float64, not {input.size} {input.dtype}")
    if interpolation not in _INTERPOLATIONS:
        raise LayerError(
            f"interpolation={interpolation} is not one of {', '.join(_INTERPOLATIONS)}"
        )
    shares = np.asarray(q, input.dtype)
    if shares.ndim > 1 or not np.all((shares >= 0) & (shares <= 1)):
        raise LayerError("q must be numbers from 0 to 1")
    if dim is None:
        rows, kept = input.reshape(-1), (1,) * input.ndim
    else:
        axis = axis_of(dim, input.ndim)
        rows = np.moveaxis(np.atleast_1d(input), axis, -1)
        kept = tuple(1 if i == axis else size for i, size in enumerate(input.shape))
    unordered = np.isnan(rows)
    last = np.full(rows.shape[:-1], rows.shape[-1] - 1)
    if ignore_nan:
        last = np.maximum(last - np.count_nonzero(unordered, -1), 0)
    ranks = shares * last[..., np.newaxis].astype(input.dtype)
    if not ignore_nan:  # NaN comes last in order
        ranks = np.where(unordered.any(-1, keepdims=True), last[..., np.newaxis], ranks)
    found = _interpolate_ranks(np.sort(rows, -1), ranks.astype(input.dtype), interpolation)
    if keepdim:
        found = found.reshape(*kept, shares.size)
    elif dim is not None and not input.ndim:
        found = found.reshape(shares.size)
    found = np.moveaxis(found, -1, 0)
    return found if shares.ndim else np.asarray(found[0])


def _interpolate_ranks(rows: Array, ranks: Array, interpolation: str) -> Array:
    """Interpolate sorted rows at fractional ranks."""

    def at(places: Array) -> Array:
        found: Array = np.take_along_axis(rows, places.astype(np.int64), -1)
        return found

    lower, upper = np.floor(ranks), np.ceil(ranks)
    if interpolation in {"lower", "higher", "nearest"}:
        return at({"lower": lower, "higher": upper, "nearest": np.rint(ranks)}[interpolation])
    share = ranks.dtype.type(0.5) if interpolation == "midpoint" else ranks - lower
    below, above = at(lower), at(upper)
    with np.errstate(all="ignore"):
        span = above - below
        # Interpolate from the nearer element, as PyTorch's lerp does.
        return np.asarray(
            np.where(share < 0.5, below + share * span, above - span * (1 - share))
        )


@register("torch.aminmax", "Tensor.aminmax", "aten::aminmax")
def aminmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Outputs:
    """Smallest and largest element: ``torch.aminmax``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int, optional
        Dimension to reduce; all elements by default.
    keepdim : bool
        Keep the dimension with size 1.

    Returns
    -------
    min, max : ndarray of the input's dtype
        NaN if an element is NaN.
    """
    return Outputs(reduce(REDUCTIONS[name], input, dim, keepdim) for name in ("amin", "amax"))


@register("torch.count_nonzero", "Tensor.count_nonzero", "aten::count_nonzero")
def count_nonzero(input: Array, dim: Ints | None = None) -> Array:
    """Number of elements that are not zero: ``torch.count_nonzero``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int or ints, optional
        Dimensions to count along; all of them by default.

    Returns
    -------
    int64 ndarray
    """
    return reduce(REDUCTIONS["sum"], input != 0, dim, keepdim=False)


@register("torch.histc", "Tensor.histc", "aten::histc")
def histc(input: Array, bins: int = 100, min: Any = 0, max: Any = 0) -> Array:
    """Number of elements in each of equal intervals: ``torch.histc``.

    Parameters
    ----------
    input : ndarray of any shape
    bins : int
        Number of intervals.
    min, max : number
        Range of the intervals, both ends included. Elements outside do not count. If both are
        equal, the range is that of the elements.

    Returns
    -------
    ndarray of shape (bins,)
        Of the input's dtype.
    """
    edges = find_edges(input, as_int(bins, "bins"), (as_python(min), as_python(max)), around=1)
    counts = np.histogram(input.reshape(-1), edges)[0]
    return counts.astype(input.dtype)


@register(
    "aten::histogram", operands=("input bins weight density", "input bins range weight density")
)
@register("torch.histogram", "Tensor.histogram")
def histogram(
    input: Array,
    bins: int | Array = 100,
    range: tuple[float, ...] | None = None,
    weight: Array | None = None,
    density: bool = False,
) -> Outputs:
    """Number of elements in each interval, and the intervals: ``torch.histogram``.

    Parameters
    ----------
    input : ndarray of any shape
    bins : int, or ndarray of shape (B + 1,)
        Number of equal intervals, or their edges.
    range : tuple of float, optional
        Start and end of the intervals; by default the smallest and largest element.
    weight : ndarray of the shape of `input`, optional
        Weight of each element.
    density : bool
        Whether to return densities: shares of the total divided by the interval widths.

    Returns
    -------
    counts : ndarray of shape (B,)
        Of the input's dtype.
    edges : ndarray of shape (B + 1,)
    """
    edges = bins if isinstance(bins, np.ndarray) and bins.ndim else None
    if edges is None:
        limits = (0, 0) if range is None else (range[0], range[1])
        edges = find_edges(input, as_int(bins, "bins"), limits, around=0.5)
    weights = None if weight is None else weight.reshape(-1)
    counts = np.histogram(input.reshape(-1), edges, weights=weights, density=density)[0]
    return Outputs([counts.astype(input.dtype), edges.astype(input.dtype)])


def find_edges(input: Array, count: int, limits: tuple[Any, Any], around: float) -> Array:
    """Return the edges of equal intervals; equal limits mean those of the elements.

    If all elements are equal, the range extends by `around` on both sides.
    """
    require_order(input)
    low, high = limits
    if low == high and input.size:
        low, high = input.min().item(), input.max().item()
    if low == high:
        low, high = (low - around, high + around) if input.size else (0, 2 * around)
    if count < 1 or low > high or not np.isfinite([low, high]).all():
        raise LayerError(f"there are no {count} intervals from {low} to {high}")
    require_memory((count + 1,), np.dtype(np.float64))
    return np.linspace(low, high, count + 1, dtype=np.float64)
