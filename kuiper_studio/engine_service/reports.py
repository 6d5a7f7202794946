"""Reports the steps of a run in bundles, so that the window repaints at regular intervals."""

from __future__ import annotations

import math
import time
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.session import StepRecord

__all__ = ["SECONDS_BETWEEN_REPORTS", "Reports"]

# Interval of record bundles during a free run; the window repaints as often.
SECONDS_BETWEEN_REPORTS: Final = 1 / 10


class Reports:
    """Reports records in bundles at regular intervals.

    Parameters
    ----------
    report : callable
        Called with the number of the run and records, on the running thread or on another,
        never on both at once.
    """

    def __init__(self, report: Callable[[int, Sequence[StepRecord]], None]) -> None:
        self._report = report
        self._run_id = 0
        self._bundle: list[StepRecord] = []
        self._due = math.inf  # when to report the bundle
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._watch, name="reports", daemon=True)
        self._thread.start()

    def begin(self, run_id: int) -> None:
        """Begin a run."""
        self._run_id = run_id

    def add(self, record: StepRecord) -> None:
        """Add a record."""
        with self._changed:
            self._bundle.append(record)
            if self._due == math.inf:
                self._due = time.monotonic() + SECONDS_BETWEEN_REPORTS
                self._changed.notify()

    def take(self) -> list[StepRecord]:
        """Return the records that have not been reported, and clear them."""
        with self._changed:
            bundle, self._bundle = self._bundle, []
            self._due = math.inf
            return bundle

    def flush(self) -> None:
        """Report the current bundle."""
        with self._changed:
            bundle = self.take()
            if bundle:
                self._report(self._run_id, bundle)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _watch(self) -> None:
        """Report a bundle that is due while an operator is still running."""
        with self._changed:
            while not self._closed:
                remaining = self._due - time.monotonic()
                if remaining <= 0:
                    self.flush()
                else:
                    self._changed.wait(None if remaining == math.inf else remaining)
