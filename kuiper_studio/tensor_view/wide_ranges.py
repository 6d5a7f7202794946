"""One range for operands of all operators of a type, or of the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kuiper_studio.tensor_view.choice import Scope

if TYPE_CHECKING:
    from kuiper_studio.session import StudioSession

__all__ = ["wide_ranges"]


def wide_ranges(session: StudioSession, operand: str) -> dict[Scope, tuple[float, float]]:
    """Return the ranges of what is measured of the run, by scope.

    Parameters
    ----------
    session : StudioSession
    operand : str
        Operators of its producer's type count for `Scope.TYPE`.

    Returns
    -------
    dict of Scope to (float, float)
        Least and largest value. An operator with infinite values does not count; a scope
        without any other is missing.
    """
    graph = session.graph
    found = graph.operands.get(operand) if graph is not None else None
    if graph is None or found is None or found.producer is None:
        return {}
    table = session.measuring.table
    finite = np.isfinite(table.low) & np.isfinite(table.high)
    if len(finite) != len(graph.operators):
        return {}
    alike = np.array([each.type == found.producer.type for each in graph.operators], np.bool_)
    chosen = {Scope.TYPE: finite & alike, Scope.RUN: finite}
    return {
        scope: (float(table.low[which].min()), float(table.high[which].max()))
        for scope, which in chosen.items()
        if which.any()
    }
