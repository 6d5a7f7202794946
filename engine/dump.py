"""Write the tensors of a session to files that other tools read.

The folder's layout::

    manifest.json                        what everything is, true names included
    summary.csv                          one row per operand
    inputs/000__<operand>.npy            what was fed
    ops/012_<type>__<operand>.npy        execution index first, so that any list keeps the order
    weights/<operator>.<attribute>.npy   where asked for

Arrays are C-ordered and little-endian. Everything is written beside the destination and
renamed at the end: an export that is cancelled, fails or finds the disk full leaves nothing
behind. File names are made of cleaned names that can neither leave the folder nor collide,
also where case does not count; the true names stand in the manifest.
"""

from __future__ import annotations

import csv
import errno
import fnmatch
import hashlib
import json
import math
import re
import shutil
import zipfile
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from engine.atomic import written_beside
from engine.cost import cost
from engine.errors import ExportCancelledError, ExportError, UnknownNameError
from engine.statistics import statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = [
    "FORMATS",
    "DumpOptions",
    "clean_name",
    "select_operators",
    "write_arrays",
    "write_dump",
]

Format = Literal["folder", "npz", "safetensors", "png"]
FORMATS: Final[tuple[Format, ...]] = ("folder", "npz", "safetensors", "png")

SCHEMA: Final = "kuiper-studio-dump"
SCHEMA_VERSION: Final = 1
MAX_NAME: Final = 80

_WINDOWS_RESERVED: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{w}{i}" for w in ("com", "lpt") for i in range(1, 10))]
)
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """What a dump contains, and as what.

    Attributes
    ----------
    format : {"folder", "npz", "safetensors", "png"}
        ``png`` is a folder of pictures as the tensor view shows them.
    operators : tuple of str or None
        Names, types or execution indexes, with ``*`` and ``?``; None for all.
    inputs : bool
        The model's inputs.
    outputs : bool
        The outputs of the operators.
    weights : bool
        The weights of the operators.
    statistics_only : bool
        A folder with manifest and summary, without arrays.
    overwrite : bool
        Replace an earlier dump at the destination.
    """

    format: Format = "folder"
    operators: tuple[str, ...] | None = None
    inputs: bool = True
    outputs: bool = True
    weights: bool = False
    statistics_only: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    """One array to write."""

    role: str  # inputs, ops or weights: the folder it goes to
    name: str  # true name: of the operand, or operator.attribute
    stem: str  # before cleaning
    array: Array = field(repr=False)
    operator: RuntimeOperator | None = None
    member: tuple[int, ...] = ()  # place within a tuple-valued operand


# Names


def clean_name(text: str) -> str:
    """Make a name safe as part of a file name, on any system.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        Of ``A-Z a-z 0-9 . _ -``, at most 80 characters, not empty, not beginning with a
        dot, no device name of Windows. Different names may become equal.
    """
    cleaned = re.sub(r"[^A-Za-z0-9._-]", "_", text)
    cleaned = re.sub(r"^\.", "_", cleaned).rstrip(".") or "_"
    if cleaned.partition(".")[0].lower() in _WINDOWS_RESERVED:
        cleaned = f"_{cleaned}"
    if len(cleaned) > MAX_NAME:
        cleaned = f"{cleaned[: MAX_NAME - 9]}-{_short_hash(text)}"
    return cleaned


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


class _Names:
    """Gives every entry a file stem of its own, case ignored."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def claim(self, stem: str) -> str:
        cleaned = clean_name(stem)
        candidate, attempt = cleaned, 0
        while candidate.lower() in self._used:
            attempt += 1
            candidate = f"{cleaned[: MAX_NAME - 12]}-{_short_hash(f'{stem}#{attempt}')}"
        self._used.add(candidate.lower())
        return candidate


# What to write


def select_operators(
    graph: RuntimeGraph, patterns: Sequence[str] | None
) -> tuple[RuntimeOperator, ...]:
    """Operators that match any of the patterns.

    Parameters
    ----------
    graph : RuntimeGraph
    patterns : sequence of str or None
        Each matches a name, a type or an execution index; ``*`` and ``?`` are wild. None
        selects all.

    Raises
    ------
    UnknownNameError
        If a pattern matches nothing.
    """
    if patterns is None:
        return graph.operators
    chosen: set[int] = set()
    for pattern in patterns:
        hits = {
            op.index
            for op in graph.operators
            if fnmatch.fnmatchcase(op.name, pattern)
            or fnmatch.fnmatchcase(op.type, pattern)
            or pattern == str(op.index)
        }
        if not hits:
            raise UnknownNameError("operator", pattern, [op.name for op in graph.operators])
        chosen |= hits
    return tuple(graph.operators[index] for index in sorted(chosen))


def _entries(session: Session, options: DumpOptions) -> Iterator[_Entry]:
    operators = select_operators(session.graph, options.operators)
    width = max(3, len(str(len(session.graph.operators) - 1)))
    for operator in operators:
        record = session.record(operator.name)
        wanted = options.inputs if operator.is_input else options.outputs
        if record is None or not wanted:
            continue
        role = "inputs" if operator.is_input else "ops"
        place = f"{operator.index:0{width}d}"
        if not operator.is_input:
            place += f"_{operator.type}"
        for operand, value in record.outputs.items():
            for member, array in _arrays(value):
                suffix = "".join(f"_{index}" for index in member)
                stem = f"{place}__{operand}{suffix}"
                yield _Entry(role, operand, stem, array, operator, member)
    if options.weights:
        for operator in operators:
            for key, attribute in operator.attributes.items():
                name = f"{operator.name}.{key}"
                yield _Entry("weights", name, name, attribute.array, operator)


def _arrays(
    value: Value, member: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Arrays of a value with their places; a number counts as a 0-d array."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _arrays(item, (*member, index))
    elif isinstance(value, (np.ndarray, bool, int, float, complex)):
        yield member, np.asarray(value)


# Writing


def write_dump(
    session: Session,
    path: str | Path,
    options: DumpOptions | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Path:
    """Write what a session has computed.

    Parameters
    ----------
    session : Session
        As far as it has run; operators without values are listed in the manifest only.
    path : path
        Destination: a folder, or a file for ``npz`` and ``safetensors``.
    options : DumpOptions, optional
    progress : callable, optional
        Called with entries done and their number.
    cancelled : callable, optional
        Asked between entries; True ends the export.

    Returns
    -------
    Path
        The destination.

    Raises
    ------
    ExportError
        With the reason; nothing is left behind.
    ExportCancelledError
        Likewise, when `cancelled` said so.
    UnknownNameError
        If a pattern of ``options.operators`` matches nothing.
    """
    options = options or DumpOptions()
    destination = Path(path)
    try:
        entries = list(_entries(session, options))
        _check_destination(destination, options)
        _check_space(destination, entries, options)
        job = _Job(session, options, entries, progress, cancelled)
        with written_beside(destination) as partial:
            job.write(partial)
    except OSError as exc:
        raise ExportError(f"{destination} was not written: {_spoken(exc)}") from exc
    return destination


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays to an ``.npz``, whole or not at all; an earlier file is replaced.

    Raises
    ------
    ExportError
        With the reason.
    """
    try:
        with written_beside(path) as partial:
            _save_npz(partial, arrays.items())
    except OSError as exc:
        raise ExportError(f"{path} was not written: {_spoken(exc)}") from exc


def _save_npz(path: Path, arrays: Iterable[tuple[str, Array]]) -> None:
    with zipfile.ZipFile(path, "x", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, _portable(array), allow_pickle=False)


def _spoken(exc: OSError) -> str:
    if exc.errno == errno.ENOSPC:
        return "the disk is full"
    return exc.strerror or str(exc)


def _check_destination(path: Path, options: DumpOptions) -> None:
    if not path.parent.is_dir():
        raise ExportError(f"{path.parent} is no folder; create it, or choose another place")
    if options.format in {"npz", "safetensors"}:
        if path.is_dir():
            raise ExportError(f"{path} is a folder; name a .{options.format} file")
        if path.exists() and not options.overwrite:
            raise ExportError(f"{path} exists already; choose another name or overwrite it")
        return
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not _is_dump(path):
        raise ExportError(f"{path} exists and is no dump; choose a new folder")
    if not options.overwrite:
        raise ExportError(f"{path} holds a dump already; choose another or overwrite it")


def _is_dump(path: Path) -> bool:
    """Whether a folder is one that this module wrote, and so may be replaced."""
    try:
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("schema") == SCHEMA


def _check_space(path: Path, entries: Sequence[_Entry], options: DumpOptions) -> None:
    if options.statistics_only or options.format == "png":
        return
    wanted = sum(entry.array.nbytes + 256 for entry in entries)
    free = shutil.disk_usage(path.parent).free
    if wanted > free:
        raise ExportError(
            f"{path} was not written: the dump takes {wanted / 1e6:.0f} MB and the disk has "
            f"{free / 1e6:.0f} MB free"
        )


class _Job:
    """One export under way."""

    def __init__(
        self,
        session: Session,
        options: DumpOptions,
        entries: Sequence[_Entry],
        progress: Callable[[int, int], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._session, self._options, self._entries = session, options, entries
        self._progress, self._cancelled = progress, cancelled
        self._rows: list[dict[str, Any]] = []

    def write(self, path: Path) -> None:
        """Write to `path`, which does not exist yet."""
        writers: dict[str, Callable[[Path], None]] = {
            "folder": self._write_folder,
            "png": self._write_folder,
            "npz": self._write_npz,
            "safetensors": self._write_safetensors,
        }
        writers[self._options.format](path)

    def _each(self) -> Iterator[_Entry]:
        """Entries, with progress told and cancelling asked for before each."""
        for done, entry in enumerate(self._entries):
            self._check_cancelled()
            if self._progress is not None:
                self._progress(done, len(self._entries))
            yield entry
        if self._progress is not None:
            self._progress(len(self._entries), len(self._entries))

    def _check_cancelled(self) -> None:
        if self._cancelled is not None and self._cancelled():
            raise ExportCancelledError("the export was cancelled; nothing was written")

    def _write_folder(self, folder: Path) -> None:
        picture = self._options.format == "png"
        suffix = ".png" if picture else ".npy"
        folder.mkdir()
        names = {role: _Names() for role in ("inputs", "ops", "weights")}
        for entry in self._each():
            file = ""
            if not self._options.statistics_only:
                (folder / entry.role).mkdir(exist_ok=True)
                file = f"{entry.role}/{names[entry.role].claim(entry.stem)}{suffix}"
                (_write_png if picture else _write_npy)(folder / file, entry.array)
            self._rows.append(_row(entry, file))
        manifest = self._manifest()
        text = json.dumps(manifest, indent=1, allow_nan=False, ensure_ascii=False)
        (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
        _write_summary(folder / "summary.csv", self._rows)

    def _write_npz(self, path: Path) -> None:
        names = _Names()
        _save_npz(path, ((names.claim(_key(entry)), entry.array) for entry in self._each()))

    def _write_safetensors(self, path: Path) -> None:
        from safetensors.numpy import save_file

        names, tensors = _Names(), {}
        for entry in self._each():
            if entry.array.dtype.kind == "c":
                raise ExportError(
                    f"safetensors cannot hold the complex operand {entry.name}; choose a "
                    "folder or .npz"
                )
            key = names.claim(_key(entry))
            tensors[key] = np.ascontiguousarray(_portable(entry.array))
            self._rows.append(_row(entry, key))
        manifest = json.dumps(self._manifest(), allow_nan=False)
        save_file(tensors, path, metadata={"format": "np", "manifest": manifest})

    def _manifest(self) -> dict[str, Any]:
        graph = self._session.graph
        return {
            "schema": SCHEMA,
            "version": SCHEMA_VERSION,
            "tool": {"name": "kuiper-studio", "version": _tool_version()},
            "model": {
                "param": graph.param_path.name,
                "param_sha256": self._file_hash(graph.param_path),
                "bin": graph.bin_path.name if graph.bin_path else None,
                "bin_sha256": self._file_hash(graph.bin_path),
            },
            "backend": self._session.backend,
            "options": asdict(self._options),
            "operators": [self._operator_row(operator) for operator in graph.operators],
            "operands": self._rows,
        }

    def _operator_row(self, operator: RuntimeOperator) -> dict[str, Any]:
        record = self._session.record(operator.name)
        spent = cost(operator, self._session)
        return {
            "index": operator.index,
            "name": operator.name,
            "type": operator.type,
            "status": self._session.status(operator.name).value,
            "reason": record.reason if record is not None else operator.reason,
            "backend": record.backend if record is not None else "",
            "ms": round(record.seconds * 1e3, 6) if record is not None else None,
            "macs": spent.macs,
            "flops": spent.flops,
            "params": {key: _plain(value) for key, value in operator.params.items()},
            "inputs": [operand.name for operand in operator.inputs],
            "outputs": [operand.name for operand in operator.outputs],
        }

    def _file_hash(self, path: Path | None) -> str | None:
        if path is None:
            return None
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_CHUNK):
                self._check_cancelled()
                digest.update(block)
        return digest.hexdigest()


def _tool_version() -> str:
    try:
        return version("kuiper-studio")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


def _key(entry: _Entry) -> str:
    """Name of an array in an archive: the operand's, as far as it can be kept."""
    stem = f"weights.{entry.name}" if entry.role == "weights" else entry.name
    return stem + "".join(f"_{index}" for index in entry.member)


def _portable(array: Array) -> Array:
    """Little-endian and C-ordered; the array itself where it is that already."""
    dtype = array.dtype.newbyteorder("<")
    return np.asarray(array, dtype=dtype, order="C")


def _write_npy(path: Path, array: Array) -> None:
    with path.open("xb") as file:
        np.lib.format.write_array(file, _portable(array), allow_pickle=False)


def _write_png(path: Path, array: Array) -> None:
    from PIL import Image

    from engine.pictures import render_picture

    Image.fromarray(render_picture(array)).save(path, format="PNG")


def _row(entry: _Entry, file: str) -> dict[str, Any]:
    array, facts = entry.array, statistics(entry.array)
    operator = entry.operator
    operand = None
    if operator is not None and entry.role != "weights":
        operand = next(o for o in operator.outputs if o.name == entry.name)
    return {
        "name": entry.name,
        "member": list(entry.member),
        "role": entry.role,
        "file": file,
        "producer": operator.name if operator is not None else None,
        "consumers": [op.name for op in operand.consumers] if operand is not None else [],
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "layout": {3: "CHW", 4: "NCHW", 5: "NCDHW"}.get(array.ndim, ""),
        "nbytes": array.nbytes,
        "min": _plain(facts.min),
        "max": _plain(facts.max),
        "mean": _plain(facts.mean),
        "std": _plain(facts.std),
        "zeros": facts.zeros,
        "nan": facts.nan,
        "pinf": facts.pinf,
        "ninf": facts.ninf,
        "sha256": hashlib.sha256(np.ascontiguousarray(array).data).hexdigest(),
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever JSON takes
    """What JSON can hold: non-finite and complex numbers as words."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _write_summary(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    columns = ["name", "member", "role", "producer", "dtype", "shape", "min", "max", "mean",
               "std", "zeros", "nan", "pinf", "ninf", "file"]  # fmt: skip
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            shown = {**row, "shape": "x".join(map(str, row["shape"]))}
            shown["member"] = "".join(f"[{index}]" for index in row["member"])
            writer.writerow({key: _harmless(value) for key, value in shown.items()})


def _harmless(value: Any) -> Any:  # noqa: ANN401 - a cell
    """Keep a spreadsheet from taking a name for a formula."""
    if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        return f"'{value}"
    return value
