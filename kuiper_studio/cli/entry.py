"""Where the process that the user started begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kuiper_studio.cli.supervisor import supervise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kuiper_studio.cli.supervisor import Supervision

__all__ = ["main"]


def main() -> int:
    """Run the command line of this process; returns its exit status."""
    return supervise(_run)


def _run(arguments: Sequence[str], supervision: Supervision | None) -> int:
    # The process that watches over a command needs nothing of this.
    from kuiper_studio.cli.program import main as run

    return run(arguments, supervision)
