"""``torch.as_strided``: elements picked by steps in memory."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import as_int, as_ints
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.values import Array

__all__ = ["as_strided"]


@register("torch.as_strided", "Tensor.as_strided", "aten::as_strided")
def as_strided(
    input: Array, size: Ints | None, stride: Ints | None, storage_offset: int | None = None
) -> Array:
    """Pick elements by their places in memory: ``torch.as_strided``.

    Element (i, j, ...) is the one at ``storage_offset + i * stride[0] + j * stride[1] + ...``
    in row-major order. PyTorch looks at the memory behind its input, which a view shares
    with others; here the input itself counts, as if it were whole.

    Parameters
    ----------
    input : ndarray of any shape
    size : ints
        Shape of the result.
    stride : ints
        Steps in elements, from 0.
    storage_offset : int, optional
        Place of the first element; 0 by default.

    Returns
    -------
    ndarray of shape `size`
        A copy.
    """
    sizes, strides = as_ints(size, "size"), as_ints(stride, "stride")
    offset = 0 if storage_offset is None else as_int(storage_offset, "storage_offset")
    if len(sizes) != len(strides) or min((*sizes, *strides, offset), default=0) < 0:
        raise LayerError(f"size {sizes} and stride {strides} do not belong together")
    last = offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    if 0 not in sizes and last >= input.size:
        raise LayerError(f"element {last} is beyond the input's {input.size}")
    places = np.full((1,) * len(sizes), offset)
    for axis, (n, step) in enumerate(zip(sizes, strides, strict=True)):
        shape = [1] * len(sizes)
        shape[axis] = n
        places = places + (np.arange(n) * step).reshape(shape)
    picked: Array = input.reshape(-1)[places]
    return picked
