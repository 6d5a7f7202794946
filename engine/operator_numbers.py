"""Reads numbers of operators that the user has in a file of their own, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.atomic import format_os_error
from engine.errors import NumbersFileError
from engine.file_versions import read_regular
from engine.text import format_count, format_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["OperatorNumbers", "read_operator_numbers"]

_LARGEST: Final = 4 << 20  # bytes; 50 000 names of 60 characters fit
_HEADS: Final = frozenset({"name", "operator"})  # of a first column, in any case
_LONGEST_SHOWN: Final = 40  # characters of a cell, in a message


@dataclass(frozen=True, slots=True)
class OperatorNumbers:
    """Numbers by operator.

    Attributes
    ----------
    values : mapping of str to float
        Finite; only of operators of the model.
    unknown : tuple of str
        Names in the file that no operator has, in its order.
    """

    values: Mapping[str, float]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A number as the file has it, and its line; 0 for an unknown one."""

    line: int
    name: str
    value: object


def read_operator_numbers(path: Path, known: Collection[str]) -> OperatorNumbers:
    """Read numbers by operator; nothing in the file is evaluated.

    Parameters
    ----------
    path : Path
        Lines of ``name,value``, which a line of titles may precede; or a JSON object of numbers
        by name. At most 4 MiB of UTF-8.
    known : collection of str
        Names of the model's operators.

    Returns
    -------
    OperatorNumbers

    Raises
    ------
    NumbersFileError
        If the file cannot be read, an entry is no finite number, a name has two, or none of
        them is an operator's.
    """
    try:
        text = read_regular(path, _LARGEST).decode("utf-8-sig")
    except OSError as exc:
        raise NumbersFileError(path, format_os_error(exc)) from exc
    except UnicodeDecodeError as exc:
        raise NumbersFileError(path, "it is not UTF-8 text") from exc
    except ValueError as exc:  # of NUL in the path
        raise NumbersFileError(path, str(exc)) from exc
    read = _json_entries if text.lstrip().startswith("{") else _csv_entries
    return _collect(path, read(path, text), frozenset(known))


def _collect(path: Path, entries: Iterable[_Entry], known: Collection[str]) -> OperatorNumbers:
    values: dict[str, float] = {}
    unknown: list[str] = []
    lines: dict[str, int] = {}
    for entry in entries:
        if entry.name in lines:
            before = lines[entry.name]
            first = f", the first on line {before}" if before else ""
            raise NumbersFileError(
                path, f"{_shown(entry.name)} has two numbers{first}", entry.line
            )
        lines[entry.name] = entry.line
        number = _number(path, entry)
        if entry.name in known:
            values[entry.name] = number
        else:
            unknown.append(entry.name)
    if not lines:
        raise NumbersFileError(path, "it has no lines of name,value")
    if not values:
        count = format_count(len(unknown), "name")
        names = format_names([_shown(name) for name in unknown])
        raise NumbersFileError(path, f"none of its {count} is an operator's: {names}")
    return OperatorNumbers(values, tuple(unknown))


def _number(path: Path, entry: _Entry) -> float:
    number = _finite(entry.value)
    if number is None:
        what = f"the value of {_shown(entry.name)} is {_shown(entry.value)}, not a number"
        raise NumbersFileError(path, what, entry.line)
    return number


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if isinstance(value, str) and "_" in value:  # Python would read 1_000
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _csv_entries(path: Path, text: str) -> Iterator[_Entry]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    try:
        for place, row in enumerate(rows):
            cells = [cell.strip() for cell in row]
            if not any(cells) or (not place and cells[0].lower() in _HEADS):
                continue
            if len(cells) != 2:
                count = format_count(len(cells), "column")
                raise NumbersFileError(
                    path, f"it has {count}, not a name and a number", rows.line_num
                )
            yield _Entry(rows.line_num, *cells)
    except csv.Error as exc:
        raise NumbersFileError(path, f"it is not CSV: {exc}", rows.line_num) from exc


def _json_entries(path: Path, text: str) -> Iterator[_Entry]:
    pairs: list[tuple[str, Any]] = []

    def keep(members: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = members  # of the outermost object, which is read last
        return {}

    try:
        json.loads(text, object_pairs_hook=keep, parse_int=float)
    except json.JSONDecodeError as exc:
        raise NumbersFileError(path, f"it is not JSON: {exc.msg}", exc.lineno) from exc
    except (ValueError, RecursionError) as exc:
        raise NumbersFileError(path, "it is not an object of numbers by name") from exc
    place, line = 0, 1
    for name, value in pairs:
        found = text.find(json.dumps(name, ensure_ascii=False), place)
        if found < 0:  # it is written with escapes; what follows is not looked for either
            place, line = len(text), 0
        else:
            line += text.count("\n", place, found)
            place = found + 1
        yield _Entry(line, name, value)


def _shown(value: object) -> str:
    """Return a name or cell as messages have it: quoted, and not too long."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
    return repr(short) if isinstance(value, str) else short
