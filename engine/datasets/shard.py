"""Runs the inputs of one task, and keeps the result for a later resumption."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import write_npz
from engine.atomic import format_os_error, written_beside
from engine.datasets.failures import FAILURES, FailedInput, pack_failures
from engine.datasets.inputs import InputReader
from engine.datasets.model import LoadedModel
from engine.errors import EngineError, FeedError, InferenceError, MemoryBoundError, SweepError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.datasets.dump import DumpWriter
    from engine.datasets.plan import Result, SweepPlan
    from engine.datasets.studies import Gatherer
    from engine.datasets.values import BatchValues
    from engine.runtime import RuntimeGraph
    from engine.values import Array

__all__ = ["ShardRunner", "read_arrays", "write_arrays"]

_KEY: Final = "key"
_PASSED_OVER: Final = (FeedError, InferenceError, MemoryBoundError)


class ShardRunner:
    """Runs tasks of a sweep in this process, with one session.

    Parameters
    ----------
    plan : SweepPlan
    graph : RuntimeGraph, optional
        The model, if it is loaded already.

    Attributes
    ----------
    plan : SweepPlan
    model : LoadedModel

    Raises
    ------
    EngineError
        If the model or the inputs cannot be opened here.
    """

    def __init__(self, plan: SweepPlan, graph: RuntimeGraph | None = None) -> None:
        self.plan = plan
        if not Path(plan.output).is_dir():
            raise SweepError(
                f"{plan.output} is not a folder for this worker: all must write to the same one"
            )
        self.model = LoadedModel(plan.model, graph)
        self._reader = InputReader(plan.inputs)
        self._dump = self._open_dump() if plan.dump else None
        self._lock = Lock()  # a session serves one task at a time

    def run(self, number: int) -> Result:
        """Run a task, unless a result of the same inputs, model and options is kept.

        Parameters
        ----------
        number : int
            Of the task.

        Raises
        ------
        SweepError
            If the result cannot be written, or an input fails and all must run.
        """
        with self._lock:
            try:
                return self._run(number)
            except OSError as exc:
                place = exc.filename or self.plan.output
                raise SweepError(
                    f"{place} cannot be written: {format_os_error(exc)}; what is finished is "
                    "kept, --resume goes on"
                ) from exc
            except MemoryError as exc:
                raise SweepError("not enough memory in a worker") from exc

    def close(self) -> None:
        """Close the inputs."""
        self._reader.close()

    def _run(self, number: int) -> Result:
        plan = self.plan
        inputs = plan.range_of(number)
        path = plan.path_of(number)
        key = plan.key_of(number, [self._reader.digest(index) for index in inputs])
        kept = _kept(path, key) if self._dump is None or self._dump.has(inputs) else None
        # With failures among them it runs again, to say which, if none may fail.
        if kept is not None and not (plan.strict and kept[FAILURES]["count"][0]):
            return kept
        gatherers = {study.name: study.start(self.model) for study in plan.studies}
        dump = self._dump.start(inputs) if self._dump is not None else None
        failed: list[FailedInput] = []
        for indices, values in self._batches(inputs, failed):
            for gatherer in gatherers.values():
                gatherer.add(indices, values)
            if dump is not None:
                dump.add(indices, values)
        result = self._finish(gatherers, failed, len(inputs))
        if dump is not None:
            dump.write()
        _keep(path, key, result)
        return result

    @staticmethod
    def _finish(
        gatherers: Mapping[str, Gatherer], failed: Sequence[FailedInput], count: int
    ) -> Result:
        result: Result = {name: gatherer.finish() for name, gatherer in gatherers.items()}
        in_order = sorted(failed, key=lambda each: each.index)
        result[FAILURES] = pack_failures(in_order, count - len(failed))
        return result

    def _batches(
        self, inputs: range, failed: list[FailedInput]
    ) -> Iterator[tuple[list[int], BatchValues]]:
        """Run inputs in batches of equal shapes; yield their numbers and values."""
        batch: list[tuple[int, dict[str, Array]]] = []
        for index in inputs:
            try:
                loaded = self._load(index)
            except _PASSED_OVER as exc:
                self._fail(index, exc, failed)
                continue
            if batch and _shapes(batch[0][1]) != _shapes(loaded):
                yield from self._values_of(batch, failed)
                batch = []
            batch.append((index, loaded))
            if len(batch) == self.model.spec.batch:
                yield from self._values_of(batch, failed)
                batch = []
        if batch:
            yield from self._values_of(batch, failed)

    def _load(self, index: int) -> dict[str, Array]:
        model = self.model
        with model.session.within_bound():
            return model.one_of(
                self._reader.load(index, model.inputs, model.spec.images, model.shapes)
            )

    def _values_of(
        self, batch: list[tuple[int, dict[str, Array]]], failed: list[FailedInput]
    ) -> Iterator[tuple[list[int], BatchValues]]:
        indices = [index for index, _ in batch]
        try:
            values = self.model.run_batch([inputs for _, inputs in batch])
            if self._dump is not None:
                self._dump.check(values)
        except _PASSED_OVER as exc:
            if len(batch) == 1:
                self._fail(indices[0], exc, failed)
                return
            for each in batch:  # so that one does not fail the others
                yield from self._values_of([each], failed)
            return
        yield indices, values

    def _fail(self, index: int, error: EngineError, failed: list[FailedInput]) -> None:
        found = FailedInput(index, self._reader.name(index), str(error))
        if self.plan.strict:
            raise SweepError(f"input {index}: {found.sentence}")
        failed.append(found)

    def _open_dump(self) -> DumpWriter:
        from engine.datasets.dump import DumpWriter

        return DumpWriter(Path(self.plan.output), self.plan.model.operands)


def _shapes(inputs: Mapping[str, Array]) -> list[tuple[int, ...]]:
    return [array.shape for array in inputs.values()]


# Kept results


def _kept(path: Path, key: str) -> Result | None:
    """Return the result that a file keeps for a key; None if it keeps none."""
    if not path.exists():
        return None
    try:
        arrays = read_arrays(path)
        if arrays.pop(_KEY).tobytes().decode() != key:
            return None
    except (SweepError, KeyError, ValueError):  # damaged: it is computed again
        return None
    result: Result = {}
    for name, array in arrays.items():
        study, _, member = name.partition(".")
        result.setdefault(study, {})[member] = array
    return result


def _keep(path: Path, key: str, result: Result) -> None:
    arrays = {
        f"{study}.{name}": array
        for study, members in result.items()
        for name, array in members.items()
    }
    path.parent.mkdir(exist_ok=True)
    write_arrays(path, arrays | {_KEY: np.frombuffer(key.encode(), np.uint8)})


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an ``.npz`` atomically, and durably."""
    with written_beside(path) as partial:
        write_npz(partial, arrays.items())
        with partial.open("rb") as file:
            os.fsync(file.fileno())


def read_arrays(path: Path) -> dict[str, Array]:
    """Read all arrays of an ``.npz``.

    Raises
    ------
    SweepError
        If it cannot be read.
    """
    from engine.numpy_files import read_npz

    try:
        return read_npz(path, lambda names: {name: name for name in names})
    except FeedError as exc:
        raise SweepError(str(exc)) from exc
