"""Opens the files of a model in either format.

PNNX and ncnn both have a ``.param`` and a ``.bin``, and their texts begin alike. The syntax of
the following lines distinguishes them, not the suffix.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine import pnnx
from engine.ncnn import pairing as ncnn_pairing
from engine.ncnn.reader import is_ncnn
from engine.pnnx.reader import read_bytes

if TYPE_CHECKING:
    from engine.file_versions import FileVersion
    from engine.pnnx import Graph
    from engine.pnnx.attribute import WeightArchive

__all__ = ["load", "load_copy", "pair"]

_ZIP_MAGIC: Final = b"PK"


def load(param_path: str | Path, bin_path: str | Path | None = None) -> Graph:
    """Read a pair; see `engine.pnnx.load` and `engine.ncnn.pairing.load`."""
    path = Path(param_path)
    copy = read_bytes(path)
    if is_ncnn(copy[0]):
        return ncnn_pairing.load(path, copy, Path(bin_path) if bin_path is not None else None)
    return pnnx.load(path, bin_path, copy)


def load_copy(
    param_path: Path, copy: tuple[bytes, FileVersion], archive: WeightArchive | None
) -> Graph:
    """Make the graph of a pair that another process read; see `engine.pnnx.load_copy`."""
    if is_ncnn(copy[0]):
        return ncnn_pairing.load_copy(param_path, copy, archive)
    return pnnx.load_copy(param_path, copy, archive)


def pair(path: str | Path, bin_path: str | Path | None = None) -> tuple[Path, Path | None]:
    """Find the pair of a path; see `engine.pnnx.pair`.

    Raises
    ------
    ModelFileError
        As there; for an ncnn ``.bin``, if no ``.param`` beside it fits.
    """
    given = Path(path)
    if bin_path is not None or given.suffix.lower() != ".bin" or _is_archive(given):
        return pnnx.pair(path, bin_path)
    param = ncnn_pairing.find_param(given)
    if param is None:
        return pnnx.pair(path)  # it reports the fault of the file
    return param, given


def _is_archive(path: Path) -> bool:
    try:
        if not path.is_file():
            return True
        with path.open("rb") as file:
            return file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
    except OSError:
        return True
