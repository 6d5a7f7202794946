"""Explains the origins of a comparison, on the reference's own inputs."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons import diagnose_input, explain
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.comparison.reasons import Reason
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["Explainer"]

_MOST_EXPLAINED: Final = 8  # origins; after so many, the cause lies elsewhere
_SECONDS: Final = 10.0  # for each


class _SlowError(Exception):
    """Trying alternatives takes too long."""


class Explainer:
    """Tries why operators differ.

    Parameters
    ----------
    ours, theirs : callable
        Return our value of an operand, and the reference's in our layout; None if there is
        none.
    check_cancelled : callable
        Called between alternatives; an exception ends the comparison.
    """

    def __init__(
        self,
        ours: Callable[[RuntimeOperand], Value],
        theirs: Callable[[RuntimeOperand], Array | None],
        check_cancelled: Callable[[], None],
    ) -> None:
        self._ours, self._theirs = ours, theirs
        self._check_cancelled = check_cancelled
        self._known: dict[str, tuple[Reason, ...]] = {}
        self._deadline = math.inf

    def explain(self, operator: RuntimeOperator) -> tuple[Reason, ...]:
        """Return the reasons, best first; empty if no known one applies.

        Parameters
        ----------
        operator : RuntimeOperator
            An origin.
        """
        known = self._known.get(operator.name)
        if known is None:
            full = len(self._known) >= _MOST_EXPLAINED
            known = () if full or not operator.outputs else self._explain(operator)
            self._known[operator.name] = known
        return known

    def _explain(self, operator: RuntimeOperator) -> tuple[Reason, ...]:
        self._deadline = time.monotonic() + _SECONDS
        try:
            if operator.is_input:
                return self._diagnose_input(operator.outputs[0])
            inputs = [self._input(operand) for operand in operator.inputs]
            expected = self._expected(operator.outputs)
            if expected is None or any(value is None for value in inputs):
                return ()
            return explain(operator, inputs, expected, check_cancelled=self._check)
        except (_SlowError, EngineError):
            return ()

    def _diagnose_input(self, operand: RuntimeOperand) -> tuple[Reason, ...]:
        ours, theirs = self._ours(operand), self._theirs(operand)
        if not isinstance(ours, np.ndarray) or theirs is None:
            return ()
        return diagnose_input(ours, theirs, check_cancelled=self._check)

    def _input(self, operand: RuntimeOperand) -> Value:
        """Return the reference's value, or our constant where the reference shows none."""
        theirs = self._theirs(operand)
        constant = operand.producer is not None and operand.producer.is_constant
        return self._ours(operand) if theirs is None and constant else theirs

    def _expected(self, outputs: Sequence[RuntimeOperand]) -> Value:
        """Return the reference's first result, or all results if all are known."""
        found = [self._theirs(operand) for operand in outputs]
        if len(found) > 1 and all(value is not None for value in found):
            return tuple(found)
        return found[0]

    def _check(self) -> None:
        self._check_cancelled()
        if time.monotonic() > self._deadline:
            raise _SlowError
