"""What a running sweep tells, and how it is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import SweepError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Run"]


@dataclass(slots=True)
class Run:
    """The callbacks of a sweep.

    Attributes
    ----------
    total : int
        Number of inputs.
    progress : callable or None
        Takes the inputs that are done, and all.
    cancelled : callable or None
    note : callable or None
        Takes a sentence for the user.
    done : int
        Inputs that are done.
    """

    total: int
    progress: Callable[[int, int], None] | None = None
    cancelled: Callable[[], bool] | None = None
    note: Callable[[str], None] | None = None
    done: int = 0

    def advance(self, count: int) -> None:
        """Count inputs as done, and tell."""
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)

    def check(self) -> None:
        """Raise `SweepError` if the sweep was cancelled."""
        if self.cancelled is not None and self.cancelled():
            raise SweepError("the sweep was cancelled; what is finished is kept")

    def tell(self, sentence: str) -> None:
        """Tell the user something."""
        if self.note is not None:
            self.note(sentence)
