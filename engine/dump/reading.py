"""What a dump on disk says about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.array_files import read_safetensors_metadata
from engine.atomic import spoken
from engine.dump.manifest import SCHEMA
from engine.errors import DumpFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["kernels_of", "read_manifest", "seed_of"]

_LARGEST_MANIFEST: Final = 1 << 30  # bytes; 100 000 operators take a twentieth of it


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a dump.

    Parameters
    ----------
    path : path
        The dump: a folder, its ``manifest.json``, or a ``.safetensors``.

    Raises
    ------
    DumpFileError
        If there is none, or it cannot be read.
    """
    path = Path(path)
    try:
        manifest = json.loads(_text_of(path))
    except OSError as exc:
        raise DumpFileError(path, spoken(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise DumpFileError(path, "its manifest is damaged") from exc
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise DumpFileError(path, "it is no dump of Kuiper Studio")
    return manifest


def _text_of(path: Path) -> str | bytes:
    if path.suffix.lower() == ".npz" and not path.is_dir():
        raise DumpFileError(
            path, "an .npz holds arrays alone; name a dump that is a folder or .safetensors"
        )
    if path.suffix.lower() == ".safetensors" and path.is_file():
        return read_safetensors_metadata(path).get("manifest", "{}")
    file = path / "manifest.json" if path.is_dir() else path
    if file.stat().st_size > _LARGEST_MANIFEST:
        raise DumpFileError(path, "its manifest is too large to be one")
    return file.read_bytes()


def kernels_of(path: str | Path) -> Mapping[str, str]:
    """Kernels that computed a dump, for ``Session(graph, backend=kernels_of(path))``.

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
        If the dump cannot be read or does not say.
    """
    try:
        return {
            str(row["name"]): str(row["kernel"]) for row in read_manifest(path)["operators"]
        }
    except (KeyError, TypeError) as exc:
        raise DumpFileError(
            path, "its manifest does not say which kernels computed it; write it anew"
        ) from exc


def seed_of(path: str | Path) -> int:
    """Seed that operators of a dump drew by that are random.

    Parameters
    ----------
    path : path
        As for `read_manifest`.

    Returns
    -------
    int
        0 where the dump does not say.

    Raises
    ------
    DumpFileError
        If the dump cannot be read.
    """
    seed = read_manifest(path).get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 else 0
