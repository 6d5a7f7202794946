"""References that a recorder wrote; see `engine.comparison.recorders`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.atomic import format_os_error
from engine.comparison.references.arrays import tensor_of_npy
from engine.comparison.references.reference import (
    Reference,
    ReferenceOperator,
    ReferenceTensor,
)
from engine.errors import ReferenceFileError
from engine.file_versions import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.comparison.references.reference import WeightHash

__all__ = ["RECORDING", "is_recording", "reference_of_recording"]

RECORDING: Final = "recording.json"
"""The manifest of a recording."""
_SCHEMA: Final = "kuiper-studio-recording"
_LARGEST: Final = 1 << 30  # bytes
_INSIDE: Final = re.compile(r"tensors/[A-Za-z0-9_][A-Za-z0-9._-]*\.npy")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_ROLES: Final = frozenset({"", "input", "constant"})


@dataclass(frozen=True, slots=True)
class _RecordedHash:
    """A `WeightHash` of a manifest; older ones lack the size, or that of pnnx's rounding."""

    float32: str
    float16: str
    size: int = -1
    pnnx: str = ""
    is_half: bool = False


def is_recording(path: Path) -> bool:
    """Whether a path is the folder of a recording, or its manifest."""
    return path.name == RECORDING or (path / RECORDING).is_file()


def reference_of_recording(path: Path) -> Reference:
    """Make a reference from a recording.

    Raises
    ------
    ReferenceFileError
        If it cannot be read.
    """
    folder = path.parent if path.name == RECORDING else path
    try:
        manifest = json.loads(read_regular(folder / RECORDING, _LARGEST))
    except OSError as exc:
        raise ReferenceFileError(path, format_os_error(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise ReferenceFileError(path, f"its {RECORDING} is damaged") from exc
    if not isinstance(manifest, dict) or manifest.get("schema") != _SCHEMA:
        raise ReferenceFileError(path, f"its {RECORDING} was written by another program")
    try:
        operators = [_operator(row) for row in manifest["operators"]]
        producers = {key: call for call in reversed(operators) for key in call.outputs}
        tensors = [_tensor(folder, row, producers) for row in manifest["tensors"]]
        known = {tensor.key for tensor in tensors}
        calls = [_within(call, known) for call in operators]
        inputs, outputs = (
            [key for key in _texts(manifest[end]) if key in known]
            for end in ("inputs", "outputs")
        )
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise ReferenceFileError(path, f"its {RECORDING} is damaged") from exc
    if len(known) != len(tensors):
        raise ReferenceFileError(path, f"its {RECORDING} names a tensor twice")
    if not tensors:
        raise ReferenceFileError(path, "it has no tensors; record the model again")
    return Reference(folder.name, tensors, calls, inputs, outputs)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(values)
    return tuple(map(_text, values))


def _operator(row: dict[str, Any]) -> ReferenceOperator:
    hashes = {
        _text(name): _RecordedHash(
            _checked(each["float32"]),
            _checked(each["float16"]),
            _size(each.get("size", -1)),
            _checked(each["pnnx"]) if "pnnx" in each else "",
        )
        for name, each in row.get("weights", {}).items()
    }
    return ReferenceOperator(
        _text(row["name"]),
        _text(row["type"]),
        _texts(row["inputs"]),
        _texts(row["outputs"]),
        partial(_same, hashes),
    )


def _same(hashes: Mapping[str, WeightHash]) -> Mapping[str, WeightHash]:
    return hashes


def _checked(text: object) -> str:
    if not _HASH.fullmatch(_text(text)):
        raise ValueError(text)
    return _text(text)


def _size(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _tensor(
    folder: Path,
    row: dict[str, Any],
    producers: Mapping[str, ReferenceOperator],
) -> ReferenceTensor:
    file, role = _text(row["file"]), _text(row.get("role", ""))
    if not _INSIDE.fullmatch(file) or role not in _ROLES:
        raise ValueError(file)
    key = _text(row["key"])
    producer = producers.get(key)
    return replace(
        tensor_of_npy(key, folder / file),
        names=_texts(row.get("names", [])),
        operator=producer.name if producer is not None else "",
        type=producer.type if producer is not None else "",
        role=role,
    )


def _within(call: ReferenceOperator, known: set[str]) -> ReferenceOperator:
    """Leave out tensors that were not recorded."""
    return ReferenceOperator(
        call.name,
        call.type,
        tuple([key for key in call.inputs if key in known]),
        tuple([key for key in call.outputs if key in known]),
        call.weights,
    )
