"""Finds the executable of pnnx."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import ConversionError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["find_pnnx", "format_identity"]

_NAME: Final = "pnnx.exe" if os.name == "nt" else "pnnx"
_LONGEST_SCRIPT: Final = 4096  # bytes; pip's scripts have about 250
_WORDS_OF_PIP: Final = b"from pnnx import pnnx"


def find_pnnx(source: Path) -> Path:
    """Find the executable on PATH, beside the interpreter or in the ``pnnx`` package.

    Parameters
    ----------
    source : Path
        File to convert; only for the error.

    Raises
    ------
    ConversionError
        If there is none; says how to install it.
    """
    for found in _candidates():
        if found.is_file() and os.access(found, os.X_OK):
            return found
    raise ConversionError(
        source,
        "pnnx, which converts it, is not installed; install it with: "
        "pip install --no-deps pnnx",
    )


def format_identity(executable: Path) -> str:
    """Identify a version of the executable by its size and time."""
    status = executable.stat()
    return f"{status.st_size}-{status.st_mtime_ns}"


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("pnnx")
    for script in (*([Path(on_path)] if on_path else []), Path(sys.executable).parent / _NAME):
        if not _is_of_pip(script):
            yield script
            continue
        # Pip's script imports the package, which imports PyTorch if it is installed.
        prefix = script.parent.parent
        yield from sorted(prefix.glob(f"lib/python*/site-packages/pnnx/{_NAME}"))
    spec = importlib.util.find_spec("pnnx")  # does not import it
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder) / _NAME


def _is_of_pip(script: Path) -> bool:
    """Whether a file is the script that pip writes for the package's entry point."""
    try:
        with script.open("rb") as file:
            return _WORDS_OF_PIP in file.read(_LONGEST_SCRIPT)
    except OSError:
        return False
