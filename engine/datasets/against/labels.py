"""Reads which class each input belongs to."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.atomic import format_os_error
from engine.errors import SweepError
from engine.file_versions import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.values import Array

__all__ = ["UNKNOWN", "read_class_labels"]

UNKNOWN: Final = -1
_MOST: Final = 1 << 30  # bytes


def read_class_labels(source: str | Path, names: Iterable[str]) -> Array:
    """Return the class of each input.

    Parameters
    ----------
    source : path
        A CSV with an input and a label a line; or a folder with one for each class, in which
        the inputs lie. An input of the CSV is the path's end, its file name or that without
        suffix, or its number in an array. Labels that are all integers are the numbers of the
        classes. Others, as the names of folders, get numbers in alphabetical order, those
        without an input too.
    names : iterable of str
        Of the inputs, in order.

    Returns
    -------
    ndarray of int64
        `UNKNOWN` for an input without a label.

    Raises
    ------
    SweepError
        If it cannot be read, or no input has a label.
    """
    path = Path(source)
    listed = list(names)
    try:
        found, known = (_of_folders if path.is_dir() else _of_csv)(path, listed)
    except OSError as exc:
        raise SweepError(f"labels {path}: {format_os_error(exc)}") from exc
    if not any(label is not None for label in found):
        raise SweepError(f"labels {path}: no input has a label")
    try:
        numbers = {label: int(label) for label in known}
    except ValueError:
        numbers = {label: place for place, label in enumerate(sorted(known))}
    return np.array([UNKNOWN if x is None else numbers[x] for x in found], np.int64)


def _of_folders(root: Path, names: list[str]) -> tuple[list[str | None], set[str]]:
    """Return the folder below `root` in which each input lies, and all folders there."""
    above = root.absolute()
    known = {each.name for each in above.iterdir() if each.is_dir() and each.name[:1] != "."}
    found: list[str | None] = []
    for name in names:
        path = Path(name)
        inside = path.is_relative_to(above) and path.parent != above
        found.append(path.relative_to(above).parts[0] if inside else None)
    return found, known | {label for label in found if label is not None}


def _of_csv(path: Path, names: list[str]) -> tuple[list[str | None], set[str]]:
    """Return the label of each input, and all labels."""
    try:
        text = read_regular(path, _MOST).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise SweepError(f"labels {path}: it is no text in UTF-8") from exc
    labels: dict[str, str] = {}
    try:
        for number, row in enumerate(csv.reader(text.splitlines()), 1):
            if not row:
                continue
            if len(row) < 2:
                raise SweepError(f"labels {path}, line {number}: expected a name and a label")
            labels[row[0].strip()] = row[1].strip()
    except csv.Error as exc:
        raise SweepError(f"labels {path}: {exc}") from exc
    return [_label_of(name, labels) for name in names], set(labels.values())


def _label_of(name: str, labels: dict[str, str]) -> str | None:
    path = Path(name)
    if name.endswith("]"):  # an element of an array
        return labels.get(name.rpartition("[")[2].removesuffix("]"))
    parts = path.parts
    ends = ("/".join(parts[place:]) for place in range(len(parts)))
    return next((labels[end] for end in (*ends, path.stem) if end in labels), None)
