"""Fully connected layers."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.annotations import WeightOf
from engine.layers.arguments import require_products
from engine.layers.layer import PreparingLayer
from engine.layers.registry import register
from engine.layers.windows import ready, working_dtype
from engine.promotion import DType, promote_types
from engine.values import Array

__all__ = ["Linear", "bilinear", "linear"]


@register("nn.Linear")
class Linear(PreparingLayer[Array]):
    """Matrix product with a weight, and bias: ``torch.nn.Linear``.

    ``y[..., o] = bias[o] + sum over i of weight[o, i] * x[..., i]``.

    Parameters
    ----------
    weight : ndarray of shape (O, I)
    bias : ndarray of shape (O,), optional
    in_features, out_features : int
        I and O, compared with the weight's shape.
    """

    def __init__(
        self,
        weight: Array,
        bias: Array | None = None,
        in_features: int | None = None,
        out_features: int | None = None,
    ) -> None:
        if weight.ndim != 2:
            raise ParameterError("weight", f"a weight of shape {weight.shape} is not a matrix")
        for name, given, actual in (
            ("out_features", out_features, weight.shape[0]),
            ("in_features", in_features, weight.shape[1]),
        ):
            if given is not None and given != actual:
                raise ParameterError(name, f"{name}={given}, but the weight has {actual}")
        if bias is not None and bias.shape != weight.shape[:1]:
            raise ParameterError(
                "bias", f"the bias has shape {bias.shape}, there are {weight.shape[0]} outputs"
            )
        super().__init__()
        self.weight, self.bias = weight, bias

    @override
    def forward(self, input: Array) -> Array:
        dtype = promote_types(input.dtype, self.weight.dtype)
        work = working_dtype(dtype)
        return _multiply(input, self.prepared(work), self.bias, dtype)

    @override
    def prepare(self, dtype: DType) -> Array:
        """Prepare the weight for the product."""
        return ready(self.weight, dtype)


@register("F.linear", "aten::linear")
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """Matrix product and bias with a computed weight: ``torch.nn.functional.linear``.

    Parameters
    ----------
    input : ndarray of shape (..., I)
    weight : ndarray of shape (O, I) or (I,)
    bias : ndarray of shape (O,) or (), optional

    Returns
    -------
    ndarray of shape (..., O) or (...)
        ``y[..., o] = bias[o] + sum over i of weight[o, i] * x[..., i]``.
    """
    dtype = promote_types(input.dtype, weight.dtype)
    return _multiply(input, ready(weight, working_dtype(dtype)), bias, dtype)


@register("nn.Bilinear", "F.bilinear", "torch.bilinear", "aten::bilinear")
def bilinear(
    input1: Array,
    input2: Array,
    weight: WeightOf[Array],
    bias: WeightOf[Array | None] = None,
    *,
    in1_features: int | None = None,
    in2_features: int | None = None,
    out_features: int | None = None,
) -> Array:
    """Products of all pairs of two inputs' elements, weighted: ``torch.nn.Bilinear``.

    Parameters
    ----------
    input1 : ndarray of shape (..., I)
    input2 : ndarray of shape (..., J)
    weight : ndarray of shape (O, I, J)
    bias : ndarray of shape (O,), optional
    in1_features, in2_features, out_features : int
        I, J and O; the weight determines them.

    Returns
    -------
    ndarray of shape (..., O)
        ``y[..., o] = bias[o] + sum over i, j of x1[..., i] * weight[o, i, j] * x2[..., j]``.
    """
    dtype = promote_types(promote_types(input1.dtype, input2.dtype), weight.dtype)
    work = working_dtype(dtype)
    left, right, kernel = (array.astype(work, copy=False) for array in (input1, input2, weight))
    try:
        result = np.einsum("...i,oij,...j->...o", left, kernel, right, optimize=True)
    except ValueError:
        shapes = describe_shapes([input1.shape, input2.shape, weight.shape])
        raise LayerError(
            f"inputs and weight of shapes {shapes} do not fit",
            InferStatus.kInferArraySizeMismatch,
        ) from None
    if bias is not None:
        result = result + ready(bias, work)
    return np.asarray(result, dtype)


def _multiply(input: Array, weight: Array, bias: Array | None, dtype: DType) -> Array:
    if input.ndim == 0 or input.shape[-1] != weight.shape[-1]:
        last = input.shape[-1] if input.ndim else 1
        raise LayerError(
            f"the input's last axis has size {last}, the weight takes {weight.shape[-1]}",
            InferStatus.kInferArraySizeMismatch,
            pinned_by="in_features",
        )
    # One product of two matrices is much faster than one per leading index.
    require_products(input.size * len(weight))
    rows = input.astype(weight.dtype, copy=False).reshape(-1, weight.shape[-1])
    result: Array = np.matmul(rows, weight.T)
    if bias is not None:
        result += ready(bias, weight.dtype)
    shape = (*input.shape[:-1], *weight.shape[:-1])
    return result.reshape(shape).astype(dtype, copy=False)
