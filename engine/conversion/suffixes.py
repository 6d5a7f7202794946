"""Which files are converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.paths import is_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SUFFIXES", "is_source"]

SUFFIXES: Final = (".pt", ".pth", ".torchscript", ".onnx")
"""Suffixes of files that are converted."""


def is_source(path: Path) -> bool:
    """Whether a path names a file to convert: by its suffix, and it is no folder."""
    return path.suffix.lower() in SUFFIXES and not is_folder(path)
