"""Writes dumps, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import threading
from collections import deque
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

from engine.array_files import (
    SAFETENSORS_DTYPES,
    pieces,
    write_npy,
    write_npz,
    write_safetensors,
)
from engine.atomic import format_os_error, written_beside
from engine.collector import collector_paused
from engine.dump.entries import Entry, collect_entries
from engine.dump.manifest import (
    MANIFEST,
    SUMMARY,
    Facts,
    Row,
    make_row,
    manifest_head,
    manifest_text,
    model_hashes,
    summary_text,
)
from engine.dump.names import UniqueNames, archive_name
from engine.dump.options import FORMAT_OF_SUFFIX, FORMATS, DumpOptions
from engine.dump.reading import find_foreign_file, is_dump
from engine.errors import DumpExistsError, ExportCancelledError, ExportError
from engine.statistics import statistics
from engine.text import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from engine.runtime import RuntimeGraph
    from engine.session import Session
    from engine.values import Array, ArrayMetadata

__all__ = ["check_destination", "write_arrays", "write_dump"]

T = TypeVar("T")

_SECONDS_BETWEEN_QUESTIONS: Final = 0.05
_PNG_LEVEL: Final = 1  # zlib's level; higher ones take twice the time for a few percent


def write_dump(
    session: Session,
    path: str | Path,
    options: DumpOptions | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Path:
    """Write the tensors of a session.

    Parameters
    ----------
    session : Session
        It may be at any position; operators without values are in the manifest only.
    path : path
        Destination: a folder, or a file for ``npz`` and ``safetensors``.
    options : DumpOptions, optional
    progress : callable, optional
        Called in the caller's thread with the number of entries done, and of all.
    cancelled : callable, optional
        Called often in the caller's thread; True cancels the export.

    Returns
    -------
    Path
        The destination.

    Raises
    ------
    ExportError
        If it cannot be written; no partial dump is left behind.
    ExportCancelledError
        If `cancelled` returned True; likewise.
    UnknownNameError
        If a pattern of ``options.operators`` matches nothing.
    """
    options = options or DumpOptions()
    destination = Path(path)
    try:
        check_destination(destination, session.graph, options)
        entries = collect_entries(session, options)
        _check_space(destination, entries, options)
        placing = written_beside(
            destination,
            replace=options.overwrite,
            check=_check_replaced if options.is_folder else None,
        )
        with placing as partial, _Job(progress, cancelled) as job:
            _WRITERS[options.format](partial, session, options, entries, job)
    except FileExistsError as exc:  # somebody else was quicker
        raise _exists(destination, options) from exc
    except (OSError, MemoryError) as exc:
        raise _failure(destination, exc) from exc
    return destination


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays to an ``.npz``, whole or not at all; an earlier file is replaced.

    Raises
    ------
    ExportError
        If it cannot be written; an earlier file is kept.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        with written_beside(path) as partial:
            write_npz(partial, arrays.items())
    except (OSError, MemoryError) as exc:
        raise _failure(path, exc) from exc


def _failure(path: Path, exc: OSError | MemoryError) -> ExportError:
    reason = format_os_error(exc) if isinstance(exc, OSError) else "not enough memory"
    return ExportError(f"{path} was not written: {reason}")


# Checks


def _check_options(options: DumpOptions) -> None:
    if options.format not in FORMATS:
        raise ExportError(
            f"there is no dump format {options.format!r}; choose one of {', '.join(FORMATS)}"
        )
    if options.statistics_only and options.format != "folder":
        raise ExportError("statistics without arrays need the format folder")


def check_destination(path: Path, graph: RuntimeGraph, options: DumpOptions) -> None:
    """Check before the export that a dump can be written to a destination.

    Parameters
    ----------
    path : Path
    graph : RuntimeGraph
        The model; its own files are never replaced.
    options : DumpOptions

    Raises
    ------
    ExportError
        With the reason.
    OSError
        If the destination cannot be read.
    """
    _check_options(options)
    _check_suffix(path, options)
    if not path.parent.is_dir():
        raise ExportError(f"{path.parent} is not a folder; create it, or choose another one")
    if not os.path.lexists(path):
        return
    if options.is_folder:
        _check_folder(path, options)
        return
    if path.is_dir():
        raise ExportError(f"{path} is a folder; name a .{options.format} file")
    for own in (graph.source_path, graph.param_path, graph.bin_path):
        if own is not None and own.exists() and path.exists() and path.samefile(own):
            raise ExportError(f"{path} is the model itself; choose another name")
    if not options.overwrite:
        raise _exists(path, options)


def _exists(path: Path, options: DumpOptions) -> DumpExistsError:
    if options.is_folder:
        return DumpExistsError(f"{path} already has a dump; choose another or overwrite it")
    return DumpExistsError(f"{path} already exists; choose another name or overwrite it")


def _check_suffix(path: Path, options: DumpOptions) -> None:
    """Refuse a name with the suffix of another format."""
    named = FORMAT_OF_SUFFIX.get(path.suffix.lower(), options.format)
    if options.format in FORMAT_OF_SUFFIX.values() and named != options.format:
        raise ExportError(
            f"{path} ends in .{named}, but the format is {options.format}; change the name or "
            "the format"
        )


def _check_folder(path: Path, options: DumpOptions) -> None:
    if not path.is_dir():
        raise ExportError(f"{path} is a file; name a folder for the dump")
    if path.samefile(Path.cwd()):
        raise ExportError(f"{path} is the current folder; name a new one in it")
    if not any(path.iterdir()):
        return
    _check_replaced(path)
    if not options.overwrite:
        raise _exists(path, options)


def _check_replaced(path: Path) -> None:
    """Refuse to replace a folder with anything in it that was not written here."""
    if not any(path.iterdir()):
        return
    if not is_dump(path):
        raise ExportError(f"{path} exists and is not a dump; choose a new folder")
    foreign = find_foreign_file(path)
    if foreign is not None:
        raise ExportError(
            f"{path} holds {foreign}, which is no part of the dump there; move it away, or "
            "choose another folder"
        )


def _check_space(path: Path, entries: Sequence[Entry], options: DumpOptions) -> None:
    if options.statistics_only or options.format == "png":
        return
    wanted = sum(entry.metadata.nbytes + 256 for entry in entries if entry.metadata is not None)
    free = shutil.disk_usage(path.parent).free
    if wanted > free:
        raise ExportError(
            f"{path} was not written: the dump takes {format_bytes(wanted)} and the disk has "
            f"{format_bytes(free)} free"
        )


# Writing


class _Job:
    """A running export: two worker threads, and a caller that waits and may cancel.

    Progress and cancellation are handled in the caller's thread only.
    """

    def __init__(
        self,
        progress: Callable[[int, int], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._progress, self._cancelled = progress, cancelled
        self._given_up = threading.Event()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="dump")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The threads must stop writing before the folder is removed.
        self._given_up.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def run(
        self, count: int, *kinds: Iterable[Callable[[], None]], meanwhile: Callable[[], T]
    ) -> T:
        """Process items in the worker threads.

        Parameters
        ----------
        count : int
            Number of items, for progress.
        *kinds : iterable of callables
            One thread begins with the first kind of work and the other with the last; then
            they help each other. So the thread that writes, mostly in the system, does not wait
            for one that keeps the interpreter busy.
        meanwhile : callable
            Work for the caller's thread.

        Returns
        -------
        What `meanwhile` returns.
        """
        lanes = [deque(kind) for kind in kinds]
        total = sum(map(len, lanes))
        finished: list[None] = []  # a number that two threads can add to
        told = 0

        def work(
            lanes: Sequence[deque[Callable[[], None]]], before: Callable[[], None]
        ) -> None:
            for task in chain.from_iterable(map(_drain, lanes)):
                before()
                task()
                finished.append(None)

        def report() -> None:
            nonlocal told
            self.ask()
            while told < len(finished) * count // max(total, 1):
                self.tell(told, count)
                told += 1
                self.ask()

        waiting: set[Future[None]] = set()
        for order in (lanes, lanes[::-1]):
            # Where the system lets no more threads start, one does it all, or this one does.
            with contextlib.suppress(RuntimeError):
                waiting.add(self._threads.submit(work, order, self.check_cancelled))
        result = meanwhile()
        if not waiting:
            work(lanes, report)
        while waiting:
            done, waiting = wait(
                waiting, timeout=_SECONDS_BETWEEN_QUESTIONS, return_when=FIRST_EXCEPTION
            )
            for future in done:
                future.result()
            report()
        report()
        self.tell(count, count)
        return result

    def counted(self, items: Sequence[T]) -> Iterator[T]:
        """Yield the items and report how many are done."""
        for done, item in enumerate(items):
            self.ask()
            self.tell(done, len(items))
            yield item
        self.tell(len(items), len(items))

    def ask(self, *_: object) -> None:
        """Raise if the export was cancelled; for the caller's thread."""
        if self._cancelled is not None and self._cancelled():
            raise ExportCancelledError("the export was cancelled; nothing was written")

    def check_cancelled(self, *_: object) -> None:
        """Raise if the caller has cancelled; for the worker threads."""
        if self._given_up.is_set():
            raise ExportCancelledError("the export was ended; nothing was written")

    def tell(self, done: int, total: int) -> None:
        """Report how many items are done; for the caller's thread."""
        if self._progress is not None:
            self._progress(done, total)


def _drain(lane: deque[T]) -> Iterator[T]:
    """Take items off a queue, which others may take items off as well."""
    while True:
        try:
            item = lane.popleft()
        except IndexError:
            return
        yield item


def _write_folder(
    folder: Path, session: Session, options: DumpOptions, entries: Sequence[Entry], job: _Job
) -> None:
    picture = options.format == "png"
    suffix = ".png" if picture else ".npy"
    names = {role: UniqueNames() for role in ("inputs", "ops", "weights")}
    files = [
        f"{entry.role}/{names[entry.role].claim(entry.stem)}{suffix}"
        if entry.metadata is not None and not options.statistics_only
        else ""
        for entry in entries
    ]
    roles = {entry.role for entry, file in zip(entries, files, strict=True) if file}
    for path in (folder, *(folder / role for role in roles)):
        path.mkdir()

    def write(index: int, array: Array) -> None:
        if picture:
            _write_png(folder / files[index], array)
        else:
            write_npy(f"{folder}{os.sep}{files[index]}", array, job.check_cancelled)

    head, rows = _describe(
        session, options, entries, files, job, None if options.statistics_only else write
    )
    for name, text in (
        (SUMMARY, summary_text(rows)),
        (MANIFEST, manifest_text(head, rows)),
    ):
        (folder / name).write_text(text, encoding="utf-8", newline="")


def _describe(
    session: Session,
    options: DumpOptions,
    entries: Sequence[Entry],
    files: Sequence[str],
    job: _Job,
    write: Callable[[int, Array], None] | None = None,
) -> tuple[str, list[Row]]:
    """Make the head of the manifest and its rows, while the arrays are written."""
    found: dict[int, Facts] = {}

    def examine(index: int, array: Array) -> None:
        entry, checksum = entries[index], None
        if options.sha256 or entry.role == "inputs":
            digest = hashlib.sha256()
            for piece in pieces(array):
                job.check_cancelled()
                digest.update(piece)
            checksum = digest.hexdigest()
        found[index] = Facts(statistics(array, threads=1), checksum)

    def lane(*kinds: Callable[[int, Array], None]) -> list[Callable[[], None]]:
        rest, turn = iter(arrays), threading.Lock()

        def do() -> None:
            # In order: an evicted value is recomputed from the one before it.
            with turn:
                index = next(rest)
                array = entries[index].load(job.check_cancelled)
            for kind in kinds:
                kind(index, array)

        return [do] * len(arrays)

    arrays = [index for index, entry in enumerate(entries) if entry.metadata is not None]
    kinds = [examine] if write is None else [write, examine]
    # Evicted values should be recomputed only once, for both.
    lanes = [kinds] if session.memory_limit is not None else [[kind] for kind in kinds]
    hashes = job.run(
        len(entries),
        *(lane(*together) for together in lanes),
        meanwhile=lambda: model_hashes(session.graph, options, job.ask),
    )
    # Not at the same time: it keeps the interpreter busy, and the threads would wait.
    with collector_paused():
        rows = [
            make_row(entry, file, found.get(index))
            for index, (entry, file) in enumerate(zip(entries, files, strict=True))
        ]
        return manifest_head(session, options, hashes), rows


def _write_npz(
    path: Path, _session: Session, _options: DumpOptions, entries: Sequence[Entry], job: _Job
) -> None:
    names = UniqueNames(archive_name, str)
    arrays = (
        (names.claim(entry.key), entry.load(job.ask))
        for entry in job.counted(entries)
        if entry.metadata is not None
    )
    write_npz(path, arrays, job.ask)


def _write_safetensors(
    path: Path, session: Session, options: DumpOptions, entries: Sequence[Entry], job: _Job
) -> None:
    names = UniqueNames(archive_name, str)
    keys = [names.claim(entry.key) if entry.metadata is not None else "" for entry in entries]
    arrays: dict[str, ArrayMetadata] = {}
    for key, entry in zip(keys, entries, strict=True):
        if entry.metadata is not None:
            _require_dtype(entry.name, entry.metadata)
            arrays[key] = entry.metadata
    manifest = manifest_text(*_describe(session, options, entries, keys, job))
    by_key = dict(zip(keys, entries, strict=True))
    try:
        metadata = {"format": "np", "manifest": manifest}
        write_safetensors(path, arrays, metadata, job.ask, lambda k: by_key[k].load(job.ask))
    except ValueError as exc:
        raise ExportError(
            f"safetensors cannot store this dump: {exc}; choose a folder or .npz"
        ) from exc


def _require_dtype(name: str, array: ArrayMetadata) -> None:
    if array.dtype.newbyteorder("<") not in SAFETENSORS_DTYPES:
        raise ExportError(
            f"safetensors cannot store {name!r} of {array.dtype}; choose a folder or .npz"
        )


_WRITERS: Final = {
    "folder": _write_folder,
    "png": _write_folder,
    "npz": _write_npz,
    "safetensors": _write_safetensors,
}


def _write_png(path: Path, array: Array) -> None:
    from PIL import Image

    from engine.pictures import render_picture

    picture = Image.fromarray(render_picture(array))
    picture.save(path, format="PNG", compress_level=_PNG_LEVEL)
