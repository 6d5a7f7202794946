"""Operators that make tensors from numbers, such as constants and ranges.

``empty`` and its variants return zeros, so that results are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import PLACEMENT, as_dtype, as_int, as_sizes, cast
from engine.layers.elementwise import Operand
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.layers.size import as_python
from engine.layers.windows import new_output
from engine.memory_bound import require_memory
from engine.promotion import DEFAULT_FLOAT, DType, result_dtype
from engine.values import Array, Value

__all__ = ["arange", "full", "full_like", "new_full"]


@register(
    "aten::arange",
    operands=("end dtype _ _ _", "start end dtype _ _ _", "start end step dtype _ _ _"),
    unused=PLACEMENT,
)
@register("torch.arange", unused=PLACEMENT)
def arange(
    start: Operand | None = None,
    end: Operand | None = None,
    step: Operand | None = None,
    dtype: Value = None,
) -> Array:
    """Evenly spaced numbers: ``torch.arange``.

    Parameters
    ----------
    start : number
        0 by default. A single argument is the end.
    end : number
        Exclusive.
    step : number
        1 by default.
    dtype : str, optional
        By default int64 if all numbers are integers, float32 otherwise.

    Returns
    -------
    ndarray of shape (ceil((end - start) / step),)
    """
    if end is None:
        start, end = None, start
    first = 0 if start is None else as_python(start)
    last = as_python(end)
    by = 1 if step is None else as_python(step)
    if by == 0:
        raise LayerError("step is 0")
    count = ceil((last - first) / by)
    if count < 0:
        raise LayerError(f"no step of {by} leads from {first} to {last}")
    require_memory((count,), np.dtype(np.int64))
    wanted = as_dtype(dtype)
    if wanted is None:
        wanted = result_dtype(first, last, by)
    return cast(first + np.arange(count) * by, wanted)


@register("torch.full", "aten::full", unused=PLACEMENT)
def full(
    size: Ints | None,
    fill_value: Operand,
    dtype: Value = None,
) -> Array:
    """Tensor filled with one number: ``torch.full``.

    Parameters
    ----------
    size : ints
    fill_value : number, or ndarray of shape ()
    dtype : str, optional
        By default that of the number: bool, int64, float32 or complex64.

    Returns
    -------
    ndarray of shape `size`
        A new array.
    """
    wanted = as_dtype(dtype)
    return _fill(size, fill_value, wanted or result_dtype(fill_value))


@register("torch.scalar_tensor", "aten::scalar_tensor", unused=PLACEMENT)
def scalar_tensor(
    s: Operand,
    dtype: Value = None,
) -> Array:
    """0-d tensor of one number: ``torch.scalar_tensor``.

    Parameters
    ----------
    s : number
    dtype : str, optional
        Float32 by default.

    Returns
    -------
    ndarray of shape ()
        A new array.
    """
    return _fill((), s, as_dtype(dtype) or DEFAULT_FLOAT)


@register("torch.full_like", "aten::full_like", unused=f"{PLACEMENT} memory_format")
def full_like(
    input: Array,
    fill_value: Operand,
    dtype: Value = None,
) -> Array:
    """Tensor filled with one number, in the shape of another: ``torch.full_like``.

    Parameters
    ----------
    input : ndarray of any shape
    fill_value : number, or ndarray of shape ()
    dtype : str, optional
        By default the input's.

    Returns
    -------
    ndarray of the input's shape
        A new array.
    """
    return _fill(input.shape, fill_value, as_dtype(dtype) or input.dtype)


@register("Tensor.new_full", "aten::new_full", unused=PLACEMENT)
def new_full(
    input: Array,
    size: Ints | None,
    fill_value: Operand,
    dtype: Value = None,
) -> Array:
    """Tensor filled with one number, in the dtype of another: ``Tensor.new_full``.

    Parameters
    ----------
    input : ndarray
        Determines the dtype.
    size : ints
    fill_value : number, or ndarray of shape ()
    dtype : str, optional
        Instead of the input's.

    Returns
    -------
    ndarray of shape `size`
        A new array.
    """
    return _fill(size, fill_value, as_dtype(dtype) or input.dtype)


@register("aten::zero")
def zero(input: Array) -> Array:
    """Tensor of zeros in the shape and dtype of another: ``Tensor.zero_``.

    Parameters
    ----------
    input : ndarray of any shape

    Returns
    -------
    ndarray of the input's shape and dtype
        A new array.
    """
    return np.zeros_like(input)


@register("Tensor.fill", "torch.fill", "aten::fill")
def fill(input: Array, value: Operand) -> Array:
    """Tensor filled with one number, in the shape and dtype of another: ``Tensor.fill_``.

    Parameters
    ----------
    input : ndarray of any shape
    value : number, or ndarray of shape ()

    Returns
    -------
    ndarray of the input's shape and dtype
        A new array.
    """
    return _fill(input.shape, value, input.dtype)


def _fill(size: Value, number: Operand, dtype: DType) -> Array:
    return new_output(as_sizes(size, "size"), dtype, cast(np.asarray(number), dtype))


_NUMBERS: Final = {"zeros": 0, "ones": 1, "empty": 0}


def _make_factory(number: int) -> Callable[..., Array]:
    def compute(
        size: Ints | None,
        dtype: Value = None,
    ) -> Array:
        return _fill(size, number, as_dtype(dtype) or DEFAULT_FLOAT)

    return compute


def _make_factory_like(number: int) -> Callable[..., Array]:
    def compute(
        input: Array,
        dtype: Value = None,
    ) -> Array:
        return _fill(input.shape, number, as_dtype(dtype) or input.dtype)

    return compute


def _make_new_factory(number: int) -> Callable[..., Array]:
    def compute(
        input: Array,
        size: Ints | None,
        dtype: Value = None,
    ) -> Array:
        return _fill(size, number, as_dtype(dtype) or input.dtype)

    return compute


def _register_all() -> None:
    """Register zeros, ones and empty, their ``_like`` and their ``new_`` forms."""
    for name, number in _NUMBERS.items():
        for made, types, what, default in (
            (_make_factory(number), (f"torch.{name}", f"aten::{name}"),
             f"of shape `size`: ``torch.{name}``", "float32"),
            (_make_factory_like(number), (f"torch.{name}_like", f"aten::{name}_like"),
             f"in the shape of another tensor: ``torch.{name}_like``", "the input's"),
            (_make_new_factory(number), (f"Tensor.new_{name}", f"aten::new_{name}"),
             f"of shape `size`: ``Tensor.new_{name}``", "the input's"),
        ):  # fmt: skip
            made.__name__ = made.__qualname__ = types[0].rpartition(".")[2]
            made.__doc__ = (
                f"Tensor of {'ones' if number else 'zeros'} {what}.\n\n"
                f"Its dtype is `dtype`, or {default} where that is None."
            )
            register(*types, unused=f"{PLACEMENT} memory_format")(made)


_register_all()


@register("aten::eye", operands=("n dtype _ _ _", "n m dtype _ _ _"), unused=PLACEMENT)
@register("torch.eye", unused=PLACEMENT)
def eye(n: int, m: int | None = None, dtype: Value = None) -> Array:
    """Matrix with ones on its diagonal: ``torch.eye``.

    Parameters
    ----------
    n, m : int
        Rows and columns; square without `m`.
    dtype : str, optional
        float32 by default.

    Returns
    -------
    ndarray of shape (n, m)
    """
    rows = as_int(n, "n")
    cols = rows if m is None else as_int(m, "m")
    wanted = as_dtype(dtype) or DEFAULT_FLOAT
    require_memory((rows, cols), wanted)
    return np.eye(rows, cols, dtype=wanted)


@register("aten::logspace", operands="start end steps base dtype _ _ _", unused=PLACEMENT)
@register("torch.logspace", unused=PLACEMENT)
def logspace(
    start: Operand, end: Operand, steps: int, base: float = 10.0, dtype: Value = None
) -> Array:
    """Powers with evenly spaced exponents: ``torch.logspace``.

    Parameters
    ----------
    start, end : number
        The first and last exponent.
    steps : int
        How many.
    base : float
        Base of the powers.
    dtype : str, optional
        float32 by default.

    Returns
    -------
    ndarray of shape (steps,)
    """
    exponents = _space_evenly(start, end, steps)
    return cast(np.asarray(np.power(float(base), exponents)), as_dtype(dtype) or DEFAULT_FLOAT)


@register("aten::linspace", operands="start end steps dtype _ _ _", unused=PLACEMENT)
@register("torch.linspace", unused=PLACEMENT)
def linspace(start: Operand, end: Operand, steps: int, dtype: Value = None) -> Array:
    """Evenly spaced numbers, including both ends: ``torch.linspace``.

    Parameters
    ----------
    start, end : number
    steps : int
        How many.
    dtype : str, optional
        float32 by default.

    Returns
    -------
    ndarray of shape (steps,)
    """
    return cast(_space_evenly(start, end, steps), as_dtype(dtype) or DEFAULT_FLOAT)


def _space_evenly(start: Operand, end: Operand, steps: int) -> Array:
    count = as_int(steps, "steps")
    require_memory((count,), np.dtype(np.float64))
    return np.linspace(as_python(start), as_python(end), count)
