"""Pauses the cycle collector while many objects are made."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["collector_paused"]

_MANY: Final = 100_000  # objects, which take some 10 ms to collect
_IMMORTAL: Final = 1000  # maximum of Python's own objects, which 3.12 counts as frozen


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cycle collector while a graph grows.

    With 50 000 operators collecting took three quarters of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MANY and gc.get_freeze_count() < _IMMORTAL:
            # Move all of it to the oldest generation, or it is collected right after this.
            # Not for few objects, because old garbage is found late. Not if another part
            # keeps objects frozen, because this would thaw them.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
