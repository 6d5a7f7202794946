"""Matrix products.

Float32 goes through the BLAS that NumPy was built with; halves are multiplied in float32 and
rounded once. Where the dtypes differ, which PyTorch refuses, they are promoted: pnnx drops
casts to half precision and may leave such pairs behind.
"""

from __future__ import annotations

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import require_array, require_ndim
from engine.layers.registry import register
from engine.promotion import Scalar, promote
from engine.values import Array

__all__ = ["addmm", "baddbmm", "bmm", "dot", "matmul", "mm", "mv", "outer"]


@register("torch.matmul", "Tensor.matmul", "aten::matmul")
def matmul(input: Array, other: Array) -> Array:
    """Multiply matrices, stacks of matrices and vectors: ``torch.matmul``.

    Parameters
    ----------
    input : ndarray of shape (..., M, K) or (K,)
    other : ndarray of shape (..., K, N) or (K,)
        The leading dimensions are broadcast. A vector is a row on the left, a column on the
        right, and its dimension is dropped from the result.

    Returns
    -------
    ndarray of shape (..., M, N)
        A new array.
    """
    left, right = promote(require_array(input, "input"), require_array(other, "other"))
    half = left.dtype == np.float16
    if half:
        left, right = left.astype(np.float32), right.astype(np.float32)
    try:
        product = np.asarray(np.matmul(left, right))
    except ValueError:
        raise _mismatch(input, other) from None
    return product.astype(np.float16) if half else product


@register("torch.mm", "Tensor.mm", "aten::mm")
def mm(input: Array, mat2: Array) -> Array:
    """Multiply two matrices: ``torch.mm``.

    Parameters
    ----------
    input : ndarray of shape (M, K)
    mat2 : ndarray of shape (K, N)

    Returns
    -------
    ndarray of shape (M, N)
        A new array.
    """
    require_ndim(input, 2)
    require_ndim(mat2, 2, "mat2")
    return matmul(input, mat2)


@register("torch.bmm", "Tensor.bmm", "aten::bmm")
def bmm(input: Array, mat2: Array) -> Array:
    """Multiply two batches of matrices, pair by pair: ``torch.bmm``.

    Parameters
    ----------
    input : ndarray of shape (B, M, K)
    mat2 : ndarray of shape (B, K, N)

    Returns
    -------
    ndarray of shape (B, M, N)
        A new array.
    """
    require_ndim(input, 3)
    require_ndim(mat2, 3, "mat2")
    if len(input) != len(mat2):
        raise _mismatch(input, mat2)
    return matmul(input, mat2)


@register("torch.mv", "Tensor.mv", "aten::mv")
def mv(input: Array, vec: Array) -> Array:
    """Multiply a matrix with a vector: ``torch.mv``.

    Parameters
    ----------
    input : ndarray of shape (M, K)
    vec : ndarray of shape (K,)

    Returns
    -------
    ndarray of shape (M,)
        A new array.
    """
    require_ndim(input, 2)
    require_ndim(vec, 1, "vec")
    return matmul(input, vec)


@register("torch.dot", "Tensor.dot", "torch.inner", "aten::dot")
def dot(input: Array, other: Array) -> Array:
    """Multiply two vectors: ``torch.dot``, and ``torch.inner`` of vectors.

    Parameters
    ----------
    input, other : ndarray of shape (K,)

    Returns
    -------
    ndarray of shape ()
        A new array.
    """
    require_ndim(input, 1)
    require_ndim(other, 1, "other")
    return matmul(input, other)


@register("torch.outer", "Tensor.outer", "torch.ger", "aten::outer")
def outer(input: Array, vec2: Array) -> Array:
    """Multiply each element of one vector with each of another: ``torch.outer``.

    Parameters
    ----------
    input : ndarray of shape (M,)
    vec2 : ndarray of shape (N,)

    Returns
    -------
    ndarray of shape (M, N)
        A new array.
    """
    require_ndim(input, 1)
    require_ndim(vec2, 1, "vec2")
    left, right = promote(input, vec2)
    return left[:, np.newaxis] * right


@register("torch.addmm", "Tensor.addmm", "aten::addmm")
def addmm(input: Array, mat1: Array, mat2: Array, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """Add a matrix product: ``beta * input + alpha * mat1 @ mat2``, ``torch.addmm``.

    Parameters
    ----------
    input : ndarray, broadcast to (M, N)
        Not looked at where `beta` is 0.
    mat1 : ndarray of shape (M, K)
    mat2 : ndarray of shape (K, N)
    beta, alpha : number

    Returns
    -------
    ndarray of shape (M, N)
        A new array.
    """
    return _add_product(input, mm(mat1, mat2), beta, alpha)


@register("torch.baddbmm", "Tensor.baddbmm", "aten::baddbmm")
def baddbmm(
    input: Array, batch1: Array, batch2: Array, beta: Scalar = 1, alpha: Scalar = 1
) -> Array:
    """Add matrix products, pair by pair: ``torch.baddbmm``.

    Parameters
    ----------
    input : ndarray, broadcast to (B, M, N)
        Not looked at where `beta` is 0.
    batch1 : ndarray of shape (B, M, K)
    batch2 : ndarray of shape (B, K, N)
    beta, alpha : number
        Factors of the input and of the product.

    Returns
    -------
    ndarray of shape (B, M, N)
        A new array: ``beta * input + alpha * batch1 @ batch2``.
    """
    return _add_product(input, bmm(batch1, batch2), beta, alpha)


@register("torch.addmv", "Tensor.addmv", "aten::addmv")
def addmv(input: Array, mat: Array, vec: Array, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """Add a matrix-vector product: ``beta * input + alpha * mat @ vec``, ``torch.addmv``.

    Parameters
    ----------
    input : ndarray, broadcast to (M,)
        Not looked at where `beta` is 0.
    mat : ndarray of shape (M, K)
    vec : ndarray of shape (K,)
    beta, alpha : number

    Returns
    -------
    ndarray of shape (M,)
        A new array.
    """
    return _add_product(input, mv(mat, vec), beta, alpha)


def _add_product(input: Array, product: Array, beta: Scalar, alpha: Scalar) -> Array:
    try:
        added = np.broadcast_to(input, product.shape)
    except ValueError:
        raise _mismatch(input, product) from None
    with np.errstate(all="ignore"):
        scaled = product if alpha == 1 else product * product.dtype.type(alpha)
        if beta == 0:
            return scaled
        total = (added if beta == 1 else added * input.dtype.type(beta)) + scaled
        return np.asarray(total, product.dtype)


def _mismatch(left: Array, right: Array) -> LayerError:
    return LayerError(
        f"shapes {describe_shapes([left.shape, right.shape])} do not fit",
        InferStatus.kInferArraySizeMismatch,
    )
