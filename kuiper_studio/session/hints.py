"""What to look at after an operator failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import capitalized
from engine.shapes import fits
from engine.text import format_shape

if TYPE_CHECKING:
    from engine.errors import InferenceError
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator

__all__ = ["hint_for", "suspect_for"]


def hint_for(graph: RuntimeGraph, error: InferenceError) -> str:
    """One sentence about where the cause of a failed operator may lie.

    Parameters
    ----------
    graph : RuntimeGraph
    error : InferenceError

    Returns
    -------
    str
        Empty when there is nothing to go by.
    """
    if error.of_export:
        return f"{capitalized(error.diagnosis)}."
    found = _first_other_shape(graph, error) if not error.suspect else None
    if found is None and error.diagnosis:
        told = f"{capitalized(error.diagnosis)}."
        return f"{told} The Input panel goes back to the exported size."
    if found is None:
        return ""
    operand, shape = found
    return _about(operand.name, operand.producer, operand.shape or (), shape)


def suspect_for(graph: RuntimeGraph, error: InferenceError) -> str:
    """Name of the operator where the cause may lie; ``""`` where nothing points to one."""
    if error.suspect:
        return error.suspect
    found = _first_other_shape(graph, error)
    producer = found[0].producer if found is not None else None
    return producer.name if producer is not None else ""


def _first_other_shape(
    graph: RuntimeGraph, error: InferenceError
) -> tuple[RuntimeOperand, tuple[int, ...]] | None:
    """First input whose shape is not the exported one, and the shape it has."""
    operator = graph.operator(error.operator)
    shapes = list(zip(operator.inputs, error.shapes, strict=False))
    other = [
        (operand, shape)
        for operand, shape in shapes
        if isinstance(shape, tuple) and operand.shape and not fits(shape, operand.shape)
    ]
    # At another size than the exported one every operand has another shape, and only one
    # beside others that have theirs tells something. Constants always have theirs.
    usual = [
        operand
        for operand, shape in shapes
        if isinstance(shape, tuple) and operand.shape and fits(shape, operand.shape)
        if operand.producer is None or not operand.producer.is_constant
    ]
    return other[0] if other and (usual or not error.diagnosis) else None


def _about(
    name: str,
    producer: RuntimeOperator | None,
    exported: tuple[int | str | None, ...],
    shape: tuple[int, ...],
) -> str:
    source = f"{producer.type} {producer.name}" if producer is not None else "its producer"
    return (
        f"Look at {source}: operand {name} was exported as {format_shape(exported)} "
        f"and is {format_shape(shape)} here."
    )
