"""Triangular equations: their gradients are solutions of the transposed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.linear_algebra import solve_triangular, substitute
from engine.provenance.call import Operand
from engine.provenance.rules.triangular import read_equations
from engine.provenance.slopes import accumulate, unbroadcast
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.slopes import Gradient


@passes_back(solve_triangular)
def _solution(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Solve by the transposed matrix, and multiply by the solution for the matrix."""
    found = read_equations(call)
    solution = substitute(found.matrix, found.columns, upper=found.upper, unit=found.unit)
    given = gradient if found.left else gradient.swapaxes(-1, -2)
    turned = found.matrix.swapaxes(-1, -2)
    by_columns = substitute(turned, given, upper=not found.upper, unit=found.unit)
    by_matrix = -by_columns @ solution.swapaxes(-1, -2)
    diagonal = int(found.unit)
    by_matrix = np.triu(by_matrix, diagonal) if found.upper else np.tril(by_matrix, -diagonal)
    result: dict[str, Gradient] = {}
    for array, own in zip(found.arrays, (by_matrix, by_columns), strict=True):
        if isinstance(array, Operand):
            back = own if found.left else own.swapaxes(-1, -2)
            accumulate(result, array.name, unbroadcast(back, array.shape))
    return result
