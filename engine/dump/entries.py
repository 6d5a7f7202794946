"""Lists the arrays of a dump, in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from engine.array_files import is_numeric
from engine.errors import ExportError, ModelFileError, UnknownNameError
from engine.plain import Plain, plain
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.dump.options import DumpOptions
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.runtime.parameter import RuntimeAttribute
    from engine.session import Session
    from engine.store import StepOutputs
    from engine.values import Array, ValueMetadata

    # Takes a callback that is called between operators if the array must be recomputed.
    Load = Callable[[Callable[[], None] | None], Array]

__all__ = ["Entry", "collect_entries", "select_operators"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One value to write.

    Attributes
    ----------
    role : {"inputs", "ops", "weights"}
        Its folder.
    name : str
        True name: of the operand, or ``operator.attribute``.
    stem, key : str
        Name in a folder and in an archive, before they are cleaned.
    operator : RuntimeOperator
        Producer, or owner of the weight.
    kind : str
        ``tensor``, or the Python type of another value.
    metadata : ArrayMetadata or None
        Of the array; a Python number is a 0-d one. None for a value that is not an array.
    load : callable
        Returns the array. A session with a memory limit may have to recompute it; it calls the
        argument, if that is not None, between operators.
    operand : RuntimeOperand or None
        None for a weight.
    member : tuple of int
        Index within a tuple-valued operand.
    stored_dtype : str
        pnnx's name of a weight's dtype in the file.
    value : Plain
        The value if it is not an array.
    """

    role: str
    name: str
    stem: str
    key: str
    operator: RuntimeOperator
    kind: str
    metadata: ArrayMetadata | None
    load: Load = field(repr=False)
    operand: RuntimeOperand | None = None
    member: tuple[int, ...] = ()
    stored_dtype: str = ""
    value: Plain = None


def select_operators(
    graph: RuntimeGraph, patterns: Sequence[str] | None
) -> tuple[RuntimeOperator, ...]:
    """Select the operators that match any of the patterns.

    Parameters
    ----------
    graph : RuntimeGraph
    patterns : sequence of str or None
        Each matches a name, a type or an execution index; ``*`` and ``?`` are the only
        wildcards. None selects all.

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
    # Merge runs of stars, or matching could take exponential time.
    parts = re.split(r"(\*+|\?)", pattern)
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(part[:1], re.escape(part)) for part in parts), re.DOTALL)


def collect_entries(session: Session, options: DumpOptions) -> list[Entry]:
    """List everything that a dump of a session contains, aliasing the session's arrays.

    Raises
    ------
    UnknownNameError
        If a pattern of ``options.operators`` matches nothing.
    ExportError
        If weights are requested of a model that was opened without them.
    """
    selected = select_operators(session.graph, options.operators)
    entries = list(_operands(session, {op.index for op in selected}, options))
    if options.weights:
        if not session.graph.has_weights:
            raise ExportError(
                "there are no weights to write: the model was opened without its .bin"
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
                for member, metadata in _members(record.outputs.metadata(operand.name)):
                    load = partial(_member, record.outputs, operand.name, member)
                    yield _operand_entry(place, operand, operator, member, metadata, load)


def _members(
    metadata: ValueMetadata, place: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], ValueMetadata]]:
    """Yield members of nested tuples with their indexes; an empty tuple is a member."""
    if isinstance(metadata, tuple) and metadata:
        for index, item in enumerate(metadata):
            yield from _members(item, (*place, index))
    else:
        yield place, metadata


def _member(
    outputs: StepOutputs,
    name: str,
    place: tuple[int, ...],
    check_cancelled: Callable[[], None] | None = None,
) -> Array:
    value = outputs.fetch(name, check_cancelled)
    for index in place:
        assert isinstance(value, tuple)  # noqa: S101 - the metadata said so
        value = value[index]
    return np.asarray(value)


def _operand_entry(
    place: str,
    operand: RuntimeOperand,
    operator: RuntimeOperator,
    member: tuple[int, ...],
    metadata: ValueMetadata,
    load: Load,
) -> Entry:
    key = "_".join([operand.name, *map(str, member)])
    array = metadata if isinstance(metadata, ArrayMetadata) else None
    if isinstance(metadata, (bool, int, float, complex)):
        number = np.asarray(metadata)
        array = ArrayMetadata(number.shape, number.dtype)
    if array is not None and not is_numeric(array):
        array = None  # an int of more than 64 bits; text or objects of a user's layer
    is_array = isinstance(metadata, ArrayMetadata)
    return Entry(
        role="inputs" if operator.is_input else "ops",
        name=operand.name,
        stem=f"{place}__{key}",
        key=key,
        operator=operator,
        kind="tensor" if is_array else type(metadata).__name__,
        metadata=array,
        load=load,
        operand=operand,
        member=member,
        value=None if is_array else plain(metadata),
    )


def _weights(operator: RuntimeOperator) -> Iterator[Entry]:
    for key, attribute in operator.attributes.items():
        name = f"{operator.name}.{key}"
        metadata = None
        if attribute.is_stored:
            metadata = ArrayMetadata(attribute.shape, attribute.dtype)
        yield Entry(
            role="weights",
            name=name,
            stem=name,
            key=f"weights.{name}",
            operator=operator,
            kind="tensor",
            metadata=metadata,
            load=partial(_weight, name, attribute),
            stored_dtype=attribute.stored_dtype,
        )


def _weight(name: str, attribute: RuntimeAttribute, _: Callable[[], None] | None) -> Array:
    try:
        return attribute.array
    except ModelFileError as exc:
        raise ExportError(f"weight {name} cannot be read: {exc}") from exc
