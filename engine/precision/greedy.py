"""The greedy choice of operators to keep in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.precision.loss import Loss

__all__ = ["Greedy", "GreedyStep"]


class GreedyStep(NamedTuple):
    """Operators that a step keeps in float32 or no longer keeps, and the loss after it."""

    added: tuple[int, ...]
    removed: tuple[int, ...]
    output: Loss


class Greedy:
    """A choice in progress.

    Parameters
    ----------
    output : Loss
        At the model's outputs with nothing kept.
    wanted : float
        Relative error.
    measure : callable
        Takes the indexes of the kept operators; returns the loss at the model's outputs.
    spent : callable
        True ends the choice before its next measurement.

    Attributes
    ----------
    kept : list of int
        In the order in which they were added.
    steps : list of GreedyStep
        The first keeps nothing.
    """

    def __init__(
        self,
        output: Loss,
        wanted: float,
        measure: Callable[[Sequence[int]], Loss],
        spent: Callable[[], bool],
    ) -> None:
        self._wanted, self._measure, self._spent = wanted, measure, spent
        self.kept: list[int] = []
        self.steps = [GreedyStep((), (), output)]

    @property
    def output(self) -> Loss:
        """The loss with the operators kept so far."""
        return self.steps[-1].output

    def add(self, groups: Iterable[Sequence[int]]) -> None:
        """Keep groups of operators, in this order, until the wanted error is reached."""
        for group in groups:
            if self.output.relative <= self._wanted or self._spent():
                return
            new = [index for index in group if index not in self.kept]
            if new:
                self.kept.extend(new)
                self.steps.append(GreedyStep(tuple(new), (), self._measure(self.kept)))

    def give_back(self) -> None:
        """Drop kept operators that are not needed, the last first."""
        if self.output.relative > self._wanted:
            return
        for index in reversed(self.kept.copy()):
            if self._spent():
                return
            fewer = [each for each in self.kept if each != index]
            output = self._measure(fewer)
            if output.relative <= self._wanted:
                self.kept = fewer
                self.steps.append(GreedyStep((), (index,), output))
