"""Finds two results that what follows reads in each other's place, as queries and values.

Each reader alone looks wrong, and correcting one of them explains nothing.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.measures import relative_distance
from engine.comparison.reasons import Change, Reason
from engine.cost import cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.comparison.spans import Span
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["find_crossed"]

_MOST: Final = 28  # pairs
_SAME: Final = 1e-4  # relative distance


def find_crossed(
    span: Span,
    values: Callable[[RuntimeOperand], Value],
    expected: Value,
    spend: Callable[[float], None],
) -> tuple[RuntimeOperator, Reason] | None:
    """Return the first reader of exchanged results, and the reason; None if none are.

    Parameters
    ----------
    span : Span
        Whose end differs.
    values : callable
        Returns the reference's value of an operand.
    expected : Value
        The reference's value of the end.
    spend : callable
        Takes the number of operations of each trial; raises if they are too many.
    """
    work = float(sum(cost(operator).macs for operator in span.operators))
    for one, other in itertools.islice(_pairs(span, values), _MOST):
        spend(work)
        found = span.compute(partial(_value_of, {one.name: other, other.name: one}, values))
        if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
            continue
        if found.shape == expected.shape and relative_distance(found, expected) <= _SAME:
            reader = next(o for o in span.operators if one in o.inputs or other in o.inputs)
            return reader, _reason(one, other)
    return None


def _value_of(
    exchanged: Mapping[str, RuntimeOperand],
    values: Callable[[RuntimeOperand], Value],
    operand: RuntimeOperand,
) -> Value:
    return values(exchanged.get(operand.name, operand))


def _pairs(
    span: Span, values: Callable[[RuntimeOperand], Value]
) -> Iterator[tuple[RuntimeOperand, RuntimeOperand]]:
    """Yield results of one shape that the span reads."""
    for one, other in itertools.combinations(span.starts, 2):
        first, second = values(one), values(other)
        if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
            continue
        if first.shape == second.shape and first.dtype == second.dtype:
            yield one, other


def _reason(one: RuntimeOperand, other: RuntimeOperand) -> Reason:
    names = " and ".join(f"'{o.producer.name if o.producer else o.name}'" for o in (one, other))
    return Reason(
        "expression", 1.0,
        f"The reference has {names} exchanged: what reads one of them here should read the "
        "other. Exchange their readers.",
        (Change("operands", (one.name, other.name)),),
    )  # fmt: skip
