"""Opens ncnn pairs, and finds the other file of a pair.

A ``.bin`` has no names. It fits a ``.param`` if it has exactly the bytes that the layers need.
The file of the same name is tried first; otherwise exactly one file in the folder must fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import ModelFileError
from engine.ncnn.reader import is_ncnn, read_graph
from engine.ncnn.weights import RawWeights, bind
from engine.paths import beside
from engine.pnnx.pairing import choose, siblings
from engine.pnnx.reader import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from engine.file_versions import FileVersion
    from engine.pnnx.attribute import WeightArchive
    from engine.pnnx.graph import Graph

__all__ = ["find_param", "load", "load_copy"]


def load(
    param_path: Path, copy: tuple[bytes, FileVersion], bin_path: Path | None = None
) -> Graph:
    """Read a pair.

    Parameters
    ----------
    param_path : Path
    copy : tuple of bytes and FileVersion
        Contents and version of the ``.param``.
    bin_path : Path, optional
        Found beside `param_path` when not given. Without any the graph has only its structure.

    Raises
    ------
    ModelFileError
        With path, line and reason, if a file cannot be read or the two do not fit.
    """
    graph = read_graph(param_path, *copy)
    archive = None
    if bin_path is not None or any(operator.attrs for operator in graph.operators):
        if bin_path is not None:
            archive = RawWeights(bin_path, graph)
        else:
            archive = _find_weights(param_path, graph)
    if archive is not None:
        archive.keep()
        if not copy[1].is_current():
            raise ModelFileError(param_path, "it changed while it was opened; open it again")
    bind(graph, archive)
    return graph


def load_copy(
    param_path: Path, copy: tuple[bytes, FileVersion], archive: WeightArchive | None
) -> Graph:
    """Make the graph of a pair that another process read, without reading files."""
    graph = read_graph(param_path, *copy)
    bind(graph, archive)
    return graph


def find_param(bin_path: Path) -> Path | None:
    """Find the ``.param`` of a ``.bin`` that is not a PNNX archive.

    Parameters
    ----------
    bin_path : Path

    Returns
    -------
    Path or None
        None if no ncnn file fits.

    Raises
    ------
    ModelFileError
        If the only candidate is the file of the same name and does not fit, or if several
        others fit.
    """
    own = beside(bin_path, ".param")
    failure = None
    if _is_ncnn(own):
        failure = _failure_of(own, bin_path)
        if failure is None:
            return own
    others = filter(_is_ncnn, siblings(bin_path, own))
    fitting = [path for path in others if _failure_of(path, bin_path) is None]
    if not fitting and failure is not None:
        raise failure
    return choose(fitting, bin_path)


def _find_weights(param_path: Path, graph: Graph) -> RawWeights | None:
    own = beside(param_path, ".bin")
    first = _try(own, graph) if own.is_file() else None
    if isinstance(first, RawWeights):
        return first
    tried = [_try(path, graph) for path in siblings(param_path, own)]
    fitting = {other.path: other for other in tried if isinstance(other, RawWeights)}
    if not fitting and first is not None:
        raise first
    chosen = choose(list(fitting), param_path)
    return fitting[chosen] if chosen is not None else None


def _try(path: Path, graph: Graph) -> RawWeights | ModelFileError:
    try:
        return RawWeights(path, graph)
    except ModelFileError as exc:
        return exc


def _is_ncnn(path: Path) -> bool:
    try:
        return is_ncnn(read_bytes(path)[0])
    except ModelFileError:
        return False


def _failure_of(path: Path, bin_path: Path) -> ModelFileError | None:
    """Return why a ``.param`` does not fit a ``.bin``; None if it does."""
    try:
        RawWeights(bin_path, read_graph(path, *read_bytes(path)))
    except ModelFileError as exc:
        return exc
    return None
