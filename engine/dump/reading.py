"""Reads the manifest of a dump."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.array_files import read_safetensors_metadata
from engine.atomic import format_os_error
from engine.dump.manifest import MANIFEST, SCHEMA, SUMMARY
from engine.errors import DumpFileError
from engine.file_versions import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "find_foreign_file",
    "has_manifest",
    "is_dump",
    "kernels_of",
    "read_manifest",
    "seed_of",
]

_LARGEST_MANIFEST: Final = 1 << 30  # bytes; 100 000 operators take a twentieth of it
# What file managers leave in a folder when somebody looks into it.
_OF_THE_SYSTEM: Final = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a dump.

    Parameters
    ----------
    path : path
        The dump: a folder, its ``manifest.json``, or a ``.safetensors``.

    Raises
    ------
    DumpFileError
        If there is no manifest, or it cannot be read.
    """
    path = Path(path)
    try:
        manifest = json.loads(_text_of(path))
    except OSError as exc:
        raise DumpFileError(path, format_os_error(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise DumpFileError(path, "its manifest is damaged") from exc
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise DumpFileError(path, "it is not a dump of Kuiper Studio")
    return manifest


def _text_of(path: Path) -> str | bytes:
    if path.suffix.lower() == ".npz" and not path.is_dir():
        raise DumpFileError(
            path, "an .npz has no manifest; choose a dump that is a folder or .safetensors"
        )
    if path.suffix.lower() == ".safetensors" and path.is_file():
        return read_safetensors_metadata(path).get("manifest", "{}")
    file = path / MANIFEST if path.is_dir() else path
    return read_regular(file, _LARGEST_MANIFEST)


def is_dump(folder: Path) -> bool:
    """Whether a folder is one that was written here, and so may be replaced."""
    try:
        read_manifest(folder)
    except DumpFileError:
        return False
    return True


def has_manifest(path: Path) -> bool:
    """Whether a path is a dump with a manifest, or that manifest, perhaps a damaged one."""
    if path.is_dir():
        return (path / MANIFEST).is_file()
    if path.suffix.lower() == ".safetensors":
        return is_dump(path)
    return path.name == MANIFEST


def find_foreign_file(folder: Path) -> Path | None:
    """Find a file in the folder of a dump that is no part of the dump.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    Path or None
        Within the folder; None where there is none but what the system puts everywhere.

    Raises
    ------
    DumpFileError
        If the manifest cannot be read.
    """
    operands = read_manifest(folder).get("operands")
    rows = operands if isinstance(operands, list) else []
    own = {MANIFEST, SUMMARY, *(row.get("file") for row in rows if isinstance(row, dict))}
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*files, *links):
            path = (Path(place) / name).relative_to(folder)
            if path.as_posix() not in own and name not in _OF_THE_SYSTEM:
                return path
    return None


def kernels_of(path: str | Path) -> Mapping[str, str]:
    """Return a dump's kernels, for ``Session(graph, backend=kernels_of(path))``.

    Parameters
    ----------
    path : path
        As for `read_manifest`.

    Returns
    -------
    mapping of str to str
        By operator; ``""`` for one that was not computed.

    Raises
    ------
    DumpFileError
        If the dump cannot be read, or has no kernels.
    """
    try:
        return {
            str(row["name"]): str(row["kernel"]) for row in read_manifest(path)["operators"]
        }
    except (KeyError, TypeError) as exc:
        raise DumpFileError(path, "its manifest has no kernels; write the dump again") from exc


def seed_of(path: str | Path) -> int:
    """Return the random seed of a dump.

    Parameters
    ----------
    path : path
        As for `read_manifest`.

    Returns
    -------
    int
        0 if the dump has none.

    Raises
    ------
    DumpFileError
        If the dump cannot be read.
    """
    seed = read_manifest(path).get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 else 0
