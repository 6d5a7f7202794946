"""Computes operators ahead of the walk, on another thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.comparison.aligning.state import Reading
from engine.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet
    from concurrent.futures import Future

    from engine.comparison.aligning.state import Sides, State
    from engine.comparison.aligning.values import Values
    from engine.comparison.matching import Match
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["Ahead"]

_MOST: Final = 8  # operators behind the one that the walk is at
_MOST_BYTES: Final = 64 << 20  # of results that wait for the walk


class _Computed(NamedTuple):
    """An operator that is computed ahead, and what it was computed from."""

    operator: RuntimeOperator
    readings: list[Reading]
    nbytes: int
    results: Future[tuple[tuple[Value, ...], str]]


class Ahead:
    """Computes operators that read what differs, from the tensors that names tell.

    The walk measures meanwhile. It takes a result only if it would have computed from the same
    tensors.

    Parameters
    ----------
    sides : Sides
    state : State
    values : Values
    known : callable
        Returns the match of an operand by hand or name, and the shape; None for none.
    """

    def __init__(
        self,
        sides: Sides,
        state: State,
        values: Values,
        known: Callable[[RuntimeOperand, Value], tuple[Match, tuple[int, ...]] | None],
    ) -> None:
        self._sides, self._state, self._values = sides, state, values
        self._known = known
        self._thread: ThreadPoolExecutor | None = None
        self._computed: dict[int, _Computed] = {}

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute ahead in a block, if there is a processor for another thread.

        Only in NumPy: other libraries may end the process, and the note of which operator they
        compute is for one thread.
        """
        is_limited = self._sides.session.memory_limit is not None
        if is_limited or not self._values.in_numpy or thread_count() < 2:
            yield
            return
        self._thread = ThreadPoolExecutor(1)
        try:
            yield
        finally:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
            self._computed.clear()

    def take(self, operator: RuntimeOperator) -> tuple[tuple[Value, ...], str] | None:
        """Return what `Values.compute` gives for an operator; None if it is not computed."""
        found = self._computed.pop(operator.index, None)
        if found is None:
            return None
        # No two threads compute the same operator, which prepares its weights once.
        is_dropped = found.results.cancel()
        results = None if is_dropped else found.results.result()
        readings = [self._state.reading_of(operand.name) for operand in operator.inputs]
        return results if readings == found.readings else None

    def go_on(self, operator: RuntimeOperator) -> None:
        """Begin to compute what follows an operator whose inputs differ from our run's."""
        self._drop_passed(operator)
        if self._thread is None or not any(map(self._differs, operator.inputs)):
            return
        differing = {operand.name for operand in operator.outputs}
        differing |= {o.name for each in self._computed.values() for o in each.operator.outputs}
        left = _MOST_BYTES - sum(each.nbytes for each in self._computed.values())
        start = operator.index + 1
        for following in self._sides.operators[start : start + _MOST]:
            if following.index in self._computed or not self._may_begin(following, differing):
                continue
            left -= self._begin(following, left, self._thread)
            if left <= 0:
                break
            differing.update(operand.name for operand in following.outputs)

    def _drop_passed(self, operator: RuntimeOperator) -> None:
        """Drop what the walk has passed by, as what it could not compute: it holds room."""
        for index in [each for each in self._computed if each <= operator.index]:
            self._computed.pop(index).results.cancel()

    def _may_begin(self, operator: RuntimeOperator, differing: AbstractSet[str]) -> bool:
        """Whether an operator reads what differs, and may run on another thread.

        A layer of the user may hold what only one thread at a time can use.
        """
        if operator.is_output or operator.random or operator.layer_file is not None:
            return False
        if any(map(self._differs, operator.inputs)):
            return True
        return not differing.isdisjoint(operand.name for operand in operator.inputs)

    def _differs(self, operand: RuntimeOperand) -> bool:
        """Whether an operand is known not to be the reference's in our run."""
        state, name = self._state, operand.name
        return state.is_matched(name) and name not in state.as_run

    def _begin(self, operator: RuntimeOperator, most: int, thread: ThreadPoolExecutor) -> int:
        """Begin to compute an operator; return the bytes that its results will take.

        Those of our run are as large. If they are more than `most`, it does not begin.
        """
        values = self._values
        readings = [self._expected(operand) for operand in operator.inputs]
        runs = [values.tensor_of_run(operand.name) for operand in operator.outputs]
        known = [each for each in readings if each is not None]
        if not readings or len(known) < len(readings) or any(run is None for run in runs):
            return 0
        nbytes = sum(run.nbytes for run in runs if run is not None)
        if nbytes > most:
            return nbytes
        pairs = zip(operator.inputs, known, strict=True)
        arguments = [values.read(operand.name, reading) for operand, reading in pairs]
        if any(each is None for each in arguments):
            return 0
        # In the caller's context, to which belongs how invalid numbers are treated.
        work = thread.submit(copy_context().run, values.compute, operator, arguments)
        self._computed[operator.index] = _Computed(operator, known, nbytes, work)
        return nbytes

    def _expected(self, operand: RuntimeOperand) -> Reading | None:
        """Return how the walk reads an operand, or probably will; None if names do not tell."""
        reading = self._state.reading_of(operand.name)
        if reading is not None:
            return reading
        run = self._values.tensor_of_run(operand.name)
        found = self._known(operand, run) if run is not None else None
        if found is None:
            return None
        match, shape = found
        reading = Reading(match.key, shape, match.layout)
        return reading if self._sides.is_plain(reading) else None
