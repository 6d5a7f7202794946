"""Counts the inputs of quantisable layers over a data set, and calibrates by the counts."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.datasets.calibration.calibration import (
    NO_LAYER,
    CalibrationOptions,
    calibrate,
)
from engine.datasets.calibration.held_out import (
    HeldOutPlan,
    HeldOutRuns,
    HeldOutWorker,
    runs_here,
)
from engine.datasets.calibration.layers import quantisable_layers
from engine.datasets.calibration.magnitudes import Magnitudes
from engine.datasets.inputs import InputReader
from engine.datasets.model import require_operands
from engine.datasets.options import describe_model
from engine.datasets.pool import WorkerPool, pool_of
from engine.datasets.progress import Run
from engine.datasets.unguarded import leave_importing_worker
from engine.errors import EngineError, SweepError
from engine.runtime import load
from engine.shapes import parse_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.datasets.calibration.calibration import Calibration
    from engine.datasets.calibration.held_out import HeldOut, ScalesOf, T, Task
    from engine.datasets.model import LoadedModel
    from engine.datasets.options import SweepOptions
    from engine.datasets.results import Sweep
    from engine.datasets.studies import Arrays, Gatherer
    from engine.runtime import RuntimeGraph
    from engine.values import Array

__all__ = ["CALIBRATION", "HELD_OUT", "CalibrationStudy", "calibrate_sweep", "ncnn_pair_of"]

CALIBRATION: Final = "calibration"
HELD_OUT: Final = 10
_MOST_HELD_OUT: Final = 32


@dataclass(frozen=True, slots=True)
class CalibrationStudy:
    """Counts the absolute values of the inputs of quantisable layers.

    Attributes
    ----------
    every : int
        One of so many inputs is held out: the last of each such group.
    """

    every: int = HELD_OUT

    @property
    def name(self) -> str:
        """Of the study."""
        return CALIBRATION

    @property
    def key(self) -> str:
        """Changes with the inputs that are held out."""
        return str(self.every)

    def operands(self, model: LoadedModel) -> Sequence[str]:
        """Return the inputs of the layers."""
        return _operands_of(model.graph)

    def start(self, model: LoadedModel) -> Gatherer:
        """Begin a shard.

        Raises
        ------
        SweepError
            If the sweep is limited to other operators, or no layer can be quantised.
        """
        operands = _operands_of(model.graph)
        if not operands:
            raise SweepError(NO_LAYER)
        require_operands(model, operands)
        return _Gatherer(self, operands)

    def merge(self, one: Arrays, other: Arrays) -> Arrays:
        """Merge two ranges of inputs."""
        pairs = zip(_unpack(one), _unpack(other), strict=True)
        merged: list[Magnitudes] = []
        for first, second in pairs:
            first.merge(second)
            merged.append(first)
        return _pack(merged)

    def holds_out(self, index: int) -> bool:
        """Whether an input is not counted, but measured on."""
        return index % self.every == self.every - 1


def ncnn_pair_of(graph: RuntimeGraph) -> RuntimeGraph:
    """Return the model in ncnn's own format: itself, or the pair that pnnx wrote beside it.

    Raises
    ------
    SweepError
        If there is none.
    EngineError
        If it cannot be loaded.
    """
    if graph.file.format == "ncnn":
        return graph
    name = graph.param_path.name
    beside = graph.param_path.with_name(name.replace(".pnnx.", ".ncnn."))
    if beside.name == name or not beside.exists():
        raise SweepError(
            f"{name} is no model in ncnn's own format, and has no such pair beside it: give "
            "the .ncnn.param that pnnx writes"
        )
    return load(beside)


def _operands_of(graph: RuntimeGraph) -> tuple[str, ...]:
    """Return the operands that are counted, each once."""
    return tuple(dict.fromkeys(layer.inputs[0].name for layer in quantisable_layers(graph)))


class _Gatherer:
    """Counts over one shard."""

    def __init__(self, study: CalibrationStudy, operands: Sequence[str]) -> None:
        self._study = study
        self._counts = {name: Magnitudes() for name in operands}

    def add(self, indices: Sequence[int], values: Mapping[str, Array]) -> None:
        """Count the inputs that are not held out."""
        counted = [
            place for place, index in enumerate(indices) if not self._study.holds_out(index)
        ]
        for name, counts in self._counts.items():
            value = values[name]
            for place in counted:
                counts.add(value[place])

    def finish(self) -> Arrays:
        """Return the counts."""
        return _pack(list(self._counts.values()))


def _pack(counts: Sequence[Magnitudes]) -> Arrays:
    """Stack the counts of all operands."""
    packed = [each.to_arrays() for each in counts]
    return {name: np.stack([each[name] for each in packed]) for name in packed[0]}


def _unpack(arrays: Arrays) -> list[Magnitudes]:
    count = len(arrays["largest"])
    parts = ({name: x[place] for name, x in arrays.items()} for place in range(count))
    return [Magnitudes.from_arrays(part) for part in parts]


def calibrate_sweep(
    found: Sweep,
    graph: RuntimeGraph,
    study: CalibrationStudy,
    swept: SweepOptions,
    options: CalibrationOptions | None = None,
    progress: Callable[[int], None] = lambda _: None,
    *,
    workers: int | WorkerPool | None = None,
    scheduler: str | None = None,
) -> Calibration:
    """Calibrate a model by what a sweep has counted; see `calibrate`.

    The results are written to the folder of the sweep.

    Parameters
    ----------
    found : Sweep
        With `study`.
    graph : RuntimeGraph
        Its model, in ncnn's own format.
    study : CalibrationStudy
    swept : SweepOptions
        Of the sweep.
    options : CalibrationOptions, optional
    progress : callable, optional
        Called with the number of runs of the model so far; an exception ends the work.
    workers, scheduler : optional
        What measures, as for `sweep`; the same pool as for it starts no workers again.

    Raises
    ------
    EngineError, OSError
        As for `calibrate`.
    SweepError
        If the workers cannot be used, or were lost.
    """
    leave_importing_worker()
    options = options or CalibrationOptions()
    counts = dict(zip(_operands_of(graph), _unpack(found.study(CALIBRATION)), strict=True))
    layers = quantisable_layers(graph)
    magnitudes = {layer.name: counts[layer.inputs[0].name] for layer in layers}
    every = range(found.inputs.set.count)
    with InputReader(found.inputs.set) as reader, pool_of(workers, scheduler) as pool:
        inputs_of = partial(_inputs_of, reader, graph, swept)
        measured = _chosen(every, study)

        @contextmanager
        def here(scales: ScalesOf) -> Iterator[HeldOut]:
            done = count()
            runs = HeldOutRuns(graph, scales, options.backend, lambda: progress(next(done)))
            yield runs_here(runs, lambda: (inputs for _, inputs in inputs_of(measured)))

        @contextmanager
        def on_workers(scales: ScalesOf) -> Iterator[HeldOut]:
            spec = describe_model(graph, swept, pool.sharing)
            plan = HeldOutPlan(spec, found.inputs.set, scales, options.backend)
            readable = [index for index, _ in inputs_of(measured)]
            with _held_out_on_workers(plan, readable, found, pool, progress) as run:
                yield run

        return calibrate(
            graph,
            magnitudes,
            here if pool.is_here else on_workers,
            lambda: (
                inputs for _, inputs in inputs_of(x for x in every if not study.holds_out(x))
            ),
            found.path,
            options,
        )


def _chosen(every: range, study: CalibrationStudy) -> list[int]:
    """Choose the inputs to measure on, evenly spread among those that are held out."""
    # Fewer inputs than one group are counted and measured.
    held_out = every[study.every - 1 :: study.every] or every
    most = min(len(held_out), _MOST_HELD_OUT)
    return [held_out[place * len(held_out) // most] for place in range(most)]


def _inputs_of(
    reader: InputReader, graph: RuntimeGraph, swept: SweepOptions, indices: Iterable[int]
) -> Iterator[tuple[int, Mapping[str, Array]]]:
    """Read inputs, and their numbers; what the sweep has passed over is left out here too."""
    shapes = parse_shapes(swept.shapes, graph.input_operands)
    for index in indices:
        try:
            given = reader.load(index, graph.input_operands, swept.images, shapes)
            inputs = graph.check_inputs(given)
        except EngineError:
            continue
        yield index, inputs


@contextmanager
def _held_out_on_workers(
    plan: HeldOutPlan,
    indices: Sequence[int],
    found: Sweep,
    pool: WorkerPool,
    progress: Callable[[int], None],
) -> Iterator[HeldOut]:
    """Run tasks on the workers of a pool."""
    from engine.datasets.cluster import run_tasks, workers_prepared

    run, done = Run(len(indices)), 0

    def finished(result: tuple[object, int]) -> None:
        nonlocal done
        done += result[1]
        progress(done)

    make = partial(HeldOutWorker, plan)
    client = pool.client(found.path, run)
    with workers_prepared(make, client, pool.scheduler):

        def held_out(task: Task[T], most: int | None = None) -> Iterator[T]:
            given = [(task, number, index) for number, index in enumerate(indices[:most])]
            return (result for result, _ in run_tasks(client, given, finished, run))

        yield held_out
