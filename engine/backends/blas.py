"""Threads of the BLAS that NumPy multiplies matrices with."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final

__all__ = ["one_blas_thread"]


@cache
def _libraries() -> tuple[Any, ...]:
    """Find the controllers of NumPy's own BLAS; looking for them takes milliseconds."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # then it keeps its threads, which costs nothing but time
        return ()
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple(library for library in found if "numpy" in library.filepath)


class _OneThread:
    """Keeps NumPy's BLAS on one thread while anybody, on any thread, wants that.

    The number belongs to the process: whoever comes last puts back what the first one found.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._holders:
                self._before = [library.get_num_threads() for library in _libraries()]
                for library in _libraries():
                    library.set_num_threads(1)
            self._holders += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._holders -= 1
            if not self._holders:
                for library, count in zip(_libraries(), self._before, strict=True):
                    library.set_num_threads(count)


one_blas_thread: Final = _OneThread()
