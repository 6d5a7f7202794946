"""Opens whatever a user names as a reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine import paths
from engine.comparison.references.arrays import (
    ARRAY_SUFFIXES,
    reference_of_file,
    reference_of_folder,
)
from engine.comparison.references.dumps import reference_of_dump
from engine.comparison.references.recordings import is_recording, reference_of_recording
from engine.comparison.references.reference import Reference
from engine.comparison.references.sessions import reference_of_model, reference_of_session
from engine.dump import has_manifest
from engine.errors import ReferenceFileError
from engine.runtime import RuntimeGraph, load
from engine.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.values import Value

__all__ = ["open_reference"]

_ARCHIVES: Final = (".npz", ".safetensors")


def open_reference(
    source: str | Path | Session | RuntimeGraph | Reference,
    inputs: Sequence[Value] | None = None,
    *,
    backend: str = "auto",
) -> Reference:
    """Open a reference to compare a session with.

    Parameters
    ----------
    source : path, Session, RuntimeGraph or Reference
        A dump in any format, a recording, a folder of ``.npy`` or ``.csv``, an ``.npz``, a
        ``.safetensors``, another model or another session. A Reference is returned as it is.
    inputs : sequence of Value, optional
        Inputs to run a model on; only needed if `source` is a model.
    backend : str, optional
        Backend that runs a model.

    Returns
    -------
    Reference
        Arrays are read on first use.

    Raises
    ------
    ReferenceFileError, DumpFileError
        If it cannot be read, or a model has no inputs to run on.
    ModelFileError, FeedError
        If a model cannot be opened, or does not take the inputs.
    """
    if isinstance(source, Reference):
        return source
    if isinstance(source, Session):
        return reference_of_session(source)
    if isinstance(source, RuntimeGraph):
        return _of_model(source, inputs, backend)
    path = Path(source)
    suffix = path.suffix.lower()
    if not paths.exists(path) and suffix in (*_ARCHIVES, *ARRAY_SUFFIXES):
        raise ReferenceFileError(path, "there is no such file")
    if is_recording(path):
        return reference_of_recording(path)
    if has_manifest(path):
        return reference_of_dump(path)
    if paths.is_file(path) and suffix in (*_ARCHIVES, *ARRAY_SUFFIXES):
        return reference_of_file(path)
    if paths.is_folder(path) and not _has_model(path):
        return reference_of_folder(path)
    return _of_model(load(path), inputs, backend)


def _has_model(folder: Path) -> bool:
    """Whether a folder has a model and no arrays."""
    arrays = any(any(folder.glob(f"*{suffix}")) for suffix in ARRAY_SUFFIXES)
    return any(folder.glob("*.param")) and not arrays


def _of_model(graph: RuntimeGraph, inputs: Sequence[Value] | None, backend: str) -> Reference:
    if inputs is None:
        raise ReferenceFileError(
            graph.param_path, "a reference that is a model needs inputs; give them"
        )
    return reference_of_model(graph, inputs, backend)
