"""What is about to run, for whoever supervises this process.

Native code may end the process, or never come back. Whoever watches from outside has to know
which operator and kernel it was. So each is announced right before it is entered: when it is
compiled, when the autotuner tries it, and when it computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Watcher = Callable[[str, str], None]

__all__ = ["announce", "watch"]

_watcher: Watcher | None = None


def watch(watcher: Watcher | None) -> None:
    """Set what is called before each kernel of this process; there is one, or none.

    Parameters
    ----------
    watcher : callable or None
        Takes the operator's name and the kernel's, e.g. ``onnxruntime/all-2``; only the
        library's where it is not known yet which of its kernels. Of several operators that
        are computed at once it is the first; the kernel's name says which the others are.
        It is called on the thread that computes, and must take next to no time.
    """
    global _watcher  # noqa: PLW0603 - one for the process
    _watcher = watcher


def announce(operator: str, kernel: str) -> None:
    """Say which kernel of which operator is entered next."""
    if _watcher is not None:
        _watcher(operator, kernel)
