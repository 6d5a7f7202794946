"""What a difference that is born at an operator may come from, without a fault of it."""

from __future__ import annotations

import math
from functools import cache, partial
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
        aligned = self._aligned
        theirs = aligned.theirs(operand) if not born.note else None
        if theirs is None:
            return Status.ORIGIN, born.note
        span = Span.above(operand, aligned.is_shown)
        given = cache(aligned.given)  # reading a tensor may take longer than the operator

        def compute(
            twins: Sequence[RuntimeOperator], instead: Mapping[str, Value] | None = None
        ) -> Array | None:
            aligned.check_cancelled()

            def value(of: RuntimeOperand) -> Value:
                others = instead or {}
                return others[of.name] if of.name in others else given(of)

            found = aligned.as_numbers(operand, span.compute(value, twins))
            return found if isinstance(found, np.ndarray) else None

        ours = cache(partial(compute, ()))
        arguments = aligned.given_inputs(operator)
        quantised = [each for each in span.operators if is_quantized(each.params)]
        is_known = len(arguments) == len(operator.inputs)
        found = ours() if is_known or quantised else None
        if found is not None and is_known:
            ties = aligned.tolerances.float32
            if is_tie(operator, arguments, found, theirs, ties):
                return Status.TIE, "it takes another of several equal elements"
            reduced = self._in_16_bits and born.relative <= aligned.tolerances.float16
            if reduced and relative_distance(found, theirs) <= tolerance:
                return Status.FLOAT16_WEIGHTS, _IN_16_BITS
        if not quantised:
            known = aligned.known.weights.of_producer(operand)
            rounding = explain_by_float16(
                compute, ours, span.operators, known, theirs, tolerance, given
            )
            if rounding:
                return Status.FLOAT16_WEIGHTS, rounding
            weighted = [each for each in span.operators if "weight" in each.attributes]
            inputs = {each: given(each.inputs[0]) for each in weighted if each.inputs}
            rounding = explain_by_reference_int8(compute, inputs, known, theirs, tolerance)
            return (Status.INT8 if rounding else Status.ORIGIN), rounding
        inputs = {each: given(each.inputs[0]) for each in quantised if each.inputs}
        scale = aligned.requantised.get(operand.name)
        rounding = explain_by_int8(compute, inputs, theirs, tolerance, scale)
        # The kernel may err by more than the layer that explains it.
        own = relative_distance(found, theirs) if found is not None else math.inf
        if rounding and born.relative <= 2 * own + tolerance:
            return Status.INT8, rounding
        clipping = [find_clipping(each, array) for each, array in inputs.items()]
        return Status.ORIGIN, next(filter(None, clipping), "")


def _runs_in_16_bits(session: Session) -> bool:
    """Whether ncnn computes its own file, and stores numbers in 16 bits."""
    of_ncnn = any(each.type.startswith(PREFIX) for each in session.graph.operators[:1])
    options = NcnnOptions.parse(session.ncnn_options).enabled
    return of_ncnn and not options.isdisjoint({"fp16", "bf16"})
