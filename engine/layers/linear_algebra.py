"""Operators on square matrices, computed in double precision and rounded once."""

from __future__ import annotations

import warnings

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import as_int, require_ndim, require_steps
from engine.layers.layer import Outputs
from engine.layers.registry import register
from engine.promotion import float_dtype, promote, promote_types
from engine.values import Array

__all__ = [
    "cholesky",
    "corrcoef",
    "cov",
    "det",
    "inverse",
    "kron",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "slogdet",
    "solve",
    "solve_triangular",
    "substitute",
]


def _to_double(array: Array, name: str = "input", *, square: bool = True) -> Array:
    """Check that the array holds matrices of floats, and convert it to double precision."""
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
        If a matrix is singular.
    """
    try:
        return np.asarray(np.linalg.inv(_to_double(input)), input.dtype)
    except np.linalg.LinAlgError:
        raise LayerError("a matrix is singular and has no inverse") from None


@register("torch.det", "torch.linalg.det", "Tensor.det", "aten::det", "aten::linalg_det")
def det(input: Array) -> Array:
    """Determinant of each matrix: ``torch.linalg.det``; (..., N, N) to (...)."""
    return np.asarray(np.linalg.det(_to_double(input)), input.dtype)


@register("torch.slogdet", "torch.linalg.slogdet", "aten::slogdet", "aten::linalg_slogdet")
def slogdet(input: Array) -> Outputs:
    """Sign of each determinant and logarithm of its size: ``torch.linalg.slogdet``."""
    sign, logarithm = np.linalg.slogdet(_to_double(input))
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
        If there is no unique solution.
    """
    matrix, right = promote(input, other)
    wide = _to_double(matrix)
    vector = right.ndim == 1 or right.shape == matrix.shape[:-1]
    columns = right[..., np.newaxis] if vector else right
    try:
        if left:
            found = np.linalg.solve(wide, _to_double(columns, "other", square=False))
        else:
            turned = _to_double(columns, "other", square=False).swapaxes(-1, -2)
            found = np.linalg.solve(wide.swapaxes(-1, -2), turned).swapaxes(-1, -2)
    except np.linalg.LinAlgError:
        raise LayerError("a matrix is singular and the equations have no solution") from None
    except ValueError:
        raise LayerError(
            f"shapes {describe_shapes([input.shape, other.shape])} do not fit",
            InferStatus.kInferArraySizeMismatch,
        ) from None
    return np.asarray(found[..., 0] if vector else found, right.dtype)


@register("torch.linalg.solve_triangular", "aten::linalg_solve_triangular")
def solve_triangular(
    input: Array, other: Array, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """Solve ``input @ x = other`` for triangular matrices: ``torch.linalg.solve_triangular``.

    Parameters
    ----------
    input : ndarray of shape (..., N, N)
        Only one triangle is read.
    other : ndarray of shape (..., N, K)
    upper : bool
        Which triangle it is.
    left : bool
        False solves ``x @ input = other``, with (..., K, N).
    unitriangular : bool
        Whether the diagonal is not read and stands for ones.

    Returns
    -------
    ndarray of shape (..., N, K), or (..., K, N)
        Infinite or NaN where the diagonal has zeros.
    """
    matrix, right = promote(input, other)
    wide, columns = _to_double(matrix), _to_double(right, "other", square=False)
    if not left:
        wide, columns, upper = wide.swapaxes(-1, -2), columns.swapaxes(-1, -2), not upper
    if columns.shape[-2] != wide.shape[-1]:
        raise LayerError(
            f"shapes {describe_shapes([input.shape, other.shape])} do not fit",
            InferStatus.kInferArraySizeMismatch,
        )
    found = substitute(wide, columns, upper=upper, unit=unitriangular)
    return np.asarray(found if left else found.swapaxes(-1, -2), right.dtype)


def substitute(matrix: Array, columns: Array, *, upper: bool, unit: bool) -> Array:
    """Solve triangular equations row by row, each by those before it.

    Parameters
    ----------
    matrix : ndarray of shape (..., N, N)
    columns : ndarray of shape (..., N, K)
    upper : bool
        Whether to begin with the last row.
    unit : bool
        Whether the diagonal stands for ones.
    """
    count = matrix.shape[-1]
    require_steps(count, "equations")
    try:
        lead = np.broadcast_shapes(matrix.shape[:-2], columns.shape[:-2])
    except ValueError:
        raise LayerError(
            f"shapes {describe_shapes([matrix.shape, columns.shape])} do not fit",
            InferStatus.kInferArraySizeMismatch,
        ) from None
    found = np.array(np.broadcast_to(columns, (*lead, *columns.shape[-2:])))
    with np.errstate(all="ignore"):
        for row in range(count)[:: -1 if upper else 1]:
            known = slice(row + 1, count) if upper else slice(0, row)
            found[..., row, :] -= (matrix[..., row : row + 1, known] @ found[..., known, :])[
                ..., 0, :
            ]
            if not unit:
                found[..., row, :] /= matrix[..., row, row, np.newaxis]
    return found


@register("torch.linalg.cholesky", "torch.cholesky", "aten::linalg_cholesky", "aten::cholesky")
def cholesky(input: Array, upper: bool = False) -> Array:
    """Cholesky factor of each positive-definite matrix: ``torch.linalg.cholesky``.

    Parameters
    ----------
    input : ndarray of shape (..., N, N)
    upper : bool
        Whether to return the upper triangle instead of the lower one.

    Returns
    -------
    ndarray of shape (..., N, N)
        L with ``L @ L.conj().T = input``; with `upper` its conjugate transpose.
    """
    try:
        lower = np.linalg.cholesky(_to_double(input))
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
        Exponent; 0 returns the identity, negative ones are powers of the inverse.

    Returns
    -------
    ndarray of shape (..., N, N)

    Raises
    ------
    LayerError
        If `n` is negative and a matrix is singular.
    """
    try:
        power = np.linalg.matrix_power(_to_double(input), as_int(n, "n"))
    except np.linalg.LinAlgError:
        raise LayerError("a matrix is singular and has no inverse") from None
    return np.asarray(power, input.dtype)


@register("torch.logdet", "Tensor.logdet", "aten::logdet")
def logdet(input: Array) -> Array:
    """Logarithm of each determinant: ``torch.logdet``.

    Parameters
    ----------
    input : ndarray of shape (..., N, N)

    Returns
    -------
    ndarray of shape (...)
        NaN where the determinant is negative, -inf where it is 0.
    """
    sign, logarithm = np.linalg.slogdet(_to_double(input))
    if sign.dtype.kind == "c":
        return np.asarray(logarithm + 1j * np.angle(sign), input.dtype)
    return np.asarray(np.where(sign < 0, np.nan, logarithm), input.dtype)


@register("torch.linalg.matrix_exp", "torch.matrix_exp", "Tensor.matrix_exp")
@register("aten::linalg_matrix_exp", "aten::matrix_exp")
def matrix_exp(input: Array) -> Array:
    """Exponential of each matrix: ``torch.linalg.matrix_exp``.

    Parameters
    ----------
    input : ndarray of shape (..., N, N)

    Returns
    -------
    ndarray of shape (..., N, N)
        Scaling and squaring: the matrix is halved until it is small, its power series is
        summed, and the result is squared as often.
    """
    wide = _to_double(input)
    largest = np.abs(wide).sum(-1).max(initial=0.0)
    halvings = max(0, int(np.ceil(np.log2(largest))) + 1) if largest > 0 else 0
    small = wide / 2.0**halvings
    term = total = np.broadcast_to(np.eye(wide.shape[-1]), wide.shape)
    for power in range(1, 19):  # 0.5 ** 18 / 18! is below a float64's precision
        term = term @ small / power
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return np.asarray(total, input.dtype)


@register("torch.cov", "Tensor.cov", "aten::cov")
def cov(
    input: Array,
    correction: int = 1,
    fweights: Array | None = None,
    aweights: Array | None = None,
) -> Array:
    """Covariances of variables: ``torch.cov``.

    Parameters
    ----------
    input : ndarray of shape (N, M), (M,) or ()
        A row for each variable, a column for each observation.
    correction : int
        The divisor is the number of observations minus this.
    fweights : integer ndarray of shape (M,), optional
        Frequency of each observation.
    aweights : ndarray of shape (M,), optional
        Weight of each observation.

    Returns
    -------
    ndarray of shape (N, N); of shape () for one variable
    """
    require_ndim(input, (0, 1, 2))
    rows = np.atleast_1d(input).astype(np.result_type(input.dtype, np.float64))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # NumPy warns of too few observations, which give NaN or inf
        result = np.cov(rows, ddof=correction, fweights=fweights, aweights=aweights)
    dtype = float_dtype(input.dtype)
    if aweights is not None:
        dtype = promote_types(dtype, aweights.dtype)
    return np.asarray(result, dtype)


@register("torch.corrcoef", "Tensor.corrcoef", "aten::corrcoef")
def corrcoef(input: Array) -> Array:
    """Correlations of variables, from -1 to 1: ``torch.corrcoef``.

    Parameters
    ----------
    input : ndarray of shape (N, M), (M,) or ()
        A row for each variable, a column for each observation.

    Returns
    -------
    ndarray of shape (N, N); of shape () for one variable
    """
    covariance = np.asarray(cov(input), np.result_type(input.dtype, np.float64))
    with np.errstate(all="ignore"):
        if covariance.ndim:
            spread = np.sqrt(np.diagonal(covariance).real)
            share = covariance / spread[:, np.newaxis] / spread
        else:
            share = covariance / covariance
    if share.dtype.kind != "c":
        share = np.clip(share, -1, 1)
    return np.asarray(share, float_dtype(input.dtype))
