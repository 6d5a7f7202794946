"""Matrix products of ONNX."""

from __future__ import annotations

import numpy as np

from engine.layers.annotations import OperandOf
from engine.layers.arguments import cast
from engine.layers.matmul import matmul
from engine.layers.registry import register
from engine.values import Array, Value

__all__ = ["gemm"]

register("MatMul")(matmul)


@register("Gemm")
def gemm(
    a: Array,
    b: Array,
    c: OperandOf[Value] = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - ONNX's names
    transB: int = 0,  # noqa: N803
) -> Array:
    """Matrix product plus a matrix, ``alpha * a @ b + beta * c``: ONNX ``Gemm``.

    Parameters
    ----------
    a : ndarray of shape (M, K)
    b : ndarray of shape (K, N)
    c : ndarray that broadcasts to (M, N), optional
    alpha, beta : float
        Factors of the product and of `c`.
    transA, transB : int
        Whether `a` and `b` are transposed.

    Returns
    -------
    ndarray of shape (M, N)
    """
    product = np.matmul(a.T if transA else a, b.T if transB else b)
    result = product * product.dtype.type(alpha)
    if c is not None:
        result = result + np.asarray(c) * product.dtype.type(beta)
    return cast(np.asarray(result), a.dtype)
