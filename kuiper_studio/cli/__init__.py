"""The command line: opens the window, or works without a display.

Results go to standard output. What goes wrong goes to standard error in one sentence with
exit status 2, never as a traceback; ``python -X dev`` shows tracebacks of unforeseen errors.
"""

from __future__ import annotations

from kuiper_studio.cli.program import main

__all__ = ["main"]
