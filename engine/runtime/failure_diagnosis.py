"""Diagnoses a failure: inputs of another size than exported, or a fault of the export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.shapes import fits, other_sizes
from engine.text import format_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.runtime.export_faults import ExportFault
    from engine.runtime.operator import RuntimeOperand, RuntimeOperator

    ShapeOf = Callable[[str], tuple[int, ...] | None]

__all__ = ["FailureDiagnosis", "ShapeOf", "diagnose_failure"]


@dataclass(frozen=True, slots=True)
class FailureDiagnosis:
    """Possible cause of an operator's failure.

    Attributes
    ----------
    text : str
        One sentence, in lower case.
    suspect : str
        Name of the upstream operator that fixes a size or was exported wrongly; ``""`` for
        none.
    of_export : bool
        Whether the cause is the export rather than the input size.
    """

    text: str
    suspect: str = ""
    of_export: bool = False


def diagnose_failure(
    operator: RuntimeOperator, inputs: Sequence[RuntimeOperand], shape_of: ShapeOf
) -> FailureDiagnosis | None:
    """Find the cause of a failure.

    Parameters
    ----------
    operator : RuntimeOperator
        The operator that failed.
    inputs : sequence of RuntimeOperand
        The model's inputs.
    shape_of : callable
        Returns the shape of an operand's value by name; None if it has no value, or the value
        is not an array.

    Returns
    -------
    FailureDiagnosis or None
        None if the model runs at its exported size and the file shows no fault.
    """
    # Deferred: this module imports the layers.
    from engine.runtime.export_faults import find_export_faults

    above = _list_upstream(operator)
    faults = [f for f in find_export_faults(above, from_onnx=operator.from_onnx) if f.stops]
    if faults:
        return _blame_export(operator, faults[-1])
    fed = {o.name: shape for o in inputs if (shape := shape_of(o.name)) is not None}
    other = other_sizes(inputs, fed)
    if not other:
        deviation = _find_first_deviation(above, shape_of)
        return _blame_export(operator, deviation) if deviation is not None else None
    reasons = [
        f"{f'input {name}' if len(inputs) > 1 else 'the model'} was exported for "
        f"{format_shape(exported)} and is fed {format_shape(given)}"
        for name, (exported, given) in other.items()
    ]
    suspect = ""
    for operand in _list_unchanged_inputs(operator, shape_of):
        size = format_shape(operand.shape or ())
        fixing = _find_fixing_operator(operand, shape_of)
        if operand.producer is not None and operand.producer.is_constant:
            reasons.append(f"its input {operand.name} is always {size}")
        elif fixing is not None:
            reasons.append(
                f"its input {operand.name} is {size} at any size, which {fixing.type} "
                f"{fixing.name!r} fixes"
            )
            suspect = suspect or fixing.name
    return FailureDiagnosis("; ".join(reasons), suspect)


def _blame_export(failed: RuntimeOperator, fault: ExportFault) -> FailureDiagnosis:
    name = fault.operator.name
    return FailureDiagnosis(fault.sentence, "" if name == failed.name else name, of_export=True)


def _list_upstream(operator: RuntimeOperator) -> list[RuntimeOperator]:
    """Return the operator and everything upstream of it, in order of execution."""
    found = {operator.index: operator}
    waiting = [operator]
    while waiting:
        for operand in waiting.pop().inputs:
            above = operand.producer
            if above is not None and above.index not in found:
                found[above.index] = above
                waiting.append(above)
    return [found[index] for index in sorted(found)]


def _find_first_deviation(
    operators: Sequence[RuntimeOperator], shape_of: ShapeOf
) -> ExportFault | None:
    """Return the first operator whose output has another shape than its line states."""
    from engine.runtime.export_faults import ExportFault

    for operator in operators:
        for operand in operator.outputs:
            if _has_exported_shape(operand, shape_of) is False and operator.inputs:
                given, stated = shape_of(operand.name) or (), operand.shape or ()
                return ExportFault(
                    operator,
                    f"it returns {format_shape(given)}, but its line states "
                    f"{format_shape(stated)}",
                    "export the model with optlevel=0 and compare this line",
                    certain=False,
                )
    return None


def _list_unchanged_inputs(
    operator: RuntimeOperator, shape_of: ShapeOf
) -> list[RuntimeOperand]:
    """Return the inputs with their exported shape, if another input has a different one."""
    same = [o for o in operator.inputs if _has_exported_shape(o, shape_of) is True]
    changed = any(_has_exported_shape(o, shape_of) is False for o in operator.inputs)
    return list(dict.fromkeys(same)) if changed else []


def _has_exported_shape(operand: RuntimeOperand, shape_of: ShapeOf) -> bool | None:
    """Return whether an operand has its exported shape; None if either is unknown."""
    shape = shape_of(operand.name)
    if shape is None or not operand.shape:
        return None
    return fits(shape, operand.shape)


def _find_fixing_operator(operand: RuntimeOperand, shape_of: ShapeOf) -> RuntimeOperator | None:
    """Return the upstream operator whose output keeps its shape although an input does not."""
    waiting, seen = [operand.producer], set()
    while waiting:
        above = waiting.pop()
        if above is None or above.index in seen:
            continue
        seen.add(above.index)
        states = [_has_exported_shape(source, shape_of) for source in above.inputs]
        if False in states:
            return above
        if None not in states:  # downstream of an unknown shape nothing is certain
            waiting += [source.producer for source in above.inputs]
    return None
