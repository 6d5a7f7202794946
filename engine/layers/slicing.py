"""Operators that take or replace a part of a tensor by position.

pnnx folds a chain such as ``x[:, 0, 2:8]`` into one ``Tensor.slice`` with lists as parameters.
The dims are those of the tensor before any dimension is dropped. In these lists 2147483647
means "to the end" in ``ends`` and "no selection" in ``selects``. The step of a selection is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import along, as_int, as_ints, axis_of, cast
from engine.layers.layer import Ints, Layer, OperatorCall
from engine.layers.registry import register
from engine.values import Array, Value

if TYPE_CHECKING:
    Index = tuple[slice | int, ...]

__all__ = [
    "index_of_slice",
    "narrow",
    "replace_part",
    "select",
    "slice_copy",
    "slice_scatter",
    "slice_tensor",
]

_NOT_GIVEN: Final = 2147483647


@register("Tensor.slice", "aten::slice")
def slice_tensor(
    input: Array,
    dim: int | None = 0,
    start: int | None = None,
    end: int | None = None,
    step: int | None = 1,
    *,
    select: int | None = None,
    dims: Ints | None = None,
    starts: Ints | None = None,
    ends: Ints | None = None,
    steps: Ints | None = None,
    selects: Ints | None = None,
) -> Array:
    """Take a range of each of some dimensions: ``x[:, start:end:step]``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int
    start, end : int, optional
        As in Python's slices: negative ones count from the end, and the range is clipped to
        the tensor.
    step : int
        Positive in PyTorch; negative steps of ONNX go backwards.
    select : int, optional
        A single index instead of a range; the dimension is dropped.
    dims, starts, ends, steps, selects : ints
        The same for several dimensions at once. 2147483647 means "no selection".

    Returns
    -------
    ndarray
        A view of `input`.
    """
    return input[
        index_of_slice(
            input.shape, dim, start, end, step,
            select=select, dims=dims, starts=starts, ends=ends, steps=steps, selects=selects,
        )
    ]  # fmt: skip


@register("Tensor.slice_copy")
def slice_copy(
    input: Array,
    src: OperandOf[Value],
    dim: int | None = 0,
    start: int | None = None,
    end: int | None = None,
    step: int | None = 1,
    *,
    select: int | None = None,
    dims: Ints | None = None,
    starts: Ints | None = None,
    ends: Ints | None = None,
    steps: Ints | None = None,
    selects: Ints | None = None,
) -> Array:
    """Replace a part of a tensor: ``x[:, start:end:step] = src``.

    Parameters
    ----------
    input : ndarray of any shape
    src : ndarray or number
        Broadcast to the part, and converted to the dtype of `input`.
    dim, start, end, step, select, dims, starts, ends, steps, selects
        The part, as in ``Tensor.slice``.

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    index = index_of_slice(
        input.shape, dim, start, end, step,
        select=select, dims=dims, starts=starts, ends=ends, steps=steps, selects=selects,
    )  # fmt: skip
    return _replace(input, index, np.asarray(src))


@register("torch.slice_scatter", "Tensor.slice_scatter", "aten::slice_scatter")
def slice_scatter(
    input: Array,
    src: Array,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Array:
    """Replace a range of one dimension: ``torch.slice_scatter``.

    Parameters
    ----------
    input : ndarray of any shape
    src : ndarray
        Of the shape of the range.
    dim : int
    start, end : int, optional
        As in Python's slices.
    step : int
        Greater than 0.

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    return replace_part(input, _index(input.shape, [(dim, start, end, step, None)]), src)


@register("torch.select_scatter", "Tensor.select_scatter", "aten::select_scatter")
def select_scatter(input: Array, src: Array, dim: int, index: int) -> Array:
    """Replace one index of a dimension: ``torch.select_scatter``.

    Parameters
    ----------
    input : ndarray of any shape
    src : ndarray
        Of the shape of `input` without the dimension.
    dim, index : int
        The dimension and the place in it; negative ones count from the end.

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    return replace_part(input, _index(input.shape, [(dim, None, None, None, index)]), src)


@register("Tensor.select", "torch.select", "aten::select")
def select(input: Array, dim: int, index: Ints) -> Array:
    """Take one index of a dimension and drop the dimension: ``torch.select``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    index : int
        From -N to N - 1. A list of several, in files from ONNX, keeps the dimension.

    Returns
    -------
    ndarray of shape (A, B)
        A view of `input`.
    """
    if isinstance(index, tuple):
        axis = axis_of(dim, input.ndim)
        taken: Array = input[along(axis, list(index))]
        return taken
    one: Array = input[_index(input.shape, [(dim, None, None, None, index)])]
    return one


@register("torch.narrow", "Tensor.narrow", "aten::narrow")
def narrow(input: Array, dim: int, start: int, length: int) -> Array:
    """Take a range of one dimension by start and length: ``torch.narrow``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    start : int
        Negative ones count from the end.
    length : int
        Length of the range.

    Returns
    -------
    ndarray of shape (A, length, B)
        A view of `input`.
    """
    axis = axis_of(dim, input.ndim)
    size = input.shape[axis] if input.ndim else 0
    first, count = as_int(start, "start"), as_int(length, "length")
    first += size if first < 0 else 0
    if not 0 <= first <= first + count <= size:
        raise LayerError(f"start {start} and length {length} leave dim {dim} of size {size}")
    return input[_index(input.shape, [(axis, first, first + count, 1, None)])]


@register("pnnx.SliceIndexes")
class SliceIndexes(Layer):
    """Gather the starts, ends, steps or selections of a ``Tensor.slice`` into one list.

    Parameters
    ----------
    indexes : ints or words
        Numbers, and ``@0``, ``@1``, … for the operands.
    """

    def __init__(self, operator: OperatorCall, indexes: tuple[Any, ...]) -> None:
        self._items = tuple(_index_item(item) for item in indexes)
        for operand, number in self._items:
            if operand and number >= len(operator.input_names):
                raise ParameterError("indexes", f"there is no operand @{number}")

    @override
    def forward(self, *operands: Value) -> Value:
        """Insert the operands into the list."""
        return tuple(
            as_int(operands[number], f"@{number}") if operand else number
            for operand, number in self._items
        )


def _index_item(item: object) -> tuple[bool, int]:
    """Return whether an item refers to an operand, and its number."""
    text = str(item)
    try:
        return text.startswith("@"), int(text.removeprefix("@"))
    except ValueError:
        raise ParameterError("indexes", f"{item!r} is neither a number nor @N") from None


def index_of_slice(
    shape: tuple[int, ...], dim: Value = 0, start: Value = None, end: Value = None,
    step: Value = 1, *, select: Value = None, dims: Value = None, starts: Value = None,
    ends: Value = None, steps: Value = None, selects: Value = None,
) -> Index:  # fmt: skip
    """Return the NumPy index of the arguments of ``Tensor.slice``, for a tensor of a shape."""
    if dims is None:
        return _index(shape, [(dim, start, end, step, select)])
    axes = as_ints(dims, "dims")
    columns = [
        (None,) * len(axes) if values is None else as_ints(values, name)
        for name, values in (
            ("starts", starts), ("ends", ends), ("steps", steps), ("selects", selects),
        )
    ]  # fmt: skip
    if any(len(column) != len(axes) for column in columns):
        raise LayerError("dims, starts, ends, steps and selects are not equally long")
    return _index(shape, list(zip(axes, *columns, strict=True)))


def _index(
    shape: tuple[int, ...], parts: list[tuple[Value, Value, Value, Value, Value]]
) -> Index:
    """Return the NumPy index of (dim, start, end, step, select) per dimension."""
    index: list[slice | int] = [slice(None)] * len(shape)
    for dim, start, end, step, select in parts:
        if not shape:
            raise LayerError("a 0-d tensor cannot be sliced")
        axis = axis_of(0 if dim is None else dim, len(shape))
        if select is not None and (place := as_int(select, "index")) != _NOT_GIVEN:
            index[axis] = _resolve_place(place, axis, shape)
            continue
        stride = 1 if step is None else as_int(step, "step")
        if stride == 0:
            raise LayerError("step is 0; it must be another number")
        last = None if end is None else as_int(end, "end")
        if stride < 0 and last is not None and last < -shape[axis]:
            last = None  # far before the first index: ONNX's end of a backward slice
        index[axis] = slice(None if start is None else as_int(start, "start"), last, stride)
    return tuple(index)


def _resolve_place(place: int, axis: int, shape: tuple[int, ...]) -> int:
    size = shape[axis]
    if not -size <= place < size:
        raise LayerError(f"index {place} is not in dim {axis} of size {size}")
    return place


def replace_part(input: Array, index: Index | tuple[Array, ...], src: Array) -> Array:
    """Copy a tensor and replace a part of it by a tensor of exactly the part's shape."""
    if src.shape != input[index].shape:
        raise _make_shape_error(input[index], src)
    return _replace(input, index, src)


def _replace(input: Array, index: Index | tuple[Array, ...], src: Array) -> Array:
    result = input.copy()
    try:
        result[index] = cast(src, input.dtype)
    except ValueError:
        raise _make_shape_error(input[index], src) from None
    return result


def _make_shape_error(part: Array, src: Array) -> LayerError:
    shapes = describe_shapes([part.shape, src.shape])
    return LayerError(
        f"the part and its replacement differ in shape: {shapes}",
        InferStatus.kInferArraySizeMismatch,
    )
