"""Chooses operators to keep in float32 for a wanted error."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import SessionStateError
from engine.precision.formats import format_of
from engine.precision.greedy import Greedy
from engine.precision.lowered_runs import CancelledError, LoweredRuns
from engine.precision.simulation import PASSES, Simulation, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.precision.formats import Format, FormatName
    from engine.precision.loss import Loss
    from engine.runtime import OperatorLabel
    from engine.session import Session

__all__ = ["KeptOperators", "KeptStep", "choose_float32"]

_REPEATED: Final = 4  # runs of a choice with other last digits
_PARTS: Final = 1000  # that the progress counts


@dataclass(frozen=True, slots=True)
class KeptStep:
    """One step of the choice.

    Attributes
    ----------
    added, removed : tuple of OperatorLabel
        Operators that this step keeps in float32, or no longer keeps.
    output : Loss
        At the model's outputs, with all operators kept so far; the worst of its runs.
    """

    added: tuple[OperatorLabel, ...]
    removed: tuple[OperatorLabel, ...]
    output: Loss


@dataclass(frozen=True, slots=True)
class KeptOperators:
    """The choice of operators to keep in float32.

    Attributes
    ----------
    simulation : Simulation
        Of the format; it gives the order of the choice.
    wanted_error : float
    steps : tuple of KeptStep
        The first keeps nothing.
    kept : tuple of OperatorLabel
        In execution order.
    output : Loss
        Measured with these in float32 and all others in the format; the worst of several runs
        where sums are computed in other orders.
    spread : tuple of float
        Lowest and highest relative error of these runs: the last digits of sums differ, and so
        some numbers round to others.
    passes : float
        Total work, in passes of the model.
    cancelled : bool
    """

    simulation: Simulation
    wanted_error: float
    steps: tuple[KeptStep, ...] = field(repr=False)
    kept: tuple[OperatorLabel, ...]
    output: Loss
    spread: tuple[float, float]
    passes: float
    cancelled: bool = False

    @property
    def format(self) -> Format:
        """The format of all other operators."""
        return self.simulation.format

    @property
    def reached(self) -> bool:
        """Whether the error is at most the wanted one in each run."""
        return self.output.relative <= self.wanted_error


def choose_float32(
    session: Session,
    format: FormatName,  # noqa: A002 - the field's word
    wanted_error: float,
    passes: float = PASSES,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> KeptOperators:
    """Choose few operators to keep in float32 for a wanted error at the model's output.

    Greedy: the next operator is the one that does most harm alone, by `simulate_precision`. The
    error is measured after each, with at most one pass. A choice that seems to do runs a few
    times more, with other last digits of all sums, and its highest error counts. Where an
    output overflows the format, the operators that read it are kept too, because an operator in
    the format also reads its inputs in it. At the end each kept operator is dropped if the
    error allows it. The choice is small, but not always the smallest.

    Parameters
    ----------
    session : Session
        With inputs; not changed.
    format : {"float16", "bfloat16", "int8", "int8-per-channel"}
    wanted_error : float
        Relative: largest difference of an output, divided by the largest output.
    passes : float
        Most passes of the model, for the simulation and again for the choice, which may exceed
        them by the runs of its last measurement.
    progress, cancelled : callable, optional
        As for `simulate_precision`. The simulation is the first half of the progress; of the
        choice, which may end early, each pass counts.

    Returns
    -------
    KeptOperators
        With the reached error, which may be more than the wanted one, and its spread.

    Raises
    ------
    EngineError, SessionStateError, InferenceError
        As for `simulate_precision`, and if the work was cancelled before it began.
    """
    chosen = format_of(format)
    try:
        runs = LoweredRuns(session, cancelled)
    except CancelledError as exc:
        raise SessionStateError("cancelled before the model ran to its end") from exc

    def tell(share: float) -> None:
        if progress is not None:
            progress(round(_PARTS * share), _PARTS)

    simulation = simulate(runs, chosen, passes, lambda done, total: tell(done / total / 2))
    begun = runs.passes
    choice = _Choice(
        runs,
        simulation,
        wanted_error,
        begun + passes,
        lambda: tell(0.5 + min((runs.passes - begun) / max(passes, 1.0), 1.0) / 2),
    )
    ended = simulation.cancelled
    if not ended:
        try:
            choice.make()
        except CancelledError:
            ended = True
    return choice.result(cancelled=ended)


class _Choice:
    """A choice in progress.

    Parameters
    ----------
    runs : LoweredRuns
    simulation : Simulation
    wanted : float
    most : float
        Passes of `runs` at which to stop.
    advance : callable
        Called after each run.
    """

    def __init__(
        self,
        runs: LoweredRuns,
        simulation: Simulation,
        wanted: float,
        most: float,
        advance: Callable[[], None],
    ) -> None:
        self._runs, self._simulation = runs, simulation
        self._wanted, self._advance = wanted, advance
        self._of_index = {each.operator.index: each for each in simulation.operators}
        self._losses: dict[frozenset[int], list[Loss]] = {}
        self._spent = lambda: runs.passes >= most
        self._greedy = self._begin(simulation.output)

    def _begin(self, output: Loss) -> Greedy:
        return Greedy(output, self._wanted, self._measure, self._spent)

    def make(self) -> None:
        """Keep the most harmful operators, and drop those that are not needed."""
        if self._greedy.output.relative <= self._wanted:
            self._greedy = self._begin(self._measure(()))
        harmful = self._simulation.by_harm
        self._greedy.add(self._with_readers(each.operator.index) for each in harmful)
        self._greedy.give_back()
        self._repeat(self._greedy.kept, until=math.inf)

    def result(self, *, cancelled: bool) -> KeptOperators:
        """Return the choice so far."""
        losses = self._losses.get(frozenset(self._greedy.kept), [])
        output = max((*losses, self._greedy.output), key=_error)
        *steps, last = self._greedy.steps
        errors = [_error(loss) for loss in (*losses, output)]
        return KeptOperators(
            self._simulation,
            self._wanted,
            tuple(
                KeptStep(self._labels(step.added), self._labels(step.removed), step.output)
                for step in (*steps, last._replace(output=output))
            ),
            self._labels(sorted(self._greedy.kept)),
            output,
            (min(errors), max(errors)),
            self._runs.passes,
            cancelled,
        )

    def _measure(self, kept: Sequence[int]) -> Loss:
        """Return the worst loss of the runs of a choice; the first, where it is too much."""
        return max(self._repeat(kept, until=self._wanted), key=_error)

    def _repeat(self, kept: Sequence[int], until: float) -> Sequence[Loss]:
        """Run a choice with other last digits, until an error exceeds a number."""
        lowered = self._of_index.keys() - set(kept)
        losses = self._losses.setdefault(frozenset(kept), [])
        while len(losses) <= _REPEATED and all(_error(loss) <= until for loss in losses):
            noise = np.random.default_rng(len(losses)) if losses else None
            losses.append(self._runs.measure(lowered, self._simulation.format, noise=noise))
            self._advance()
        return losses

    def _labels(self, indexes: Iterable[int]) -> tuple[OperatorLabel, ...]:
        return tuple(self._of_index[index].operator for index in indexes)

    def _with_readers(self, first: int) -> list[int]:
        """Return an operator, and those whose inputs overflow if they read it in the format."""
        operators = self._runs.reference.graph.operators
        found, next_ones = [first], [first]
        while next_ones:
            index = next_ones.pop()
            outputs = self._of_index[index].outputs
            if outputs is None or outputs.headroom is None or outputs.headroom >= 1:
                continue
            for operand in operators[index].outputs:
                for reader in operand.consumers:
                    if reader.index in self._of_index and reader.index not in found:
                        found.append(reader.index)
                        next_ones.append(reader.index)
        return found


def _error(loss: Loss) -> float:
    return loss.relative
