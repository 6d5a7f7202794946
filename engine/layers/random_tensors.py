"""Operators that make tensors of random numbers.

``rand`` and its variants make new tensors. pnnx writes PyTorch's methods that fill a tensor in
place (``Tensor.uniform_``) as ``aten::uniform``, which returns a new tensor with the shape and
dtype of the input. See `engine.layers.random_numbers` for the distributions.

All arguments of raw ``aten::`` operators are operands without names. Their `generator` is
PyTorch's and always None. The session's generator is the argument `rng`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.random import Generator

from engine.errors import LayerError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import (
    PLACEMENT,
    as_dtype,
    as_int,
    as_ints,
    cast,
    is_array,
    require_array,
)
from engine.layers.layer import Ints
from engine.layers.random_numbers import require_floats, standard_normal, uniform
from engine.layers.registry import register
from engine.layers.size import as_python
from engine.memory_bound import require_memory
from engine.promotion import DEFAULT_FLOAT, DEFAULT_INT, DType
from engine.values import Array, Value

__all__ = ["rand", "randint", "randn", "randperm"]

_LARGEST: Final = int(np.iinfo(np.int64).max)

# Number of operands after the dtype: layout, device, pin_memory.
_AFTER_DTYPE: Final = 3


@register(
    "torch.rand",
    "aten::rand",
    operands=("size dtype _ _ _", "size _ dtype _ _ _"),
    unused=f"{PLACEMENT} generator",
)
def rand(
    size: Ints | None,
    dtype: Value = None,
    *,
    rng: Generator,
) -> Array:
    """Uniform random numbers in [0, 1): ``torch.rand``.

    Parameters
    ----------
    size : ints
    dtype : str, optional
        float32 by default.

    Returns
    -------
    ndarray of shape `size`
    """
    return uniform(rng, as_ints(size, "size"), as_dtype(dtype) or DEFAULT_FLOAT)


@register("torch.rand_like", "aten::rand_like", unused=f"{PLACEMENT} memory_format")
def rand_like(
    input: Array,
    dtype: Value = None,
    *,
    rng: Generator,
) -> Array:
    """Uniform random numbers in [0, 1) in the shape of another: ``torch.rand_like``.

    Parameters
    ----------
    input : ndarray of any shape
    dtype : str, optional
        By default the input's.

    Returns
    -------
    ndarray of the input's shape
    """
    return uniform(rng, input.shape, as_dtype(dtype) or input.dtype)


@register(
    "torch.randn",
    "aten::randn",
    operands=("size dtype _ _ _", "size _ dtype _ _ _"),
    unused=f"{PLACEMENT} generator",
)
def randn(
    size: Ints | None,
    dtype: Value = None,
    *,
    rng: Generator,
) -> Array:
    """Random numbers of the normal distribution of mean 0 and variance 1: ``torch.randn``.

    Parameters
    ----------
    size : ints
    dtype : str, optional
        float32 by default.

    Returns
    -------
    ndarray of shape `size`
    """
    return standard_normal(rng, as_ints(size, "size"), as_dtype(dtype) or DEFAULT_FLOAT)


@register("torch.randn_like", "aten::randn_like", unused=f"{PLACEMENT} memory_format")
def randn_like(
    input: Array,
    dtype: Value = None,
    *,
    rng: Generator,
) -> Array:
    """Random numbers of the normal distribution in the shape of another: ``randn_like``.

    Parameters
    ----------
    input : ndarray of any shape
    dtype : str, optional
        By default the input's.

    Returns
    -------
    ndarray of the input's shape
        Mean 0 and variance 1.
    """
    return standard_normal(rng, input.shape, as_dtype(dtype) or input.dtype)


@register("torch.randint", "aten::randint", unused=f"{PLACEMENT} generator")
def randint(
    *operands: Value,
    low: Value = 0,
    high: Value = None,
    size: Any = None,
    dtype: Value = None,
    rng: Generator,
) -> Array:
    """Uniform random integers: ``torch.randint``.

    Parameters
    ----------
    *operands : Value
        ``[low,] high, size, …``, if they have no names.
    low, high : int
        From `low` (0 by default, inclusive) to `high` (exclusive).
    size : ints
    dtype : str, optional
        int64 by default; may be a floating-point dtype.

    Returns
    -------
    ndarray of shape `size`
    """
    if operands:
        place = next((i for i, o in enumerate(operands) if isinstance(o, tuple)), 0)
        if not place:
            raise LayerError("randint needs an upper bound and a size")
        low, high = (0, *operands[:place])[-2:]
        size, dtype = operands[place], _dtype_of(operands[place + 1 :])
    shape = as_ints(size, "size")
    return _draw_integers(rng, low, high, shape, as_dtype(dtype) or DEFAULT_INT)


@register("torch.randint_like", "aten::randint_like", unused=f"{PLACEMENT} memory_format")
def randint_like(
    *operands: Value,
    input: OperandOf[Value] = None,
    low: Value = 0,
    high: Value = None,
    dtype: Value = None,
    rng: Generator,
) -> Array:
    """Random integers in the shape of another tensor: ``torch.randint_like``.

    Parameters
    ----------
    *operands : Value
        ``input, [low,] high, dtype, …``, if they have no names.
    input : ndarray of any shape
    low, high : int
        From `low` (0 by default, inclusive) to `high` (exclusive).
    dtype : str, optional
        By default the input's, which may be a floating-point dtype.

    Returns
    -------
    ndarray of the input's shape
    """
    if operands:
        more = _AFTER_DTYPE + 1  # memory_format too
        input, *bounds = operands[: -more - 1]
        low, high = (0, *bounds)[-2:]
        dtype = operands[-more - 1]
    like = require_array(input, "input")
    return _draw_integers(rng, low, high, like.shape, as_dtype(dtype) or like.dtype)


@register(
    "torch.randperm",
    "aten::randperm",
    operands=("n dtype _ _ _", "n _ dtype _ _ _"),
    unused=f"{PLACEMENT} generator",
)
def randperm(
    n: Value,
    dtype: Value = None,
    *,
    rng: Generator,
) -> Array:
    """Put the integers from 0 to ``n - 1`` in random order: ``torch.randperm``.

    Parameters
    ----------
    n : int
    dtype : str, optional
        int64 by default.

    Returns
    -------
    ndarray of shape (n,)
    """
    count = as_int(n, "n")
    if count < 0:
        raise LayerError(f"n={count} is negative")
    require_memory((count,), DEFAULT_INT)
    return cast(rng.permutation(count), as_dtype(dtype) or DEFAULT_INT)


@register("torch.normal", "aten::normal", "aten::normal_", unused=f"{PLACEMENT} generator")
def normal(
    *operands: Value,
    input: Array | None = None,
    mean: Value = 0.0,
    std: Value = 1.0,
    size: Any = None,
    dtype: Value = None,
    rng: Generator,
) -> Array:
    """Random numbers of normal distributions: ``torch.normal``, ``Tensor.normal_``.

    Parameters
    ----------
    *operands : Value
        ``mean, std[, generator]``, ``mean, std, size, …`` or ``input, mean, std, generator``,
        if they have no names.
    input : ndarray of any shape, optional
        The tensor to fill; determines shape and dtype.
    mean, std : number, or ndarray, broadcast to one shape
        Without `input` and `size` they determine the shape. The dtype is that of `mean` if it
        is a tensor, else that of `std`.
    size : ints, optional
    dtype : str, optional
        Only with `size`; float32 by default.

    Returns
    -------
    ndarray
    """
    if len(operands) == 4:
        input, mean, std = require_array(operands[0], "input"), operands[1], operands[2]
    elif len(operands) > 4:
        mean, std, size = operands[:3]
        dtype = _dtype_of(operands[3:])
    elif len(operands) > 1:
        mean, std = operands[:2]
    middle, spread = np.asarray(mean), np.asarray(std)
    if not np.all(spread >= 0):
        raise LayerError("std is negative")
    if input is not None:
        shape, wanted = input.shape, input.dtype
    elif size is not None:
        shape, wanted = as_ints(size, "size"), as_dtype(dtype) or DEFAULT_FLOAT
    else:
        shape = _broadcast_shape(middle, spread)
        wanted = next((v.dtype for v in (mean, std) if is_array(v)), DEFAULT_FLOAT)
    drawn = standard_normal(rng, shape, wanted)
    return np.asarray(drawn * spread.astype(wanted) + middle.astype(wanted), wanted)


@register("aten::uniform", "aten::uniform_", unused="generator")
def fill_uniform(
    input: Array,
    low: Value = 0.0,
    high: Value = 1.0,
    *,
    rng: Generator,
) -> Array:
    """Uniform random numbers in [low, high): ``Tensor.uniform_``.

    Parameters
    ----------
    input : ndarray of any shape
        Gives the shape and dtype.
    low, high : number

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    start, end = as_python(low), as_python(high)
    if start > end:
        raise LayerError(f"the range from {start} up to {end} is empty")
    require_floats(input.dtype, "a uniform distribution")
    number = input.dtype.type
    drawn = uniform(rng, input.shape, input.dtype) * number(end - start) + number(start)
    if start < end:  # rounding may give the end, which is exclusive
        drawn = np.minimum(drawn, np.nextafter(number(end), number(start)))
    return np.asarray(drawn)


@register("aten::exponential", "aten::exponential_", unused="generator")
def fill_exponential(input: Array, lambd: Value = 1.0, *, rng: Generator) -> Array:
    """Random numbers of an exponential distribution: ``Tensor.exponential_``.

    Parameters
    ----------
    input : ndarray of any shape
        Gives the shape and dtype.
    lambd : number
        Reciprocal of the mean.

    Returns
    -------
    ndarray of the input's shape and dtype
        Larger than 0.
    """
    rate = _check_positive(lambd, "lambd")
    require_floats(input.dtype, "an exponential distribution")
    drawn = np.asarray(rng.standard_exponential(input.shape) / rate)
    return np.asarray(np.maximum(cast(drawn, input.dtype), np.finfo(input.dtype).tiny))


@register("aten::random", "aten::random_")
def fill_random(*operands: Value, rng: Generator) -> Array:
    """Uniform random integers: ``Tensor.random_``.

    Parameters
    ----------
    *operands : Value
        ``input, [[low,] high,] generator``: with the shape and dtype of `input`, from `low` (0
        by default, inclusive) to `high` (exclusive). By default `high` is the largest number
        up to which the dtype represents every integer.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    if len(operands) < 2:
        raise LayerError("random takes a tensor, up to two bounds, and a generator")
    input = require_array(operands[0], "input")
    bounds = operands[1:-1]
    low, high = bounds if len(bounds) == 2 else (0, *bounds, None)[:2]
    end = _count_of(input.dtype) if high is None else high
    return _draw_integers(rng, low, end, input.shape, input.dtype)


@register("aten::cauchy", "aten::cauchy_", unused="generator")
def fill_cauchy(
    input: Array,
    median: Value = 0.0,
    sigma: Value = 1.0,
    *,
    rng: Generator,
) -> Array:
    """Random numbers of a Cauchy distribution: ``Tensor.cauchy_``.

    Parameters
    ----------
    input : ndarray of any shape
        Gives the shape and dtype.
    median, sigma : number
        Half of the numbers lie within `sigma` of the median.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    require_floats(input.dtype, "a Cauchy distribution")
    drawn = rng.standard_cauchy(input.shape) * _check_positive(sigma, "sigma") + as_python(
        median
    )
    return cast(np.asarray(drawn), input.dtype)


@register("aten::geometric", "aten::geometric_", unused="generator")
def fill_geometric(input: Array, p: Value, *, rng: Generator) -> Array:
    """Random numbers of trials up to a success: ``Tensor.geometric_``.

    Parameters
    ----------
    input : ndarray of any shape
        Gives the shape and dtype.
    p : number
        Probability that a trial succeeds, between 0 and 1.

    Returns
    -------
    ndarray of the input's shape and dtype
        1 or more.
    """
    chance = as_python(p)
    if not 0 < chance < 1:
        raise LayerError(f"p={chance} does not lie between 0 and 1")
    return cast(np.asarray(rng.geometric(chance, input.shape)), input.dtype)


@register("aten::log_normal", "aten::log_normal_", unused="generator")
def fill_log_normal(
    input: Array,
    mean: Value = 1.0,
    std: Value = 2.0,
    *,
    rng: Generator,
) -> Array:
    """Random numbers whose logarithms are normally distributed: ``Tensor.log_normal_``.

    Parameters
    ----------
    input : ndarray of any shape
        Gives the shape and dtype.
    mean, std : number
        Of the logarithms.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    require_floats(input.dtype, "a log-normal distribution")
    drawn = rng.lognormal(as_python(mean), _check_positive(std, "std"), input.shape)
    return cast(np.asarray(drawn), input.dtype)


def _dtype_of(rest: tuple[Value, ...]) -> Value:
    """Return the dtype operand, counted from the end because a generator may precede it."""
    return rest[-_AFTER_DTYPE - 1] if len(rest) > _AFTER_DTYPE else None


def _broadcast_shape(mean: Array, std: Array) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(mean.shape, std.shape)
    except ValueError:
        shapes = describe_shapes([mean.shape, std.shape])
        raise LayerError(f"mean and std do not broadcast: their shapes are {shapes}") from None


def _check_positive(value: Value, name: str) -> float:
    number = as_python(value)
    if not number > 0:
        raise LayerError(f"{name}={number} is not larger than 0")
    return float(number)


def _draw_integers(
    rng: Generator, low: Value, high: Value, shape: tuple[int, ...], dtype: DType
) -> Array:
    """Draw integers from `low` (inclusive) to `high` (exclusive) in a dtype."""
    start, end = as_int(low, "low"), as_int(high, "high")
    if start >= end:
        raise LayerError(f"there is no integer from {start} up to {end}")
    require_memory(shape, np.promote_types(dtype, DEFAULT_INT))
    drawn = rng.integers(start, end, size=shape, dtype=np.int64)
    return cast(np.asarray(drawn), dtype)


def _count_of(dtype: DType) -> int:
    """Return one more than the largest n for which a dtype represents every integer up to n."""
    if dtype == np.bool_:
        return 2
    if dtype.kind == "f":
        return int(2 ** (np.finfo(dtype).nmant + 1)) + 1
    return min(int(np.iinfo(dtype).max), _LARGEST) + 1
