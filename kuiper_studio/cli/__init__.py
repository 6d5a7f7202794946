"""The command line: opens the window, or works without a display.

Results go to standard output. What goes wrong goes to standard error in one sentence with
exit status 2, never as a traceback; ``python -X dev`` shows tracebacks of unforeseen errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line in this process; see `kuiper_studio.cli.program.main`."""
    # Imported here: the supervising process does not need it.
    from kuiper_studio.cli.program import main as run

    return run(argv)
