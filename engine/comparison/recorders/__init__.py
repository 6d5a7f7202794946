"""Recorders: scripts of one file that record a reference on the user's side.

The modules beside this one are never imported here: each needs a library that only the user
may have. A script is one of them with `writer.py` pasted in.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import Final

__all__ = ["RECORDERS", "recorder_script"]

RECORDERS: Final = ("torch", "onnxruntime", "ncnn")
"""Libraries that there is a recorder for."""

_PASTED: Final = re.compile(
    r"^from engine\.comparison\.recorders\.writer import .*\n", re.MULTILINE
)
_FUTURE: Final = "from __future__ import annotations\n"


def recorder_script(library: str) -> str:
    """Return the recorder of a library as the text of a Python file.

    Parameters
    ----------
    library : str
        One of `RECORDERS`.
    """
    folder = resources.files(__name__)
    script = (folder / f"{library}_recorder.py").read_text(encoding="utf-8")
    writer = (folder / "writer.py").read_text(encoding="utf-8").partition(_FUTURE)[2]
    return _PASTED.sub(lambda _: writer.strip() + "\n", script, count=1)
