"""Operators that flip, rotate and roll tensors."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import as_int, as_ints, axes_of, axis_of
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.values import Array

__all__ = ["flip", "roll", "rot90"]


@register("torch.flip", "Tensor.flip", "aten::flip")
def flip(input: Array, dims: Ints | None) -> Array:
    """Reverse the order along dimensions: ``torch.flip``.

    Parameters
    ----------
    input : ndarray of any shape
    dims : ints

    Returns
    -------
    ndarray of the same shape
        A view of `input`; PyTorch copies.
    """
    numbers = as_ints(dims, "dims")
    return np.flip(input, axes_of(numbers, input.ndim, "dims")) if numbers else input


@register("torch.fliplr", "Tensor.fliplr", "aten::fliplr")
def fliplr(input: Array) -> Array:
    """Reverse the order along the second dimension: ``torch.fliplr``; a view."""
    return flip(input, 1)


@register("torch.flipud", "Tensor.flipud", "aten::flipud")
def flipud(input: Array) -> Array:
    """Reverse the order along the first dimension: ``torch.flipud``; a view."""
    return flip(input, 0)


@register("torch.rot90", "Tensor.rot90", "aten::rot90")
def rot90(input: Array, k: int = 1, dims: Ints = (0, 1)) -> Array:
    """Turn by right angles in the plane of two dimensions: ``torch.rot90``.

    Parameters
    ----------
    input : ndarray with at least two dimensions
    k : int
        Number of quarter turns, from the first of `dims` towards the second.
    dims : two ints

    Returns
    -------
    ndarray
        A view of `input`; PyTorch copies.
    """
    axes = axes_of(dims, input.ndim, "dims")
    if len(axes) != 2:
        raise LayerError(f"dims has {len(axes)} numbers, a plane has 2")
    return np.rot90(input, as_int(k, "k"), (axes[0], axes[1]))


@register("torch.roll", "Tensor.roll", "aten::roll")
def roll(input: Array, shifts: Ints, dims: Ints | None = None) -> Array:
    """Move elements along dimensions, from the end around to the front: ``torch.roll``.

    Parameters
    ----------
    input : ndarray of any shape
    shifts : int or ints
        Distance to move, one per dimension.
    dims : int or ints, optional
        By default the flattened tensor is rolled.

    Returns
    -------
    ndarray of the same shape
        A copy.
    """
    distances, numbers = as_ints(shifts, "shifts"), as_ints(dims, "dims")
    if len(distances) != (len(numbers) or 1):
        raise LayerError(f"shifts {distances} and dims {numbers} are not equally many")
    if not numbers:
        return np.roll(input, distances[0])
    if not input.ndim:
        raise LayerError("a 0-d tensor has no dimensions to roll along")
    axes = tuple(axis_of(dim, input.ndim, "dims") for dim in numbers)  # may be repeated
    return np.roll(input, distances, axes)
