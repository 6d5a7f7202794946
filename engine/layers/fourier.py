"""Discrete Fourier transforms, as one table.

Everything is transformed in double precision and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import (
    PLACEMENT,
    as_dtype,
    as_int,
    as_ints,
    axes_of,
    axis_of,
    cast,
)
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.layers.size import as_python
from engine.memory_bound import require_memory
from engine.promotion import DEFAULT_FLOAT, DType
from engine.values import Array, Value

__all__ = ["TRANSFORMS", "points_of", "require_room_for_points"]

Transform = Callable[..., Any]  # of an array, sizes, axes and a norm


def _hfftn(x: Array, sizes: tuple[int, ...], axes: tuple[int, ...], norm: Any) -> Any:
    if axes[:-1]:
        x = np.fft.fftn(x, sizes[:-1], axes[:-1], norm)
    return np.fft.hfft(x, sizes[-1], axes[-1], norm)


def _ihfftn(x: Array, sizes: tuple[int, ...], axes: tuple[int, ...], norm: Any) -> Any:
    halved = np.fft.ihfft(x, sizes[-1], axes[-1], norm)
    return np.fft.ifftn(halved, sizes[:-1], axes[:-1], norm) if axes[:-1] else halved


# By name of the one-dimensional transform: its summary, the multi-dimensional transform,
# whether its result is real, and whether its input is half of a symmetric signal.
TRANSFORMS: Final[dict[str, tuple[str, Transform, bool, bool]]] = {
    "fft": ("Fourier transform", np.fft.fftn, False, False),
    "ifft": ("Inverse Fourier transform", np.fft.ifftn, False, False),
    "rfft": ("Fourier transform of real numbers, one half", np.fft.rfftn, False, False),
    "irfft": ("Inverse Fourier transform to real numbers", np.fft.irfftn, True, True),
    "hfft": ("Fourier transform of half a symmetric signal", _hfftn, True, True),
    "ihfft": ("Inverse of ``hfft``", _ihfftn, False, False),
}

_WORKING: Final = 4  # NumPy's temporary memory, in complex numbers per point
_OF_REAL_NUMBERS: Final = frozenset({"rfft", "ihfft"})


def points_of(
    name: str, shape: tuple[int, ...], sizes: Value, axes: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the number of points along each transformed dimension.

    Raises
    ------
    LayerError
        If there is no such transform.
    """
    if not axes:
        raise LayerError("there are no dimensions to transform")
    given = as_ints(sizes, "s") or (-1,) * len(axes)
    if len(given) != len(axes):
        raise LayerError(f"sizes {given} are not as many as the {len(axes)} dimensions")
    lengths = [shape[axis] for axis in axes]
    if TRANSFORMS[name][3]:  # the input is one half
        lengths[-1] = 2 * (lengths[-1] - 1)
    used = tuple(length if n == -1 else n for n, length in zip(given, lengths, strict=True))
    if min(used) < 1:
        raise LayerError(f"a transform of {min(used)} points has no result")
    return used


def _transform(
    name: str, input: Array, sizes: Value, axes: tuple[int, ...], norm: str | None
) -> Array:
    _, transform, gives_real, _ = TRANSFORMS[name]
    used = points_of(name, input.shape, sizes, axes)
    if name in _OF_REAL_NUMBERS and input.dtype.kind == "c":
        raise LayerError(f"{name} takes real numbers, not {input.dtype}")
    points = [n for axis, n in enumerate(input.shape) if axis not in axes]
    require_memory((*points, *used), np.dtype(np.complex128))
    require_room_for_points(max(used))
    wide = np.complex128 if input.dtype.kind == "c" else np.float64
    result = np.asarray(transform(input.astype(wide), used, axes, norm or "backward"))
    return cast(result, _result_dtype(input.dtype, gives_real))


def require_room_for_points(count: int) -> None:
    """Check that NumPy's temporary arrays of a transform fit into memory.

    Raises
    ------
    LayerError
        If there are too many points.
    """
    require_memory((_WORKING, count), np.dtype(np.complex128))


def _result_dtype(dtype: DType, gives_real: bool) -> DType:
    double = dtype.kind in "fc" and dtype.itemsize == (16 if dtype.kind == "c" else 8)
    if gives_real:
        return np.dtype(np.float64 if double else np.float32)
    return np.dtype(np.complex128 if double else np.complex64)


_NOTES: Final = """{what}{over}: ``torch.fft.{name}``.

    Parameters
    ----------
    input : ndarray of any shape
    {sizes}
        Number of points, to which the input is cropped or padded with zeros; its own by
        default.
    dim : {dims}
    norm : str
        ``"backward"`` (the default) divides the inverse by the number of points, ``"forward"``
        the other, ``"ortho"`` both by its root.

    Returns
    -------
    ndarray, {real}
        In double precision for inputs in double precision.
    """


def _make_1d(name: str) -> Callable[..., Array]:
    def compute(
        input: Array, n: int | None = None, dim: int = -1, norm: str | None = None
    ) -> Array:
        points = None if n is None else as_int(n, "n")
        axes = (axis_of(dim, input.ndim),) if input.ndim else ()
        return _transform(name, input, points, axes, norm)

    return compute


def _make_2d(name: str) -> Callable[..., Array]:
    def compute(
        input: Array,
        s: Ints | None = None,
        dim: Ints | None = (-2, -1),
        norm: str | None = None,
    ) -> Array:
        return _transform(name, input, s, axes_of(dim, input.ndim), norm)

    return compute


def _make_nd(name: str) -> Callable[..., Array]:
    def compute(
        input: Array, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None
    ) -> Array:
        axes = axes_of(dim, input.ndim)
        if s is not None and dim is None:
            axes = axes[len(axes) - len(as_ints(s, "s")) :]
        return _transform(name, input, s, axes, norm)

    return compute


def _register_all() -> None:
    """Register each transform along one, two and many dimensions."""
    for name, (what, _, gives_real, _) in TRANSFORMS.items():
        for made, suffix, over, sizes, dims in (
            (_make_1d(name), "", "", "n : int, optional", "int"),
            (_make_2d(name), "2", " in two dimensions", "s : ints, optional",
             "ints\n        The last two by default."),
            (_make_nd(name), "n", " in many dimensions", "s : ints, optional",
             "ints, optional\n        All by default, or as many last ones as `s` has."),
        ):  # fmt: skip
            made.__name__ = made.__qualname__ = f"{name}{suffix}"
            made.__doc__ = _NOTES.format(
                what=what, over=over, name=made.__name__, sizes=sizes, dims=dims,
                real="real" if gives_real else "complex",
            )  # fmt: skip
            register(f"torch.fft.{name}{suffix}", f"aten::fft_{name}{suffix}")(made)


_register_all()


@register("torch.fft.fftshift", "aten::fft_fftshift")
def fftshift(input: Array, dim: Ints | None = None) -> Array:
    """Move the zero frequency to the middle: ``torch.fft.fftshift``; all dims by default."""
    return np.fft.fftshift(input, axes_of(dim, input.ndim))


@register("torch.fft.ifftshift", "aten::fft_ifftshift")
def ifftshift(input: Array, dim: Ints | None = None) -> Array:
    """Move the zero frequency back to the front: ``torch.fft.ifftshift``."""
    return np.fft.ifftshift(input, axes_of(dim, input.ndim))


@register("torch.fft.fftfreq", "aten::fft_fftfreq", unused=PLACEMENT)
def fftfreq(n: int, d: float = 1.0, dtype: Value = None) -> Array:
    """Frequencies of the result of ``torch.fft.fft``: ``torch.fft.fftfreq``.

    Parameters
    ----------
    n : int
        Length of the transform.
    d : float
        Time between samples.
    dtype : str, optional
        Float32 by default.

    Returns
    -------
    ndarray of shape (n,)
        0 and the positive frequencies, then the negative ones, ascending.
    """
    count = _check_length(n)
    return cast(np.fft.fftfreq(count, as_python(d)), as_dtype(dtype) or DEFAULT_FLOAT)


@register("torch.fft.rfftfreq", "aten::fft_rfftfreq", unused=PLACEMENT)
def rfftfreq(n: int, d: float = 1.0, dtype: Value = None) -> Array:
    """Frequencies of the result of ``torch.fft.rfft``: ``torch.fft.rfftfreq``.

    Parameters
    ----------
    n, d, dtype
        As in ``torch.fft.fftfreq``.

    Returns
    -------
    ndarray of shape (n // 2 + 1,)
    """
    count = _check_length(n)
    return cast(np.fft.rfftfreq(count, as_python(d)), as_dtype(dtype) or DEFAULT_FLOAT)


def _check_length(n: Value) -> int:
    count = as_int(n, "n")
    if count < 1:
        raise LayerError(f"a transform cannot have the length {count}")
    require_memory((count,), np.dtype(np.float64))
    return count
