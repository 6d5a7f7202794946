"""Differences of neighbours, and the areas under points."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import along, as_int, axes_of, axis_of, cast
from engine.layers.layer import Ints
from engine.layers.reduction import accumulator
from engine.layers.registry import register
from engine.layers.size import as_python
from engine.promotion import float_dtype, promote, promote_types
from engine.values import Array, Value

__all__ = ["cumulative_trapezoid", "diff", "gradient", "trapezoid"]

_MOST_TIMES: Final = 1 << 12  # each time is a pass over all remaining elements


@register("torch.diff", "Tensor.diff", "aten::diff")
def diff(
    input: Array,
    n: int = 1,
    dim: int = -1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Differences of neighbours along a dimension: ``torch.diff``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    n : int
        Number of times to compute differences.
    dim : int
    prepend, append : ndarray, optional
        Joined to `input` first, before and after it, unless `n` is 0.

    Returns
    -------
    ndarray of shape (A, N - n, B)
        ``x[i + 1] - x[i]``; of bools, whether they differ.
    """
    if not input.ndim:
        raise LayerError("a 0-d tensor has no neighbours")
    axis, times = axis_of(dim, input.ndim), as_int(n, "n")
    if times < 0:
        raise LayerError(f"n={times} is negative")
    if not times:  # PyTorch ignores `prepend` and `append` here
        return input
    parts = promote(*(part for part in (prepend, input, append) if part is not None))
    joined = np.concatenate(parts, axis) if len(parts) > 1 else input
    if times >= joined.shape[axis]:
        nothing: Array = joined[along(axis, slice(0, 0))]
        return nothing
    if times > _MOST_TIMES:
        raise LayerError(f"differences are taken at most {_MOST_TIMES} times, not {times}")
    return np.diff(joined, times, axis)


@register("aten::trapz", operands="y x dim")
@register("torch.trapezoid", "torch.trapz", "aten::trapezoid")
def trapezoid(y: Array, x: OperandOf[Value] = None, dim: int = -1, dx: float = 1.0) -> Array:
    """Integral by the trapezoidal rule: ``torch.trapezoid``.

    Parameters
    ----------
    y : ndarray of shape (A, N, B)
    x : ndarray of shape (N,) or broadcast to that of `y`, or number, optional
        Positions of the points, or their distance.
    dim : int
    dx : float
        Distance of the points if `x` is not given.

    Returns
    -------
    ndarray of shape (A, B)
        Of the promoted dtype; float32 for integers.
    """
    areas, dtype = _compute_trapezoids(y, x, dim, dx)
    return cast(np.asarray(areas.sum(axis_of(dim, y.ndim))), dtype)


@register("torch.cumulative_trapezoid", "aten::cumulative_trapezoid")
def cumulative_trapezoid(
    y: Array, x: OperandOf[Value] = None, dim: int = -1, dx: float = 1.0
) -> Array:
    """Running integral by the trapezoidal rule: ``torch.cumulative_trapezoid``.

    Parameters
    ----------
    y, x, dim, dx
        As in ``torch.trapezoid``.

    Returns
    -------
    ndarray of shape (A, N - 1, B)
    """
    areas, dtype = _compute_trapezoids(y, x, dim, dx)
    return cast(np.asarray(areas.cumsum(axis_of(dim, y.ndim))), dtype)


def _compute_trapezoids(y: Array, x: Value, dim: int, dx: float) -> tuple[Array, Any]:
    """Area between neighbours, in 64 bits, and the dtype of the result."""
    if not y.ndim:
        raise LayerError("there is no area under a 0-d tensor")
    axis, dtype = axis_of(dim, y.ndim), float_dtype(y.dtype)
    wide = y.astype(accumulator(dtype))
    means = (wide[along(axis, slice(1, None))] + wide[along(axis, slice(None, -1))]) / 2
    if not isinstance(x, np.ndarray):
        return means * as_python(dx if x is None else x), dtype
    if x.ndim == 1:
        x = x.reshape(-1, *(1,) * (y.ndim - axis - 1))
    if not 0 <= y.ndim - axis <= x.ndim:
        raise LayerError(f"x has {x.ndim} dimensions, y {y.ndim}")
    widths = np.diff(x.astype(accumulator(x.dtype)), axis=axis - y.ndim)
    try:
        return means * widths, float_dtype(promote_types(y.dtype, x.dtype))
    except ValueError:
        shapes = describe_shapes([y.shape, x.shape])
        raise LayerError(
            f"y and x do not fit: {shapes}", InferStatus.kInferArraySizeMismatch
        ) from None


@register("aten::gradient", operands=("input dim edge_order", "input spacing dim edge_order"))
@register("torch.gradient")
def gradient(
    input: Array, spacing: Any = None, dim: Ints | None = None, edge_order: int = 1
) -> tuple[Array, ...]:
    """Slope along dimensions, of second order inside: ``torch.gradient``.

    Parameters
    ----------
    input : ndarray of any shape
    spacing : number, ndarray of shape (N,), or a tuple of either, optional
        Distance of neighbours, or their positions, for each dimension; 1 by default.
    dim : int or ints, optional
        All of them by default.
    edge_order : int
        1 or 2, at both ends.

    Returns
    -------
    tuple of ndarray of the same shape, one for each of `dim`
    """
    axes = axes_of(dim, input.ndim)
    order = as_int(edge_order, "edge_order")
    steps = spacing if isinstance(spacing, tuple) else (1 if spacing is None else spacing,)
    if len(steps) == 1:
        steps *= len(axes)
    if len(steps) != len(axes) or order not in {1, 2}:
        raise LayerError(
            f"{len(steps)} spacings for {len(axes)} dimensions, edge_order={edge_order}"
        )
    if min((input.shape[axis] for axis in axes), default=0) <= order:
        raise LayerError(f"edge_order={order} needs {order + 1} elements along each dimension")
    dtype = float_dtype(input.dtype)
    wide = input.astype(accumulator(dtype))
    ends: Literal[1, 2] = 2 if order == 2 else 1
    numbers = (step if isinstance(step, np.ndarray) else as_python(step) for step in steps)
    return tuple(
        cast(np.asarray(np.gradient(wide, step, axis=axis, edge_order=ends)), dtype)
        for step, axis in zip(numbers, axes, strict=True)
    )
