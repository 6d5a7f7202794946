"""PyTorch's type promotion: the dtype of an operation on several values.

Three ranks decide, the higher one first: arrays with dimensions, 0-d arrays, Python
scalars and lists of them (which is how a file of pnnx's holds small constant tensors). A
lower rank changes the result only where its *category* (bool, integer, float, complex) is
higher, so that a float32 tensor times 2.5 stays float32, an int64 tensor times 2.5 becomes
float32, and a float32 tensor times a 0-d float64 tensor stays float32.
The rules are those of ``at::result_type`` (PyTorch 2); PyTorch's half-precision complex
numbers have no NumPy dtype and are complex64 here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array

__all__ = [
    "DEFAULT_COMPLEX",
    "DEFAULT_FLOAT",
    "DEFAULT_INT",
    "DType",
    "Numbers",
    "Scalar",
    "as_operand",
    "category",
    "float_dtype",
    "is_numbers",
    "is_scalar",
    "promote",
    "promote_types",
    "result_dtype",
]

DType: TypeAlias = np.dtype[Any]
Scalar: TypeAlias = bool | int | float | complex
Numbers: TypeAlias = tuple[bool, ...] | tuple[int, ...] | tuple[float, ...]

BOOL: Final = np.dtype(np.bool_)
DEFAULT_INT: Final = np.dtype(np.int64)
DEFAULT_FLOAT: Final = np.dtype(np.float32)
DEFAULT_COMPLEX: Final = np.dtype(np.complex64)

_CATEGORY_OF_KIND: Final = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_BOOL, _INTEGER, _FLOAT, _COMPLEX = range(4)


def category(dtype: DType) -> int:
    """Return the category of a dtype: 0 bool, 1 integer, 2 float, 3 complex.

    Raises
    ------
    TypeError
        If the dtype holds no numbers.
    """
    try:
        return _CATEGORY_OF_KIND[dtype.kind]
    except KeyError:
        raise TypeError(f"dtype {dtype} holds no numbers") from None


def is_scalar(value: object) -> TypeGuard[Scalar]:
    """Whether a value is a Python number (NumPy's scalars count as 0-d tensors)."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


@lru_cache(maxsize=1024)
def promote_types(a: DType, b: DType) -> DType:
    """Find the smallest dtype that holds both kinds, by PyTorch's table.

    It differs from NumPy's: an integer never widens a float (int64 with float16 is
    float16), and unsigned dtypes that no signed one can hold become int64.
    """
    if a == b:
        return a
    low, high = sorted((a, b), key=category)
    if category(high) == _COMPLEX and category(low) == _FLOAT:
        return np.promote_types(high, _complex_of(low))
    if category(low) != category(high):
        return high
    common = np.promote_types(low, high)
    return common if category(common) == category(high) else DEFAULT_INT


def is_numbers(value: object) -> TypeGuard[Numbers]:
    """Whether a value is a list of Python numbers."""
    return isinstance(value, tuple) and all(map(is_scalar, value))


def float_dtype(dtype: DType) -> DType:
    """Find the dtype of a function that always gives floats (``sqrt``, ``div``, ``mean``, …).

    Bools and integers become float32; floats and complex numbers stay as they are.
    """
    return dtype if category(dtype) >= _FLOAT else DEFAULT_FLOAT


def result_dtype(*values: Array | Scalar | Numbers | np.generic) -> DType:
    """Find the dtype that PyTorch gives an operation on these values.

    Parameters
    ----------
    *values : ndarray of any shape, Python scalar or tuple of them
        At least one.

    Returns
    -------
    dtype
        Python scalars alone give bool, int64, float32 or complex64.

    Examples
    --------
    >>> result_dtype(np.zeros(3, np.float16), 2.5)
    dtype('float16')
    >>> result_dtype(np.zeros(3, np.int64), 2.5)
    dtype('float32')
    >>> result_dtype(np.zeros(3, np.float32), np.array(2.5))
    dtype('float32')
    """
    ranks: list[DType | None] = [None, None, None]
    for value in values:
        rank, dtype = _rank_and_dtype(value)
        held = ranks[rank]
        ranks[rank] = dtype if held is None else promote_types(held, dtype)
    with_dims, without, scalars = ranks
    result = _combine(with_dims, _combine(without, scalars))
    if result is None:
        raise TypeError("result_dtype needs at least one value")
    return result


def as_operand(value: Array | Scalar | Numbers | np.generic, dtype: DType) -> Array:
    """Make a value an array of a given dtype.

    Parameters
    ----------
    value : ndarray of any shape, Python scalar or tuple of them
    dtype : dtype

    Returns
    -------
    ndarray of the same shape; 0-d for a scalar
        `value` itself where it has the dtype already, otherwise a copy. Integers that do
        not fit wrap around, as in PyTorch.
    """
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    if isinstance(value, int):
        return np.array(value, DEFAULT_INT).astype(dtype)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype, copy=False)


def promote(*values: Array | Scalar | Numbers | np.generic) -> tuple[Array, ...]:
    """Make all values arrays of their common dtype (see `result_dtype`, `as_operand`)."""
    dtype = result_dtype(*values)
    return tuple(as_operand(value, dtype) for value in values)


def _rank_and_dtype(value: object) -> tuple[int, DType]:
    """0, 1, 2 for an array with dimensions, a 0-d one, a Python scalar; and its dtype."""
    if isinstance(value, (np.ndarray, np.generic)):
        return (0 if value.ndim else 1), value.dtype
    if isinstance(value, bool):
        return 2, BOOL
    if isinstance(value, int):
        return 2, DEFAULT_INT
    if isinstance(value, float):
        return 2, DEFAULT_FLOAT
    if isinstance(value, complex):
        return 2, DEFAULT_COMPLEX
    if is_numbers(value):
        return 2, result_dtype(*value) if value else DEFAULT_FLOAT
    raise TypeError(f"{type(value).__name__} is neither a tensor nor a number")


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    """Raise the category of a higher rank by a lower one, never its width alone."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if category(lower) <= category(higher) and category(higher) != _BOOL:
        return higher
    if category(higher) == _FLOAT:  # and the lower is complex: keep the higher's width
        return _complex_of(higher)
    return promote_types(higher, lower)


def _complex_of(dtype: DType) -> DType:
    return np.result_type(dtype, np.complex64) if dtype.itemsize > 4 else DEFAULT_COMPLEX
