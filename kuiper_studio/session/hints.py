"""Hints at the cause of a failure."""

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
    """Return one sentence about the possible cause of a failure.

    Parameters
    ----------
    graph : RuntimeGraph
    error : InferenceError

    Returns
    -------
    str
        ``""`` if nothing hints at a cause.
    """
    if error.of_export:
        # The reason stands above the hint.
        return f"{capitalized(error.diagnosis.replace(f': {error.reason}', ''))}."
    found = _find_changed_shape(graph, error) if not error.suspect else None
    if found is None and error.diagnosis:
        return f"{capitalized(error.diagnosis)}. Restore the exported size in the Input panel."
    if found is None:
        return ""
    operand, shape = found
    return _describe_shape(operand.name, operand.producer, operand.shape or (), shape)


def suspect_for(graph: RuntimeGraph, error: InferenceError) -> str:
    """Return the name of the operator that may be the cause; ``""`` for none."""
    if error.suspect:
        return error.suspect
    found = _find_changed_shape(graph, error)
    producer = found[0].producer if found is not None else None
    return producer.name if producer is not None else ""


def _find_changed_shape(
    graph: RuntimeGraph, error: InferenceError
) -> tuple[RuntimeOperand, tuple[int, ...]] | None:
    """Return the first input whose shape differs from the exported one, and its shape."""
    operator = graph.operator(error.operator)
    shapes = list(zip(operator.inputs, error.shapes, strict=False))
    other = [
        (operand, shape)
        for operand, shape in shapes
        if isinstance(shape, tuple) and operand.shape and not fits(shape, operand.shape)
    ]
    # If the model runs at another size, the shapes of all operands differ. A different shape
    # is a hint only if other inputs have their exported shapes. Constants always do.
    usual = [
        operand
        for operand, shape in shapes
        if isinstance(shape, tuple) and operand.shape and fits(shape, operand.shape)
        if operand.producer is None or not operand.producer.is_constant
    ]
    return other[0] if other and (usual or not error.diagnosis) else None


def _describe_shape(
    name: str,
    producer: RuntimeOperator | None,
    exported: tuple[int | str | None, ...],
    shape: tuple[int, ...],
) -> str:
    source = f"{producer.type} {producer.name}" if producer is not None else "its producer"
    return (
        f"Look at {source}: operand {name} was exported as {format_shape(exported)}, "
        f"but is {format_shape(shape)} here."
    )
