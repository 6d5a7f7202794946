"""Threads of the BLAS that NumPy multiplies matrices with."""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from threadpoolctl import LibController

__all__ = ["one_blas_thread"]


@cache
def _libraries() -> tuple[LibController, ...]:
    """Find the controllers of NumPy's own BLAS; looking for them takes milliseconds."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # then it keeps its threads, which costs nothing but time
        return ()
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple(library for library in found if "numpy" in library.filepath)


def _set_threads(library: LibController, count: int) -> None:
    """Set the number of threads for the process, from any thread.

    From threadpoolctl 3.8 on only the first thread that sets the number of an OpenBLAS may
    change it; other threads have no effect. Here a lock makes threads take turns.
    """
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(count)
    if release is not None:
        release()


class _OneThread:
    """Keeps NumPy's BLAS on one thread while any user, on any thread, needs that.

    The number of threads belongs to the process: the last user restores what the first found.
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
                    _set_threads(library, 1)
            self._holders += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._holders -= 1
            if not self._holders:
                for library, count in zip(_libraries(), self._before, strict=True):
                    _set_threads(library, count)


one_blas_thread: Final = _OneThread()
