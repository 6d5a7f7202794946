"""References that are arrays in files, without a manifest."""

from __future__ import annotations

import math
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.array_files import SAFETENSORS_DTYPES, read_safetensors_header
from engine.atomic import format_os_error
from engine.comparison.references.reference import Reference, ReferenceTensor
from engine.errors import FeedError, ReferenceFileError
from engine.file_versions import open_steady, read_regular
from engine.memory_bound import current_room, format_refusal
from engine.numpy_files import describe_npy, read_npy, read_npz
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.values import Array

__all__ = ["ARRAY_SUFFIXES", "reference_of_file", "reference_of_folder", "tensor_of_npy"]

ARRAY_SUFFIXES: Final = (".npy", ".csv")
"""Suffixes of files with one array each, which a folder may hold."""

_MOST_FILES: Final = 1 << 17
_LARGEST_TEXT: Final = 1 << 30  # bytes of a .csv
_NUMBER: Final = re.compile(r"(\d+)")
_DTYPES: Final = {tag: dtype for dtype, tag in SAFETENSORS_DTYPES.items()}
_BFLOAT16: Final = "BF16"


def reference_of_folder(folder: Path) -> Reference:
    """Make a reference from a folder of ``.npy`` and ``.csv`` files.

    Each file has the name of its tensor. Numbers in the names order them: ``2_conv`` comes
    before ``10_relu``.

    Raises
    ------
    ReferenceFileError
        If there are none, or too many.
    """
    files: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if Path(entry.name).suffix.lower() in ARRAY_SUFFIXES:
                    files.append(folder / entry.name)
                    if len(files) > _MOST_FILES:
                        raise ReferenceFileError(
                            folder, f"it has more than {_MOST_FILES} arrays; compare fewer"
                        )
    except OSError as exc:
        raise ReferenceFileError(folder, format_os_error(exc)) from exc
    if not files:
        raise ReferenceFileError(
            folder,
            "it is neither a dump nor a recording, and has no .npy or .csv; name a folder with "
            "one of these",
        )
    files.sort(key=lambda path: _in_order(path.name))
    keys = _unique([path.stem for path in files], [path.name for path in files])
    tensors = [_tensor_of(key, path) for key, path in zip(keys, files, strict=True)]
    return Reference(folder.name, tensors, ordered=False)


def reference_of_file(path: Path) -> Reference:
    """Make a reference from an ``.npz``, ``.safetensors``, ``.npy`` or ``.csv``.

    Raises
    ------
    ReferenceFileError
        If it cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix in ARRAY_SUFFIXES:
        tensors = [_tensor_of(path.stem, path)]
    elif suffix == ".npz":
        tensors = [ReferenceTensor(n, partial(_load_member, path, n)) for n in _names_of(path)]
    else:
        tensors = _safetensors(path)
    if not tensors:
        raise ReferenceFileError(path, "it has no arrays")
    return Reference(path.name, tensors, ordered=False)


def _in_order(name: str) -> list[tuple[int, int, str]]:
    return [
        (0, int(part[:18]), part) if part.isdecimal() else (1, 0, part.lower())
        for part in _NUMBER.split(name)
        if part
    ]


def _unique(names: Sequence[str], whole: Sequence[str]) -> list[str]:
    taken: set[str] = set()
    keys = []
    for name, longer in zip(names, whole, strict=True):
        key = longer if name in taken else name
        taken.add(key)
        keys.append(key)
    return keys


def tensor_of_npy(key: str, path: Path) -> ReferenceTensor:
    """Make a tensor of an ``.npy``."""
    load, describe = partial(_load_npy, path), partial(_describe_npy, path)
    return ReferenceTensor(key, load, quick=True, describe=describe)


def _load_npy(path: Path) -> Array:
    try:
        return read_npy(path)
    except FeedError as exc:
        raise ReferenceFileError(path.parent, str(exc)) from exc


def _describe_npy(path: Path) -> ArrayMetadata:
    try:
        return describe_npy(path)
    except FeedError as exc:
        raise ReferenceFileError(path.parent, str(exc)) from exc


def _tensor_of(key: str, path: Path) -> ReferenceTensor:
    is_text = path.suffix.lower() != ".npy"
    return (
        ReferenceTensor(key, partial(_load_csv, path)) if is_text else tensor_of_npy(key, path)
    )


def _load_csv(path: Path) -> Array:
    """Read a matrix of numbers: a line is a row, as KuiperInfer's tests have it."""
    try:
        data = read_regular(path, _LARGEST_TEXT)
        lines = [line for line in data.decode("ascii").splitlines() if line.strip()]
        rows = [_row(line) for line in lines]
    except OSError as exc:
        raise ReferenceFileError(path, format_os_error(exc)) from exc
    except ValueError as exc:
        raise ReferenceFileError(path, "it does not hold only numbers") from exc
    if not rows or len({row.size for row in rows}) != 1:
        raise ReferenceFileError(path, "its lines have different numbers of columns")
    return np.stack(rows)


def _row(line: str) -> Array:
    texts = line.replace(";", ",").strip().strip(",")
    return np.asarray((texts.split(",") if "," in texts else texts.split()), np.float32)


def _names_of(path: Path) -> tuple[str, ...]:
    found: tuple[str, ...] = ()

    def note(names: tuple[str, ...]) -> dict[str, str]:
        nonlocal found
        found = names
        return {}

    _read_npz(path, note)
    return found


def _load_member(path: Path, name: str) -> Array:
    return _read_npz(path, lambda _: {name: name})[name]


def _read_npz(
    path: Path, choose: Callable[[tuple[str, ...]], dict[str, str]]
) -> dict[str, Array]:
    try:
        return read_npz(path, choose)
    except (FeedError, KeyError) as exc:
        raise ReferenceFileError(path, str(exc)) from exc


def _safetensors(path: Path) -> list[ReferenceTensor]:
    try:
        start, header = read_safetensors_header(path)
        size = path.stat().st_size
    except OSError as exc:
        raise ReferenceFileError(path, format_os_error(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise ReferenceFileError(path, "it is not a .safetensors file") from exc
    tensors = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        shape, dtype, begin, end = _checked(path, name, entry, size - start)
        load = partial(_load_slice, path, start + begin, end - begin, shape, dtype)
        describe = partial(_describe_slice, path, end - begin, shape, dtype)
        tensor = ReferenceTensor(name, load, quick=True, describe=describe)
        tensors.append((begin, tensor))
    return [tensor for _, tensor in sorted(tensors, key=lambda pair: pair[0])]


def _checked(
    path: Path, name: str, entry: object, available: int
) -> tuple[tuple[int, ...], str, int, int]:
    """Check an array's entry in the header."""
    try:
        assert isinstance(entry, dict)  # noqa: S101 - caught below
        tag, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        itemsize = 2 if tag == _BFLOAT16 else _DTYPES[tag].itemsize
        whole = all(type(n) is int and n >= 0 for n in (*shape, begin, end))
        fits = whole and end <= available and end - begin == math.prod(shape) * itemsize
    except (AssertionError, KeyError, TypeError, ValueError) as exc:
        raise ReferenceFileError(path, f"its header does not describe {name!r}") from exc
    if not fits or len(shape) > 64:
        raise ReferenceFileError(path, f"{name!r} is outside the file")
    return tuple(shape), tag, begin, end


def _describe_slice(path: Path, nbytes: int, shape: tuple[int, ...], tag: str) -> ArrayMetadata:
    _require_room(path, nbytes)
    return ArrayMetadata(shape, _DTYPES.get(tag, np.dtype(np.float32)))  # also of bfloat16


def _require_room(path: Path, nbytes: int) -> None:
    room = current_room()
    if nbytes > room.left:
        raise ReferenceFileError(path, format_refusal("a tensor", nbytes, room))


def _load_slice(path: Path, start: int, nbytes: int, shape: tuple[int, ...], tag: str) -> Array:
    _require_room(path, nbytes)
    try:
        with open_steady(path) as file:
            file.seek(start)
            data = file.read(nbytes)
    except OSError as exc:
        raise ReferenceFileError(path, format_os_error(exc)) from exc
    if len(data) != nbytes:
        raise ReferenceFileError(path, "it is cut short")
    if tag == _BFLOAT16:  # the upper half of a float32
        halves: np.ndarray[Any, Any] = np.frombuffer(data, "<u2")
        return (halves.astype("<u4") << np.uint32(16)).view("<f4").reshape(shape)
    return np.frombuffer(data, _DTYPES[tag]).reshape(shape)
