"""Combines the note on an operator's type with the model's own values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.text import format_shape
from kuiper_studio.item_models.text import param_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.layers.notes import ArgumentNote, OperatorNote
    from engine.runtime import RuntimeOperator

__all__ = ["ExplainedArgument", "explained_arguments", "parameter_meanings"]


@dataclass(frozen=True, slots=True)
class ExplainedArgument:
    """An argument of the type's code with the value of this operator.

    Attributes
    ----------
    note : ArgumentNote
    name : str
        As the model writes it.
    value : str
        A parameter's value, ``@weight 64×3×7×7``, ``operand 12``; ``""`` where the model has
        none.
    """

    note: ArgumentNote
    name: str
    value: str


def explained_arguments(
    operator: RuntimeOperator, note: OperatorNote
) -> tuple[ExplainedArgument, ...]:
    """Return the arguments of an operator in the order of its code.

    Parameters
    ----------
    operator : RuntimeOperator
    note : OperatorNote
        On the operator's type.
    """
    attributes = {name.replace(".", "_"): name for name in operator.attributes}
    operands = _operands_by_argument(operator, note)
    return tuple(
        _explained(operator, argument, f"arg_{place}", attributes, operands)
        for place, argument in enumerate(note.arguments)
    )


def parameter_meanings(operator: RuntimeOperator) -> dict[str, str]:
    """Return the meaning of each parameter of an operator, by its name in the model."""
    # Imported here: notes import every layer, and the window opens sooner without.
    from engine.layers.notes import remove_marks

    return {
        explained.name: remove_marks(explained.note.meaning)
        for explained in explained_arguments(operator, operator.note)
        if explained.name in operator.params
    }


def _explained(
    operator: RuntimeOperator,
    argument: ArgumentNote,
    numbered: str,
    attributes: Mapping[str, str],
    operands: Mapping[str, str],
) -> ExplainedArgument:
    name = argument.name
    attribute = attributes.get(name.replace(".", "_"))
    if attribute is not None:
        shape = format_shape(operator.attributes[attribute].shape)
        return ExplainedArgument(argument, attribute, f"@{attribute} {shape}")
    # PyTorch's extensions have arguments by number in the file.
    for written in (name, numbered):
        if written in operands:
            return ExplainedArgument(argument, name, operands[written])
        if written in operator.params:
            return ExplainedArgument(argument, written, param_text(operator.params[written]))
    return ExplainedArgument(argument, name, "")


def _operands_by_argument(operator: RuntimeOperator, note: OperatorNote) -> dict[str, str]:
    """Assign operands to arguments: by name, the others in order."""
    known = {argument.name for argument in note.arguments}
    named: dict[str, str] = {}
    loose: list[str] = []
    for operand, name in zip(operator.inputs, operator.input_names, strict=False):
        if name in known or name.startswith("arg_"):
            named[name] = f"operand {operand.name}"
        else:
            loose.append(operand.name)
    free = [
        argument.name
        for argument in note.arguments
        if argument.kind == "operand"
        and argument.name not in named
        and argument.name not in operator.params
    ]
    if len(free) == 1 and len(loose) > 1:  # one argument takes all operands
        named[free[0]] = f"operands {', '.join(loose)}"
    else:
        named.update(
            (argument, f"operand {operand}")
            for argument, operand in zip(free, loose, strict=False)
        )
    return named
