"""Alternatives of constant indices: other rows or regions of the input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine import expression
from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.reason import Change
from engine.comparison.reasons.results import nearest_rows
from engine.errors import ExpressionError, LayerError
from engine.layers.expression import expression_text
from engine.layers.indexing import to_numpy_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case
    from engine.values import Array

__all__ = ["other_indices", "other_regions"]

_INDEX: Final = frozenset({"Tensor.index", "aten::index"})
_CROP: Final = "ncnn.Crop"
_MOST_ROWS: Final = 1 << 12  # of the input or the result
_MOST_CORNERS: Final = 1 << 20  # places where a region may start
_MOST_REGIONS: Final = 16  # that start alike


def other_indices(case: Case) -> Iterator[Alternative]:
    """Return the rows that the reference takes, where the file states their indices.

    They are lists along the first axes, which together name one row for each place.
    """
    lists, x = _lists(case), case.input
    if not lists or case.pair is None or x is None or x.ndim <= len(lists):
        return
    ours, expected = case.pair
    sizes, count = x.shape[: len(lists)], len(ours)
    if (
        ours.shape != (count, *x.shape[len(lists) :])
        or max(math.prod(sizes), count) > _MOST_ROWS
    ):
        return
    found = nearest_rows(x.reshape(math.prod(sizes), -1), expected.reshape(count, -1))
    others = [np.asarray(each) for each in np.unravel_index(found, sizes)]
    pairs = zip(lists, others, sizes, strict=True)
    changed = np.any([np.resize(own, count) % n != other for own, other, n in pairs], axis=0)
    if not changed.any():
        return
    expr = f"[{','.join(map(_format, others))}]"
    first = int(changed.argmax())
    rows = [
        ", ".join(str(int(each[first % len(each)])) for each in side)
        for side in (others, lists)
    ]
    yield Alternative(
        "parameter",
        f"The reference takes other rows for {np.count_nonzero(changed)} of {count} indices, "
        f"such as [{rows[0]}] instead of [{rows[1]}] at {first}. Set expr={expr}.",
        (Change("expr", expr),), {"expr": expr}, fitted=int(np.count_nonzero(changed)),
    )  # fmt: skip


def _lists(case: Case) -> list[Array]:
    """Return the constant integers along the first axes; none for any other index."""
    if case.type not in _INDEX or "expr" not in case.params:
        return []
    try:
        text = expression_text(case.params["expr"])
        places = to_numpy_index(expression.parse(text, operand_count=0).evaluate(()))
    except (ExpressionError, LayerError):
        return []
    lists = [each for each in places if isinstance(each, np.ndarray)]
    whole = len(lists) == len(places) and all(each.ndim == 1 and each.size for each in lists)
    return lists if whole and all(each.dtype.kind in "iu" for each in lists) else []


def _format(indices: Array) -> str:
    return f"[{','.join(map(str, indices.tolist()))}]"


def other_regions(case: Case) -> Iterator[Alternative]:
    """Return regions of an image, of the reference's size, that start as the reference does."""
    x, wanted = case.input, case.wanted
    if case.type != _CROP or x is None or not isinstance(wanted, np.ndarray):
        return
    if x.ndim != wanted.ndim or not wanted.size:
        return
    room = [own - size + 1 for own, size in zip(x.shape, wanted.shape, strict=True)]
    if min(room) < 1 or math.prod(room) > _MOST_CORNERS:
        return
    cut = case.ours.shape if isinstance(case.ours, np.ndarray) else x.shape
    smaller = enumerate(map(min, wanted.shape, cut))
    axes = tuple(axis for axis, size in smaller if size < x.shape[axis])
    corners = x[tuple(map(slice, room))].astype(np.float64)
    alike = np.abs(corners - wanted.reshape(-1)[0]) <= np.max(case.discrepancy.floor)
    for corner in np.argwhere(alike)[:_MOST_REGIONS].tolist():
        ends = [start + size for start, size in zip(corner, wanted.shape, strict=True)]
        region = tuple(map(slice, corner, ends))
        starts, stops = (tuple(each[axis] for axis in axes) for each in (corner, ends))
        yield Alternative(
            "parameter",
            f"The reference takes {starts} to {stops} of the axes {axes}, the file others. "
            f"Set starts={starts}, ends={stops} and axes={axes}.",
            (Change("starts", starts), Change("ends", stops), Change("axes", axes)),
            result=np.ascontiguousarray(x[region]),
        )
