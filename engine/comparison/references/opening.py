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
from engine.comparison.references.zarr_dumps import is_data_set_dump, reference_of_data_set
from engine.conversion.suffixes import model_of, sources_in
from engine.dump import has_manifest
from engine.errors import ReferenceFileError
from engine.exclusions import ExclusionCache
from engine.runtime import RuntimeGraph, load
from engine.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.values import Value

__all__ = ["open_data", "open_reference", "open_reference_for"]

_ARCHIVES: Final = (".npz", ".safetensors")


def open_reference(
    source: str | Path | Session | RuntimeGraph | Reference,
    inputs: Sequence[Value] | None = None,
    *,
    backend: str = "auto",
    ncnn_options: str = "exact",
    memory_bound: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> Reference:
    """Open a reference to compare a session with.

    Parameters
    ----------
    source : path, Session, RuntimeGraph or Reference
        A dump in any format, a recording, a folder of ``.npy`` or ``.csv``, an ``.npz``, a
        ``.safetensors``, an input of the dump of a data set (``dump.zarr:17``), another model
        or another session. A Reference is returned as it is.
    inputs : sequence of Value, optional
        Inputs to run a model on; only needed if `source` is a model.
    backend, ncnn_options, memory_bound : optional
        Of the session that runs a model; see `Session`.
    progress : callable, optional
        Called with the number of operators done and the total while a model runs, and with
        zeros while it is converted; an exception ends it.
    report : callable, optional
        Called with each line that the exporter prints, if a model has to be converted.

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
        return reference_of_session(source, progress=progress)
    data = None if isinstance(source, RuntimeGraph) else open_data(source)
    if data is not None:
        return data

    def is_cancelled() -> bool:
        if progress is not None:
            progress(0, 0)
        return False

    graph = (
        source
        if isinstance(source, RuntimeGraph)
        else load(model_of(Path(source)), report=report, is_cancelled=is_cancelled)
    )
    if inputs is None:
        raise ReferenceFileError(
            graph.param_path, "a reference that is a model needs inputs; give them"
        )
    session = Session(
        graph, backend=backend, ncnn_options=ncnn_options, memory_bound=memory_bound,
        excluded=ExclusionCache().load_for(graph),
    )  # fmt: skip
    return reference_of_model(session, inputs, progress=progress)


def open_reference_for(
    session: Session,
    source: str | Path | Session | RuntimeGraph | Reference,
    progress: Callable[[int, int], None] | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> Reference:
    """Open a reference for a session; a model runs on the session's inputs, with its options.

    Parameters
    ----------
    session : Session
        Fed; not changed.
    source : path, Session, RuntimeGraph or Reference
    progress, report : callable, optional
        As for `open_reference`, with the same errors.
    """
    return open_reference(
        source,
        [session.value(operand.name) for operand in session.graph.input_operands],
        backend=session.backend if session.backend != "recorded" else "auto",
        ncnn_options=session.ncnn_options,
        memory_bound=session.memory_bound,
        progress=progress,
        report=report,
    )


def open_data(source: str | Path) -> Reference | None:
    """Open a reference that needs no run: a dump, a recording or arrays; None for a model.

    Raises
    ------
    ReferenceFileError, DumpFileError
        If it cannot be read.
    """
    path = Path(source)
    suffix = path.suffix.lower()
    if not paths.exists(path) and suffix in (*_ARCHIVES, *ARRAY_SUFFIXES):
        raise ReferenceFileError(path, "there is no such file")
    if is_data_set_dump(path):
        return reference_of_data_set(path)
    if is_recording(path):
        return reference_of_recording(path)
    if has_manifest(path):
        return reference_of_dump(path)
    if paths.is_file(path) and suffix in (*_ARCHIVES, *ARRAY_SUFFIXES):
        return reference_of_file(path)
    if paths.is_folder(path) and not _has_model(path):
        return reference_of_folder(path)
    return None


def _has_model(folder: Path) -> bool:
    """Whether a folder has a model and no arrays."""
    if any(any(folder.glob(f"*{suffix}")) for suffix in ARRAY_SUFFIXES):
        return False
    return any(folder.glob("*.param")) or bool(sources_in(folder))
