"""Announces each kernel before it runs, for a supervisor of this process.

Native code may crash or never return, and a supervisor must know which operator and kernel it
was. So each kernel is announced right before it is compiled, tried by the autotuner, or run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Watcher = Callable[[str, str], None]

__all__ = ["announce", "watch"]

_watcher: Watcher | None = None


def watch(watcher: Watcher | None) -> None:
    """Set the one callback before each kernel of this process.

    Parameters
    ----------
    watcher : callable or None
        Takes the operator's name and the kernel's, e.g. ``onnxruntime/all-2``, or only the
        library's while its kernel is not chosen. Of fused operators it gets the first; the
        kernel's name lists the others. It is called on the computing thread and must be fast.
    """
    global _watcher  # noqa: PLW0603 - one for the process
    _watcher = watcher


def announce(operator: str, kernel: str) -> None:
    """Announce the next kernel and its operator."""
    if _watcher is not None:
        _watcher(operator, kernel)
