"""Texts about where an element comes from; no Qt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.provenance.records import Kind
from engine.text import (
    MINUS,
    format_brief,
    format_count,
    format_number,
    format_shape,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from engine.provenance.records import (
        Breakdown,
        FieldCheck,
        Provenance,
        ReceptiveField,
        Source,
    )

__all__ = [
    "describe_check",
    "describe_difference",
    "describe_end",
    "describe_field",
    "describe_guesses",
    "describe_noise",
    "describe_weight",
    "format_element",
    "format_numbers",
    "format_source",
]

_LARGEST: Final = 4  # terms that are written out
_TIED: Final = "\N{NO-BREAK SPACE}"
_ENDS: Final = {
    Kind.INPUT: "An element of the model's input: here it begins.",
    Kind.WEIGHT: "An element of a weight: here it begins.",
    Kind.SUPPLIED: "The value was supplied, not computed.",
}


def format_element(name: str, index: Sequence[int]) -> str:
    """Format an element: ``11[0, 41, 31, 33]``."""
    return f"{name}[{', '.join(map(str, index))}]"


def describe_end(provenance: Provenance) -> str:
    """Say why nothing is broken down; ``""`` if something is."""
    return _ENDS.get(provenance.kind, provenance.reason)


def format_numbers(breakdown: Breakdown) -> str:
    """Format the formula with its numbers: the largest terms, and the rest as one number."""
    terms = breakdown.terms
    is_short = len(terms.products) in {1, len(terms.factors)}
    if breakdown.kind is Kind.FUNCTION and is_short:
        values = [format_number(float(each.values[0])) for each in terms.factors]
        steps = [f"{step.name} {format_number(step.value)}" for step in breakdown.steps]
        return f"= {format_number(breakdown.total)}  of  {'  and  '.join([*values, *steps])}"
    if breakdown.kind in {Kind.FUNCTION, Kind.MOVE, Kind.CHOICE, Kind.GATES}:
        return f"= {format_number(breakdown.total)}"
    if breakdown.kind is Kind.ACTIVATED:
        return f"= {format_number(breakdown.total)}  of  {_format_sum(breakdown)[2:]}"
    if breakdown.kind is Kind.SHARE and breakdown.chosen is not None:
        own = float(breakdown.terms.products[breakdown.chosen])
        whole = float(breakdown.terms.products.sum())
        return f"= {format_number(own)} / {format_number(whole)}"
    if breakdown.kind is Kind.NORMALISED:
        return _format_normalised(breakdown)
    return _format_sum(breakdown)


def _format_normalised(breakdown: Breakdown) -> str:
    factors = [format_number(float(each.values[0])) for each in breakdown.terms.factors]
    shift = breakdown.offset
    added = "" if shift is None else _signed(shift)
    return f"= {' · '.join(factors)} {added}".rstrip()


def _format_sum(breakdown: Breakdown) -> str:
    terms = breakdown.terms
    by_axis = len(terms.shape) > 1 and terms.shape[0] > 1
    sums = terms.partial_sums if by_axis else terms.products
    word = terms.axes[0] if by_axis or len(terms.axes) == 1 else "term"
    order = np.argsort(-np.abs(np.nan_to_num(sums)), kind="stable")
    shown = [f"{_signed(float(sums[at]))} ({word} {at})" for at in order[:_LARGEST].tolist()]
    if len(order) > _LARGEST:
        rest = float(sums[order[_LARGEST:]].sum())
        shown.append(f"{_signed(rest)} ({len(order) - _LARGEST} more)")
    if breakdown.offset is not None:
        shown.insert(0, f"{_signed(breakdown.offset)} ({breakdown.offset_name})")
    # A term is not torn apart where the line ends.
    text = " ".join([each.replace(" ", _TIED) for each in shown])
    first = text.removeprefix(f"+{_TIED}")
    return "= " + (MINUS + first[2:] if first.startswith(f"{MINUS}{_TIED}") else first)


def _signed(value: float) -> str:
    text = format_number(value)
    if text.startswith(MINUS):
        return f"{MINUS} {text[1:]}"
    return f"+ {text}"


def describe_check(provenance: Provenance) -> str:
    """Return the sum in float64 beside the engine's value."""
    if provenance.breakdown is None:
        return f"engine {provenance.dtype}  {provenance.value:.9g}".replace("-", MINUS)
    word = "sum" if provenance.kind is Kind.SUM else "value"
    rows = (
        (f"{word} float64", provenance.breakdown.total),
        (f"engine {provenance.dtype}", provenance.value),
    )
    return "\n".join([f"{name:<16}{value: .9g}" for name, value in rows]).replace("-", MINUS)


def describe_difference(provenance: Provenance) -> str:
    """Return the difference of the two, and how large it may be."""
    if provenance.breakdown is None:
        return ""
    difference, error = provenance.difference, provenance.breakdown.error
    mark = "✓" if provenance.agrees else "≠"
    stated = f"stated error {format_brief(error, 2)}" if error else "nothing is rounded"
    return f"{mark} difference {format_brief(difference, 2)} · {stated}"


def format_source(source: Source) -> str:
    """Format a region: ``8[0, 0:64, 30:33, 32:35]``."""
    if source.is_whole and source.size > 1:
        return f"{source.operand}, all of {format_shape(source.shape)}"
    parts = [
        str(each.start) if each.stop - each.start == 1 else f"{each.start}:{each.stop}"
        for each in source.box
    ]
    return f"{source.operand}[{', '.join(parts)}]"


def describe_field(source: Source) -> tuple[tuple[str, str], ...]:
    """Return what to say of a receptive field, as pairs of a name and a text."""
    names = _axis_names(len(source.box))
    parts = [
        f"{name} {each.start}–{each.stop - 1}"
        for name, each in zip(names, source.box, strict=True)
        if name
    ]
    lengths = [
        each.stop - each.start for name, each in zip(names, source.box, strict=True) if name
    ]
    sizes = [size for name, size in zip(names, source.shape, strict=True) if name]
    rows = [("Region", ", ".join(parts) or "the number")]
    if lengths:
        share = math.prod(lengths) / max(1, math.prod(sizes))
        field, whole = "×".join(map(str, lengths)), "×".join(map(str, sizes))
        text = f"{field} of {whole} · {format_share(share)}"
        rows.append(("Size", text))
    steps = [
        f"{name} {stride}, {offset}".replace("-", MINUS)
        for name, stride, offset in zip(names, source.stride, source.offset, strict=False)
        if name and stride is not None
    ]
    if steps:
        rows.append(("Stride, offset", " · ".join(steps)))
    return tuple(rows)


def _axis_names(count: int) -> tuple[str, ...]:
    """Return the names of the dimensions that a field extends in; ``""`` for the others."""
    if count >= 5:
        return (*[""] * (count - 3), "planes", "rows", "columns")
    if count >= 3:
        return (*[""] * (count - 2), "rows", "columns")
    return ("rows", "columns") if count == 2 else ("positions",) * count


def describe_guesses(field: ReceptiveField) -> str:
    """Say where regions are unknown; ``""`` if they are not."""
    through = f"Through {format_count(field.operators, 'operator')}."
    if not field.inputs:
        return f"{through} No input of the model has an influence."
    if not field.guessed:
        return through
    types = list(dict.fromkeys([each.type for each in field.guessed]))
    named = ", ".join(types[:3]) + (" and others" if len(types) > 3 else "")
    return f"{through} {named}: all inputs count, because their regions are unknown."


def describe_noise(check: FieldCheck) -> str:
    """Say what noise outside the field has changed."""
    if not check.changed:
        return "There is nothing outside the field."
    count = format_count(check.changed, "element")
    if check.is_same:
        return f"✓ noise in {count} outside the field: value unchanged"
    return (
        f"≠ noise in {count} outside the field: {format_number(check.value)} became "
        f"{format_number(check.again)}"
    )


def describe_weight(weights: npt.NDArray[np.float64]) -> str:
    """Say how close together the weight of positions is.

    Parameters
    ----------
    weights : ndarray of shape (H, W)
        Not negative.
    """
    total = float(weights.sum())
    if not total > 0:
        return "No position of the input has a weight here."
    row, column = (
        round(float((weights.sum(1 - axis) * np.arange(weights.shape[axis])).sum()) / total)
        for axis in (0, 1)
    )
    sums = np.zeros((weights.shape[0] + 1, weights.shape[1] + 1))
    sums[1:, 1:] = weights.cumsum(0).cumsum(1)
    for reach in range(max(weights.shape)):
        top, left = max(0, row - reach), max(0, column - reach)
        end, right = (
            min(place + reach + 1, size)
            for place, size in zip((row, column), weights.shape, strict=True)
        )
        inside = sums[end, right] - sums[top, right] - sums[end, left] + sums[top, left]
        if inside >= total / 2:
            return f"half within {end - top}×{right - left}"
    return f"half within {'×'.join(map(str, weights.shape))}"
