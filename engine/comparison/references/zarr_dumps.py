"""References that are one input of the dump of a data set: ``dump.zarr:INPUT``.

`engine.datasets` writes such dumps, by Zarr. They are not compressed, so an input is read here
without Zarr: the metadata of an array say where its elements lie.
"""

from __future__ import annotations

import json
import math
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import numpy as np

from engine.atomic import format_os_error
from engine.comparison.references.reference import (
    Reference,
    ReferenceOperator,
    ReferenceTensor,
)
from engine.errors import ReferenceFileError
from engine.file_versions import open_steady, read_regular
from engine.memory_bound import current_room, format_refusal

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["is_data_set_dump", "reference_of_data_set"]

_NAMED: Final = re.compile(r"(?P<path>.+\.zarr)/?(?::(?P<index>\d{1,18}))?", re.DOTALL)
_METADATA: Final = "zarr.json"
_LARGEST: Final = 64 << 20  # bytes of metadata
_ABSENT: Final = (1 << 64) - 1  # offset of a chunk that was not written
_ENTRY: Final = 16  # bytes of a chunk in the index of a shard
_CHECKSUM: Final = 4  # bytes behind the index
_ARRAY: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class _Place(NamedTuple):
    """Where the elements of an input lie.

    Attributes
    ----------
    file : Path
    slot : int
        Of the chunk in the index of the shard.
    slots : int
        Of the index.
    skipped : int
        Bytes of the chunk before the input.
    shape : tuple of int
    dtype : numpy.dtype
    """

    file: Path
    slot: int
    slots: int
    skipped: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def is_data_set_dump(source: Path) -> bool:
    """Whether a path names a Zarr dump, or an input of one."""
    return _NAMED.fullmatch(str(source)) is not None


def reference_of_data_set(source: Path) -> Reference:
    """Make a reference from one input of a dump.

    Parameters
    ----------
    source : path
        ``dump.zarr:INPUT``, the number of an input in the data set.

    Raises
    ------
    ReferenceFileError
        If it cannot be read, or names no input.
    """
    named = _NAMED.fullmatch(str(source))
    path = Path(named["path"] if named is not None else source)
    head = _read(path / _METADATA)
    try:
        facts = head["attributes"]["kuiper_studio"]
        count, arrays, outputs = int(facts["inputs"]), facts["arrays"], facts["outputs"]
        rows = [
            (str(row["operand"]), str(row["operator"]), str(row["type"]), str(row["array"]))
            for row in arrays
        ]
    except (KeyError, TypeError, ValueError) as exc:
        raise ReferenceFileError(path, "it is no dump of a data set") from exc
    if named is None or named["index"] is None or int(named["index"]) >= count:
        raise ReferenceFileError(
            path, f"name an input of 0 to {count - 1}, such as {path.name}:0"
        )
    index = int(named["index"])
    tensors = [
        ReferenceTensor(
            operand,
            partial(_load, path / array, index),
            operator=operator,
            type=kind,
            role="input" if kind == "pnnx.Input" else "",
            quick=True,
        )
        for operand, operator, kind, array in rows
        if _ARRAY.fullmatch(array)
    ]
    known = {tensor.key for tensor in tensors}
    return Reference(
        f"{path.name}:{index}",
        tensors,
        [ReferenceOperator(each.operator, each.type, (), (each.key,)) for each in tensors],
        [each.key for each in tensors if each.role == "input"],
        [name for name in outputs if name in known],
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_regular(path, _LARGEST))
    except OSError as exc:
        raise ReferenceFileError(path, f"it cannot be read: {format_os_error(exc)}") from exc
    except ValueError as exc:
        raise ReferenceFileError(path, f"it cannot be read: {exc}") from exc
    if not isinstance(found, dict):
        raise ReferenceFileError(path, "it is no JSON object")
    return found


def _load(folder: Path, index: int) -> Array:
    """Read the elements of an input from an array."""
    try:
        place, is_batched = _find(folder, index)
        array = _read_elements(place)
    except OSError as exc:
        raise ReferenceFileError(folder, f"it cannot be read: {format_os_error(exc)}") from exc
    except (KeyError, IndexError, TypeError, ValueError) as exc:
        raise ReferenceFileError(
            folder, "it is not an uncompressed array as a sweep writes it"
        ) from exc
    return array[np.newaxis] if is_batched else array


def _find(folder: Path, index: int) -> tuple[_Place, bool]:
    metadata = _read(folder / _METADATA)
    (codec,) = metadata["codecs"]
    inner = codec["configuration"]
    if (
        codec["name"] != "sharding_indexed"
        or [each["name"] for each in inner["codecs"]] not in (["bytes"], [])
        or [each["name"] for each in inner["index_codecs"]] != ["bytes", "crc32c"]
        or inner["index_location"] != "end"
        or metadata["chunk_key_encoding"]["configuration"]["separator"] != "/"
    ):
        raise ValueError(codec["name"])
    shape = tuple(int(size) for size in metadata["shape"])
    shard = int(metadata["chunk_grid"]["configuration"]["chunk_shape"][0])
    chunk = int(inner["chunk_shape"][0])
    dtype = np.dtype(metadata["data_type"]).newbyteorder("<")
    if dtype.hasobject or not 0 <= index < shape[0] or min(shape) < 0 or shard % chunk:
        raise ValueError(shape)
    nbytes = math.prod(shape[1:]) * dtype.itemsize
    if nbytes > current_room().left:
        raise ReferenceFileError(folder, format_refusal("an input", nbytes, current_room()))
    within = index % shard
    file = folder.joinpath("c", str(index // shard), *["0"] * (len(shape) - 1))
    place = _Place(
        file, within // chunk, shard // chunk, within % chunk * nbytes, shape[1:], dtype
    )
    return place, bool(metadata["attributes"]["batched"])


def _read_elements(place: _Place) -> Array:
    nbytes = math.prod(place.shape) * place.dtype.itemsize
    with open_steady(place.file) as file:
        size = os.fstat(file.fileno()).st_size
        begin = size - place.slots * _ENTRY - _CHECKSUM + place.slot * _ENTRY
        entry = np.frombuffer(_take(file, begin, _ENTRY, size), "<u8")
        offset = int(entry[0])
        if offset == _ABSENT:
            return np.zeros(place.shape, place.dtype)
        data = _take(file, offset + place.skipped, nbytes, size)
    return np.frombuffer(data, place.dtype).reshape(place.shape)


def _take(file: BinaryIO, begin: int, count: int, size: int) -> bytes:
    if not 0 <= begin <= size - count:
        raise ValueError(begin)
    file.seek(begin)
    return file.read(count)
