"""Recognises files to convert by their suffix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.paths import is_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SUFFIXES", "is_source"]

SUFFIXES: Final = (".pt", ".pth", ".ts", ".jit", ".torchscript", ".onnx")
"""Suffixes of files to convert."""


def is_source(path: Path) -> bool:
    """Whether a path has the suffix of a file to convert, and is not a folder."""
    return path.suffix.lower() in SUFFIXES and not is_folder(path)
