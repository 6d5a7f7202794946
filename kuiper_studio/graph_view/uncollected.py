"""Keeps the cycle collector from a large graph while it is open.

Collecting with 10 000 operators takes 70 ms, in the middle of a frame.
"""

from __future__ import annotations

import gc

from engine.collector import count_set_aside

__all__ = ["UncollectedGraph"]


class UncollectedGraph:
    """The open graph, whose objects the cycle collector may skip.

    Attributes
    ----------
    is_set_aside : bool
        Whether the collector skips it.
    """

    def __init__(self) -> None:
        self.is_set_aside = False
        self._leaves_garbage = False  # the graph before was large, and may be garbage now

    def set_aside(self) -> None:
        """Have the collector skip all objects that there are now, after it has collected."""
        if self._leaves_garbage:
            gc.collect()
            self._leaves_garbage = False
        count_set_aside()
        gc.freeze()
        self.is_set_aside = True

    def close(self, *, is_large: bool) -> None:
        """Have the collector look at all objects again: the graph may be garbage now."""
        if self.is_set_aside:
            self.is_set_aside = False
            gc.unfreeze()
        self._leaves_garbage |= is_large
