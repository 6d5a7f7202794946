"""Products of matrices in groups, as layers of experts have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.layers.grouped_matmul import grouped_mm
from engine.provenance.arithmetic import add_up, format_index, grid, multiply
from engine.provenance.call import Operand, take
from engine.provenance.records import Breakdown, Interval, join_boxes
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Array

__all__ = ["Grouped", "explain_grouped", "locate_grouped", "read_grouped"]


class Grouped(NamedTuple):
    """The arguments of a product in groups.

    Attributes
    ----------
    left, right : Operand or ndarray
        Of three dimensions if they have a matrix for each group.
    ends : ndarray of int64 or None
        End of each group along what is split; None if nothing is.
    """

    left: Operand | Array
    right: Operand | Array
    ends: npt.NDArray[np.int64] | None

    def group_at(self, position: int) -> int | None:
        """Return the group of a row or column that is split; None behind the last one."""
        ends = np.zeros(0, np.int64) if self.ends is None else self.ends
        number = int(np.searchsorted(ends, position, side="right"))
        return number if number < len(ends) else None

    def inner(self, group: int) -> range:
        """Return the positions that are summed over in a group of columns and rows."""
        ends = np.zeros(0, np.int64) if self.ends is None else self.ends
        return range(int(ends[group - 1]) if group else 0, int(ends[group]))

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield for each product of matrices where both and their result lie."""
        if self.ends is None:
            yield ..., ..., ...
            return
        start = 0
        for group, stop in enumerate(self.ends.tolist()):
            part, whole = slice(start, stop), slice(None)
            start = stop
            if self.left.ndim == self.right.ndim:
                yield (whole, part), part, group
            elif self.left.ndim == 2:
                yield part, group, part
            else:
                yield group, (whole, part), (whole, part)

    def places(
        self, index: tuple[int, ...]
    ) -> tuple[tuple[int | None, ...], tuple[int | None, ...], range] | None:
        """Return where the factors of an element lie.

        Returns
        -------
        (tuple, tuple, range) or None
            The indices of both, None where the summed position goes, and these positions.
            None for an element behind the last group, which is 0.
        """
        inner = range(self.left.shape[-1])
        row, column = index[-2:]
        if self.left.ndim == self.right.ndim == 2:
            return (row, None), (None, column), self.inner(index[0])
        if self.left.ndim == self.right.ndim:
            return (index[0], row, None), (index[0], None, column), inner
        by_rows = self.left.ndim == 2
        group = self.group_at(row if by_rows else column)
        if group is None:
            return None
        if by_rows:
            return (row, None), (group, None, column), inner
        return (group, row, None), (None, column), inner


def read_grouped(call: Call) -> Grouped:
    """Return the arguments of a product in groups."""
    given, ends = call.arguments, call.arguments["offs"]
    values = ends.value if isinstance(ends, Operand) else ends
    return Grouped(
        given["mat_a"],
        given["mat_b"],
        None if values is None else np.asarray(values, np.int64),
    )


@explains(grouped_mm)
def explain_grouped(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the products over the inner positions of the group."""
    found = read_grouped(call)
    places = found.places(index)
    left, right, inner = places or ((0,) * found.left.ndim, (0,) * found.right.ndim, range(0))
    factors = [
        take(array, name, grid(*[inner if at is None else [at] for at in place]))
        if len(inner)
        else take(array, name, np.zeros((0, array.ndim), np.int64))
        for array, name, place in (
            (found.left, "mat_a", left), (found.right, "mat_b", right),
        )
    ]  # fmt: skip
    terms = multiply(factors, (len(inner),), ("term",))
    one, other = (
        f"{factor.name}{format_index(['k' if at is None else at for at in place])}"
        for factor, place in zip(factors, (left, right), strict=True)
    )
    formula = f"y{format_index(index)} = Σ {one} · {other}"
    if places is None:
        formula = f"y{format_index(index)} = 0, behind the last group"
    return add_up(call, formula, terms)


@locates(grouped_mm)
def locate_grouped(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the rows and columns, and the groups that they belong to."""
    found = read_grouped(call)
    rows, columns = box[-2:]
    regions: dict[str, Box] = {
        each.name: each.whole for each in call.arrays if each.name not in _names(found)
    }
    by_rows = found.left.ndim == 2
    if found.left.ndim == found.right.ndim:
        groups, inner = box[0], Interval.whole(found.left.shape[-1])
        if by_rows and groups.stop > groups.start:
            ends = found.inner(groups.start), found.inner(groups.stop - 1)
            inner = Interval(ends[0].start, ends[1].stop)
    else:
        split, inner = rows if by_rows else columns, Interval.whole(found.left.shape[-1])
        numbers = [found.group_at(at) for at in (split.start, max(split.stop - 1, 0))]
        count = 0 if found.ends is None else len(found.ends)
        first, last = (count - 1 if each is None else each for each in numbers)
        groups = Interval(max(first, 0), last + 1)
    for array, region in ((found.left, (rows, inner)), (found.right, (inner, columns))):
        whole: Box = region if array.ndim == 2 else (groups, *region)
        if isinstance(array, Operand):
            regions[array.name] = join_boxes(regions.get(array.name), whole)
    return regions


def _names(found: Grouped) -> set[str]:
    return {each.name for each in (found.left, found.right) if isinstance(each, Operand)}
