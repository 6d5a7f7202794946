"""Making many objects at once without paying the cycle collector for each of them."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["collector_paused"]

_MANY: Final = 100_000  # objects, which take some 10 ms to walk over
_IMMORTAL: Final = (
    1000  # objects of Python's own at most, of which 3.12 says that they are frozen
)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cycle collector from walking again and again over a graph that only grows.

    With 50 000 operators that took three quarters of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MANY and gc.get_freeze_count() < _IMMORTAL:
            # Makes all of it old at once, or the first thing after this is to walk over it.
            # Not for a few: what is old and dead is long not looked for. Nor where somebody
            # keeps objects frozen, who would find them thawed.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
