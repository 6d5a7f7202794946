"""Helpers for operators that draw random numbers.

Shapes, dtypes and distributions are as PyTorch documents them. The numbers come from NumPy's
generator, so the same seed gives different numbers in PyTorch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import LayerError
from engine.layers.windows import working_dtype
from engine.memory_bound import require_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from engine.promotion import DType
    from engine.values import Array

__all__ = ["chances", "require_floats", "require_probability", "standard_normal", "uniform"]

_HALF_STEPS: Final = 1 << 11  # evenly spaced numbers in [0, 1) that float16 represents


def require_floats(dtype: DType, what: str, *, kinds: str = "f") -> None:
    """Check that a dtype can hold the numbers of a continuous distribution.

    Parameters
    ----------
    dtype : dtype
    what : str
        Name for error messages.
    kinds : str
        ``"fc"`` to allow complex numbers.

    Raises
    ------
    LayerError
        For any other dtype.
    """
    if dtype.kind not in kinds:
        raise LayerError(f"{what} gives floats; {dtype} cannot hold them")


def require_probability(p: float, name: str = "p") -> None:
    """Check that a number is in the range from 0 to 1.

    Raises
    ------
    LayerError
        If it is not, or is NaN.
    """
    if not 0 <= p <= 1:
        raise LayerError(f"{name}={p} is not a probability: it must be from 0 to 1")


def uniform(rng: Generator, shape: Sequence[int], dtype: DType) -> Array:
    """Draw uniform random numbers from [0, 1).

    Parameters
    ----------
    rng : Generator
    shape : sequence of int
    dtype : dtype
        Of floats, or of complex numbers, whose parts are drawn independently.

    Raises
    ------
    LayerError
        If the dtype is of integers, or so many numbers would not fit into memory.
    """
    require_floats(dtype, "a uniform distribution", kinds="fc")
    require_memory(shape, dtype)
    if dtype.kind == "c":
        return _to_complex(uniform(rng, (*shape, 2), _real_dtype(dtype)), dtype)
    if dtype == np.float16:  # rounding a float32 could give 1
        steps = rng.integers(_HALF_STEPS, size=shape, dtype=np.uint16)
        return (steps / np.float16(_HALF_STEPS)).astype(dtype, copy=False)
    narrow = dtype.itemsize <= np.dtype(np.float32).itemsize
    drawn: Array = rng.random(shape, np.float32 if narrow else np.float64)
    return drawn


def standard_normal(rng: Generator, shape: Sequence[int], dtype: DType) -> Array:
    """Draw numbers of the normal distribution of mean 0 and variance 1.

    Parameters
    ----------
    rng : Generator
    shape : sequence of int
    dtype : dtype
        Of floats, or of complex numbers, whose parts have variance 1/2 each.

    Raises
    ------
    LayerError
        If the dtype is of integers, or so many numbers would not fit into memory.
    """
    require_floats(dtype, "a normal distribution", kinds="fc")
    require_memory(shape, dtype)
    if dtype.kind == "c":
        parts = standard_normal(rng, (*shape, 2), _real_dtype(dtype))
        return _to_complex(parts * parts.dtype.type(math.sqrt(0.5)), dtype)
    narrow = working_dtype(dtype) == np.float32
    drawn: Array = rng.standard_normal(shape, np.float32 if narrow else np.float64)
    return drawn.astype(dtype, copy=False)


def chances(rng: Generator, shape: Sequence[int], p: float | Array) -> Array:
    """Draw bools that are true with a probability.

    Parameters
    ----------
    rng : Generator
    shape : sequence of int
    p : float, or ndarray that broadcasts to `shape`
        Probability of true.
    """
    dtype = np.dtype(np.float32)
    if isinstance(p, np.ndarray) and p.dtype == np.float64:
        dtype = p.dtype
    drawn: Array = uniform(rng, shape, dtype) < p
    return drawn


def _real_dtype(dtype: DType) -> DType:
    """Dtype of the real part of a complex dtype."""
    return np.dtype(np.float32 if dtype == np.complex64 else np.float64)


def _to_complex(parts: Array, dtype: DType) -> Array:
    """Combine real and imaginary parts, in a last axis of size 2, to complex numbers."""
    return np.ascontiguousarray(parts).view(dtype)[..., 0]
