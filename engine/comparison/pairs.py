"""Measures pairs of tensors, ours and the reference's, on several threads."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.comparison.measures import measure
from engine.statistics import statistics
from engine.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    from engine.comparison.matching import Match
    from engine.comparison.measures import Measures
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.statistics import TensorStatistics
    from engine.values import Array

__all__ = ["Numbers", "Pair", "measure_all"]

_MOST_THREADS: Final = 4  # more only wait for memory, and each holds a pair
_SMALL: Final = 1 << 14  # elements that are measured before a thread would have begun


class Pair(NamedTuple):
    """Our value of an operand, and the reference's.

    Attributes
    ----------
    operator : RuntimeOperator
        The producer.
    operand : RuntimeOperand
    match : Match
    ours, theirs : ndarray or None
        In our layout; None where there is none.
    reason : str
        Why they cannot be compared; ``""`` if they can.
    """

    operator: RuntimeOperator
    operand: RuntimeOperand
    match: Match
    ours: Array | None
    theirs: Array | None
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


def measure_all(pairs: Iterable[Pair]) -> Iterator[tuple[Pair, Numbers]]:
    """Measure pairs, and yield them in their order.

    Parameters
    ----------
    pairs : iterable of Pair
        Made on the calling thread, a few ahead of what is yielded.
    """
    threads = min(_MOST_THREADS, thread_count())
    if threads < 2:
        yield from ((pair, _measure(pair)) for pair in pairs)
        return
    waiting: deque[tuple[Pair, Future[Numbers] | None]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for pair in pairs:
            small = pair.ours is None or pair.ours.size < _SMALL
            waiting.append((pair, None if small else pool.submit(_measure, pair)))
            if len(waiting) > threads:
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())


def _finished(pair: Pair, future: Future[Numbers] | None) -> tuple[Pair, Numbers]:
    return pair, _measure(pair) if future is None else future.result()


def _measure(pair: Pair) -> Numbers:
    ours, theirs = pair.ours, pair.theirs
    measures = None
    # NumPy warns of a signalling NaN; what it ignores, each thread has for itself.
    with np.errstate(invalid="ignore"):
        if ours is not None and theirs is not None and ours.shape == theirs.shape:
            measures = measure(ours, theirs)
        return Numbers(
            measures,
            statistics(ours, threads=1) if ours is not None else None,
            statistics(theirs, threads=1) if theirs is not None else None,
        )
