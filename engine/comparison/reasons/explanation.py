"""Tries every alternative of an operator on the data, and ranks those that explain."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.comparison.reasons.case import make_case
from engine.comparison.reasons.expressions import other_arithmetic, other_expressions
from engine.comparison.reasons.normalizing import other_normalizations
from engine.comparison.reasons.operands import (
    input_affine,
    other_input_layout,
    other_input_order,
)
from engine.comparison.reasons.parameters import other_epsilons, other_numbers, other_values
from engine.comparison.reasons.precision import other_precision
from engine.comparison.reasons.reason import Reason
from engine.comparison.reasons.results import (
    other_activation,
    other_bias,
    other_channel_order,
    other_layout,
    other_scale,
)
from engine.comparison.reasons.sliding import other_groups, other_windows
from engine.comparison.reasons.weight_layouts import other_layouts
from engine.comparison.reasons.weight_values import reference_weights, solved_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from engine.comparison.reasons.case import Alternative, Case
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = ["explain"]

# What may be wrong, the simplest first: a later one of equal share is not better.
_HYPOTHESES: Final[tuple[Callable[[Case], Iterator[Alternative]], ...]] = (
    reference_weights,
    other_windows,
    other_groups,
    other_arithmetic,
    other_values,
    other_epsilons,
    other_normalizations,
    other_expressions,
    other_bias,
    other_activation,
    other_numbers,
    other_scale,
    other_channel_order,
    other_layout,
    other_input_order,
    other_input_layout,
    other_layouts,
    other_precision,
    input_affine,
    solved_weights,
)
_WHOLE: Final = 0.9999  # share from which nothing is left to explain
_PART: Final = 0.3  # share from which an alternative may be one of two faults
_MOST_PARTS: Final = 3
_MOST_REASONS: Final = 5


class _Found(NamedTuple):
    """An alternative with the share that it explains.

    Attributes
    ----------
    share : float
    alternative : Alternative
    """

    share: float
    alternative: Alternative


def explain(
    operator: RuntimeOperator,
    inputs: Sequence[Value],
    expected: Value,
    *,
    ours: Value = None,
    reference_weights: Mapping[str, Array] | None = None,
    check_cancelled: Callable[[], None] | None = None,
) -> tuple[Reason, ...]:
    """Find out why an operator's result differs from a reference's.

    Parameters
    ----------
    operator : RuntimeOperator
        Ours. It is not changed.
    inputs : sequence of Value
        The reference's inputs, one per operand.
    expected : Value
        The reference's result: the first output, or a tuple of all of them.
    ours : Value, optional
        Our result on these inputs; computed in NumPy without.
    reference_weights : mapping of str to ndarray, optional
        The reference's weights by our names, where they are known.
    check_cancelled : callable, optional
        Called between alternatives; raises to stop.

    Returns
    -------
    tuple of Reason
        At most one of each kind, by the share that it explains, the simpler first at ties.
        Empty if the difference is rounding, if nothing explains it, and for an operator that
        draws random numbers.
    """
    case = make_case(
        operator, inputs, expected, ours=ours,
        reference_weights=reference_weights, check_cancelled=check_cancelled,
    )  # fmt: skip
    if case is None or expected is None or case.discrepancy.is_rounding:
        return ()
    claimed, parts = _try_all(case)
    if claimed:
        return _ranked(claimed)
    for part in parts[:_MOST_PARTS]:
        both = _with_second(case, part)
        if both:
            return both
    return ()


def _try_all(case: Case) -> tuple[list[_Found], list[_Found]]:
    """Return what explains the difference, and what may explain a part of it."""
    claimed: list[_Found] = []
    parts: list[_Found] = []
    for alternative in itertools.chain.from_iterable(h(case) for h in _HYPOTHESES):
        share = case.share(alternative)
        if share >= alternative.least:
            claimed.append(_Found(share, alternative))
            if share >= _WHOLE:
                break
        elif share >= _PART and alternative.runs and not alternative.fitted:
            parts.append(_Found(share, alternative))
    parts.sort(key=lambda found: -found.share)
    return claimed, parts


def _with_second(case: Case, first: _Found) -> tuple[Reason, ...]:
    """Return two reasons that explain the difference together, or nothing."""
    rest = case.with_changes(first.alternative)
    if rest.discrepancy.is_rounding:
        return ()
    claimed, _ = _try_all(rest)
    whole = [found for found in claimed if found.share >= _WHOLE]
    if not whole:
        return ()
    second = _Found(1 - first.share, whole[0].alternative)
    if second.alternative.kind == first.alternative.kind:
        return ()
    return _ranked([first, second])


def _ranked(found: list[_Found]) -> tuple[Reason, ...]:
    """Return the best of each kind, by its share; the sort keeps the simpler first."""
    found = sorted(found, key=lambda one: -round(one.share, 3))
    best: dict[str, Reason] = {}
    for share, alternative in found:
        reason = Reason(alternative.kind, share, alternative.text, alternative.changes)
        best.setdefault(alternative.kind, reason)
    return tuple(itertools.islice(best.values(), _MOST_REASONS))
