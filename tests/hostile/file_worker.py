"""Uses the damaged files of some seeds in this process; see `worker`."""

from __future__ import annotations

import contextlib
import io

from hostile.files import Files
from hostile.worker import main

if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()):  # libraries log much
        main(Files)
