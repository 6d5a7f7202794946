"""Converts a TorchScript or ONNX file to a PNNX pair, or finds an earlier conversion."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.atomic import format_os_error, write_file, written_beside
from engine.conversion.bool_inputs import restore_bools, without_bools
from engine.conversion.cache import conversions_folder, evict, find_key, touch
from engine.conversion.executable import find_pnnx, format_identity
from engine.conversion.failures import explain, find_notes
from engine.conversion.inspection import inspect
from engine.conversion.inverted_masks import invert_masks
from engine.conversion.lost_constants import restore_constants
from engine.conversion.lost_sizes import restore_sizes
from engine.conversion.old_defaults import state_defaults
from engine.conversion.onnx_rewriting import (
    find_control_flow,
    has_inner_nodes,
    prepare_copy,
    rewrite_copy,
)
from engine.conversion.records import (
    BIN,
    LOG,
    MOST_JOINED,
    NCNN_BIN,
    NCNN_PARAM,
    PARAM,
    SIMPLIFIED,
    STEM,
    Conversion,
    ConversionOptions,
)
from engine.conversion.running import run
from engine.conversion.shapes import format_shapes, settle_inputs
from engine.errors import ConversionError, ModelFileError, OpenSourceError
from engine.file_versions import FileVersion, read_regular
from engine.pnnx import load as load_pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.conversion.inspection import SourceFile
    from engine.conversion.running import Run

__all__ = ["convert"]

_TIME_LIMIT: Final = 600.0  # seconds
_FOLDED: Final = "pnnx_fold_"  # what the names of such constants begin with
_RECORD: Final = "conversion.json"
_LONGEST: Final = 16 << 20  # bytes of both files


def convert(
    path: str | Path,
    options: ConversionOptions | None = None,
    *,
    report: Callable[[str], None] = lambda _line: None,
    is_cancelled: Callable[[], bool] = lambda: False,
    time_limit: float = _TIME_LIMIT,
) -> Conversion:
    """Convert a TorchScript or ONNX file, or find the conversion in the cache.

    Parameters
    ----------
    path : path
    options : ConversionOptions, optional
    report : callable, optional
        Called with each line that the exporter prints.
    is_cancelled : callable, optional
        Called about twenty times a second while the exporter runs.
    time_limit : float, optional
        Seconds after which the exporter is stopped.

    Returns
    -------
    Conversion

    Raises
    ------
    ConversionError
        If pnnx is missing, the file holds nothing to convert, or the exporter fails; says what
        to do.
    ConversionCancelledError
        If it was cancelled.
    OpenSourceError
        If sizes are open and `options.asks` is set.
    FeedError
        If the sizes of the options do not fit the file.
    """
    options = options or ConversionOptions()
    source = inspect(Path(path))
    executable = find_pnnx(source.path)
    sizes = _arguments(source, options)
    is_usual = options.optlevel == MOST_JOINED
    arguments = [*sizes, *([] if is_usual else [f"optlevel={options.optlevel}"])]
    files = source.files
    try:
        versions = tuple(version for file in files if (version := FileVersion.of(file)))
        key = find_key(files, arguments, format_identity(executable))
        entry = conversions_folder() / key
        found = _read_entry(entry)
        is_new = found is None
        if is_new:

            def export(work: Path) -> Run:
                return run(
                    executable,
                    [_name_of(source), *arguments],
                    work,
                    report=report,
                    is_cancelled=is_cancelled,
                    time_limit=time_limit,
                )

            _make_entry(entry, source, export, time_limit, has_sizes=bool(sizes))
            found = _read_entry(entry)
    except OSError as exc:
        raise ConversionError(
            source.path, f"it cannot be converted: {format_os_error(exc)}"
        ) from exc
    if not all(version.is_current() for version in versions) or len(versions) < len(files):
        raise ConversionError(source.path, "it changed while it was converted; open it again")
    if found is None:
        raise ConversionError(
            source.path, "its conversion was removed from the cache; open it again"
        )
    touch(entry)
    evict(entry.parent)
    has_ncnn, notes, log = found
    return Conversion(source.path, versions, options, entry, has_ncnn, notes, log, not is_new)


def _arguments(source: SourceFile, options: ConversionOptions) -> list[str]:
    """Return the sizes as the exporter's arguments."""
    if options.asks and not (options.shapes or source.has_shapes):
        raise OpenSourceError(source.path, source.inputs)
    first = settle_inputs(source.inputs, options.shapes)
    second = settle_inputs(first or source.inputs, options.shapes2)
    if source.kind == "onnx":  # in which they are those of uint8, for pnnx
        first, second = map(without_bools, (first, second))
    sizes = (("inputshape", first), ("inputshape2", second))
    return [f"{name}={format_shapes(inputs)}" for name, inputs in sizes if inputs]


def _name_of(source: SourceFile) -> str:
    return f"{STEM}.onnx" if source.kind == "onnx" else f"{STEM}.pt"


def _make_entry(
    entry: Path,
    source: SourceFile,
    export: Callable[[Path], Run],
    time_limit: float,
    *,
    has_sizes: bool,
) -> None:
    """Run the exporter on a copy, and keep its output; another process may finish first."""
    with suppress(FileExistsError), written_beside(entry, replace=False, durable=False) as kept:
        kept.mkdir()
        work, ended = _export_copy(kept.parent, source, export)
        counts = _count_operators(work)
        if counts is None:
            reason = explain(
                ended, source, time_limit, has_sizes=has_sizes,
                control_flow=find_control_flow(work / _name_of(source)),
            )  # fmt: skip
            crashed = ended.status < 0 and not ended.timed_out
            raise ConversionError(source.path, reason, ended.lines, crashed=crashed)
        lost = restore_constants(ended.lines, work / SIMPLIFIED, work / PARAM, work / BIN)
        inverted = invert_masks(work / PARAM, work / BIN)
        if source.kind == "onnx":
            state_defaults(work / _name_of(source), work / PARAM, work / BIN)
            restore_sizes(work / PARAM, work / BIN)
            restore_bools(source.inputs, work / PARAM, work / BIN)
        ncnn = (work / NCNN_PARAM, work / NCNN_BIN)
        has_ncnn = not ended.status and not ended.timed_out and all(map(_is_made, ncnn))
        for name in (PARAM, BIN, *((NCNN_PARAM, NCNN_BIN) if has_ncnn else ())):
            (work / name).rename(kept / name)
        control_flow = find_control_flow(work / SIMPLIFIED)
        notes = (
            *find_notes(
                ended,
                source,
                counts.outputs,
                control_flow=control_flow,
                folded_count=counts.folded,
            ),
            *filter(None, (lost, inverted if has_ncnn else "")),
        )
        record = {"ncnn": has_ncnn, "notes": notes}
        write_file(kept / _RECORD, json.dumps(record).encode(), durable=False)
        log = "\n".join(ended.lines).encode("utf-8", "replace")
        write_file(kept / LOG, log, durable=False)


def _export_copy(
    folder: Path, source: SourceFile, export: Callable[[Path], Run]
) -> tuple[Path, Run]:
    """Run the exporter on a copy; again, where sizes show that it took nodes wrong.

    Nodes of branches and functions are only found in the model that it simplified.

    Return the folder with its output.
    """
    work = folder / "work"
    work.mkdir()
    name = _name_of(source)
    copy = work / name
    source.copy_to(copy)
    if source.kind != "onnx":
        return work, export(work)
    prepared = folder / name
    if prepare_copy(copy, prepared):
        prepared.replace(copy)
    if has_inner_nodes(copy):
        ended = export(work)
        if not _is_made(work / SIMPLIFIED):
            return work, ended
        if not prepare_copy(work / SIMPLIFIED, prepared):
            return work, ended
        work = folder / "flat"
        work.mkdir()
        copy = work / name
        prepared.replace(copy)
    ended = export(work)
    again = folder / "again"
    again.mkdir()
    if not rewrite_copy(copy, work / SIMPLIFIED, again / name):
        return work, ended
    return again, export(again)


class _Counts(NamedTuple):
    """How many outputs a pair has, and constants that pnnx computed."""

    outputs: int
    folded: int


def _count_operators(work: Path) -> _Counts | None:
    """Count operators of the PNNX pair, even if the exporter crashed after it wrote one.

    Return None if there is no pair.
    """
    param, weights = work / PARAM, work / BIN
    if not (_is_made(param) and _is_made(weights)):
        return None
    try:
        operators = load_pair(param, weights).operators
    except ModelFileError:
        return None  # it crashed while writing the pair, for example
    return _Counts(
        sum(each.type == "pnnx.Output" for each in operators),
        sum(each.name.startswith(_FOLDED) for each in operators),
    )


def _is_made(path: Path) -> bool:
    """Whether the exporter wrote a file there, and not a link to one elsewhere."""
    return path.is_file() and not path.is_symlink()


def _read_entry(entry: Path) -> tuple[bool, tuple[str, ...], tuple[str, ...]] | None:
    """Return whether there is an ncnn pair, notes and log; None for an incomplete entry."""
    if not entry.is_dir():
        return None
    try:
        record = json.loads(read_regular(entry / _RECORD, _LONGEST))
        has_ncnn, notes = bool(record["ncnn"]), tuple(map(str, record["notes"]))
        log = read_regular(entry / LOG, _LONGEST).decode("utf-8", "replace")
        for name in (PARAM, BIN, *((NCNN_PARAM, NCNN_BIN) if has_ncnn else ())):
            (entry / name).stat()
    except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
        shutil.rmtree(entry, ignore_errors=True)  # somebody changed the entry
        return None
    return has_ncnn, notes, tuple(log.splitlines())
