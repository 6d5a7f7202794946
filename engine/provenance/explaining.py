"""Where one element of an operand comes from."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import TensorError, describe_shapes
from engine.layers.exactness import is_elementwise
from engine.layers.expression import Expression
from engine.provenance import rules
from engine.provenance.call import CANNOT, Call
from engine.provenance.records import Interval, Kind, Provenance, Source, Step
from engine.provenance.rules.elementwise import explain_function, locate_elementwise
from engine.provenance.rules.moving import explain_move, locate_move
from engine.provenance.table import find_explanation, find_location, find_moved
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.layers import Layer
    from engine.provenance.records import Breakdown
    from engine.provenance.table import Explain, Locate
    from engine.runtime import RuntimeOperator
    from engine.session import Session

__all__ = ["check_index", "explain_element", "explanation_of", "location_of"]

_RULES: Final = rules  # imported to be registered
_WEIGHTS: Final = frozenset({"pnnx.Attribute", "ncnn.MemoryData"})


def explain_element(session: Session, operand: str, index: Sequence[int]) -> Provenance:
    """Return where one element of an operand comes from.

    The products and sums are computed in float64 from the values of the operator's inputs, as
    the engine computed them. The breakdown's `error` states how far the engine's value may be
    from the sum.

    Parameters
    ----------
    session : Session
        In which the operand has a value. It does not change.
    operand : str
    index : sequence of int
        One number per dimension; negative numbers count from the end.

    Returns
    -------
    Provenance
        Of the kind ``UNKNOWN``, with a reason, for operators without a rule.

    Raises
    ------
    UnknownNameError, ValueNotComputedError
        As `Session.value`.
    TensorError
        If the operand is no tensor of real numbers, or has no such element.
    """
    value = session.value(operand)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "bifu":
        raise TensorError(f"operand {operand} is no tensor of real numbers")
    place = check_index(value.shape, index)
    producer = session.graph.operand(operand).producer
    if producer is None:
        raise TensorError(f"nothing produces operand {operand}")
    kind, breakdown, reason = Kind.UNKNOWN, None, ""
    sources: tuple[Source, ...] = ()
    if operand in session.overrides:
        kind = Kind.SUPPLIED
    elif producer.is_input:
        kind = Kind.INPUT
    elif producer.type in _WEIGHTS:
        kind = Kind.WEIGHT
    else:
        breakdown, reason = _break_down(session, producer, operand, place)
        kind = Kind.UNKNOWN if breakdown is None else breakdown.kind
        sources = _sources(session, producer, operand, place)
    return Provenance(
        operand,
        place,
        value.shape,
        str(value.dtype),
        producer.label,
        kind,
        float(value[place]),
        breakdown,
        reason,
        sources,
    )


def check_index(shape: Sequence[int], index: Sequence[int]) -> tuple[int, ...]:
    """Count an index from the front.

    Raises
    ------
    TensorError
        If there is no such element.
    """
    fits = len(index) == len(shape) and all(
        -size <= place < size for place, size in zip(index, shape, strict=True)
    )
    if not fits:
        raise TensorError(
            f"there is no element {list(index)} in {describe_shapes([tuple(shape)])}"
        )
    return tuple([int(place) % size for place, size in zip(index, shape, strict=True)])


def explanation_of(layer: Layer) -> Explain | None:
    """Return the rule that breaks an element of a layer down, or None."""
    found = find_explanation(layer)
    if found is None and find_moved(layer) is not None:
        return explain_move
    if found is None and (is_elementwise(layer) or isinstance(layer, Expression)):
        return explain_function
    return found


def location_of(layer: Layer) -> Locate | None:
    """Return the rule that finds the regions that a region depends on, or None."""
    found = find_location(layer)
    if found is None and find_moved(layer) is not None:
        return locate_move
    if found is None and (is_elementwise(layer) or isinstance(layer, Expression)):
        return locate_elementwise
    return found


def _break_down(
    session: Session, operator: RuntimeOperator, operand: str, index: tuple[int, ...]
) -> tuple[Breakdown | None, str]:
    """Return the breakdown, or None and the reason."""
    place = [each.name for each in operator.outputs].index(operand)
    try:
        call = Call.of(session, operator, place)
        rule = explanation_of(call.layer)
        if rule is None:
            return None, f"There is no breakdown for {operator.type} yet."
        return _rounded(rule(call, index), session, operand), ""
    except CANNOT as exc:
        text = str(exc)
        return None, f"{text[:1].upper()}{text[1:]}."


def _rounded(found: Breakdown, session: Session, operand: str) -> Breakdown:
    """Add what numbers near 0 and beyond the largest one become when a result is rounded.

    Below the smallest normal number a library may lose digits, or give 0. Two bounds of a mask
    that are added give infinity.
    """
    metadata = session.metadata(operand)
    if not found.error or not isinstance(metadata, ArrayMetadata):
        return found
    if np.dtype(metadata.dtype).kind != "f":
        return found
    limits = np.finfo(metadata.dtype)
    if float(limits.max) < abs(found.total) - found.error and math.isfinite(found.total):
        step = Step("before it overflows", found.total)
        infinite = math.copysign(math.inf, found.total)
        return replace(found, total=infinite, steps=(*found.steps, step))
    lost = limits.tiny if limits.dtype == np.float32 else limits.smallest_subnormal
    return replace(found, error=found.error + float(lost))


def _sources(
    session: Session, operator: RuntimeOperator, operand: str, index: tuple[int, ...]
) -> tuple[Source, ...]:
    """Return the regions of the operator's inputs; all of them where there is no rule."""
    place = [each.name for each in operator.outputs].index(operand)
    box = tuple([Interval(at, at + 1, at, at + 1) for at in index])
    try:
        call = Call.of(session, operator, place)
        rule = location_of(call.layer)
        if rule is not None:
            shapes = {each.name: each.shape for each in call.arrays}
            found = rule(call, box)
            return tuple([Source(name, shapes[name], region) for name, region in found.items()])
    except CANNOT:
        pass
    sources = []
    for name in dict.fromkeys([each.name for each in operator.inputs]):
        metadata = session.metadata(name)
        if isinstance(metadata, ArrayMetadata):
            whole = tuple([Interval.whole(size) for size in metadata.shape])
            sources.append(Source(name, metadata.shape, whole))
    return tuple(sources)
