"""Window functions, which taper both ends of a piece of a signal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import PLACEMENT, as_dtype, as_int, cast
from engine.layers.registry import register
from engine.layers.size import as_python
from engine.memory_bound import require_memory
from engine.promotion import DEFAULT_FLOAT
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["bartlett", "blackman", "hamming", "hann", "kaiser"]

_ORDERS = ("window_length dtype _ _ _", "window_length periodic dtype _ _ _")
_ORDER_OF_BETA = "window_length periodic beta dtype _ _ _"
_ORDERS_OF_ALPHA = (
    "window_length periodic alpha dtype _ _ _",
    "window_length periodic alpha beta dtype _ _ _",
)


@register("aten::hann_window", operands=_ORDERS, unused=PLACEMENT)
@register("torch.hann_window", unused=PLACEMENT)
def hann(window_length: int, periodic: bool = True, dtype: Value = None) -> Array:
    """Raised cosine from 0 to 0: ``torch.hann_window``.

    Parameters
    ----------
    window_length : int
        Number of elements.
    periodic : bool
        Whether the window is one period of a periodic signal; otherwise it is symmetric.
    dtype : str, optional
        Float32 by default.

    Returns
    -------
    ndarray of shape (window_length,)
        ``0.5 - 0.5 * cos(2 * pi * x)`` with x from 0 to 1.
    """
    return _make_window(window_length, periodic, dtype, lambda x: _sum_cosines(x, 0.5, 0.5))


@register("aten::hamming_window", operands=(*_ORDERS, *_ORDERS_OF_ALPHA), unused=PLACEMENT)
@register("torch.hamming_window", unused=PLACEMENT)
def hamming(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    dtype: Value = None,
) -> Array:
    """Raised cosine that does not reach 0: ``torch.hamming_window``.

    Parameters
    ----------
    window_length, periodic, dtype
        As in ``torch.hann_window``.
    alpha, beta : float
        Mean and height of the wave.

    Returns
    -------
    ndarray of shape (window_length,)
        ``alpha - beta * cos(2 * pi * x)`` with x from 0 to 1.
    """
    mean, height = as_python(alpha), as_python(beta)
    return _make_window(window_length, periodic, dtype, lambda x: _sum_cosines(x, mean, height))


@register("aten::blackman_window", operands=_ORDERS, unused=PLACEMENT)
@register("torch.blackman_window", unused=PLACEMENT)
def blackman(window_length: int, periodic: bool = True, dtype: Value = None) -> Array:
    """Sum of two cosines from 0 to 0: ``torch.blackman_window``.

    Parameters
    ----------
    window_length, periodic, dtype
        As in ``torch.hann_window``.

    Returns
    -------
    ndarray of shape (window_length,)
        ``0.42 - 0.5 * cos(2 * pi * x) + 0.08 * cos(4 * pi * x)`` with x from 0 to 1.
    """
    return _make_window(
        window_length, periodic, dtype, lambda x: _sum_cosines(x, 0.42, 0.5, -0.08)
    )


@register("aten::bartlett_window", operands=_ORDERS, unused=PLACEMENT)
@register("torch.bartlett_window", unused=PLACEMENT)
def bartlett(window_length: int, periodic: bool = True, dtype: Value = None) -> Array:
    """Triangle from 0 to 1 and back: ``torch.bartlett_window``.

    Parameters
    ----------
    window_length, periodic, dtype
        As in ``torch.hann_window``.

    Returns
    -------
    ndarray of shape (window_length,)
    """
    return _make_window(window_length, periodic, dtype, lambda x: 1 - np.abs(2 * x - 1))


@register("aten::kaiser_window", operands=(*_ORDERS, _ORDER_OF_BETA), unused=PLACEMENT)
@register("torch.kaiser_window", unused=PLACEMENT)
def kaiser(
    window_length: int, periodic: bool = True, beta: float = 12.0, dtype: Value = None
) -> Array:
    """Kaiser window, made with a Bessel function: ``torch.kaiser_window``.

    Parameters
    ----------
    window_length, periodic, dtype
        As in ``torch.hann_window``.
    beta : float
        Shape parameter: larger values make the window narrower.

    Returns
    -------
    ndarray of shape (window_length,)
        ``i0(beta * sqrt(1 - (2 * x - 1) ** 2)) / i0(beta)`` with x from 0 to 1.
    """
    width = float(as_python(beta))
    return _make_window(
        window_length,
        periodic,
        dtype,
        lambda x: np.i0(width * np.sqrt(1 - (2 * x - 1) ** 2)) / np.i0(width),
    )


def _make_window(
    window_length: Value, periodic: bool, dtype: Value, formula: Callable[[Array], Array]
) -> Array:
    """Evaluate a formula at evenly spaced x from 0 to 1; a window of length 1 is 1."""
    count, wanted = as_int(window_length, "window_length"), as_dtype(dtype) or DEFAULT_FLOAT
    if count < 0:
        raise LayerError(f"a window cannot have the length {count}")
    require_memory((count,), np.dtype(np.float64))
    if count == 1:
        return np.ones(1, wanted)
    last = count if periodic else count - 1
    return cast(np.asarray(formula(np.arange(count) / max(last, 1))), wanted)


def _sum_cosines(x: Array, mean: float, *heights: float) -> Array:
    """Subtract cosines of one period, two periods and so on from a mean."""
    waves = (
        height * np.cos(2 * math.pi * number * x) for number, height in enumerate(heights, 1)
    )
    return np.asarray(mean - sum(waves))
