"""Restores ``Shape`` in a pair, where the casts behind it are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.conversion.node_meanings.tensor_sizes import CASTS
from engine.pnnx import load, save

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine.pnnx import Graph, Operand, Operator

__all__ = ["restore_sizes"]


def restore_sizes(param: Path, weights: Path) -> None:
    """Write ``Shape`` into a pair where its casts are.

    Parameters
    ----------
    param, weights : Path
        The pair; both files are replaced if there are such casts.

    Raises
    ------
    OSError, ModelFileError, ExportError
        If the files cannot be read or written.
    """
    if CASTS[0][1].encode() not in param.read_bytes():
        return
    graph = load(param, weights)
    found = [casts for each in graph.operators if (casts := _casts_from(each))]
    for number, casts in enumerate(found):
        _write_shape(graph, f"pnnx_shape_{number}", casts)
    if found:
        save(graph, param, weights)


def _casts_from(first: Operator) -> list[Operator]:
    """Return the casts of a ``Shape`` that begin with an operator; empty if it is no such."""
    casts: list[Operator] = []
    operator = first
    for _, dtype in CASTS:
        wanted = operator.params.get("dtype")
        if operator.type != "Tensor.to" or wanted is None or wanted.text != dtype:
            return []
        casts.append(operator)
        if dtype != CASTS[-1][1]:
            if len(operator.outputs[0].consumers) != 1:
                return []
            (operator,) = operator.outputs[0].consumers
    return casts


def _write_shape(graph: Graph, name: str, casts: Sequence[Operator]) -> None:
    (before,) = casts[-1].outputs
    tensor = casts[0].inputs[0]
    left = _left_of_shape(tensor)
    operator = graph.new_operator_before("Shape", name, casts[0])
    operator.add_input(left.inputs[0] if left else tensor)
    sizes = graph.new_operand(name)
    sizes.shape, sizes.dtype = before.shape, before.dtype
    operator.add_output(sizes)
    for consumer in list(before.consumers):
        consumer.replace_input(consumer.inputs.index(before), sizes)
    for cast in reversed(casts):
        graph.remove_operator(cast)
    if left and not tensor.consumers:
        graph.remove_operator(left)


def _left_of_shape(tensor: Operand) -> Operator | None:
    """Return the expression that is left of a ``Shape`` where pnnx joins fewer operators."""
    left = tensor.producer
    if left is None or left.type != "pnnx.Expression" or left.params["expr"].text != "@0":
        return None
    return left
