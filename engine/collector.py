"""Says when the cycle collector runs: not while many objects are made, or when it is asked to.

Python collects on whatever thread makes an object. That is wrong for objects that only one
thread may destroy, as those of a window: `collect_on_request` leaves the choice to that thread.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "collect_due",
    "collect_on_request",
    "collector_paused",
    "count_set_aside",
    "is_due",
    "set_aside",
]

_MANY: Final = 100_000  # objects, which take some 10 ms to collect
_IMMORTAL: Final = 1000  # maximum of Python's own objects, which 3.12 counts as frozen
_YOUNG_PER_MIDDLE: Final = 10  # collections, as Python has it
_GROWTH: Final = 1.25  # of the memory in use, after which everything is collected


class _Collector:
    """What there is to know of the collector beside what `gc` knows.

    Attributes
    ----------
    pauses : int
        How many callers have paused it.
    on_request : bool
        Whether it runs in `collect_due` only.
    """

    def __init__(self) -> None:
        self.pauses = 0
        self.on_request = False
        self._lock = Lock()
        self._resumes = False  # after the last pause
        self._young = 0  # collections since older objects were looked at
        self._blocks = 0  # of memory in use, the least since everything was collected
        self._aside: int | None = _IMMORTAL  # objects that are frozen anyway, at most

    def pause(self) -> None:
        with self._lock:
            if not self.pauses:
                self._resumes = gc.isenabled()
                gc.disable()
            self.pauses += 1

    def resume(self) -> None:
        with self._lock:
            self.pauses -= 1
            if self.pauses or not (self._resumes or self.on_request):
                return
            self._age_many()
            if self._resumes:
                gc.enable()

    def switch(self, *, on_request: bool) -> None:
        with self._lock:
            self.on_request, self._resumes = on_request, not on_request
            if on_request:
                self._blocks = sys.getallocatedblocks()
                gc.disable()
            elif not self.pauses:
                gc.enable()

    def is_due(self, times: int) -> bool:
        is_allowed = self.on_request and not self.pauses
        return is_allowed and gc.get_count()[0] > times * gc.get_threshold()[0]

    def collect_due(self) -> None:
        if not self.is_due(1) or self._age_many():
            return
        self._young += 1
        if self._young <= _YOUNG_PER_MIDDLE:
            gc.collect(0)
            return
        self._young = 0
        # Not by `gc.get_objects`: it has the tuples, too, that other threads are making, and
        # these must have no other reference.
        blocks = sys.getallocatedblocks()
        if blocks <= self._blocks * _GROWTH:
            self._blocks = min(self._blocks, blocks)
            gc.collect(1)
        else:
            gc.collect()
            self._blocks = sys.getallocatedblocks()

    def set_aside(self) -> None:
        gc.freeze()
        self._aside = None  # counting them takes 8 ms, which a start need not wait for

    def count_set_aside(self) -> int:
        if self._aside is None:
            self._aside = gc.get_freeze_count() + _IMMORTAL
        return self._aside

    def _age_many(self) -> bool:
        """Move many young objects to the oldest generation; whether it did.

        Collecting them would take long. Not for few, because old garbage is found late. Not if
        another part keeps objects frozen, because this would thaw them.
        """
        is_many = gc.get_count()[0] > _MANY
        is_due = is_many and gc.get_freeze_count() < self.count_set_aside()
        if is_due:
            # Also what was set aside is then among the oldest.
            gc.freeze()
            gc.unfreeze()
        return is_due


_collector: Final = _Collector()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cycle collector while a graph grows.

    With 50 000 operators collecting took three quarters of the time.
    """
    _collector.pause()
    try:
        yield
    finally:
        _collector.resume()


def collect_on_request(*, on: bool = True) -> None:
    """Have cycles collected by `collect_due` only, on the thread that calls it.

    Parameters
    ----------
    on : bool
        False for any thread again, whenever Python finds it due.
    """
    _collector.switch(on_request=on)


def collect_due() -> None:
    """Collect cycles if as many objects were made as Python waits for.

    Does nothing while the collector is paused, or runs by itself.
    """
    _collector.collect_due()


def is_due(times: int = 1) -> bool:
    """Return whether `collect_due` would collect.

    Parameters
    ----------
    times : int
        How many times as many objects were made as Python waits for.
    """
    return _collector.is_due(times)


def set_aside() -> None:
    """Have the collector skip the objects that there are now, as those of a program's modules.

    They live as long as the program, and a full collection walked over them for two frames.
    """
    _collector.set_aside()


def count_set_aside() -> None:
    """Count what `set_aside` has frozen, before a part freezes objects of its own."""
    _collector.count_set_aside()
