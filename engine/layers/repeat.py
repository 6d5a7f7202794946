"""Operators that repeat elements along dimensions."""

from __future__ import annotations

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_ints, as_sizes, axis_of, require_array
from engine.layers.layer import Ints
from engine.layers.reduction import REDUCTIONS, reduce
from engine.layers.registry import register
from engine.memory_bound import require_extent, require_memory
from engine.values import Array, Value, describe_value

__all__ = [
    "broadcast_tensors",
    "expand",
    "expand_as",
    "repeat",
    "repeat_interleave",
    "stretch",
    "sum_to_size",
    "tile",
]


@register("Tensor.expand", "aten::expand")
@register("torch.broadcast_to", "Tensor.broadcast_to", "aten::broadcast_to")
def expand(input: Array, sizes: Ints | None, implicit: bool = False) -> Array:
    """Stretch dimensions of size 1 without copying: ``Tensor.expand``.

    Parameters
    ----------
    input : ndarray of any shape
    sizes : ints
        The new shape; -1 keeps a dimension. New dimensions may come first.
    implicit : bool
        No effect; only in TorchScript.

    Returns
    -------
    ndarray of shape `sizes`
        A view of `input` in which stretched elements share memory.
    """
    wanted = as_sizes(sizes, "sizes")
    new = len(wanted) - input.ndim
    shape = tuple(
        input.shape[place - new] if size == -1 and place >= new else size
        for place, size in enumerate(wanted)
    )
    return stretch(input, shape, "sizes")


@register("Tensor.expand_as", "aten::expand_as")
def expand_as(input: Array, other: Array) -> Array:
    """Stretch dimensions of size 1 to the shape of another tensor: ``Tensor.expand_as``.

    Parameters
    ----------
    input : ndarray of any shape
    other : ndarray of shape S

    Returns
    -------
    ndarray of shape S
        A view of `input` in which stretched elements share memory.
    """
    return stretch(input, other.shape)


@register("torch.broadcast_tensors", "aten::broadcast_tensors")
def broadcast_tensors(tensors: OperandOf[Value]) -> Value:
    """Stretch tensors to one shape without copying: ``torch.broadcast_tensors``.

    Parameters
    ----------
    tensors : tuple of ndarray
        Of shapes that broadcast.

    Returns
    -------
    tuple of ndarray
        Views in which stretched elements share memory.
    """
    if not isinstance(tensors, tuple):
        raise LayerError(f"tensors is {describe_value(tensors)}, not a list of tensors")
    arrays = [require_array(tensor, "a member of the list") for tensor in tensors]
    shapes = [array.shape for array in arrays]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise LayerError(
            f"cannot broadcast shapes {describe_shapes(shapes)}",
            InferStatus.kInferArraySizeMismatch,
        ) from None
    return tuple(stretch(array, shape) for array in arrays)


def stretch(array: Array, shape: tuple[int, ...], argument: str = "") -> Array:
    """Stretch an array to a shape without copying.

    Raises
    ------
    LayerError
        If the shapes do not match, or all elements together exceed the memory bound.
        `argument` is the name of the shape's argument.
    """
    try:
        stretched = np.broadcast_to(array, shape)
    except ValueError:
        raise LayerError(
            f"shape {describe_shapes([array.shape])} cannot be expanded to "
            f"{describe_shapes([shape])}",
            InferStatus.kInferArraySizeMismatch,
            pinned_by=argument,
        ) from None
    require_extent(shape, array.dtype)
    return stretched


@register("Tensor.sum_to_size", "aten::sum_to_size")
def sum_to_size(input: Array, size: Ints | None) -> Array:
    """Sum over the dimensions that broadcasting expands: ``Tensor.sum_to_size``.

    Parameters
    ----------
    input : ndarray of any shape
    size : ints
        A shape that broadcasts to the input's.

    Returns
    -------
    ndarray of shape `size`
        Of the input's dtype; int64 for bools and integers if anything is summed.
    """
    wanted = as_ints(size, "size")
    lead = input.ndim - len(wanted)
    if lead < 0 or any(
        new not in {1, old} for new, old in zip(wanted, input.shape[lead:], strict=True)
    ):
        raise LayerError(
            f"shape {describe_shapes([input.shape])} cannot be added up to "
            f"{describe_shapes([wanted])}",
            InferStatus.kInferArraySizeMismatch,
            pinned_by="size",
        )
    axes = tuple(
        axis
        for axis, old in enumerate(input.shape)
        if axis < lead or (wanted[axis - lead] == 1 and old != 1)
    )
    if not axes and wanted:
        return input
    return reduce(REDUCTIONS["sum"], input, axes, keepdim=True).reshape(wanted)


@register("Tensor.repeat", "aten::repeat")
def repeat(input: Array, sizes: Ints | None) -> Array:
    """Repeat the tensor along its dimensions: ``Tensor.repeat``.

    Parameters
    ----------
    input : ndarray of shape (A, B, ...)
    sizes : ints
        Number of repetitions along each dimension of the result.

    Returns
    -------
    ndarray
        A copy.
    """
    counts = as_ints(sizes, "sizes")
    if len(counts) < input.ndim:
        raise LayerError(
            f"sizes {counts} has fewer numbers than the input's {input.ndim} dimensions"
        )
    return tile(input, counts)


@register("torch.tile", "Tensor.tile", "aten::tile")
def tile(input: Array, dims: Ints | None) -> Array:
    """Repeat the tensor along its last dimensions: ``torch.tile``.

    Parameters
    ----------
    input : ndarray of any shape
    dims : ints
        Number of repetitions along each of the last dimensions; the others are not repeated.

    Returns
    -------
    ndarray
        A copy.
    """
    counts = as_ints(dims, "dims")
    if min(counts, default=0) < 0:
        raise LayerError(f"a tensor cannot be repeated {min(counts)} times")
    require_memory((input.size, *counts), input.dtype)
    if 0 in counts:  # NumPy would repeat along the other dimensions first
        repeats = (1,) * (input.ndim - len(counts)) + counts
        sizes = (1,) * (len(counts) - input.ndim) + input.shape
        shape = [size * count for size, count in zip(sizes, repeats, strict=True)]
        return np.empty(shape, input.dtype)
    return np.tile(input, counts)


@register("torch.repeat_interleave", "Tensor.repeat_interleave", "aten::repeat_interleave")
def repeat_interleave(
    input: Array,
    repeats: Array | int | None = None,
    dim: int | None = None,
    output_size: int | None = None,
) -> Array:
    """Repeat each element in place: ``torch.repeat_interleave``.

    Parameters
    ----------
    input : ndarray of any shape
        A single argument is the `repeats` of 0, 1, 2, ….
    repeats : int or integer ndarray of shape (N,) or (1,)
        Number of repetitions of each element along `dim`.
    dim : int, optional
        By default the flattened tensor is repeated.
    output_size : int, optional
        No effect; PyTorch's hint.

    Returns
    -------
    ndarray
        A copy.
    """
    if repeats is None:
        return _repeat(np.arange(input.size), input, 0)
    axis = None if dim is None else axis_of(dim, input.ndim)
    return _repeat(input, np.asarray(repeats), axis)


def _repeat(array: Array, counts: Array, axis: int | None) -> Array:
    """Repeat each element; checked first, because NumPy's sum of counts may overflow."""
    if counts.dtype.kind not in "iu" or counts.min(initial=0) < 0:
        raise LayerError("repeats must be integers of at least 0")
    elements = array.size if axis is None or not array.ndim else array.shape[axis]
    if counts.size not in {1, elements}:
        raise LayerError(
            f"there are {counts.size} repeats for {elements} elements",
            InferStatus.kInferArraySizeMismatch,
        )
    total = int(counts.sum(dtype=np.float64)) * (elements if counts.size == 1 else 1)
    require_memory((total, max(array.size // max(elements, 1), 1)), array.dtype)
    return np.repeat(array, counts, axis)
