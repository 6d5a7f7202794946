"""Pairs of tensors, ours and the reference's, and their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.statistics import statistics

if TYPE_CHECKING:
    from engine.comparison.matching import Match
    from engine.comparison.measures import Measures, Meter
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.statistics import TensorStatistics
    from engine.values import Array, ArrayMetadata

__all__ = ["Numbers", "Pair", "measure_pair"]


class Pair(NamedTuple):
    """Our value of an operand, and the reference's.

    Attributes
    ----------
    operator : RuntimeOperator
        The producer.
    operand : RuntimeOperand
    match : Match
    ours, theirs : ArrayMetadata or None
        In our layout; None where there is no tensor.
    numbers : Numbers
    reason : str
        Why they cannot be compared; ``""`` if they can.
    """

    operator: RuntimeOperator
    operand: RuntimeOperand
    match: Match
    ours: ArrayMetadata | None
    theirs: ArrayMetadata | None
    numbers: Numbers
    reason: str


class Numbers(NamedTuple):
    """The numbers of a pair; None where there is no tensor.

    Attributes
    ----------
    measures : Measures or None
        None also for other shapes.
    statistics, reference_statistics : TensorStatistics or None
    """

    measures: Measures | None
    statistics: TensorStatistics | None
    reference_statistics: TensorStatistics | None


def measure_pair(ours: Array | None, theirs: Array | None, meter: Meter) -> Numbers:
    """Measure what there is of a pair."""
    if ours is not None and theirs is not None and ours.shape == theirs.shape:
        return Numbers(*meter.measure(ours, theirs))
    return Numbers(
        None,
        statistics(ours) if ours is not None else None,
        statistics(theirs) if theirs is not None else None,
    )
