"""Writes the tensors of a data set as Zarr arrays: one an operand, the first axis the inputs.

A task writes exactly one shard of each array, so that no two tasks ever touch the same file.
The shard counts once the task's result is kept; a task that is run again writes it again.
"""

from __future__ import annotations

import math
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.datasets.extra import require_extra
from engine.dump.names import UniqueNames, clean_name
from engine.errors import FeedError, SweepError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from engine.datasets.model import OperandFacts
    from engine.datasets.values import BatchValues
    from engine.values import Array

__all__ = ["DUMP", "DumpWriter", "array_names", "create_dump"]

DUMP: Final = "dump.zarr"
"""Folder of the dump in that of the sweep."""
_CHUNK: Final = 1 << 20  # bytes, about


def array_names(operands: Sequence[OperandFacts]) -> dict[str, str]:
    """Return the name of the Zarr array of each operand: its own, made safe and unique."""
    names = UniqueNames(_clean)
    return {facts.name: names.claim(facts.name) for facts in operands}


def _clean(name: str) -> str:
    cleaned = clean_name(name)
    reserved = cleaned.lower() == "zarr.json" or cleaned.startswith("__")
    return f"x{cleaned}" if reserved else cleaned


def create_dump(
    output: Path,
    operands: Sequence[OperandFacts],
    count: int,
    shard: int,
    attributes: Mapping[str, Any],
) -> None:
    """Create the arrays of a dump, without elements; keep those that are there as asked.

    Parameters
    ----------
    output : path
        Folder of the sweep.
    operands : sequence of OperandFacts
    count : int
        Number of inputs.
    shard : int
        Inputs of a task.
    attributes : mapping
        JSON for the group: the model, the inputs, versions.

    Raises
    ------
    SweepError
        If Zarr is not installed.
    OSError
        If it cannot be written.
    """
    require_extra()
    import zarr

    path = output / DUMP
    try:
        group = zarr.open_group(str(path), mode="a", zarr_format=3)
    except OSError:
        raise
    except Exception as exc:
        raise SweepError(f"{path} cannot be opened: {exc}") from exc
    group.attrs.update(dict(attributes))
    for facts, name in zip(operands, array_names(operands).values(), strict=True):
        shape = (count, *facts.shape)
        if name in group:
            there = group[name]
            if there.shape == shape and there.shards == (shard, *facts.shape):
                continue
            shutil.rmtree(path / name)
        nbytes = math.prod(facts.shape) * np.dtype(facts.dtype).itemsize
        group.create_array(
            name,
            shape=shape,
            dtype=np.dtype(facts.dtype),
            chunks=(_inputs_of_chunk(shard, nbytes), *(max(size, 1) for size in facts.shape)),
            shards=(shard, *(max(size, 1) for size in facts.shape)),
            compressors=None,
            fill_value=0,
            dimension_names=_dimension_names(facts),
            attributes={
                "operand": facts.name,
                "operator": facts.operator,
                "type": facts.type,
                "batched": facts.batched,
                "channels": facts.axis,
            },
        )


def _inputs_of_chunk(shard: int, nbytes: int) -> int:
    most = max(1, _CHUNK // max(nbytes, 1))
    return max(count for count in range(1, min(most, shard) + 1) if shard % count == 0)


def _dimension_names(facts: OperandFacts) -> list[str]:
    """Names of dimensions, with their size: one name has one size in all arrays of a dump."""
    names = ["input"]
    for place, (word, size) in enumerate(zip(facts.dimensions, facts.shape, strict=True)):
        name = f"{word or 'axis'}_{size}"
        names.append(f"{name}_{place + 1}" if name in names else name)
    return names


class DumpWriter:
    """Writes to the arrays of a dump.

    Parameters
    ----------
    output : path
        Folder of the sweep.
    operands : sequence of OperandFacts
    """

    def __init__(self, output: Path, operands: Sequence[OperandFacts]) -> None:
        import zarr

        self._path = output / DUMP
        self._operands = tuple(operands)
        self._names = array_names(operands)
        # The file of a shard tells that it is written, also where all elements are zero. Arrays
        # do not keep this: who opens them asks for it.
        with zarr.config.set({"array.write_empty_chunks": True}):
            group = zarr.open_group(str(self._path), mode="r+")
            self._arrays: dict[str, Any] = {
                facts.name: group[self._names[facts.name]] for facts in operands
            }

    def check(self, values: BatchValues) -> None:
        """Check that values have the shapes of the first input.

        Raises
        ------
        FeedError
            If one has another: an array has one shape.
        """
        for facts in self._operands:
            shape = values.shape(facts.name)[1:]
            if shape != facts.shape:
                raise FeedError(
                    f"operand {facts.name} has the shape {shape}, and {facts.shape} with the "
                    "first input: a dump holds one shape"
                )

    def start(self, inputs: range) -> _ShardOfDump:
        """Begin a shard."""
        return _ShardOfDump(self, inputs)

    def write(self, name: str, inputs: range, block: Array) -> None:
        """Write the shard of an operand, and sync it to disk."""
        self._arrays[name][inputs.start : inputs.stop] = block
        place = self._place_of(name, inputs)
        file = os.open(place, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def has(self, inputs: range) -> bool:
        """Return whether the shards of a task were written."""
        return all(self._place_of(facts.name, inputs).exists() for facts in self._operands)

    def _place_of(self, name: str, inputs: range) -> Path:
        """Return the file of a shard, by Zarr's naming."""
        array = self._arrays[name]
        number = str(inputs.start // array.shards[0])
        folder = self._path / self._names[name] / "c"
        return folder.joinpath(number, *["0"] * (array.ndim - 1))


class _ShardOfDump:
    """Collects the values of a task, and writes them at once."""

    def __init__(self, writer: DumpWriter, inputs: range) -> None:
        self._writer, self._inputs = writer, inputs
        self._blocks: dict[str, Array] = {}

    def add(self, indices: Sequence[int], values: Mapping[str, Array]) -> None:
        places = np.asarray(indices) - self._inputs.start
        for name, value in values.items():
            if name not in self._blocks:
                shape = (len(self._inputs), *value.shape[1:])
                self._blocks[name] = np.zeros(shape, value.dtype)
            self._blocks[name][places] = value

    def write(self) -> None:
        for name, block in self._blocks.items():
            self._writer.write(name, self._inputs, block)
