"""Pairs of tensors, ours and the reference's, and their numbers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from engine.comparison.measures import Meter, relative_distance
from engine.statistics import statistics
from engine.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from types import TracebackType

    from engine.comparison.matching import Match
    from engine.comparison.measures import Measures
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.statistics import TensorStatistics
    from engine.values import Array, ArrayMetadata

__all__ = ["Numbers", "Pair", "PairMeter"]

_FEW: Final = 1 << 14  # elements that take no longer than to hand them to another thread
_MOST_HANDED: Final = 2  # pairs of the other thread, whose tensors stay in memory


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
    numbers : callable
        Returns the `Numbers`, perhaps when another thread has measured them.
    reason : str
        Why they cannot be compared; ``""`` if they can.
    """

    operator: RuntimeOperator
    operand: RuntimeOperand
    match: Match
    ours: ArrayMetadata | None
    theirs: ArrayMetadata | None
    numbers: Callable[[], Numbers]
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


class PairMeter:
    """Measures pairs on two threads.

    The other thread takes a pair unless it has enough to do. Otherwise, and for few elements,
    who asks measures it. Used as a context manager, whose end drops what is not measured yet.
    """

    def __init__(self) -> None:
        self._meter, self._other = Meter(), Meter()
        self._pool = ThreadPoolExecutor(1) if thread_count() > 1 else None
        self._handed: list[Future[Numbers]] = []
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended = True
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def arrange(self, session: Session) -> None:
        """Arrange a session's values on the other thread, before it measures.

        A library leaves them in its own layout until they are first read.
        """
        if self._pool is None or session.memory_limit is not None:
            return
        names = [o.name for operator in session.graph.operators for o in operator.outputs]

        def read() -> None:
            for name in names:
                if self._ended:
                    break
                if session.is_resident(name):
                    session.value(name)

        self._pool.submit(read)  # what it raises, the first reader of the value meets again

    def measure(self, ours: Array | None, theirs: Array | None) -> Callable[[], Numbers]:
        """Measure what there is of a pair."""
        handed = self.hand_over(ours, theirs)
        return handed or partial(_known, _measure(ours, theirs, self._meter))

    def measure_distance(
        self, ours: Array, theirs: Array
    ) -> tuple[float, Callable[[], Numbers]]:
        """Return `Measures.relative` of a pair of equal shapes at once, and all its numbers."""
        handed = self.hand_over(ours, theirs)
        if handed is not None:
            return relative_distance(ours, theirs), handed
        numbers = _measure(ours, theirs, self._meter)
        assert numbers.measures is not None  # noqa: S101 - of equal shapes
        return numbers.measures.relative, partial(_known, numbers)

    def hand_over(
        self, ours: Array | None, theirs: Array | None
    ) -> Callable[[], Numbers] | None:
        """Let the other thread measure a pair; None for few elements, or if it is busy."""
        size = sum(each.size for each in (ours, theirs) if each is not None)
        if self._pool is None or size < _FEW:
            return None
        self._handed = [each for each in self._handed if not each.done()]
        if len(self._handed) >= _MOST_HANDED:
            return None
        handed = self._pool.submit(_measure, ours, theirs, self._other)
        self._handed.append(handed)
        return handed.result


# NumPy warns of a signalling NaN, which a file may hold, when it converts it.
@np.errstate(invalid="ignore")
def _measure(ours: Array | None, theirs: Array | None, meter: Meter) -> Numbers:
    if ours is not None and theirs is not None and ours.shape == theirs.shape:
        return Numbers(*meter.measure(ours, theirs))
    return Numbers(
        None,
        statistics(ours) if ours is not None else None,
        statistics(theirs) if theirs is not None else None,
    )


def _known(numbers: Numbers) -> Numbers:
    return numbers
