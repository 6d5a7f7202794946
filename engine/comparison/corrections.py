"""Reads and writes matches corrected by hand, in a small file beside the model.

The file is JSON::

    {"schema": "kuiper-studio-matches", "version": 1,
     "references": {"recording": {"7": "relu_1", "8": null}}}

For each reference, by title, and each of our operands it holds the key of the reference's
tensor, or null for an operand that the reference lacks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.atomic import format_os_error, written_beside
from engine.errors import ExportError, ReferenceFileError
from engine.file_versions import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["corrections_path", "read_corrections", "write_corrections"]

_SCHEMA: Final = "kuiper-studio-matches"
_VERSION: Final = 1
_LARGEST: Final = 1 << 24  # bytes
_SUFFIX: Final = ".matches.json"


def corrections_path(param_path: str | Path) -> Path:
    """Return the path of the corrections of a model: beside its ``.param``."""
    path = Path(param_path)
    return path.with_name(path.name.removesuffix(".param") + _SUFFIX)


def read_corrections(param_path: str | Path, reference: str) -> dict[str, str | None]:
    """Read the matches corrected by hand.

    Parameters
    ----------
    param_path : path
        Of the model.
    reference : str
        Title of the reference.

    Returns
    -------
    dict of str to str or None
        By operand; empty if there is no file.

    Raises
    ------
    ReferenceFileError
        If the file cannot be read.
    """
    return dict(_read(corrections_path(param_path)).get(reference, {}))


def write_corrections(
    param_path: str | Path, reference: str, matches: Mapping[str, str | None]
) -> Path:
    """Replace the matches of a reference; those of other references stay.

    Parameters
    ----------
    param_path : path
        Of the model.
    reference : str
        Title of the reference.
    matches : mapping of str to str or None
        By operand; empty to remove all.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    ReferenceFileError
        If there is a file that cannot be read.
    ExportError
        If it cannot be written; the file stays as it was.
    """
    path = corrections_path(param_path)
    references = _read(path)
    references.pop(reference, None)
    if matches:
        references[reference] = dict(matches)
    table = {"schema": _SCHEMA, "version": _VERSION, "references": references}
    try:
        with written_beside(path) as partial:
            partial.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", "utf-8")
    except OSError as exc:
        raise ExportError(f"{path} was not written: {format_os_error(exc)}") from exc
    return path


def _read(path: Path) -> dict[str, dict[str, str | None]]:
    try:
        table = json.loads(read_regular(path, _LARGEST))
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise ReferenceFileError(path, format_os_error(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise ReferenceFileError(path, "it is damaged; remove or repair it") from exc
    if not _is_table(table):
        raise ReferenceFileError(path, "it is not a file of matches; remove or repair it")
    references: dict[str, dict[str, str | None]] = table["references"]
    return references


def _is_table(table: Any) -> bool:  # noqa: ANN401 - of a file
    if not isinstance(table, dict) or table.get("schema") != _SCHEMA:
        return False
    references = table.get("references")
    return isinstance(references, dict) and all(
        isinstance(matches, dict)
        and all(key is None or isinstance(key, str) for key in matches.values())
        for matches in references.values()
    )
