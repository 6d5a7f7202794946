"""Threads of the BLAS that NumPy multiplies matrices with."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["one_blas_thread"]


@cache
def _libraries() -> tuple[Any, ...]:
    """Find the controllers of NumPy's own BLAS; looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple(library for library in found if "numpy" in library.filepath)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's BLAS use one thread for a while."""
    before = [library.get_num_threads() for library in _libraries()]
    try:
        for library in _libraries():
            library.set_num_threads(1)
        yield
    finally:
        for library, count in zip(_libraries(), before, strict=True):
            library.set_num_threads(count)
