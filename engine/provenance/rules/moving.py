"""Operators that move elements.

Their rule is their own code: run on the numbers of the elements instead of their values, it
shows where every element went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import EngineError
from engine.layers import (
    choosing,
    concatenate,
    copying,
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
from engine.provenance.arithmetic import format_index
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Breakdown, Interval, Kind, Terms
from engine.provenance.table import codes_of, find_moved, moves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Value

__all__ = ["explain_move", "locate_move"]

_MOST_ELEMENTS: Final = 1 << 24  # elements that are numbered; 8 bytes each
_FIRST: Final = 2.0**40  # number of the first element; constants of an operator are smaller

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
    shuffle.pixel_shuffle, shuffle.pixel_unshuffle, slicing.slice_tensor, slicing.slice_copy,
    slicing.select, slicing.narrow, slicing.SliceIndexes, split.split, split.chunk,
    split.tensor_split, split.hsplit, split.vsplit, split.dsplit, split.unbind, strides.unfold,
    unpooling.max_unpool, unpooling.max_unpool_to_a_size,
    *codes_of("torch.flatten", "torch.ravel", "torch.fft.fftshift", "torch.fft.ifftshift"),
    arguments=("input",),
)  # fmt: skip
moves(
    concatenate.cat, concatenate.stack, concatenate.hstack, concatenate.vstack,
    concatenate.dstack, concatenate.column_stack, concatenate.block_diag,
    arguments=("tensors",),
)  # fmt: skip
moves(choosing.where, arguments=("input", "other"))
moves(
    slicing.slice_scatter, slicing.select_scatter, matrices.diagonal_scatter,
    arguments=("input", "src"),
)  # fmt: skip


def _moved(call: Call) -> list[Operand]:
    """Return the operands whose elements are moved."""
    names = find_moved(call.layer) or ()
    found: list[Operand] = []
    for name in names:
        given = call.arguments.get(name)
        members = given if isinstance(given, tuple) else (given,)
        found += [each for each in members if isinstance(each, Operand)]
    if not found:
        raise NoBreakdownError(f"{call.operator.type} moves no operand")
    if sum(int(np.prod(each.shape)) for each in found) > _MOST_ELEMENTS:
        raise NoBreakdownError(f"more than {_MOST_ELEMENTS} elements are not followed")
    return found


def _run(call: Call, moved: list[Operand]) -> npt.NDArray[np.float64]:
    """Run the operator on numbered elements; other operands keep their values."""
    start = _FIRST
    numbered: dict[str, Any] = {}
    for each in moved:
        if each.name not in numbered:
            count = int(np.prod(each.shape))
            numbered[each.name] = np.arange(start, start + count).reshape(each.shape)
            start += count
    values: list[Value] = []
    for given in call.inputs:
        is_array = isinstance(given, Operand)
        values.append(numbered.get(given.name, given.value) if is_array else given)
    try:
        found = call.operator.forward(values)[call.place]
    except EngineError as exc:
        raise NoBreakdownError(f"its elements cannot be numbered: {exc}") from exc
    if not isinstance(found, np.ndarray) or found.shape != call.shape:
        raise NoBreakdownError("its result depends on the values")
    return found


def _origins(
    moved: list[Operand], numbers: npt.NDArray[np.float64]
) -> Iterator[tuple[Operand, npt.NDArray[np.int64]]]:
    """Yield each moved operand with the indices of its elements among the numbers; (T, D)."""
    flat = numbers.reshape(-1) - _FIRST
    start, seen = 0, set()
    for each in moved:
        if each.name in seen:
            continue
        seen.add(each.name)
        count = int(np.prod(each.shape))
        own = flat[(flat >= start) & (flat < start + count)] - start
        start += count
        if own.size:
            places = np.unravel_index(own.astype(np.int64), each.shape)
            yield each, np.stack(places, axis=1) if each.shape else np.zeros((1, 0), np.int64)


def explain_move(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Return the element that was moved here, or the number that was put here."""
    moved = _moved(call)
    numbers = _run(call, moved)
    found = next(_origins(moved, numbers[index][np.newaxis]), None)
    if found is None:
        value = float(numbers[index])
        none = Terms((), np.array([value]), (1,), ("term",))
        formula = f"y{format_index(index)} = {value:g}, a constant of the operator"
        return Breakdown(Kind.MOVE, formula, none, value, 0.0)
    operand, places = found
    element = take(operand, operand.name, places)
    terms = Terms((element,), element.values, (1,), ("term",))
    formula = f"y{format_index(index)} = {operand.name}{format_index(places[0].tolist())}"
    return Breakdown(Kind.MOVE, formula, terms, float(element.values[0]), 0.0)


def locate_move(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the boxes around the elements that were moved into a region."""
    moved = _moved(call)
    numbers = _run(call, moved)
    region = numbers[tuple([slice(each.start, each.stop) for each in box])]
    found: dict[str, Box] = {each.name: each.whole for each in call.arrays}
    for each in moved:
        found.pop(each.name, None)
    for each, places in _origins(moved, region):
        low, high = places.min(axis=0), places.max(axis=0) + 1
        found[each.name] = tuple(
            [Interval(int(a), int(b)) for a, b in zip(low, high, strict=True)]
        )
    return found
