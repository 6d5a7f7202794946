"""Recognises a reference that was computed at another size of the inputs.

Then hardly anything can be compared, and no operator is to blame.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from engine.comparison.layouts import SAME_LAYOUT
from engine.comparison.matching import INPUT
from engine.comparison.reasons import Change, Reason
from engine.comparison.rows import Origin, Row, Status
from engine.text import format_shape
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.comparison.aligned import Aligned
    from engine.comparison.matching import Matcher
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.session import Session

__all__ = ["OtherSize", "blame_sizes", "find_other_sizes"]


class OtherSize(NamedTuple):
    """An input that the reference has in another size.

    Attributes
    ----------
    producer : RuntimeOperator
        The input operator.
    operand : RuntimeOperand
    key : str
        Of the reference's tensor.
    ours, theirs : tuple of int
        Shapes.
    """

    producer: RuntimeOperator
    operand: RuntimeOperand
    key: str
    ours: tuple[int, ...]
    theirs: tuple[int, ...]


def find_other_sizes(
    session: Session, matcher: Matcher, shapes: Mapping[str, tuple[int, ...] | None]
) -> list[OtherSize]:
    """Return the inputs that the reference has in another size, in no layout the same.

    Parameters
    ----------
    session : Session
        With inputs.
    matcher : Matcher
    shapes : mapping of str to tuple of int or None
        Of the reference's tensors.
    """
    found = []
    for operand in session.graph.input_operands:
        key = matcher.inputs.get(operand.name) or matcher.named(operand)
        if key is None and operand.producer is not None and operand.producer.name in shapes:
            key = operand.producer.name  # names are in doubt, for sizes do not agree
        theirs = shapes.get(key) if key is not None else None
        value = session.metadata(operand.name) if session.has_value(operand.name) else None
        if key is None or theirs is None or operand.producer is None:
            continue
        if not isinstance(value, ArrayMetadata) or matcher.is_corrected(operand.name):
            continue
        ours = value.shape
        if len(theirs) == len(ours) and matcher.layout(key, [ours]) is None:
            found.append(OtherSize(operand.producer, operand, key, ours, theirs))
    return found


def blame_sizes(aligned: Aligned, sizes: Sequence[OtherSize]) -> tuple[Origin, ...]:
    """Name inputs of another size as the only origins, and mark their rows.

    Parameters
    ----------
    aligned : Aligned
        With its rows.
    sizes : sequence of OtherSize
    """
    others = {
        name: _inherited(row) if row.status is Status.ORIGIN else row
        for name, row in aligned.rows.items()
    }
    aligned.rows.clear()
    aligned.rows.update({size.operand.name: _row(aligned, size) for size in sizes})
    aligned.rows.update(others)
    return tuple(map(_origin, sizes))


def _inherited(row: Row) -> Row:
    return replace(row, status=Status.INHERITED, reason="the inputs have other sizes")


def _row(aligned: Aligned, size: OtherSize) -> Row:
    name = size.operand.name
    ours, theirs = aligned.session.metadata(name), aligned.reference.read(size.key)
    assert isinstance(ours, ArrayMetadata)  # noqa: S101 - it has a shape
    return Row(
        operator=size.producer.label,
        operand=name,
        reference=size.key,
        matched_by=INPUT,
        confidence=1.0,
        layout=SAME_LAYOUT,
        shape=size.ours,
        reference_shape=size.theirs,
        dtype=ours.dtype.name,
        reference_dtype=theirs.dtype.name,
        measures=None,
        statistics=None,
        reference_statistics=None,
        born=1.0,
        inherited=None,
        amplification=None,
        status=Status.ORIGIN,
        reason=f"it is {format_shape(size.ours)}, the reference {format_shape(size.theirs)}",
    )


def _origin(size: OtherSize) -> Origin:
    ours, theirs = format_shape(size.ours), format_shape(size.theirs)
    who = f"{size.producer.type} {size.producer.name!r}"
    text = (
        f"The reference was computed for an input of {theirs}. Run at that size, or the "
        f"reference at {ours}."
    )
    reason = Reason("parameter", 1.0, text, (Change("shape", size.theirs),))
    return Origin(
        size.producer.label, size.operand.name, size.key, (), 1.0, None,
        f"{who} is {ours}, the reference's {theirs}", (), (reason,),
    )  # fmt: skip
