"""Triangular equations: each solution is a sum over the right-hand side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.layers.linear_algebra import solve_triangular, substitute
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import Operand, take
from engine.provenance.records import Interval, join_boxes
from engine.provenance.slopes import wide
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown
    from engine.values import Array

__all__ = ["Equations", "explain_solution", "locate_solution", "read_equations"]


class Equations(NamedTuple):
    """The arguments, as ``matrix @ x = columns``.

    Attributes
    ----------
    arrays : (Operand or ndarray, Operand or ndarray)
        As they are given.
    matrix : ndarray of float64, shape (..., N, N)
    columns : ndarray of float64, shape (..., N, K)
    upper, unit : bool
    left : bool
        Otherwise matrix, columns and solution are given transposed.
    """

    arrays: tuple[Operand | Array, Operand | Array]
    matrix: Array
    columns: Array
    upper: bool
    unit: bool
    left: bool


def read_equations(call: Call) -> Equations:
    """Return the arguments."""
    given = call.arguments
    arrays = given["input"], given["other"]
    matrix, columns = wide(arrays[0]), wide(arrays[1])
    upper, left = bool(given["upper"]), bool(given["left"])
    if not left:
        matrix, columns, upper = matrix.swapaxes(-1, -2), columns.swapaxes(-1, -2), not upper
    return Equations(arrays, matrix, columns, upper, bool(given["unitriangular"]), left)


@explains(solve_triangular)
def explain_solution(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Multiply a row of the inverse matrix by a column."""
    found = read_equations(call)
    *lead, row, column = index if found.left else (*index[:-2], index[-1], index[-2])
    count = found.matrix.shape[-1]
    one = found.matrix[_part(lead, found.matrix)]
    unit = np.eye(count)[:, row : row + 1]
    inverse = substitute(one.T, unit, upper=not found.upper, unit=found.unit)[:, 0]
    part = _part(lead, found.columns)
    places = grid(*[[at] for at in part], range(count), [column])
    if not found.left:
        places[:, [-2, -1]] = places[:, [-1, -2]]
    elements = take(found.arrays[1], "other", places)
    terms = multiply((make_factor("inverse", inverse), elements), (count,), ("row",))
    text = f"inverse · {elements.name}" if found.left else f"{elements.name} · inverse"
    return add_up(call, f"y{format_index(index)} = Σ {text}", terms)


def _part(lead: list[int] | tuple[int, ...], array: Array) -> tuple[int, ...]:
    """Return the index of the matrix that an element of the result is of."""
    sizes = array.shape[:-2]
    own = lead[len(lead) - len(sizes) :]
    return tuple([at if size > 1 else 0 for at, size in zip(own, sizes, strict=True)])


@locates(solve_triangular)
def locate_solution(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the rows by which those of the region are solved."""
    found = read_equations(call)
    *lead, rows, columns = box if found.left else (*box[:-2], box[-1], box[-2])
    count = found.matrix.shape[-1]
    used = Interval(rows.start, count) if found.upper else Interval(0, rows.stop)
    sides = (used, columns) if found.left else (columns, used)
    regions: dict[str, Box] = {}
    for array, ends in zip(found.arrays, ((used, used), sides), strict=True):
        if isinstance(array, Operand):
            own = lead[len(lead) - array.ndim + 2 :]
            before = [
                each if size > 1 else Interval.whole(size)
                for each, size in zip(own, array.shape, strict=False)
            ]
            regions[array.name] = join_boxes(regions.get(array.name), (*before, *ends))
    return regions
