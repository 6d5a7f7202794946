"""Max unpooling: the partial inverse of max pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import as_ints
from engine.layers.layer import Ints, OperatorCall
from engine.layers.registry import register
from engine.layers.windows import new_output, per_axis, require_image, spatial_rank
from engine.values import Array

__all__ = ["max_unpool"]


@register(
    "nn.MaxUnpool1d", "nn.MaxUnpool2d", "nn.MaxUnpool3d",
    "F.max_unpool1d", "F.max_unpool2d", "F.max_unpool3d",
)  # fmt: skip
def max_unpool(
    input: Array,
    indices: Array,
    call: OperatorCall,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> Array:
    """Put values back at the positions of max pooling: ``torch.nn.MaxUnpool2d``, ...

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    indices : int64 ndarray of the same shape
        Indices into the flattened (H'...), as max pooling returns them.
    kernel_size, stride, padding : int or tuple of int
        Of the pooling.
    output_size : tuple of int, optional
        H'..., optionally with N and C; by default ``(H - 1) * stride - 2 * padding +
        kernel_size``.

    Returns
    -------
    ndarray of shape (N, C, H'...) or (C, H'...)
        Zero everywhere else.
    """
    rank = spatial_rank(call)
    require_image(input, rank)
    kernel = per_axis("kernel_size", kernel_size, rank, least=1)
    strides = kernel if stride is None else per_axis("stride", stride, rank, least=1)
    paddings = per_axis("padding", padding, rank)
    sizes = as_ints(output_size, "output_size")[-rank:] or tuple(
        (size - 1) * s - 2 * p + k
        for size, s, p, k in zip(input.shape[-rank:], strides, paddings, kernel, strict=True)
    )
    return _put_back(input, indices, sizes)


@register("aten::max_unpool2d", "aten::max_unpool3d")
def max_unpool_to_a_size(
    input: Array,
    indices: Array,
    output_size: Ints,
    stride: Ints | None = None,
    padding: Ints | None = None,
) -> Array:
    """Put values back at the positions of max pooling: TorchScript's operator.

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    indices : int64 ndarray of the same shape
    output_size : tuple of int
        H'...
    stride, padding : int or tuple of int, optional
        No effect: `output_size` determines the result.

    Returns
    -------
    ndarray of shape (N, C, H'...) or (C, H'...)
        Zero everywhere else.
    """
    sizes = as_ints(output_size, "output_size")
    require_image(input, len(sizes))
    return _put_back(input, indices, sizes)


def _put_back(input: Array, indices: Array, sizes: tuple[int, ...]) -> Array:
    """Scatter values over images of the given size."""
    rank = len(sizes)
    if indices.shape != input.shape:
        raise LayerError(
            f"the input has shape {describe_shapes([input.shape])}, the indices "
            f"{describe_shapes([indices.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    positions = math.prod(sizes)
    if indices.size and (indices.min() < 0 or indices.max() >= positions):
        raise LayerError(
            f"index {indices.max()} is outside of the output's {describe_shapes([sizes])}"
        )
    lead = input.shape[:-rank]
    output = new_output((math.prod(lead), positions), input.dtype, 0)
    flat = (len(output), math.prod(input.shape[-rank:]))
    np.put_along_axis(output, indices.reshape(flat), input.reshape(flat), axis=1)
    return output.reshape(*lead, *sizes)
