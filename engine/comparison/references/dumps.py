"""References that are dumps: a folder or a ``.safetensors`` with a manifest."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.comparison.references.arrays import reference_of_file, tensor_of_npy
from engine.comparison.references.reference import (
    Reference,
    ReferenceOperator,
    ReferenceTensor,
)
from engine.dump import read_manifest
from engine.errors import ReferenceFileError
from engine.runtime.members import LISTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["reference_of_dump"]

_INSIDE: Final = re.compile(r"(?:inputs|ops)/[A-Za-z0-9_][A-Za-z0-9._-]*\.npy")


def reference_of_dump(path: Path) -> Reference:
    """Make a reference from a dump with a manifest.

    Raises
    ------
    DumpFileError
        If the manifest cannot be read.
    ReferenceFileError
        If it does not describe a dump with arrays.
    """
    manifest = read_manifest(path)
    operands, operators = manifest.get("operands"), manifest.get("operators")
    if not isinstance(operands, list) or not isinstance(operators, list):
        raise ReferenceFileError(path, "its manifest lists no operands")
    rows = [row for row in operators if isinstance(row, dict) and _is_text(row, "name", "type")]
    types = {row["name"]: row["type"] for row in rows}
    tensor_of = _reader(path)
    tensors = []
    for row in operands:
        if isinstance(row, dict) and row.get("role") in {"inputs", "ops"}:
            tensor = _tensor(row, types, tensor_of)
            if tensor is not None:
                tensors.append(tensor)
    if not tensors:
        raise ReferenceFileError(
            path, "it has no arrays to compare with; dump without --statistics-only"
        )
    known = {tensor.key for tensor in tensors}
    calls = [
        ReferenceOperator(
            row["name"], row["type"], _keys(row, "inputs", known), _keys(row, "outputs", known)
        )
        for row in rows
    ]
    inputs = [key for call in calls if call.type == "pnnx.Input" for key in call.outputs]
    outputs = [name for name in _outputs(rows) if name in known]
    return Reference(path.name, tensors, calls, inputs, outputs)


def _outputs(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the model's outputs, of lists their members."""
    members = {
        name: _names(row, "inputs")
        for row in rows
        if row["type"] in LISTS
        for name in _names(row, "outputs")
    }
    found: list[str] = []
    left = [n for row in rows if row["type"] == "pnnx.Output" for n in _names(row, "inputs")]
    while left:
        name = left.pop(0)
        left[:0] = members.pop(name, [])  # a list that holds itself ends
        found.append(name)
    return found


def _names(row: dict[str, Any], end: str) -> list[str]:
    listed = row.get(end)
    return (
        [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    )


def _is_text(row: dict[str, Any], *keys: str) -> bool:
    return all(isinstance(row.get(key), str) for key in keys)


def _keys(row: dict[str, Any], name: str, known: set[str]) -> tuple[str, ...]:
    return tuple([key for key in _names(row, name) if key in known])


def _tensor(
    row: dict[str, Any], types: dict[str, str], tensor_of: Callable[[str], ReferenceTensor]
) -> ReferenceTensor | None:
    """Return a tensor of the manifest; None for a member of a list, and without an array."""
    if row.get("kind") != "tensor" or row.get("member") or not row.get("file"):
        return None
    if not _is_text(row, "name", "file", "producer"):
        return None
    producer = row["producer"]
    return replace(
        tensor_of(row["file"]),
        key=row["name"],
        names=(producer,),
        operator=producer,
        type=types.get(producer, ""),
        role="input" if row["role"] == "inputs" else "",
    )


def _reader(path: Path) -> Callable[[str], ReferenceTensor]:
    """Return a function that makes the tensor of an entry's file."""
    if path.suffix.lower() == ".safetensors" and path.is_file():
        entries = reference_of_file(path).by_key

        def of_archive(name: str) -> ReferenceTensor:
            if name not in entries:
                raise ReferenceFileError(path, f"its manifest names {name!r}, which it lacks")
            return entries[name]

        return of_archive
    folder = path if path.is_dir() else path.parent

    def of_folder(name: str) -> ReferenceTensor:
        if not _INSIDE.fullmatch(name):
            raise ReferenceFileError(path, f"its manifest names {name!r}, not a file of a dump")
        return tensor_of_npy(name, folder / name)

    return of_folder
