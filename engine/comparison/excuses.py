"""What a difference that is born at an operator may come from, without a fault of it."""

from __future__ import annotations

import math
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.float16_weights import explain_by_float16
from engine.comparison.int8_layers import (
    explain_by_int8,
    explain_by_reference_int8,
    find_clipping,
)
from engine.comparison.measures import relative_distance
from engine.comparison.rows import Status
from engine.comparison.spans import Span
from engine.comparison.ties import is_tie
from engine.ncnn.options import NcnnOptions
from engine.ncnn.types import PREFIX, is_quantized

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.comparison.aligned import Aligned
    from engine.comparison.aligning import Born
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["Excuses"]

_IN_16_BITS: Final = "ncnn stores numbers in 16 bits, as the options of the run have it"


class Excuses:
    """Tries ties, 16-bit numbers and int8 on the data.

    Parameters
    ----------
    aligned : Aligned
    """

    def __init__(self, aligned: Aligned) -> None:
        self._aligned = aligned
        self._in_16_bits = _runs_in_16_bits(aligned.session)

    def find(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        born: Born,
        tolerance: float,
    ) -> tuple[Status, str]:
        """Return the status and reason that excuse a difference, or those of an origin."""
        theirs = self._aligned.theirs(operand) if not born.note else None
        if theirs is None:
            return Status.ORIGIN, born.note
        trial = _Trial(self._aligned, operand, theirs, tolerance)
        excuse = self._find_by_own_result(operator, born, trial)
        if excuse is not None:
            return excuse
        quantised = [each for each in trial.span.operators if is_quantized(each.params)]
        if quantised:
            return self._find_in_our_int8(born, trial, quantised)
        return self._find_in_weights(trial)

    def _find_by_own_result(
        self, operator: RuntimeOperator, born: Born, trial: _Trial
    ) -> tuple[Status, str] | None:
        """Return what excuses a difference if the reference shows all that is read."""
        aligned = self._aligned
        arguments = aligned.given_inputs(operator)
        found = trial.ours() if len(arguments) == len(operator.inputs) else None
        if found is None:
            return None
        if is_tie(operator, arguments, found, trial.theirs, aligned.tolerances.float32):
            return Status.TIE, "it takes another of several equal elements"
        reduced = self._in_16_bits and born.relative <= aligned.tolerances.float16
        if reduced and relative_distance(found, trial.theirs) <= trial.tolerance:
            return Status.FLOAT16_WEIGHTS, _IN_16_BITS
        return None

    def _find_in_weights(self, trial: _Trial) -> tuple[Status, str]:
        """Try whether the reference has rounded the weights, or computes in int8."""
        known = self._aligned.known.weights.of_producer(trial.operand)
        operators = trial.span.operators
        rounding = explain_by_float16(
            trial.compute, trial.ours, operators, known, trial.theirs, trial.tolerance,
            trial.given,
        )  # fmt: skip
        if rounding:
            return Status.FLOAT16_WEIGHTS, rounding
        weighted = [each for each in operators if "weight" in each.attributes]
        rounding = explain_by_reference_int8(
            trial.compute, trial.inputs_of(weighted), known, trial.theirs, trial.tolerance
        )
        return (Status.INT8 if rounding else Status.ORIGIN), rounding

    def _find_in_our_int8(
        self, born: Born, trial: _Trial, quantised: Sequence[RuntimeOperator]
    ) -> tuple[Status, str]:
        """Try whether our layers in int8 explain it; an origin notes what they clip."""
        inputs = trial.inputs_of(quantised)
        scale = self._aligned.requantised.get(trial.operand.name)
        rounding = explain_by_int8(trial.compute, inputs, trial.theirs, trial.tolerance, scale)
        # The kernel may err by more than the layer that explains it.
        found = trial.ours()
        own = math.inf
        if found is not None and found.shape == trial.theirs.shape:
            own = relative_distance(found, trial.theirs)
        if rounding and born.relative <= 2 * own + trial.tolerance:
            return Status.INT8, rounding
        clipping = [find_clipping(each, array) for each, array in inputs.items()]
        return Status.ORIGIN, next(filter(None, clipping), "")


class _Trial:
    """Computes an operand again, from what the reference shows above it.

    Attributes
    ----------
    operand : RuntimeOperand
    span : Span
        The operators that are computed.
    theirs : ndarray
        The reference's value, in our layout.
    tolerance : float
    given : callable
        Returns the value that stands at an operand above the span.
    """

    def __init__(
        self, aligned: Aligned, operand: RuntimeOperand, theirs: Array, tolerance: float
    ) -> None:
        self._aligned = aligned
        self.operand, self.theirs, self.tolerance = operand, theirs, tolerance
        self.span = Span.above(operand, aligned.is_shown)
        self.given = cache(aligned.given)  # reading a tensor may take longer than the operator

    def ours(self) -> Array | None:
        """Return the operand as our model computes it; None if it is no tensor."""
        return self._ours

    @cached_property
    def _ours(self) -> Array | None:
        return self.compute(())

    def compute(
        self, twins: Sequence[RuntimeOperator], instead: Mapping[str, Value] | None = None
    ) -> Array | None:
        """Compute the operand with twins of operators, and other values at operands."""
        self._aligned.check_cancelled()
        others = instead or {}

        def value(of: RuntimeOperand) -> Value:
            return others[of.name] if of.name in others else self.given(of)

        found = self._aligned.as_numbers(self.operand, self.span.compute(value, twins))
        return found if isinstance(found, np.ndarray) else None

    def inputs_of(self, operators: Sequence[RuntimeOperator]) -> dict[RuntimeOperator, Value]:
        """Return the first input of each operator that has one."""
        return {each: self.given(each.inputs[0]) for each in operators if each.inputs}


def _runs_in_16_bits(session: Session) -> bool:
    """Whether ncnn computes its own file, and stores numbers in 16 bits."""
    of_ncnn = any(each.type.startswith(PREFIX) for each in session.graph.operators[:1])
    options = NcnnOptions.parse(session.ncnn_options).enabled
    return of_ncnn and not options.isdisjoint({"fp16", "bf16"})
