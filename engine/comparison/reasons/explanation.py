"""Tries every alternative of an operator on the data, and ranks the reasons."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.comparison.reasons.biases import inner_biases
from engine.comparison.reasons.borders import other_borders, other_sizes
from engine.comparison.reasons.case import make_case
from engine.comparison.reasons.constant_weights import in_own_words
from engine.comparison.reasons.discrepancy import arrays_of
from engine.comparison.reasons.expressions import other_arithmetic, other_expressions
from engine.comparison.reasons.indices import other_indices, other_regions
from engine.comparison.reasons.normalizing import other_normalizations
from engine.comparison.reasons.operands import (
    activated_gates,
    input_affine,
    opposite_masks,
    other_input_activation,
    other_input_layout,
    other_input_order,
)
from engine.comparison.reasons.parameters import (
    other_corners,
    other_epsilons,
    other_numbers,
    other_ranges,
    other_shapes,
    other_values,
)
from engine.comparison.reasons.precision import other_precision
from engine.comparison.reasons.reason import Change, Reason
from engine.comparison.reasons.reductions import other_reductions
from engine.comparison.reasons.resized_inputs import other_input_resizing
from engine.comparison.reasons.results import (
    other_activation,
    other_bias,
    other_channel_order,
    other_layout,
    other_scale,
)
from engine.comparison.reasons.rewiring import (
    exchanged_factors,
    exchanged_results,
    lost_gates,
    other_operands,
    unequal_copies,
    weights_of_others,
)
from engine.comparison.reasons.sampling import make_preview
from engine.comparison.reasons.sliding import other_groups, other_windows
from engine.comparison.reasons.teacher_forcing import wrong_units
from engine.comparison.reasons.weight_layouts import other_layouts
from engine.comparison.reasons.weight_values import (
    differing_weights,
    reference_weights,
    solved_weights,
)
from engine.values import materialise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.comparison.reasons.case import Alternative, Case
    from engine.comparison.reasons.tails import Tail
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = ["Explanation", "explain", "find_explanation"]

Hypothesis = Callable[["Case"], Iterator["Alternative"]]

# Hypotheses, simplest first: of equal shares the first wins.
_OF_SETTINGS: Final[tuple[Hypothesis, ...]] = (
    unequal_copies,
    reference_weights,
    other_windows,
    other_borders,
    other_sizes,
    other_groups,
    other_arithmetic,
    other_values,
    other_shapes,
    other_ranges,
    other_indices,
    other_regions,
    other_corners,
    other_epsilons,
    other_normalizations,
    other_reductions,
    other_expressions,
    other_numbers,
)
_OF_RESULTS: Final[tuple[Hypothesis, ...]] = (
    lost_gates,
    activated_gates,
    exchanged_factors,
    exchanged_results,
    opposite_masks,
    other_bias,
    other_activation,
    other_scale,
    other_channel_order,
    other_layout,
    other_input_order,
    other_layouts,
    other_input_layout,
    other_input_activation,
    other_operands,
    weights_of_others,
    other_precision,
    input_affine,
    solved_weights,
    inner_biases,
    differing_weights,
    wrong_units,
)
_HYPOTHESES: Final = (*_OF_SETTINGS, *_OF_RESULTS)
_OF_INPUTS: Final[tuple[Hypothesis, ...]] = (
    other_input_order,
    other_input_layout,
    input_affine,
    other_input_resizing,
)
# Those that see most in what is given to a fused activation.
_BEFORE_ACTIVATION: Final[frozenset[Hypothesis]] = frozenset(
    {other_bias, other_scale, solved_weights, differing_weights}
)
_TRIED: Final = MappingProxyType(
    {
        "all": _HYPOTHESES,
        "settings": _OF_SETTINGS,
        "results": _OF_RESULTS,
        "inputs": _OF_INPUTS,
    }
)
_EXACT: Final = 1 - 1e-9  # share of a setting that others cannot beat
_WHOLE: Final = 0.9999  # share from which nothing is left to explain
_PART: Final = 0.3  # share from which an alternative may be one of two faults
_MOST_PARTS: Final = 4
_MOST_REASONS: Final = 5
_FEW_FITTED: Final = 16  # numbers that are no evidence against an explanation
_PER_FITTED: Final = 32  # nor are more of them, if each explains so many elements


class _Found(NamedTuple):
    """An alternative with the share that it explains.

    Attributes
    ----------
    share : float
    alternative : Alternative
    """

    share: float
    alternative: Alternative


class Explanation(NamedTuple):
    """Why an operator's result differs.

    Attributes
    ----------
    reasons : tuple of Reason
        As `explain` returns them.
    likelihood : int
        Tells apart operators that explain as much, by their first reasons: 4 for a setting,
        weight or order of joined operands of the operator, 3 if a few numbers were fitted for
        it, 2 for a function of the result, 1 for one of the inputs, 0 if many numbers were
        fitted to few elements.
    corrected : callable or None
        Computes what our operator gives with the first reason removed; None if no reason
        explains the difference alone.
    inputs : callable or None
        Returns the inputs with the first reason removed; None as for `corrected`.
    at : RuntimeOperator or None
        The operator above that the first reason is one of; None for our operator.
    """

    reasons: tuple[Reason, ...] = ()
    likelihood: int = 0
    corrected: Callable[[], Value] | None = None
    inputs: Callable[[], Sequence[Value]] | None = None
    at: RuntimeOperator | None = None


def explain(
    operator: RuntimeOperator,
    inputs: Sequence[Value],
    expected: Value,
    *,
    ours: Value = None,
    reference_weights: Mapping[str, Array] | None = None,
    check_cancelled: Callable[[], None] | None = None,
    tail: Tail | None = None,
) -> tuple[Reason, ...]:
    """Find out why an operator's result differs from a reference's.

    Parameters
    ----------
    operator : RuntimeOperator
        Our operator; not changed.
    inputs : sequence of Value
        The reference's inputs, one per operand.
    expected : Value
        The reference's result: the first output, or a tuple of all of them; with a tail, the
        tensor that it ends with.
    ours : Value, optional
        Our result on these inputs; computed in NumPy without.
    reference_weights : mapping of str to ndarray, optional
        The reference's weights by our names, if they are known.
    check_cancelled : callable, optional
        Called between alternatives; raises to stop.
    tail : Tail, optional
        The operators that follow ours, if the reference shows only their result.

    Returns
    -------
    tuple of Reason
        At most one of each kind, by the share that it explains, the simpler first at ties.
        Empty if the difference is rounding, if nothing explains it, and for an operator that
        draws random numbers.
    """
    case = make_case(
        operator, inputs, expected, ours=ours, reference_weights=reference_weights,
        check_cancelled=check_cancelled, tail=tail,
    )  # fmt: skip
    return find_explanation(case).reasons


@np.errstate(all="ignore")  # NaN and inf are results here
def find_explanation(case: Case | None, tried: str = "all") -> Explanation:
    """Find out why an operator's result differs, and what it would be without that.

    Parameters
    ----------
    case : Case or None
        The operator beside what the reference has, as `make_case` returns it.
    tried : {"all", "settings", "results", "inputs"}
        Which alternatives: all, also two at once; only those of parameters; all others; only
        those of the model's inputs.

    Returns
    -------
    Explanation
        Empty where `explain` returns nothing.
    """
    if case is None or case.expected is None or case.discrepancy.is_rounding:
        return Explanation()
    claimed, parts = _try_all(case, _TRIED[tried])
    if claimed:
        first = min(claimed, key=_rank).alternative
        return Explanation(
            _ranked(claimed),
            _likelihood(case, first),
            partial(case.corrected, first),
            partial(case.corrected_inputs, first),
            first.at,
        )
    for part in parts[:_MOST_PARTS] if tried == "all" else ():
        both = _with_second(case, part)
        if both:
            return Explanation(both)
    linear = case.as_linear if tried in {"all", "results"} else None
    if linear is None or case.product is None:
        return Explanation()
    found = find_explanation(linear, tried)
    return found._replace(reasons=in_own_words(found.reasons, case.product))


def _try_all(
    case: Case, hypotheses: tuple[Hypothesis, ...] = _HYPOTHESES
) -> tuple[list[_Found], list[_Found]]:
    """Return alternatives that explain the difference, and those that may explain part."""
    case = replace(case, preview=make_preview(case))
    claimed: list[_Found] = []
    parts: list[_Found] = []
    # With the right shape even a bad result is a part.
    least = _PART if case.discrepancy.is_comparable else -math.inf
    for alternative in itertools.chain.from_iterable(_found(case, h) for h in hypotheses):
        share = case.share(alternative)
        if share >= alternative.least:
            claimed.append(_Found(share, alternative))
            if share >= (_WHOLE if alternative.fitted else _EXACT):
                break
        elif share >= least and alternative.runs and not alternative.fitted:
            parts.append(_Found(share, alternative))
    parts.sort(key=lambda found: -found.share)
    return claimed, parts


def _found(case: Case, hypothesis: Hypothesis) -> Iterator[Alternative]:
    """Return the alternatives of a hypothesis, which may look before a fused activation."""
    inner = case.before_activation if hypothesis in _BEFORE_ACTIVATION else None
    for alternative in hypothesis(case if inner is None else inner):
        if inner is None:
            yield alternative
        else:
            yield replace(alternative, result=case.activate(alternative.result))


def _with_second(case: Case, first: _Found) -> tuple[Reason, ...]:
    """Return two reasons that together explain the difference, or none."""
    rest = case.with_changes(first.alternative)
    if not rest.discrepancy.is_comparable or rest.discrepancy.is_rounding:
        return ()
    claimed, _ = _try_all(rest)
    whole = [found for found in claimed if found.share >= _WHOLE]
    if not whole or whole[0].alternative.kind == first.alternative.kind:
        return ()
    second = _Found(1 - first.share, whole[0].alternative)
    if not case.discrepancy.is_comparable:
        first = _Found(1.0, first.alternative)
    return _ranked([first, second])


def _likelihood(case: Case, alternative: Alternative) -> int:
    """Return how likely the operator is to blame; see `Explanation`."""
    elements = sum(array.size for array in arrays_of(case.expected))
    if alternative.fitted > max(_FEW_FITTED, elements // _PER_FITTED):
        return 0
    names = {change.name for change in alternative.changes}
    settings = {*case.params, *case.weights, *alternative.params, *alternative.weights}
    settings.add("operands")  # of a join, whose order is as much its own
    if alternative.type or names & settings or settings.intersection(alternative.params):
        return 3 if alternative.fitted else 4
    return 1 if alternative.has_other_inputs else 2


def _rank(found: _Found) -> tuple[float, bool]:
    is_fitted = found.alternative.fitted or found.alternative.solved
    exact = found.share >= _EXACT and not is_fitted
    return -round(found.share, 4), not exact


def _ranked(found: list[_Found]) -> tuple[Reason, ...]:
    """Return the best of each kind, by its share; the sort keeps the simpler first."""
    found = sorted(found, key=_rank)
    best: dict[str, Reason] = {}
    for share, alternative in found:
        changes = tuple([Change(c.name, materialise(c.value)) for c in alternative.changes])
        reason = Reason(alternative.kind, share, alternative.text, changes)
        best.setdefault(alternative.kind, reason)
    return tuple(itertools.islice(best.values(), _MOST_REASONS))
