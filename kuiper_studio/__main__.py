"""``python -m kuiper_studio`` and the ``kuiper-studio`` command."""

from __future__ import annotations

import sys

from kuiper_studio.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
