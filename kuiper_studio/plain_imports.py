"""Imports modules as Python does, without what PySide6 adds.

PySide6 replaces Python's import by a function that reads the source of every module, to find
those that switch its features on. None of ours does, nor pyqtgraph.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["import_plainly", "plain_imports"]

# The one in C, unless it is replaced already.
_PLAIN: Final = importlib.__import__ if "shiboken6" in sys.modules else builtins.__import__


def import_plainly() -> None:
    """Import by Python's own function from now on; for a program that is ours alone."""
    importlib.import_module("PySide6.QtCore")  # which would replace it later
    builtins.__import__ = _PLAIN


@contextmanager
def plain_imports() -> Iterator[None]:
    """Import by Python's own function meanwhile."""
    theirs, builtins.__import__ = builtins.__import__, _PLAIN
    try:
        yield
    finally:
        builtins.__import__ = theirs
