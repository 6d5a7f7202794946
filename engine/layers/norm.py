"""Norms of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.errors import InferStatus, LayerError
from engine.layers.arguments import as_dtype, axes_of, axis_of, cast
from engine.layers.layer import Ints
from engine.layers.reduction import accumulator
from engine.layers.registry import register
from engine.layers.size import as_python
from engine.values import Array, Value

__all__ = ["frobenius_norm", "linalg_norm", "matrix_norm", "norm", "renorm", "vector_norm"]


@register("torch.norm", "Tensor.norm", "aten::norm")
def norm(
    input: Array,
    p: float | str | None = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    dtype: Value = None,
) -> Array:
    """Norm of the elements: ``torch.norm``.

    Parameters
    ----------
    input : ndarray of any shape, floating-point or complex
    p : number, ``"fro"`` or ``"nuc"``
        Order: the p-th root of the sum of the p-th powers of the absolute values. 0 counts the
        elements that are not zero; inf and -inf give the largest and smallest. ``"fro"`` is 2;
        ``"nuc"`` adds the singular values of matrices.
    dim : int or ints, optional
        Dimensions to reduce; all of them by default.
    keepdim : bool
        Keep them with size 1.
    dtype : str, optional
        Dtype to convert the input to first.

    Returns
    -------
    ndarray of the input's dtype; of complex input, of its real dtype
    """
    if p == "nuc":
        return _nuclear(input, dim, keepdim)
    return vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype)


@register("torch.linalg.vector_norm", "aten::linalg_vector_norm")
def vector_norm(
    input: Array,
    ord: float | str = 2,
    dim: Ints | None = None,
    keepdim: bool = False,
    dtype: Value = None,
) -> Array:
    """Norm of vectors: ``torch.linalg.vector_norm``.

    Parameters
    ----------
    input, dim, keepdim, dtype
        As in ``torch.norm``.
    ord : number
        Order: the root of the sum of the powers of the absolute values. 0 counts the elements
        that are not zero; inf and -inf give the largest and smallest.

    Returns
    -------
    ndarray of the input's dtype; of complex input, of its real dtype
    """
    wanted = as_dtype(dtype)
    if wanted is not None:
        input = cast(input, wanted)
    if input.dtype.kind not in "fc":
        raise LayerError(f"a norm needs floating-point numbers, not {input.dtype}")
    axes = axes_of(dim, input.ndim)
    order = _order(ord)
    with np.errstate(all="ignore"):
        lengths = np.abs(input.astype(accumulator(input.dtype)))
        return cast(np.asarray(_norm(lengths, order, axes, keepdim)), input.real.dtype)


@register("torch.frobenius_norm", "aten::frobenius_norm")
def frobenius_norm(input: Array, dim: Ints | None = None, keepdim: bool = False) -> Array:
    """Root of the sum of the squares: ``torch.norm`` with ``p="fro"``."""
    return vector_norm(input, 2, dim, keepdim)


@register("torch.linalg.matrix_norm", "aten::linalg_matrix_norm")
def matrix_norm(
    input: Array,
    ord: float | str = "fro",
    dim: Ints = (-2, -1),
    keepdim: bool = False,
    dtype: Value = None,
) -> Array:
    """Norm of matrices: ``torch.linalg.matrix_norm``.

    Parameters
    ----------
    input : ndarray of shape (..., N, M), floating-point or complex
    ord : number or str
        ``"fro"``, the root of the sum of squares; ``"nuc"``, the sum of the singular
        values; 2 and -2, the largest and smallest of them; 1 and -1, the largest and
        smallest sum of a column's absolute values; inf and -inf, of a row's.
    dim : two ints
        Rows and columns of the matrices.
    keepdim : bool
        Keep them with size 1.
    dtype : str, optional
        Dtype to convert the input to first.

    Returns
    -------
    ndarray of the input's dtype; of complex input, of its real dtype
    """
    wanted = as_dtype(dtype)
    array = input if wanted is None else cast(input, wanted)
    axes = axes_of(dim, array.ndim)
    if len(axes) != 2:
        raise LayerError(f"dim has {len(axes)} numbers, a matrix has 2 dimensions")
    kind: Any = ord if ord in {"fro", "nuc"} else _order(ord)
    try:
        lengths = np.linalg.norm(
            array.astype(accumulator(array.dtype)), kind, (axes[0], axes[1]), keepdims=keepdim
        )
    except ValueError as exc:
        raise LayerError(f"there is no norm of order {ord} of matrices") from exc
    return cast(np.asarray(lengths), array.real.dtype)


@register("torch.linalg.norm", "aten::linalg_norm")
def linalg_norm(
    input: Array,
    ord: float | str | None = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    dtype: Value = None,
) -> Array:
    """Norm of vectors or of matrices: ``torch.linalg.norm``.

    Parameters
    ----------
    input : ndarray of any shape, floating-point or complex
    ord : number or str, optional
        Order: as in ``torch.linalg.vector_norm`` along one dimension, as in
        ``torch.linalg.matrix_norm`` along two. Without it the root of the sum of squares.
    dim : int or ints, optional
        Dimensions to reduce; all of them by default.
    keepdim : bool
        Keep them with size 1.
    dtype : str, optional
        Dtype to convert the input to first.

    Returns
    -------
    ndarray of the input's dtype; of complex input, of its real dtype
    """
    if ord is None:
        return vector_norm(input, 2, dim, keepdim, dtype)
    axes = axes_of(dim, input.ndim)
    if len(axes) == 2:
        return matrix_norm(input, ord, axes, keepdim, dtype)
    if len(axes) != 1:
        raise LayerError(f"a norm of order {ord} is of one dimension or two, not {len(axes)}")
    return vector_norm(input, ord, axes, keepdim, dtype)


@register("torch.renorm", "Tensor.renorm", "aten::renorm")
def renorm(input: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Limit the norm of the slices along a dimension: ``torch.renorm``.

    Parameters
    ----------
    input : ndarray with at least two dimensions
    p : number
        Order of the norm.
    dim : int
    maxnorm : number
        Largest allowed norm.

    Returns
    -------
    ndarray of the same shape
        A copy.
    """
    if input.ndim < 2:
        raise LayerError(f"the input needs two dimensions, it has {input.ndim}")
    axis = axis_of(dim, input.ndim)
    others = tuple(other for other in range(input.ndim) if other != axis)
    lengths = vector_norm(input, p, others, keepdim=True)
    largest = lengths.dtype.type(as_python(maxnorm))
    # PyTorch's constant that prevents an overflow of the division.
    factors = np.where(lengths > largest, largest / (lengths + lengths.dtype.type(1e-7)), 1)
    return cast(np.asarray(input * factors), input.dtype)


def _order(ord: float | str) -> float:
    """Parse an order, which may be the string ``inf`` in a file."""
    try:
        return float(ord if isinstance(ord, str) else as_python(ord))
    except ValueError:
        raise LayerError(f"there is no norm of order {ord}") from None


def _norm(lengths: Array, order: float, axes: tuple[int, ...], keepdim: bool) -> Any:
    if np.isinf(order):
        if 0 in {lengths.shape[axis] for axis in axes}:
            raise LayerError(
                "there are no elements to choose from", InferStatus.kInferInputsEmpty
            )
        choose = np.max if order > 0 else np.min
        return choose(lengths, axes, keepdims=keepdim)
    if order == 0:
        return np.count_nonzero(lengths, axes, keepdims=keepdim)
    if order == 1:
        return np.sum(lengths, axes, keepdims=keepdim)
    if order == 2:
        return np.sqrt(np.sum(np.square(lengths), axes, keepdims=keepdim))
    return np.power(np.sum(np.power(lengths, order), axes, keepdims=keepdim), 1 / order)


def _nuclear(input: Array, dim: Value, keepdim: bool) -> Array:
    axes = axes_of(dim, input.ndim)
    if len(axes) != 2:
        raise LayerError(f"a nuclear norm takes 2 dimensions, not {len(axes)}")
    return matrix_norm(input, "nuc", axes, keepdim)
