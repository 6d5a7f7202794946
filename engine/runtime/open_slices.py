"""Counts slices of dimensions whose sizes are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.pnnx import Shape
    from engine.runtime.operator import RuntimeOperator

__all__ = ["count_open_slices"]

_LAST: Final = 2**31 - 1
"""From here on, an end means that of the dimension."""
_WHOLE: Final[tuple[object, ...]] = (None, 0)


def count_open_slices(operators: Iterable[RuntimeOperator]) -> int:
    """Count the slices that take a part of an open size.

    Their lines state the same sizes before and behind them.
    """
    return sum(map(_is_open, operators))


def _is_open(operator: RuntimeOperator) -> bool:
    if operator.type != "Tensor.slice" or not operator.inputs or not operator.outputs:
        return False
    before, behind = operator.inputs[0].shape, operator.outputs[0].shape
    if before is None or before != behind:
        return False
    given = {
        operator.input_names[index]: value for index, value in operator.constants().items()
    }
    known = {**operator.params, **given}
    dim, start, end, step = (known.get(name, ...) for name in ("dim", "start", "end", "step"))
    if isinstance(dim, int) and not _has_open(before, dim):
        return False
    is_to_end = end is None or (isinstance(end, int) and end >= _LAST)
    return not (start in _WHOLE and is_to_end and step in (None, 1))


def _has_open(shape: Shape, dim: int) -> bool:
    """Whether a dimension is open; a file may name one that there is not."""
    return -len(shape) <= dim < len(shape) and not isinstance(shape[dim], int)
