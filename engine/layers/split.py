"""Operators that split a tensor into several along one dimension.

The parts are views of the input. A file has one output per part, or one output with a list of
all parts.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from engine.errors import InferStatus, LayerError
from engine.layers.arguments import along, as_int, as_ints, axis_of, require_few
from engine.layers.layer import NOWHERE, Ints, OperatorCall
from engine.layers.registry import register
from engine.values import Array

__all__ = ["chunk", "dsplit", "hsplit", "split", "tensor_split", "unbind", "vsplit"]

Parts = tuple[Array, ...]


@register(
    *("torch.split", "Tensor.split", "aten::split", "aten::split_with_sizes"),
    *("torch.split_with_sizes", "Tensor.split_with_sizes"),
    *("torch.unsafe_split", "Tensor.unsafe_split", "aten::unsafe_split"),
    *("torch.unsafe_split_with_sizes", "Tensor.unsafe_split_with_sizes"),
    "aten::unsafe_split_with_sizes",
)
def split(
    tensor: Array,
    split_size_or_sections: Ints | None,
    dim: int | None = 0,
    *,
    call: OperatorCall = NOWHERE,
) -> Parts:
    """Split into parts of given sizes: ``torch.split``.

    Parameters
    ----------
    tensor : ndarray of shape (A, N, B)
    split_size_or_sections : int or ints
        Size of every part except the last, which may be smaller; or all sizes, with the sum N.
        None, in files from ONNX, makes as many parts as the operator has outputs.
    dim : int

    Returns
    -------
    tuple of ndarray of shape (A, size, B)
        Views of `tensor`.
    """
    axis = _axis(dim, tensor)
    length = tensor.shape[axis]
    if split_size_or_sections is None:
        split_size_or_sections = -(-length // call.output_count)
    sizes = as_ints(split_size_or_sections, "split_size_or_sections")
    if min(sizes, default=0) < 0:
        raise LayerError(f"a part cannot have the size {min(sizes)}")
    if _is_one_number(split_size_or_sections):
        return _cut(tensor, axis, _equal_bounds(length, sizes[0]))
    if sum(sizes) != length:
        raise LayerError(
            f"sizes {sizes} add up to {sum(sizes)}, dim {dim} has {length}",
            InferStatus.kInferArraySizeMismatch,
            pinned_by="split_size_or_sections",
        )
    return _cut(tensor, axis, [0, *accumulate(sizes)])


@register(
    *("torch.chunk", "Tensor.chunk", "aten::chunk"),
    *("torch.unsafe_chunk", "Tensor.unsafe_chunk", "aten::unsafe_chunk"),
)
def chunk(input: Array, chunks: int, dim: int | None = 0) -> Parts:
    """Split into a number of parts, all but the last of one size: ``torch.chunk``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    chunks : int
        Largest number of parts: five elements in four chunks are 2, 2 and 1.
    dim : int

    Returns
    -------
    tuple of ndarray of shape (A, ceil(N / chunks) or less, B)
        Views of `input`.
    """
    axis, count = _axis(dim, input), as_int(chunks, "chunks")
    if count < 1:
        raise LayerError(f"chunks is {count}, but must be at least 1")
    length = input.shape[axis]
    if not length:
        require_few(count, "the result")
        return _cut(input, axis, [0] * (count + 1))
    return _cut(input, axis, _equal_bounds(length, -(-length // count)))


@register("torch.tensor_split", "Tensor.tensor_split", "aten::tensor_split")
def tensor_split(
    input: Array,
    indices: Ints | None = None,
    dim: int = 0,
    *,
    sections: int | None = None,
    indices_or_sections: Ints | None = None,
) -> Parts:
    """Split at given indices, or into parts as equal as possible: ``torch.tensor_split``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    indices : ints
        Start of each part except the first, as in Python's slices. An integer is the number
        of parts.
    dim : int
    sections : int
        Number of parts; the first N mod sections are larger by one.
    indices_or_sections : int or ints
        Either of the two, as in PyTorch.

    Returns
    -------
    tuple of ndarray of shape (A, size, B)
        Views of `input`.
    """
    axis = _axis(dim, input)
    where = next((w for w in (sections, indices, indices_or_sections) if w is not None), ())
    numbers = as_ints(where, "indices")
    if not _is_one_number(where):
        starts, ends = (0, *numbers), (*numbers, input.shape[axis])
        return tuple(_part(input, axis, a, b) for a, b in zip(starts, ends, strict=True))
    if numbers[0] < 1:
        raise LayerError(f"sections is {numbers[0]}, but must be at least 1")
    require_few(numbers[0], "the result")
    size, larger = divmod(input.shape[axis], numbers[0])
    sizes = [size + 1] * larger + [size] * (numbers[0] - larger)
    return _cut(input, axis, [0, *accumulate(sizes)])


@register("torch.hsplit", "Tensor.hsplit", "aten::hsplit")
def hsplit(input: Array, indices: Ints) -> Parts:
    """Split along the second dimension, vectors along their only one: ``torch.hsplit``.

    Parameters
    ----------
    input : ndarray with at least one dimension
    indices : int or ints
        Number of parts of equal size, or the start of each part except the first.

    Returns
    -------
    tuple of ndarray
        Views of `input`.
    """
    return _split_stack(input, indices, min(input.ndim, 2) - 1)


@register("torch.vsplit", "Tensor.vsplit", "aten::vsplit")
def vsplit(input: Array, indices: Ints) -> Parts:
    """Split along the first of two dimensions or more: ``torch.vsplit``.

    Parameters and result as ``torch.hsplit``.
    """
    return _split_stack(input, indices, 0, least=2)


@register("torch.dsplit", "Tensor.dsplit", "aten::dsplit")
def dsplit(input: Array, indices: Ints) -> Parts:
    """Split along the third dimension: ``torch.dsplit``.

    Parameters and result as ``torch.hsplit``.
    """
    return _split_stack(input, indices, 2, least=3)


@register("torch.unbind", "Tensor.unbind", "aten::unbind")
def unbind(input: Array, dim: int = 0) -> Parts:
    """Split into slices and drop the dimension: ``torch.unbind``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int

    Returns
    -------
    tuple of N ndarray of shape (A, B)
        Views of `input`.
    """
    axis = _axis(dim, input)
    require_few(input.shape[axis], "the result")
    return tuple(input[(*along(axis, place), ...)] for place in range(input.shape[axis]))


def _split_stack(input: Array, indices: Ints, axis: int, least: int = 1) -> Parts:
    """Split along an axis: the inverse of ``hstack``, ``vstack`` and ``dstack``."""
    if input.ndim < least:
        raise LayerError(f"the input needs {least} dimensions, it has {input.ndim}")
    if _is_one_number(indices):
        count, length = as_int(indices, "indices"), input.shape[axis]
        if count < 1 or length % count:
            raise LayerError(
                f"{length} elements cannot be split into {count} parts of one size"
            )
    return tensor_split(input, indices, axis)


def _axis(dim: int | None, array: Array) -> int:
    if array.ndim == 0:
        raise LayerError("a 0-d tensor cannot be split")
    return axis_of(0 if dim is None else dim, array.ndim)


def _is_one_number(value: object) -> bool:
    return not isinstance(value, tuple) and getattr(value, "ndim", 0) == 0


def _equal_bounds(length: int, size: int) -> list[int]:
    if size == 0 and length:
        raise LayerError(f"parts of size 0 never cover {length} elements")
    require_few(-(-length // max(size, 1)), "the result")
    return [0, *range(size, length, size or 1), length]


def _cut(array: Array, axis: int, bounds: list[int]) -> Parts:
    return tuple(_part(array, axis, start, end) for start, end in pairwise(bounds))


def _part(array: Array, axis: int, start: int, end: int) -> Array:
    part: Array = array[along(axis, slice(start, end))]
    return part
