"""Imports modules as Python does, without what PySide6 adds."""

from __future__ import annotations

import builtins
import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["plain_imports"]

# The one in C, unless it is replaced already.
_PLAIN: Final = importlib.__import__ if "shiboken6" in sys.modules else builtins.__import__


@contextmanager
def plain_imports() -> Iterator[None]:
    """Import by Python's own function meanwhile.

    PySide6 replaces it by one that reads the source of every module, to find those that switch
    its features on. None of ours does, nor pyqtgraph.
    """
    theirs, builtins.__import__ = builtins.__import__, _PLAIN
    try:
        yield
    finally:
        builtins.__import__ = theirs
