"""The manifest of a dump, and the summary for spreadsheets."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.cost import cost
from engine.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from engine.dump.entries import Entry
    from engine.dump.options import DumpOptions
    from engine.file_versions import FileVersion
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.session import Session
    from engine.statistics import TensorStatistics

__all__ = [
    "MANIFEST",
    "SCHEMA",
    "SUMMARY",
    "Facts",
    "Row",
    "file_hash",
    "make_row",
    "manifest_head",
    "manifest_text",
    "model_hashes",
    "summary_text",
    "tool_version",
]

SCHEMA: Final = "kuiper-studio-dump"
MANIFEST: Final = "manifest.json"
SUMMARY: Final = "summary.csv"
# 2: checksums may be missing; what the directory of the .bin says stands beside them
# 3: the user's files of layers
# 4: SHA-256 of the inputs whatever else
SCHEMA_VERSION: Final = 4

_CHUNK: Final = 1 << 20
_LAYOUTS: Final = {4: "NCHW", 5: "NCDHW"}


@dataclass(frozen=True, slots=True)
class Facts:
    """Statistics and hash of an array, computed while it was written.

    Attributes
    ----------
    statistics : TensorStatistics
    sha256 : str or None
        Of the elements in C order and little-endian, without any file's header: equal
        arrays have equal hashes in every format. None if it was not requested.
    """

    statistics: TensorStatistics
    sha256: str | None


class ModelHashes(NamedTuple):
    """SHA-256 of a model's files as they were opened.

    None for hashes that were not requested, and for files that were removed or changed.

    Attributes
    ----------
    param, bin : str or None
    bin_directory : str or None
        Of the directory of the ``.bin``: names, sizes and CRC-32 of the weights. It identifies
        a model without reading the weights.
    """

    param: str | None
    bin: str | None
    bin_directory: str | None


def model_hashes(
    graph: RuntimeGraph, options: DumpOptions, check_cancelled: Callable[[], None]
) -> ModelHashes:
    """Compute the hashes that identify a model, which may take long.

    Parameters
    ----------
    graph : RuntimeGraph
    options : DumpOptions
    check_cancelled : callable
        Called while files are read; its exception cancels that.
    """
    file, archive = graph.file, graph.file.archive
    return ModelHashes(
        _hash_of(file.param_version, check_cancelled),
        _hash_of(archive.version, check_cancelled)
        if archive is not None and options.sha256
        else None,
        hashlib.sha256(archive.directory).hexdigest() if archive is not None else None,
    )


def manifest_head(session: Session, options: DumpOptions, hashes: ModelHashes) -> str:
    """Format a manifest without the operands, which `manifest_text` adds.

    Parameters
    ----------
    session : Session
    options : DumpOptions
    hashes : ModelHashes

    Returns
    -------
    str
        The beginning of a JSON object.
    """
    graph = session.graph
    manifest = {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "tool": {"name": "kuiper-studio", "version": tool_version()},
        "model": {
            "source": graph.source_path.name,
            "param": graph.param_path.name,
            "bin": graph.bin_path.name if graph.bin_path else None,
            "param_sha256": hashes.param,
            "bin_sha256": hashes.bin,
            "bin_directory_sha256": hashes.bin_directory,
        },
        "backend": session.backend,
        "seed": session.seed,
        "state": session.state.value,
        "options": plain(asdict(options)),
        "layers": [
            {"file": file.path.name, "sha256": file.sha256, "types": list(file.types)}
            for file in graph.layer_files
        ],
        "operators": [_operator_row(session, operator) for operator in graph.operators],
    }
    return "{\n" + "".join(f"{_member(key, value)},\n" for key, value in manifest.items())


def _hash_of(version: FileVersion | None, check_cancelled: Callable[[], None]) -> str | None:
    """Return the SHA-256 of a file, if it has not changed since it was opened."""
    if version is None or not version.is_current():
        return None  # the dump is still valid without it
    try:
        digest = file_hash(version.path, check_cancelled)
    except FileNotFoundError:
        return None
    return digest if version.is_current() else None


def _operator_row(session: Session, operator: RuntimeOperator) -> dict[str, Any]:
    record = session.record(operator.name)
    spent = cost(operator, session)
    return {
        "index": operator.index,
        "name": operator.name,
        "type": operator.type,
        "status": session.status(operator.name).value,
        "reason": record.reason if record is not None else operator.reason,
        "backend": record.backend if record is not None else "",
        "kernel": record.kernel if record is not None else "",
        "supplied": dict(record.overrides) if record is not None else {},
        "random": record.random if record is not None else operator.random,
        "ms": round(record.seconds * 1e3, 6) if record is not None else None,
        "macs": spent.macs,
        "flops": spent.flops,
        "params": plain(dict(operator.params)),
        "inputs": [operand.name for operand in operator.inputs],
        "outputs": [operand.name for operand in operator.outputs],
    }


class Row(NamedTuple):
    """Lines of an entry.

    Attributes
    ----------
    manifest, summary : str
    """

    manifest: str
    summary: str


def make_row(entry: Entry, file: str, facts: Facts | None) -> Row:
    """Describe an entry.

    Parameters
    ----------
    entry : Entry
    file : str
        Path within the dump, or name within the archive; ``""`` if it was not written.
    facts : Facts or None
        None for an entry that is not an array.
    """
    array, consumers = entry.metadata, entry.operand.consumers if entry.operand else ()
    row: dict[str, Any] = {
        "name": entry.name,
        "member": list(entry.member),
        "role": entry.role,
        "kind": entry.kind,
        "file": file,
        "producer": entry.operator.name,
        "consumers": [operator.name for operator in consumers],
        "dtype": array.dtype.name if array is not None else None,
        "shape": list(array.shape) if array is not None else None,
        "layout": "",
        "nbytes": array.nbytes if array is not None else 0,
        **_numbers(facts.statistics if facts is not None else None),
        "sha256": facts.sha256 if facts is not None else None,
    }
    if array is not None and entry.operand is not None:
        row["layout"] = _LAYOUTS.get(len(array.shape), "")
    if entry.operand is None:
        row["stored_dtype"] = entry.stored_dtype
    if entry.kind != "tensor":
        row["value"] = entry.value
    return Row(_json(row), _summary_line(row))


_NUMBERS: Final = ("min", "max", "mean", "std", "zeros", "nan", "pinf", "ninf")
_numbers_of: Final = attrgetter(*_NUMBERS)


def _numbers(found: TensorStatistics | None) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys(_NUMBERS)
    numbers = dict(zip(_NUMBERS, _numbers_of(found), strict=True))
    if not found.finite:  # then it has no range
        numbers.update(dict.fromkeys(("min", "max", "mean", "std")))
    return numbers


def manifest_text(head: str, rows: Iterable[Row]) -> str:
    """Complete `manifest_head` with the rows of the operands, from `make_row`."""
    return f"{head}{_list('operands', [row.manifest for row in rows])}\n}}\n"


def _member(key: str, value: object) -> str:
    """Format a member of the manifest, a list with one line per item."""
    if isinstance(value, list):
        return _list(key, list(map(_json, value)))
    return f" {_json(key)}: {_json(value)}"


def _list(key: str, items: Sequence[str]) -> str:
    lines = ",\n  ".join(items)
    return f" {_json(key)}: [\n  {lines}\n ]" if items else f" {_json(key)}: []"


_json: Final = json.JSONEncoder(allow_nan=False).encode


_COLUMNS: Final = ("name", "member", "role", "kind", "producer", "dtype", "shape", "min", "max",
                   "mean", "std", "zeros", "nan", "pinf", "ninf", "file")  # fmt: skip


def summary_text(rows: Iterable[Row]) -> str:
    """Join the rows as CSV, for spreadsheets and simple scripts."""
    return "".join([_csv_line(_COLUMNS), *(row.summary for row in rows)])


def _summary_line(row: dict[str, Any]) -> str:
    shape = row["shape"]
    shown = row | {
        "shape": "" if shape is None else "x".join(map(str, shape)) or "scalar",
        "member": "".join([f"[{index}]" for index in row["member"]]),
    }
    return _csv_line([_harmless(shown[column]) for column in _COLUMNS])


def _csv_line(values: Iterable[object]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def _harmless(value: object) -> object:
    """Prevent a spreadsheet from reading a name as a formula."""
    if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        return f"'{value}"
    return value


def file_hash(path: Path, check_cancelled: Callable[[], None]) -> str:
    """Return the SHA-256 of a file, cached while the file is unchanged.

    Parameters
    ----------
    path : Path
    check_cancelled : callable
        Called between pieces; its exception cancels the reading.
    """
    status = path.stat()
    key = (path.absolute(), status.st_size, status.st_mtime_ns, status.st_ino)
    if key not in _hashes:
        digest = hashlib.sha256()
        with path.open("rb", buffering=0) as stream:
            while block := stream.read(_CHUNK):
                check_cancelled()
                digest.update(block)
        _hashes[key] = digest.hexdigest()
    return _hashes[key]


_hashes: dict[tuple[Path, int, int, int], str] = {}


@lru_cache(maxsize=1)
def tool_version() -> str:
    """Return the version of Kuiper Studio, or ``unknown``."""
    try:
        return version("kuiper-studio")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"
