"""Operators that move elements.

Their rule is their own code: run on the numbers of the elements instead of their values, it
shows where every element went.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import EngineError
from engine.layers import (
    choosing,
    concatenate,
    copying,
    creation,
    flip,
    folding,
    indexing,
    matrices,
    padding,
    permute,
    repeat,
    reshape,
    shuffle,
    slicing,
    split,
    strides,
    unpooling,
)
from engine.layers.ncnn import resizing as ncnn_resizing
from engine.layers.ncnn import shapes as ncnn
from engine.provenance.arithmetic import break_down_constant, format_index
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Breakdown, Interval, Kind, Terms, join_boxes
from engine.provenance.table import codes_of, explains, find_moved, locates, moves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Value

__all__ = ["explain_move", "joined_members", "locate_move", "moved_numbers"]

_MOST_ELEMENTS: Final = 1 << 24  # elements that are numbered; 8 bytes each
_FIRST: Final = 2.0**40  # number of the first element; constants of an operator are smaller

# Code that returns views. Their addresses tell more cheaply where elements went.
_VIEWS: Final = frozenset({
    copying.identity, matrices.diagonal, matrices.linalg_diagonal, permute.permute,
    permute.transpose, permute.t, permute.reverse_dims, permute.movedim,
    permute.matrix_transpose, repeat.expand, repeat.expand_as, reshape.reshape,
    reshape.reshape_as, reshape.flatten, reshape.flatten_module, reshape.unflatten,
    reshape.unflatten_module, reshape.squeeze, reshape.unsqueeze, slicing.slice_tensor,
    slicing.select, slicing.narrow, split.chunk, split.tensor_split, split.hsplit,
    split.vsplit, split.dsplit, split.unbind, strides.unfold, slicing.SliceIndexes,
    *codes_of("torch.flatten"), strides.as_strided,
    ncnn.noop, ncnn.Split, ncnn.flatten, ncnn.Reshape, ncnn.Squeeze, ncnn.expand_dims,
})  # fmt: skip

# Code that puts all elements of its operand into another order.
_ORDERS: Final = frozenset({
    copying.identity, copying.clone, flip.flip, flip.fliplr, flip.flipud, flip.rot90, flip.roll,
    permute.permute, permute.transpose, permute.t, permute.reverse_dims, permute.movedim,
    permute.matrix_transpose, reshape.reshape, reshape.reshape_as, reshape.flatten,
    reshape.flatten_module, reshape.unflatten, reshape.unflatten_module, reshape.squeeze,
    reshape.unsqueeze, shuffle.channel_shuffle, shuffle.pixel_shuffle, shuffle.pixel_unshuffle,
    *codes_of("torch.flatten", "torch.ravel"),
})  # fmt: skip

moves(
    copying.identity, copying.clone, flip.flip, flip.fliplr, flip.flipud, flip.rot90, flip.roll,
    folding.unfold, indexing.Index, indexing.index_select, indexing.take, indexing.gather,
    indexing.take_along_dim, matrices.diag, matrices.diagonal, matrices.linalg_diagonal,
    matrices.diag_embed, matrices.diagflat, matrices.tril, matrices.triu, padding.pad,
    padding.pad_border, padding.reflect_or_replicate, permute.permute, permute.transpose,
    permute.t, permute.reverse_dims, permute.movedim, permute.matrix_transpose, repeat.expand,
    repeat.expand_as, repeat.repeat, repeat.tile, repeat.repeat_interleave, reshape.reshape,
    reshape.reshape_as, reshape.flatten, reshape.flatten_module, reshape.unflatten,
    reshape.unflatten_module, reshape.squeeze, reshape.unsqueeze, shuffle.channel_shuffle,
    shuffle.pixel_shuffle, shuffle.pixel_unshuffle, slicing.slice_tensor,
    slicing.select, slicing.narrow, slicing.SliceIndexes, split.chunk,
    split.tensor_split, split.hsplit, split.vsplit, split.dsplit, split.unbind, strides.unfold,
    unpooling.max_unpool, unpooling.max_unpool_to_a_size,
    *codes_of("torch.flatten", "torch.ravel", "torch.fft.fftshift", "torch.fft.ifftshift"),
    ncnn.Split, ncnn.flatten, ncnn.permute, ncnn.Slice, ncnn.Squeeze, ncnn.expand_dims,
    ncnn.flip, ncnn.tile, ncnn.shuffle_channel, ncnn.pixel_shuffle, ncnn.reorg,
    ncnn_resizing.Padding,
    arguments=("input",),
)  # fmt: skip
moves(ncnn.noop, ncnn.Reshape, ncnn.Crop, arguments=("inputs",))
moves(ncnn.CopyTo, arguments=("input", "source"))
moves(strides.as_strided, arguments=("input", "base"))
moves(
    concatenate.stack, concatenate.hstack, concatenate.vstack,
    concatenate.dstack, concatenate.column_stack, concatenate.block_diag,
    arguments=("tensors",),
)  # fmt: skip
moves(choosing.where, arguments=("input", "other"))
moves(choosing.masked_select, arguments=("input",))
moves(choosing.masked_scatter, indexing.index_copy, arguments=("input", "source"))
moves(indexing.index_put, arguments=("input", "values"))
moves(indexing.scatter, arguments=("input", "src", "value"))
moves(indexing.put, arguments=("input", "source"))
moves(copying.copy, arguments=("src",))
moves(creation.fill, indexing.index_fill, arguments=("input", "value"))
moves(split.split, arguments=("tensor",))
moves(
    slicing.slice_copy, slicing.slice_scatter, slicing.select_scatter,
    matrices.diagonal_scatter,
    arguments=("input", "src"),
)  # fmt: skip


def moved_operands(call: Call) -> list[Operand]:
    """Return the operands whose elements are moved."""
    names = find_moved(call.layer) or ()
    if call.arguments.get("accumulate") or call.arguments.get("reduce"):
        raise NoBreakdownError("elements that are joined at one place have no breakdown")
    found: list[Operand] = []
    for name in names:
        given = call.arguments.get(name)
        members = given if isinstance(given, tuple) else (given,)
        found += [each for each in members if isinstance(each, Operand)]
    if not found:
        raise NoBreakdownError(f"{call.operator.type} moves no operand")
    if sum(math.prod(each.shape) for each in found) > _MOST_ELEMENTS:
        raise NoBreakdownError(f"more than {_MOST_ELEMENTS} elements are not followed")
    return found


def element_numbers(call: Call, moved: list[Operand], box: Box) -> npt.NDArray[Any]:
    """Return the numbers of the elements that were moved into a region.

    The elements of all moved operands are numbered from `_FIRST` on, one operand after the
    other. Smaller numbers are constants of the operator.
    """
    if len(moved) == 1 and call.layer_code in _VIEWS:
        found = _view_numbers(call, moved[0], box)
        if found is not None:
            return found
    start = _FIRST
    numbered: dict[str, Any] = {}
    for each in moved:
        if each.name not in numbered:
            count = math.prod(each.shape)
            numbered[each.name] = np.arange(start, start + count).reshape(each.shape)
            start += count
    result = _run(call, numbered)
    return result[tuple([slice(each.start, each.stop) for each in box])]


def _run(call: Call, given: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Run the operator on other arrays; operands without one keep their values."""
    values: list[Value] = []
    for each in call.inputs:
        if not isinstance(each, Operand):
            values.append(each)
        else:
            values.append(_value_of(each, given))
    try:
        found = call.forward(values)
    except EngineError as exc:
        raise NoBreakdownError(f"its elements cannot be numbered: {exc}") from exc
    if not isinstance(found, np.ndarray) or found.shape != call.shape:
        raise NoBreakdownError("its result depends on the values")
    return found


def _value_of(operand: Operand, given: Mapping[str, Any]) -> Any:
    """Return another array for an operand, or its own value, which is read only then."""
    found = given.get(operand.name)
    return operand.value if found is None else found


def _view_numbers(call: Call, operand: Operand, box: Box) -> npt.NDArray[Any] | None:
    """Return the numbers of the elements of a region of a view; None if it is a copy."""
    steps = _view_steps(call, operand)
    if steps is None:
        return None
    numbers = np.asarray(steps[0])
    for interval, stride in zip(box, steps[1], strict=True):
        numbers = numbers[..., np.newaxis] + np.arange(interval.start, interval.stop) * stride
    return numbers + _FIRST


def _view_steps(call: Call, operand: Operand) -> tuple[int, tuple[int, ...]] | None:
    """Return the first element of a view and its strides in elements; None if it is a copy."""
    base = np.empty(operand.shape, operand.dtype)  # takes no memory until it is written
    found = _run(call, {operand.name: base})
    size = base.itemsize
    start = found.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    if (
        not 0 <= start < base.nbytes
        or found.dtype != base.dtype
        or not np.may_share_memory(found, base)
    ):
        return None
    return start // size, tuple([stride // size for stride in found.strides])


def origins(
    moved: list[Operand], numbers: npt.NDArray[Any]
) -> Iterator[tuple[Operand, npt.NDArray[np.int64]]]:
    """Yield each moved operand with the flat indices of its elements among the numbers."""
    flat = numbers.reshape(-1) - _FIRST
    start = 0
    for each in {each.name: each for each in moved}.values():
        count = math.prod(each.shape)
        own = flat[(flat >= start) & (flat < start + count)] - start
        start += count
        if own.size:
            yield each, own.astype(np.int64)


def moved_numbers(
    call: Call,
) -> Iterator[tuple[Operand, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield each operand with the flat indices of its elements, and of where they came to."""
    moved = moved_operands(call)
    whole = tuple([Interval.whole(size) for size in call.shape])
    flat = element_numbers(call, moved, whole).reshape(-1) - _FIRST
    start = 0
    for each in {each.name: each for each in moved}.values():
        count = math.prod(each.shape)
        places = np.flatnonzero((flat >= start) & (flat < start + count))
        yield each, (flat[places] - start).astype(np.int64), places
        start += count


def explain_move(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Return the element that was moved here, or the number that was put here."""
    moved = moved_operands(call)
    numbers = element_numbers(call, moved, tuple([Interval(at, at + 1) for at in index]))
    found = next(origins(moved, numbers), None)
    if found is None:
        return break_down_constant(index, float(call.dtype.type(numbers.reshape(-1)[0])))
    operand, flat = found
    return _moved_from(operand, index, np.unravel_index(int(flat[0]), operand.shape))


def _moved_from(operand: Operand, index: tuple[int, ...], place: Sequence[Any]) -> Breakdown:
    """Make the breakdown of an element that is one of an operand."""
    places = np.array([place], np.int64).reshape(1, -1)
    element = take(operand, operand.name, places)
    terms = Terms((element,), element.values, (1,), ("term",))
    formula = f"y{format_index(index)} = {operand.name}{format_index(places[0].tolist())}"
    return Breakdown(Kind.MOVE, formula, terms, float(element.values[0]), 0.0)


def locate_move(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the boxes around the elements that were moved into a region."""
    moved = moved_operands(call)
    found: dict[str, Box] = {each.name: each.whole for each in call.arrays}
    for each in moved:
        found.pop(each.name, None)
    if call.layer_code in _ORDERS and _is_whole(box, call.shape):
        return found | {each.name: each.whole for each in moved}
    if len(moved) == 1 and call.layer_code in _VIEWS:
        region = _locate_view(call, moved[0], box)
        if region is not None:
            return found | {moved[0].name: region}
    for each, flat in origins(moved, element_numbers(call, moved, box)):
        places = np.unravel_index(flat, each.shape)
        found[each.name] = tuple([
            Interval(int(own.min()), int(own.max()) + 1) for own in places
        ])  # fmt: skip
    return found


def _locate_view(call: Call, operand: Operand, box: Box) -> Box | None:
    """Return the box around a region of a view, without listing its elements.

    Along each dimension of the view the number of the element grows by a stride. The digits of
    that number by the sizes of the operand are the element's indices. If the digits of all
    dimensions add up without a carry, the indices do, too, so that their ends are those of the
    box.

    Returns
    -------
    Box or None
        None if it is no view, is empty, or digits carry.
    """
    steps = _view_steps(call, operand)
    if steps is None or any(each.stop <= each.start for each in box):
        return None
    start, strides = steps
    if any(step < 0 for step in strides):
        return None
    lines = [
        np.arange(each.stop - each.start) * step
        for each, step in zip(box, strides, strict=True)
    ]
    start += sum([each.start * step for each, step in zip(box, strides, strict=True)])
    longest = max(range(len(lines)), key=lambda at: len(lines[at]), default=None)
    if longest is None:
        lines = [np.array([start])]
    else:
        lines[longest] = lines[longest] + start
    shape = operand.shape or (1,)
    low, high = np.zeros(len(shape), np.int64), np.zeros(len(shape), np.int64)
    for line in lines:
        digits = np.stack(np.unravel_index(line, shape))
        low += digits.min(axis=1)
        high += digits.max(axis=1)
    if (high >= shape).any():
        return None
    ends = zip(low.tolist(), high.tolist(), strict=True)
    return tuple([Interval(first, last + 1) for first, last in ends])[: operand.ndim]


def _is_whole(box: Box, shape: tuple[int, ...]) -> bool:
    return all(
        each.start == 0 and each.stop == size for each, size in zip(box, shape, strict=True)
    )


def joined_members(call: Call) -> tuple[list[Operand], int]:
    """Return what is joined, and the dimension."""
    names = ("inputs", "axis") if call.layer_code is ncnn.concat else ("tensors", "dim")
    given, dim = (call.arguments[name] for name in names)
    # PyTorch leaves out an empty list, such as a cache of keys before the first token.
    listed = [each for each in given if not (isinstance(each, Operand) and each.shape == (0,))]
    members = [each for each in listed if isinstance(each, Operand)]
    ndim = len(call.shape)
    plain = len(members) == len(listed) and all(each.ndim == ndim for each in members)
    if not plain or not isinstance(dim, int) or not ndim:
        raise NoBreakdownError("what is joined is no plain list of tensors")
    return members, dim % ndim


@explains(concatenate.cat, ncnn.concat)
def explain_joined(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Return the element of the tensor that lies at this place."""
    members, axis = joined_members(call)
    start = 0
    for each in members:
        if index[axis] < start + each.shape[axis]:
            place = (*index[:axis], index[axis] - start, *index[axis + 1 :])
            return _moved_from(each, index, place)
        start += each.shape[axis]
    raise NoBreakdownError("the tensors are shorter than the result")


@locates(concatenate.cat, ncnn.concat)
def locate_joined(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the part of each tensor that lies in a region."""
    members, axis = joined_members(call)
    found: dict[str, Box] = {}
    start = 0
    for each in members:
        size = each.shape[axis]
        part = Interval(max(box[axis].start - start, 0), min(box[axis].stop - start, size))
        start += size
        if part.start >= part.stop:
            continue
        region = (*box[:axis], part, *box[axis + 1 :])
        found[each.name] = join_boxes(found.get(each.name), region)
    return found
