"""Groups the operators of a model, by the names of its modules and by equal blocks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.collector import collector_paused
from kuiper_studio.item_models.module_runs import module_path
from kuiper_studio.layout.groups import Group, Path, find_groups

if TYPE_CHECKING:
    from collections.abc import Hashable

    from engine.runtime import RuntimeGraph, RuntimeOperator

__all__ = ["group_operators"]

# pnnx numbers what it makes: "convbn2d_3", "attention_15", "pnnx_expr_7". A module outside of
# all others keeps its name: "avgpool".
_MADE: Final = re.compile(r".*_\d+|pnnx_.*")
_DEEPEST: Final = 32  # modules in each other; names may have any number of dots
_ENDS: Final = frozenset({"pnnx.Input", "pnnx.Output"})


def group_operators(graph: RuntimeGraph) -> Group:
    """Group the operators of a model; see `find_groups`.

    Parameters
    ----------
    graph : RuntimeGraph

    Returns
    -------
    Group
        The whole graph.
    """
    operators = graph.operators
    with collector_paused():  # of ten thousand operators it took half of the time
        return find_groups(
            [_path(operator) for operator in operators],
            [_kind(operator) for operator in operators],
            (
                (operand.producer.index, operator.index, operand.name)
                for operator in operators
                for operand in operator.inputs
                if operand.producer is not None
            ),
        )


def _path(operator: RuntimeOperator) -> Path | None:
    """Return the modules of an operator; None where the exporter lost them."""
    if operator.type in _ENDS:
        return ()
    path = module_path(operator)
    if path:
        return path[:_DEEPEST]
    made = "." in operator.name or _MADE.fullmatch(operator.name)
    return None if made or not operator.inputs else ()


def _kind(operator: RuntimeOperator) -> Hashable:
    shapes = tuple(operand.shape for operand in operator.outputs)
    return operator.type, repr(operator.params), shapes
