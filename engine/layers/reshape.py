"""Operators that read the same elements under another shape.

They return views of their input if its memory order allows one, and copies otherwise. The order
of elements is row-major, as in PyTorch. ``view`` copies where PyTorch's would fail.
"""

from __future__ import annotations

from math import prod

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import as_ints, as_sizes, axes_of, axis_of
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.values import Array

__all__ = [
    "flatten",
    "reshape",
    "reshape_as",
    "resolve_shape",
    "squeeze",
    "unflatten",
    "unsqueeze",
]


def resolve_shape(
    shape: tuple[int, ...], source: tuple[int, ...], argument: str = ""
) -> tuple[int, ...]:
    """Resolve the wildcards of a shape.

    Parameters
    ----------
    shape : tuple of int
        At most one -1, for the remaining size. A 0 keeps the source's size of that dimension,
        as pnnx writes it; for a source without elements it is the size 0.
    source : tuple of int
        Shape of the input.
    argument : str, optional
        Name of the argument with `shape`, for the error.

    Raises
    ------
    LayerError
        If the element counts differ.
    """
    elements = prod(source)
    sizes = [
        source[place] if size == 0 and elements and place < len(source) else size
        for place, size in enumerate(shape)
    ]
    known = prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and known and elements % known == 0:
        sizes[sizes.index(-1)] = elements // known
    if min(sizes, default=0) < 0 or prod(sizes) != elements:
        raise LayerError(
            f"{elements} elements of shape {describe_shapes([source])} do not fit the shape "
            f"{describe_shapes([shape])}",
            InferStatus.kInferArraySizeMismatch,
            pinned_by=argument,
        )
    return tuple(sizes)


@register("Tensor.reshape", "Tensor.view", "torch.reshape", "aten::reshape", "aten::view")
def reshape(input: Array, shape: Ints | None) -> Array:
    """Change the shape: ``torch.reshape``.

    Parameters
    ----------
    input : ndarray of any shape
    shape : ints
        Element counts must agree. One size may be -1, for the remaining size; 0 keeps the
        input's size of that dimension. None and the empty list make a 0-d tensor.

    Returns
    -------
    ndarray of shape `shape`
        A view of `input` if possible.
    """
    return input.reshape(resolve_shape(as_sizes(shape, "shape"), input.shape, "shape"))


@register("Tensor.reshape_as", "Tensor.view_as", "aten::reshape_as", "aten::view_as")
def reshape_as(input: Array, other: Array) -> Array:
    """Change the shape to that of another tensor: ``Tensor.reshape_as``.

    Parameters
    ----------
    input, other : ndarray
        With the same number of elements.

    Returns
    -------
    ndarray of the shape of `other`
        A view of `input` if possible.
    """
    return input.reshape(resolve_shape(other.shape, input.shape))


@register("torch.ravel", "Tensor.ravel", "aten::ravel", operands="input")
@register("torch.flatten", "Tensor.flatten", "aten::flatten")
def flatten(input: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Join neighbouring dimensions into one: ``torch.flatten``.

    Parameters
    ----------
    input : ndarray of shape (A, ..., B, ..., C)
    start_dim, end_dim : int
        First and last dimension to join; negative ones count from the end.

    Returns
    -------
    ndarray of shape (A, ... * B * ..., C)
        A view of `input` if possible. A 0-d tensor becomes one of shape (1,).
    """
    first, last = axis_of(start_dim, input.ndim), axis_of(end_dim, input.ndim)
    if first > last:
        raise LayerError(f"start_dim {start_dim} comes after end_dim {end_dim}")
    joined = prod(input.shape[first : last + 1])
    return input.reshape(*input.shape[:first], joined, *input.shape[last + 1 :])


@register("nn.Flatten")
def flatten_module(input: Array, start_dim: int = 1, end_dim: int = -1) -> Array:
    """Join all dimensions but the batch into one: ``nn.Flatten``.

    Parameters
    ----------
    input : ndarray of shape (N, ...)
    start_dim, end_dim : int
        First and last dimension to join.

    Returns
    -------
    ndarray of shape (N, ...)
        A view of `input` if possible.
    """
    return flatten(input, start_dim, end_dim)


@register("Tensor.unflatten", "torch.unflatten", "aten::unflatten")
def unflatten(input: Array, dim: int, sizes: Ints) -> Array:
    """Split one dimension into several: ``torch.unflatten``.

    Parameters
    ----------
    input : ndarray of shape (..., A * B, ...)
    dim : int
    sizes : ints
        Sizes of the new dimensions; one may be -1, for the remaining size.

    Returns
    -------
    ndarray of shape (..., A, B, ...)
        A view of `input` if possible.
    """
    return _unflatten(input, dim, sizes, "sizes")


@register("nn.Unflatten")
def unflatten_module(input: Array, dim: int, unflattened_size: Ints) -> Array:
    """Split one dimension into several: ``nn.Unflatten``.

    Parameters
    ----------
    input : ndarray of shape (..., A * B, ...)
    dim : int
    unflattened_size : ints
        Sizes of the new dimensions; one may be -1, for the remaining size.

    Returns
    -------
    ndarray of shape (..., A, B, ...)
        A view of `input` if possible.
    """
    return _unflatten(input, dim, unflattened_size, "unflattened_size")


def _unflatten(input: Array, dim: int, sizes: Ints, argument: str) -> Array:
    axis = axis_of(dim, input.ndim)
    inner = resolve_shape(as_ints(sizes, argument), input.shape[axis : axis + 1], argument)
    return input.reshape(*input.shape[:axis], *inner, *input.shape[axis + 1 :])


@register("torch.squeeze", "Tensor.squeeze", "aten::squeeze")
def squeeze(input: Array, dim: Ints | None = None) -> Array:
    """Drop dimensions of size 1: ``torch.squeeze``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int or ints, optional
        Dimensions to drop; dimensions larger than 1 stay. By default all.

    Returns
    -------
    ndarray
        A view of `input`.
    """
    axes = axes_of(dim, input.ndim)
    return input.reshape([n for d, n in enumerate(input.shape) if n != 1 or d not in axes])


@register("torch.unsqueeze", "Tensor.unsqueeze", "aten::unsqueeze")
def unsqueeze(input: Array, dim: Ints | None) -> Array:
    """Insert dimensions of size 1: ``torch.unsqueeze``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int or ints, or None
        Their indices in the result. Several, which pnnx takes from ONNX, are inserted one
        after the other: -1, -2, … first, then 0, 1, …. None, an empty list of the file,
        inserts nothing.

    Returns
    -------
    ndarray
        A view of `input`.
    """
    for place in sorted(as_ints(dim, "dim"), key=lambda d: (d >= 0, abs(d))):
        axis = axis_of(place, input.ndim + 1)
        input = input.reshape(*input.shape[:axis], 1, *input.shape[axis:])
    return input
