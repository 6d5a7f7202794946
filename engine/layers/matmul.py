"""Matrix products.

NumPy's BLAS multiplies float32. Float16 is multiplied in float32 and rounded once. Different
dtypes are promoted. PyTorch refuses them, but pnnx drops casts to half precision and may leave
such pairs.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import (
    as_ints,
    axis_of,
    cast,
    require_array,
    require_ndim,
    require_products,
)
from engine.layers.layer import Ints
from engine.layers.reduction import accumulator
from engine.layers.registry import register
from engine.promotion import Scalar, promote
from engine.values import Array, Value

__all__ = [
    "addmm",
    "baddbmm",
    "bmm",
    "dot",
    "inner",
    "matmul",
    "mm",
    "mv",
    "outer",
    "tensordot",
]


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
    rows, columns = math.prod(left.shape[-2:-1]), math.prod(right.shape[1:][-1:])
    require_products(max(left.size * columns, right.size * rows))
    try:
        product = np.asarray(np.matmul(left, right))
    except ValueError:
        raise _make_shape_error(input, other) from None
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
        raise _make_shape_error(input, mat2)
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


@register("torch.dot", "Tensor.dot", "aten::dot")
def dot(input: Array, other: Array) -> Array:
    """Multiply two vectors: ``torch.dot``.

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


@register("torch.vdot", "Tensor.vdot", "aten::vdot")
def vdot(input: Array, other: Array) -> Array:
    """Multiply two vectors, the first conjugated: ``torch.vdot``; else as ``torch.dot``."""
    return dot(np.conj(input) if input.dtype.kind == "c" else input, other)


@register("torch.linalg.vecdot", "aten::linalg_vecdot")
def vecdot(x: Array, y: Array, dim: int = -1) -> Array:
    """Multiply vectors along a dimension: ``torch.linalg.vecdot``.

    Parameters
    ----------
    x, y : ndarray, broadcast to one shape
        The first is conjugated.
    dim : int
        Dimension of the vectors.

    Returns
    -------
    ndarray of the common shape without `dim`
    """
    left, right = promote(x, y)
    try:
        products = np.conj(left) * right
    except ValueError:
        raise _make_shape_error(x, y) from None
    wide = accumulator(products.dtype)
    return cast(np.asarray(products.sum(axis_of(dim, products.ndim), wide)), products.dtype)


@register("torch.inner", "Tensor.inner", "aten::inner")
def inner(input: Array, other: Array) -> Array:
    """Multiply vectors along the last dimension, each with each: ``torch.inner``.

    Parameters
    ----------
    input : ndarray of shape (A..., K)
    other : ndarray of shape (B..., K)
        If one of them is a number, the other is multiplied by it.

    Returns
    -------
    ndarray of shape (A..., B...)
        A new array.
    """
    if not input.ndim or not other.ndim:
        left, right = promote(input, other)
        return np.asarray(left * right)
    return tensordot(input, other, (-1,), (-1,))


@register("torch.tensordot", "aten::tensordot")
def tensordot(input: Array, other: Array, dims_self: Ints, dims_other: Ints) -> Array:
    """Multiply and sum over dimensions of both tensors: ``torch.tensordot``.

    Parameters
    ----------
    input, other : ndarray of any shape
    dims_self, dims_other : ints
        Dimensions to sum over, in pairs of equal size; size 1 matches any size.

    Returns
    -------
    ndarray
        A new array: the other dimensions of `input`, then those of `other`.
    """
    left_axes = as_ints(dims_self, "dims_self")
    right_axes = as_ints(dims_other, "dims_other")
    left_axes = tuple(axis_of(dim, input.ndim, "dims_self") for dim in left_axes)
    right_axes = tuple(axis_of(dim, other.ndim, "dims_other") for dim in right_axes)
    if len(left_axes) != len(right_axes):
        raise LayerError(f"dims {left_axes} and {right_axes} are not equally many")
    for one, two in zip(left_axes, right_axes, strict=True):
        if other.shape[two] == 1:
            input = input.sum(one, input.dtype, keepdims=True)
        elif input.shape[one] == 1:
            other = other.sum(two, other.dtype, keepdims=True)
    left, right = promote(input, other)
    summed = math.prod(left.shape[axis] for axis in left_axes)
    rows = [axis for axis in range(left.ndim) if axis not in left_axes]
    columns = [axis for axis in range(right.ndim) if axis not in right_axes]
    if [left.shape[a] for a in left_axes] != [right.shape[a] for a in right_axes]:
        raise _make_shape_error(input, other)
    shape = [left.shape[a] for a in rows] + [right.shape[a] for a in columns]
    product = matmul(
        left.transpose(*rows, *left_axes).reshape(-1, summed),
        right.transpose(*right_axes, *columns).reshape(summed, -1),
    )
    return product.reshape(shape)


@register("torch.chain_matmul", "torch.linalg.multi_dot")
@register("aten::chain_matmul", "aten::linalg_multi_dot")
def chain_matmul(*matrices: Value) -> Array:
    """Multiply matrices, one after the other: ``torch.linalg.multi_dot``.

    Parameters
    ----------
    *matrices : ndarray of two dimensions, or one tuple of them
        The first and the last may be vectors.

    Returns
    -------
    ndarray
        A new array.
    """
    members = matrices
    if len(matrices) == 1 and isinstance(matrices[0], tuple):
        members = matrices[0]
    if not members:
        raise LayerError("there is nothing to multiply", InferStatus.kInferInputsEmpty)
    arrays = [require_array(member, f"operand {i}") for i, member in enumerate(members)]
    return functools.reduce(matmul, arrays)


@register("torch.outer", "Tensor.outer", "torch.ger", "aten::outer", "aten::ger")
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
        Ignored if `beta` is 0.
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
        Ignored if `beta` is 0.
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
        Ignored if `beta` is 0.
    mat : ndarray of shape (M, K)
    vec : ndarray of shape (K,)
    beta, alpha : number

    Returns
    -------
    ndarray of shape (M,)
        A new array.
    """
    return _add_product(input, mv(mat, vec), beta, alpha)


@register("torch.addbmm", "Tensor.addbmm", "aten::addbmm")
def addbmm(
    input: Array, batch1: Array, batch2: Array, beta: Scalar = 1, alpha: Scalar = 1
) -> Array:
    """Add the sum of matrix products: ``torch.addbmm``.

    Parameters
    ----------
    input : ndarray, broadcast to (M, N)
        Ignored if `beta` is 0.
    batch1 : ndarray of shape (B, M, K)
    batch2 : ndarray of shape (B, K, N)
    beta, alpha : number
        Factors of the input and of the sum.

    Returns
    -------
    ndarray of shape (M, N)
        A new array: ``beta * input + alpha * sum(batch1 @ batch2)``.
    """
    products = bmm(batch1, batch2)
    return _add_product(input, products.sum(0, products.dtype), beta, alpha)


@register("torch.addr", "Tensor.addr", "aten::addr")
def addr(input: Array, vec1: Array, vec2: Array, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """Add an outer product: ``beta * input + alpha * outer(vec1, vec2)``, ``torch.addr``.

    Parameters
    ----------
    input : ndarray, broadcast to (M, N)
        Ignored if `beta` is 0.
    vec1 : ndarray of shape (M,)
    vec2 : ndarray of shape (N,)
    beta, alpha : number

    Returns
    -------
    ndarray of shape (M, N)
        A new array.
    """
    return _add_product(input, outer(vec1, vec2), beta, alpha)


def _add_product(input: Array, product: Array, beta: Scalar, alpha: Scalar) -> Array:
    try:
        added = np.broadcast_to(input, product.shape)
    except ValueError:
        raise _make_shape_error(input, product) from None
    with np.errstate(all="ignore"):
        scaled = product if alpha == 1 else product * product.dtype.type(alpha)
        if beta == 0:
            return scaled
        total = (added if beta == 1 else added * input.dtype.type(beta)) + scaled
        return np.asarray(total, product.dtype)


def _make_shape_error(left: Array, right: Array) -> LayerError:
    return LayerError(
        f"shapes {describe_shapes([left.shape, right.shape])} do not fit",
        InferStatus.kInferArraySizeMismatch,
    )
