"""What the elements of tensors tell without a reference's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeGuard

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array, Value

__all__ = ["is_normalized", "is_normalized_of", "varies"]

_CENTRED: Final = 1e-4  # largest mean of what is normalized, relative to its deviation
_CORRELATED: Final = 1 - 1e-6  # rows that are equal up to scale and shift
_UNIT: Final = 1e-2  # by how much the deviation of what is normalized differs from 1
_FEW: Final = 1 << 12  # elements that are looked at together


def is_normalized_of(value: Value, other: Value) -> bool:
    """Whether a tensor is another one with each row scaled and shifted, and means of 0.

    A row has the elements of a sample, of a channel, or along the last axis. The mean of groups
    of them is 0, so that of a sample is.
    """
    if not _has_samples(value) or not _has_samples(other):
        return False
    if value.shape != other.shape or not value.size:
        return False
    samples = _samples(value)
    if (np.abs(samples.mean(1)) > _CENTRED * samples.std(1)).any():
        return False
    lengths = {samples.shape[1], value[:1, :1].size, value.shape[-1]} - {1, 2}
    return any(_is_scaled(value, other, length) for length in lengths)


def _is_scaled(value: Array, other: Array, length: int) -> bool:
    """Whether tensors are equal up to scale and shift of each row of some length."""
    rows = [each.reshape(-1, length).astype(np.float64) for each in (value, other)]
    one, two = (each - each.mean(1, keepdims=True) for each in rows)
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    products = np.abs((one * two).sum(1))
    return bool((norms > 0).all() and (products >= _CORRELATED * norms).all())


def is_normalized(value: Value) -> bool:
    """Whether each sample has a mean of 0 and a deviation of 1."""
    if not _has_samples(value):
        return False
    samples = _samples(value)
    means, deviations = samples.mean(1), samples.std(1)
    return bool((np.abs(means) < _CENTRED).all() and (np.abs(deviations - 1) < _UNIT).all())


def _has_samples(value: Value) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim > 1


def _samples(value: Array) -> Array:
    return value.reshape(len(value), -1).astype(np.float64)


def varies(result: Value) -> bool:
    """Whether a result is a tensor of unequal elements; a constant confirms nothing."""
    if not isinstance(result, np.ndarray) or not result.size:
        return False
    flat, first = result.reshape(-1), result.flat[0]
    return any((flat[at : at + _FEW] != first).any() for at in range(0, flat.size, _FEW))
