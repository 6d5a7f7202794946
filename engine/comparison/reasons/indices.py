"""Alternatives of constant indices: other rows of the input."""

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

__all__ = ["other_indices"]

_INDEX: Final = frozenset({"Tensor.index", "aten::index"})
_MOST_ROWS: Final = 1 << 12  # of the input or the result


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
