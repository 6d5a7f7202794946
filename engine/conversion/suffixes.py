"""Recognises files to convert by their suffix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.paths import files_with_suffix, is_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SUFFIXES", "is_source", "model_of", "sources_in"]

SUFFIXES: Final = (".pt", ".pth", ".ts", ".jit", ".torchscript", ".onnx")
"""Suffixes of files to convert."""


def is_source(path: Path) -> bool:
    """Whether a path has the suffix of a file to convert, and is not a folder."""
    return path.suffix.lower() in SUFFIXES and not is_folder(path)


def sources_in(folder: Path) -> list[Path]:
    """Return the files to convert in a folder; none where a ``.param`` is the model."""
    if files_with_suffix(folder, ".param"):
        return []
    return sorted(path for path in folder.glob("*") if is_source(path))


def model_of(path: Path) -> Path:
    """Return the only file to convert where a path is a folder with one, else the path."""
    sources = sources_in(path) if is_folder(path) else []
    return sources[0] if len(sources) == 1 else path
