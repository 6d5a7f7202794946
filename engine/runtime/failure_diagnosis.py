"""Diagnoses why a model fails: by the size of its inputs, or by a fault of the export."""

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
    """Possible cause of a failure elsewhere in the run.

    Attributes
    ----------
    text : str
        One sentence, in lower case.
    suspect : str
        Name of the upstream operator that fixes a size or was exported wrongly; ``""`` for
        none.
    of_export : bool
        Whether the export is to blame, and not the size.
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
        The one that failed.
    inputs : sequence of RuntimeOperand
        The model's inputs.
    shape_of : callable
        Shape of an operand's value by name; None if it has none, or is not an array.

    Returns
    -------
    FailureDiagnosis or None
        None for a run at the exported size of a file without a fault to be seen.
    """
    from engine.runtime.export_faults import find_export_faults  # which imports layers

    above = _upstream(operator)
    faults = [f for f in find_export_faults(above, from_onnx=operator.from_onnx) if f.stops]
    if faults:
        return _of_export(operator, faults[-1])
    fed = {o.name: shape for o in inputs if (shape := shape_of(o.name)) is not None}
    other = other_sizes(inputs, fed)
    if not other:
        deviation = _first_deviation(above, shape_of)
        return _of_export(operator, deviation) if deviation is not None else None
    reasons = [
        f"{f'input {name}' if len(inputs) > 1 else 'the model'} was exported for "
        f"{format_shape(exported)} and is fed {format_shape(given)}"
        for name, (exported, given) in other.items()
    ]
    suspect = ""
    for operand in _unchanged(operator, shape_of):
        spelled, fixing = format_shape(operand.shape or ()), _fixing(operand, shape_of)
        if operand.producer is not None and operand.producer.is_constant:
            reasons.append(f"its input {operand.name} is always {spelled}")
        elif fixing is not None:
            reasons.append(
                f"its input {operand.name} is {spelled} at any size, which {fixing.type} "
                f"{fixing.name!r} fixes"
            )
            suspect = suspect or fixing.name
    return FailureDiagnosis("; ".join(reasons), suspect)


def _of_export(failed: RuntimeOperator, fault: ExportFault) -> FailureDiagnosis:
    name = fault.operator.name
    return FailureDiagnosis(fault.sentence, "" if name == failed.name else name, of_export=True)


def _upstream(operator: RuntimeOperator) -> list[RuntimeOperator]:
    """The operator and all that it depends on, in order of execution."""
    found = {operator.index: operator}
    waiting = [operator]
    while waiting:
        for operand in waiting.pop().inputs:
            above = operand.producer
            if above is not None and above.index not in found:
                found[above.index] = above
                waiting.append(above)
    return [found[index] for index in sorted(found)]


def _first_deviation(
    operators: Sequence[RuntimeOperator], shape_of: ShapeOf
) -> ExportFault | None:
    """The first result of another shape than stated, of inputs that have theirs."""
    from engine.runtime.export_faults import ExportFault

    for operator in operators:
        for operand in operator.outputs:
            if _is_exported(operand, shape_of) is False and operator.inputs:
                given, stated = shape_of(operand.name) or (), operand.shape or ()
                return ExportFault(
                    operator,
                    f"it gives {format_shape(given)}, and its line states "
                    f"{format_shape(stated)}",
                    "export it with optlevel=0, and compare what this line says there",
                    certain=False,
                )
    return None


def _unchanged(operator: RuntimeOperator, shape_of: ShapeOf) -> list[RuntimeOperand]:
    """Return inputs with their exported shapes, while others have other shapes."""
    same = [o for o in operator.inputs if _is_exported(o, shape_of) is True]
    changed = any(_is_exported(o, shape_of) is False for o in operator.inputs)
    return list(dict.fromkeys(same)) if changed else []


def _is_exported(operand: RuntimeOperand, shape_of: ShapeOf) -> bool | None:
    """Return whether an operand has its exported shape; None if one is not known."""
    shape = shape_of(operand.name)
    if shape is None or not operand.shape:
        return None
    return fits(shape, operand.shape)


def _fixing(operand: RuntimeOperand, shape_of: ShapeOf) -> RuntimeOperator | None:
    """Return the upstream operator with exported output shapes and another input shape."""
    waiting, seen = [operand.producer], set()
    while waiting:
        above = waiting.pop()
        if above is None or above.index in seen:
            continue
        seen.add(above.index)
        states = [_is_exported(taken, shape_of) for taken in above.inputs]
        if False in states:
            return above
        if None not in states:  # downstream of an unknown shape nothing is certain
            waiting += [taken.producer for taken in above.inputs]
    return None
