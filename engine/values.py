"""What an operand may hold, and the few things that every part does with it.

A value is an array (0-d for a scalar tensor), a Python scalar or string where PyTorch has
one, None, or a tuple of values for a list or tuple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Array", "Value", "describe_value", "flatten_value", "freeze", "value_nbytes"]

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = Array | int | float | complex | bool | str | tuple["Value", ...] | None


def freeze(value: object) -> Value:
    """Make a value safe to hand out.

    Parameters
    ----------
    value : object
        What a layer returned; lists become tuples, NumPy scalars 0-d arrays.

    Returns
    -------
    Value
        Arrays are marked read-only in place; they are not copied.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        return value
    if isinstance(value, np.generic):
        array = np.asarray(value)
        array.flags.writeable = False
        return array
    if isinstance(value, (tuple, list)):
        return tuple(freeze(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    raise TypeError(f"a layer returned {type(value).__name__}, which is no tensor value")


def describe_value(value: Value) -> tuple[int, ...] | str:
    """Shape of an array; a word for anything else."""
    if isinstance(value, np.ndarray):
        return value.shape
    if isinstance(value, tuple):
        return f"tuple of {len(value)}"
    return type(value).__name__ if value is not None else "None"


def flatten_value(value: Value) -> Iterator[Value]:
    """Members of a value in order, nested tuples taken apart."""
    if isinstance(value, tuple):
        for item in value:
            yield from flatten_value(item)
    else:
        yield value


def value_nbytes(value: Value) -> int:
    """Bytes that the arrays of a value take."""
    return sum(v.nbytes for v in flatten_value(value) if isinstance(v, np.ndarray))
