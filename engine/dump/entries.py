"""Which arrays a dump holds, in which order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from engine.array_files import is_numeric
from engine.errors import ExportError, ModelFileError, UnknownNameError
from engine.plain import Plain, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.dump.options import DumpOptions
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["Entry", "collect_entries", "select_operators"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One value to write.

    Attributes
    ----------
    role : {"inputs", "ops", "weights"}
        The folder that it goes to.
    name : str
        True name: of the operand, or ``operator.attribute``.
    stem, key : str
        Name in a folder and in an archive, before they are cleaned.
    operator : RuntimeOperator
        Producer, or owner of the weight.
    kind : str
        ``tensor``, or the Python type of a value that is none.
    array : ndarray or None
        A Python number as a 0-d array. None for what no file of arrays can hold.
    operand : RuntimeOperand or None
        None for a weight.
    member : tuple of int
        Place within a tuple-valued operand.
    stored_dtype : str
        pnnx's name of a weight's dtype in the file.
    value : Plain
        What there is instead of an array.
    """

    role: str
    name: str
    stem: str
    key: str
    operator: RuntimeOperator
    kind: str
    array: Array | None = field(repr=False)
    operand: RuntimeOperand | None = None
    member: tuple[int, ...] = ()
    stored_dtype: str = ""
    value: Plain = None


def select_operators(
    graph: RuntimeGraph, patterns: Sequence[str] | None
) -> tuple[RuntimeOperator, ...]:
    """Operators that match any of the patterns.

    Parameters
    ----------
    graph : RuntimeGraph
    patterns : sequence of str or None
        Each matches a name, a type or an execution index; ``*`` and ``?`` are wild, and
        nothing else is. None selects all.

    Returns
    -------
    tuple of RuntimeOperator
        In execution order.

    Raises
    ------
    UnknownNameError
        If a pattern matches nothing.
    """
    if patterns is None:
        return graph.operators
    chosen: set[int] = set()
    for pattern in patterns:
        matches = _compiled(pattern).fullmatch
        hits = {
            op.index
            for op in graph.operators
            if matches(op.name) or matches(op.type) or pattern == str(op.index)
        }
        if not hits:
            known = {name for op in graph.operators for name in (op.name, op.type)}
            raise UnknownNameError("operator", pattern, sorted(known))
        chosen |= hits
    return tuple(graph.operators[index] for index in sorted(chosen))


def _compiled(pattern: str) -> re.Pattern[str]:
    # Runs of stars are one star, or matching could take for ever.
    parts = re.split(r"(\*+|\?)", pattern)
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(part[:1], re.escape(part)) for part in parts), re.DOTALL)


def collect_entries(session: Session, options: DumpOptions) -> list[Entry]:
    """Everything that a dump of a session holds; arrays are the session's own.

    Raises
    ------
    UnknownNameError
        If a pattern of ``options.operators`` matches nothing.
    ExportError
        If weights are wanted of a model that was opened without them.
    """
    selected = select_operators(session.graph, options.operators)
    entries = list(_operands(session, {op.index for op in selected}, options))
    if options.weights:
        if not session.graph.has_weights:
            raise ExportError(
                "there are no weights to write: the model was opened without its .bin file"
            )
        entries.extend(entry for operator in selected for entry in _weights(operator))
    return entries


def _operands(session: Session, selected: set[int], options: DumpOptions) -> Iterator[Entry]:
    width = max(3, len(str(len(session.graph.operators) - 1)))
    for operator in session.graph.operators:
        record = session.record(operator.name)
        wanted = options.outputs and operator.index in selected
        if record is None or not (options.inputs if operator.is_input else wanted):
            continue
        place = f"{operator.index:0{width}d}"
        if not operator.is_input:
            place += f"_{operator.type}"
        for operand in operator.outputs:
            if operand.name in record.outputs:
                for member, value in _members(record.outputs[operand.name]):
                    yield _operand_entry(place, operand, operator, member, value)


def _members(
    value: Value, place: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Value]]:
    """Members of nested tuples with their places; an empty tuple is itself one."""
    if isinstance(value, tuple) and value:
        for index, item in enumerate(value):
            yield from _members(item, (*place, index))
    else:
        yield place, value


def _operand_entry(
    place: str,
    operand: RuntimeOperand,
    operator: RuntimeOperator,
    member: tuple[int, ...],
    value: Value,
) -> Entry:
    key = "_".join([operand.name, *map(str, member)])
    is_array = isinstance(value, np.ndarray)
    array = None
    if isinstance(value, (np.ndarray, bool, int, float, complex)):
        array = np.asarray(value)
    if array is not None and not is_numeric(array):
        array = None  # an int of more than 64 bits; text or objects of somebody's layer
    return Entry(
        role="inputs" if operator.is_input else "ops",
        name=operand.name,
        stem=f"{place}__{key}",
        key=key,
        operator=operator,
        kind="tensor" if is_array else type(value).__name__,
        array=array,
        operand=operand,
        member=member,
        value=None if is_array else plain(value),
    )


def _weights(operator: RuntimeOperator) -> Iterator[Entry]:
    for key, attribute in operator.attributes.items():
        name = f"{operator.name}.{key}"
        try:
            array = attribute.array
        except ModelFileError:
            array = None  # pnnx did not know its dtype, and stored nothing of it
        yield Entry(
            role="weights",
            name=name,
            stem=name,
            key=f"weights.{name}",
            operator=operator,
            kind="tensor",
            array=array,
            stored_dtype=attribute.stored_dtype,
        )
