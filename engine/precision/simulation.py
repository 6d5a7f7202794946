"""Simulates formats of lower precision, operator by operator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from engine.precision.formats import format_of
from engine.precision.loss import LOST, Loss, Storage, measure_loss, measure_storage
from engine.precision.lowered_runs import CancelledError, LoweredRuns, RunFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.precision.formats import Format, FormatName
    from engine.runtime import OperatorLabel, RuntimeOperator
    from engine.session import Session
    from engine.values import Value

__all__ = ["PASSES", "OperatorPrecision", "Simulation", "simulate", "simulate_precision"]

PASSES: Final = 100.0
_STEPS_PER_OPERATOR: Final = 3  # alone, among all, and to the output


@dataclass(frozen=True, slots=True)
class OperatorPrecision:
    """An operator in a format.

    Attributes
    ----------
    operator : OperatorLabel
    weights, outputs : Storage or None
        How well the format can store them; None if it changes none.
    alone : Loss
        At the operator's own outputs, with only its weights and outputs in the format.
    at_output : Loss or None
        At the model's outputs, with only this operator in the format; None if not measured.
    cumulative : Loss
        At the operator's own outputs, with every operator up to it in the format.
    """

    operator: OperatorLabel
    weights: Storage | None
    outputs: Storage | None
    alone: Loss
    at_output: Loss | None = None
    cumulative: Loss = LOST

    @property
    def harm(self) -> tuple[float, float]:
        """Sort key: relative error at the model's output, then at its own."""
        at_output = self.at_output.relative if self.at_output is not None else -1.0
        return at_output, self.alone.relative


@dataclass(frozen=True, slots=True)
class Simulation:
    """A model in a format.

    Attributes
    ----------
    format : Format
    operators : tuple of OperatorPrecision
        In execution order.
    output : Loss
        At the model's outputs, with every operator in the format.
    passes : float
        Work in passes of the model, without the float32 pass.
    cancelled : bool
        Whether it was cancelled; unmeasured losses are then None or `LOST`.
    """

    format: Format
    operators: tuple[OperatorPrecision, ...] = field(repr=False)
    output: Loss
    passes: float
    cancelled: bool = False

    @property
    def by_harm(self) -> tuple[OperatorPrecision, ...]:
        """The operators, most harmful first."""
        return tuple(sorted(self.operators, key=lambda each: each.harm, reverse=True))


def simulate_precision(
    session: Session,
    formats: Sequence[FormatName] = ("float16", "bfloat16", "int8", "int8-per-channel"),
    passes: float = PASSES,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[Simulation, ...]:
    """Simulate storing weights and outputs in formats of lower precision.

    Operators compute in float32, with NumPy: only storage is rounded. For each format every
    operator runs once alone and once with all before it in the format; that is two passes of
    the model. Then the model runs from each operator to its output. In a chain this takes half
    a pass per operator.

    Parameters
    ----------
    session : Session
        With inputs; not changed. Its inputs, overrides and seed are used.
    formats : sequence of {"float16", "bfloat16", "int8", "int8-per-channel"}
        int8 is symmetric with the scale max|x| / 127.
    passes : float
        Most passes per format. The operators with the largest own errors run to the output
        first.
    progress : callable, optional
        Called with the number of steps done and their total, over all formats: each operator
        is run alone, among all, and to the output.
    cancelled : callable, optional
        Asked between operators; True ends the work.

    Returns
    -------
    tuple of Simulation
        One per format; those so far if the work was cancelled.

    Raises
    ------
    EngineError
        If there is no such format.
    SessionStateError
        If the session has no input.
    InferenceError
        If an operator fails in float32.
    """
    chosen = [format_of(name) for name in formats]
    found: list[Simulation] = []
    try:
        runs = LoweredRuns(session, cancelled)
    except CancelledError:
        return ()
    for place, each in enumerate(chosen):

        def tell(done: int, total: int, place: int = place) -> None:
            if progress is not None:
                progress(place * total + done, len(chosen) * total)

        found.append(simulate(runs, each, passes, tell))
        runs.forget_weights()
        if found[-1].cancelled:
            break
    return tuple(found)


def simulate(
    runs: LoweredRuns,
    format: Format,  # noqa: A002 - the field's word
    passes: float,
    progress: Callable[[int, int], None],
) -> Simulation:
    """Simulate one format; see `simulate_precision`."""
    before, steps = runs.passes, count(1)
    total = _STEPS_PER_OPERATOR * len(runs.operators)

    def advance() -> None:
        progress(next(steps), total)

    found: dict[int, OperatorPrecision] = {}
    output, cancelled = LOST, False
    try:
        for operator in runs.operators:
            found[operator.index] = _measure_alone(runs, operator, format)
            advance()
        output = _measure_cumulative(runs, format, found, advance)
        _measure_at_output(runs, format, found, before + passes, advance)
    except CancelledError:
        cancelled = True
    return Simulation(format, tuple(found.values()), output, runs.passes - before, cancelled)


def _measure_alone(
    runs: LoweredRuns,
    operator: RuntimeOperator,
    format: Format,  # noqa: A002
) -> OperatorPrecision:
    exact = runs.outputs_of(operator)
    pairs = list(runs.rounded_weights(operator, format).values())
    weights = None
    if pairs:
        before, after = zip(*pairs, strict=True)
        weights = measure_storage(before, after, format)
    outputs = runs.measure_outputs(operator, format)
    try:
        alone = measure_loss(runs.run_alone(operator, format), exact)
    except RunFailedError:
        alone = LOST
    return OperatorPrecision(operator.label, weights, outputs, alone)


def _measure_cumulative(
    runs: LoweredRuns,
    format: Format,  # noqa: A002
    found: dict[int, OperatorPrecision],
    advance: Callable[[], None],
) -> Loss:
    def visit(operator: RuntimeOperator, values: Sequence[Value]) -> None:
        if operator.index in found:
            advance()
            loss = measure_loss(values, runs.outputs_of(operator))
            found[operator.index] = replace(found[operator.index], cumulative=loss)

    return runs.measure(set(found), format, visit)


def _measure_at_output(
    runs: LoweredRuns,
    format: Format,  # noqa: A002
    found: dict[int, OperatorPrecision],
    most: float,
    advance: Callable[[], None],
) -> None:
    """Run operators to the output, most harmful first, within a number of passes."""
    ordered = sorted(found, key=lambda index: found[index].alone.relative, reverse=True)
    for index in ordered:
        if runs.passes >= most:
            return
        loss = runs.measure({index}, format, reading=False)
        found[index] = replace(found[index], at_output=loss)
        advance()
