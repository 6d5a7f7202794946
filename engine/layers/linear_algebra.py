"""Solving and decomposing square matrices, in double precision, rounded once."""

from __future__ import annotations

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import as_int
from engine.layers.layer import Outputs
from engine.layers.registry import register
from engine.promotion import promote
from engine.values import Array

__all__ = ["cholesky", "det", "inverse", "kron", "matrix_power", "slogdet", "solve"]


def _wide(array: Array, name: str = "input", *, square: bool = True) -> Array:
    """Check that there are matrices of floats, and widen them."""
    if array.ndim < 2 or (square and array.shape[-1] != array.shape[-2]):
        raise LayerError(
            f"{name} must hold square matrices; its shape is {describe_shapes([array.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    if array.dtype.kind not in "fc":
        raise LayerError(f"{name} is {array.dtype}, not floating-point")
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


@register("torch.inverse", "torch.linalg.inv", "Tensor.inverse")
@register("aten::inverse", "aten::linalg_inv")
def inverse(input: Array) -> Array:
    """Inverse of each matrix: ``torch.linalg.inv``.

    Parameters
    ----------
    input : ndarray of shape (..., N, N)

    Returns
    -------
    ndarray of shape (..., N, N)

    Raises
    ------
    LayerError
        If a matrix has none.
    """
    try:
        return np.asarray(np.linalg.inv(_wide(input)), input.dtype)
    except np.linalg.LinAlgError:
        raise LayerError("a matrix is singular and has no inverse") from None


@register("torch.det", "torch.linalg.det", "Tensor.det", "aten::det", "aten::linalg_det")
def det(input: Array) -> Array:
    """Determinant of each matrix: ``torch.linalg.det``; (..., N, N) to (...)."""
    return np.asarray(np.linalg.det(_wide(input)), input.dtype)


@register("torch.slogdet", "torch.linalg.slogdet", "aten::slogdet", "aten::linalg_slogdet")
def slogdet(input: Array) -> Outputs:
    """Sign of each determinant and logarithm of its size: ``torch.linalg.slogdet``."""
    sign, logarithm = np.linalg.slogdet(_wide(input))
    real = input.real.dtype
    return Outputs((np.asarray(sign, input.dtype), np.asarray(logarithm, real)))


@register("torch.linalg.solve", "aten::linalg_solve")
def solve(input: Array, other: Array, left: bool = True) -> Array:
    """Solve ``input @ x = other`` for x: ``torch.linalg.solve``.

    Parameters
    ----------
    input : ndarray of shape (..., N, N)
    other : ndarray of shape (..., N, K) or (..., N)
    left : bool
        False solves ``x @ input = other``, with (..., K, N).

    Returns
    -------
    ndarray of the shape of `other`

    Raises
    ------
    LayerError
        If there is no single solution.
    """
    matrix, right = promote(input, other)
    wide = _wide(matrix)
    vector = right.ndim == 1 or right.shape == matrix.shape[:-1]
    columns = right[..., np.newaxis] if vector else right
    try:
        if left:
            found = np.linalg.solve(wide, _wide(columns, "other", square=False))
        else:
            turned = _wide(columns, "other", square=False).swapaxes(-1, -2)
            found = np.linalg.solve(wide.swapaxes(-1, -2), turned).swapaxes(-1, -2)
    except np.linalg.LinAlgError:
        raise LayerError("a matrix is singular and the equations have no solution") from None
    except ValueError:
        raise LayerError(
            f"shapes {describe_shapes([input.shape, other.shape])} do not fit",
            InferStatus.kInferArraySizeMismatch,
        ) from None
    return np.asarray(found[..., 0] if vector else found, right.dtype)


@register("torch.linalg.cholesky", "torch.cholesky", "aten::linalg_cholesky", "aten::cholesky")
def cholesky(input: Array, upper: bool = False) -> Array:
    """Triangular root of each positive-definite matrix: ``torch.linalg.cholesky``.

    Parameters
    ----------
    input : ndarray of shape (..., N, N)
    upper : bool
        Whether to give the upper triangle, rather than the lower one.

    Returns
    -------
    ndarray of shape (..., N, N)
        L with ``L @ L.conj().T = input``; with `upper` its conjugate transpose.
    """
    try:
        lower = np.linalg.cholesky(_wide(input))
    except np.linalg.LinAlgError:
        raise LayerError("a matrix is not positive-definite") from None
    return np.asarray(lower.conj().swapaxes(-1, -2) if upper else lower, input.dtype)


@register("torch.kron", "Tensor.kron", "aten::kron")
def kron(input: Array, other: Array) -> Array:
    """Kronecker product: ``torch.kron``; (A, B) and (C, D) give (A * C, B * D)."""
    return np.kron(*promote(input, other))


@register("torch.linalg.matrix_power", "torch.matrix_power", "Tensor.matrix_power")
@register("aten::linalg_matrix_power", "aten::matrix_power")
def matrix_power(input: Array, n: int) -> Array:
    """Product of each matrix with itself: ``torch.linalg.matrix_power``.

    Parameters
    ----------
    input : ndarray of shape (..., N, N)
    n : int
        How often; 0 gives the identity, negative ones powers of the inverse.

    Returns
    -------
    ndarray of shape (..., N, N)

    Raises
    ------
    LayerError
        If a matrix has no inverse and needs one.
    """
    try:
        power = np.linalg.matrix_power(_wide(input), as_int(n, "n"))
    except np.linalg.LinAlgError:
        raise LayerError("a matrix is singular and has no inverse") from None
    return np.asarray(power, input.dtype)
