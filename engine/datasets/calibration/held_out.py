"""Runs held-out inputs in float32 and in int8, one at a time, here or in a worker.

What is measured on an input is a small object, called with the runs of the model. It returns
sums that merge, so inputs may run anywhere; they are merged in the order of the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from engine.backends import require_backend
from engine.backends.heap import trim_heap
from engine.datasets.calibration.layers import LayerScales, int8_twin
from engine.datasets.calibration.runs import Int8Runs
from engine.datasets.inputs import InputReader
from engine.datasets.model import load_graph
from engine.ncnn.options import DEPLOYED, NcnnOptions
from engine.precision.loss import LossSums
from engine.runtime import load
from engine.shapes import parse_shapes
from engine.values import materialise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.datasets.calibration.runs import Visit
    from engine.datasets.calibration.thresholds import Method
    from engine.datasets.inputs import InputSet
    from engine.datasets.model import ModelSpec
    from engine.precision.loss import Loss
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.runtime.kernel import Kernel
    from engine.values import Array, Value

    ScalesOf = Mapping[int, Mapping[Method, LayerScales]]  # by index of the layer

__all__ = [
    "Agreement",
    "AllLayers",
    "Alone",
    "Deployed",
    "Given",
    "HeldOut",
    "HeldOutPlan",
    "HeldOutRuns",
    "HeldOutWorker",
    "Measured",
    "Mixed",
    "Task",
    "runs_here",
]

_FAST: Final = NcnnOptions.parse("packing,winograd,sgemm")  # as ncnn computes in float32
_REMEMBERED: Final = 8  # inputs whose outputs in float32 are needed many times

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Agreement:
    """How outputs agree with those in float32, over many inputs.

    Attributes
    ----------
    inputs : int
    same_top1 : int
        Inputs whose first output has its largest element in the same place.
    """

    def __init__(self) -> None:
        self.inputs = self.same_top1 = 0
        self._sums = LossSums()

    @classmethod
    def of(cls, found: Sequence[Value], expected: Sequence[Value]) -> Agreement:
        """Return how the outputs for one input agree."""
        agreement = cls()
        agreement.inputs = 1
        agreement._sums.add(found, expected)
        agreement.same_top1 = int(_top1(found) == _top1(expected))
        return agreement

    def merge(self, other: Agreement) -> None:
        """Add other inputs."""
        self.inputs += other.inputs
        self.same_top1 += other.same_top1
        self._sums.merge(other._sums)

    @property
    def loss(self) -> Loss:
        """The loss over all outputs."""
        return self._sums.loss


def _top1(outputs: Sequence[Value]) -> int | None:
    first = outputs[0] if outputs else None
    return int(np.argmax(first)) if isinstance(first, np.ndarray) and first.size else None


class Given(NamedTuple):
    """A held-out input.

    Attributes
    ----------
    number : int
        Among those that are held out.
    inputs : mapping of str to ndarray
        As `RuntimeGraph.check_inputs` returns them.
    """

    number: int
    inputs: Mapping[str, Array]


class Task(Protocol[T_co]):
    """What is measured on one input. Instances can be pickled."""

    def __call__(self, runs: HeldOutRuns, given: Given) -> T_co:
        """Measure."""
        ...


class HeldOut(Protocol):
    """Runs a task for the first held-out inputs, or for all."""

    def __call__(self, task: Task[T], most: int | None = None) -> Iterable[T]:
        """Return the results in the order of the inputs."""
        ...


class HeldOutRuns:
    """The model in float32 and in int8.

    Parameters
    ----------
    graph : RuntimeGraph
    scales : mapping of int to mapping of str to LayerScales
        By index of the layer and by method.
    backend : str
        As in `CalibrationOptions`.
    ran : callable
        Called before each run of the model; an exception ends the work.
    """

    def __init__(
        self, graph: RuntimeGraph, scales: ScalesOf, backend: str, ran: Callable[[], None]
    ) -> None:
        self.graph, self.scales = graph, scales
        self._runs, self._ran = Int8Runs(graph, backend, _FAST), ran
        self._kernels: Mapping[int, Kernel] = {}
        self._method: Method | None = None  # of the kernels
        self._outputs: dict[int, tuple[Value, ...]] = {}
        self._deployed: tuple[str, dict[str, Int8Runs]] | None = None

    def kernels(self, method: Method) -> Mapping[int, Kernel]:
        """Return the layers in int8; those of the last method only are kept."""
        if method != self._method:
            self._free()
            self._kernels = self._runs.kernels(
                {
                    index: int8_twin(self.graph.operators[index], by_method[method])
                    for index, by_method in self.scales.items()
                }
            )
            self._method = method
        return self._kernels

    def _free(self) -> None:
        """Free the kernels, which have several times the memory of the weights."""
        self._kernels, self._method = {}, None
        trim_heap()

    def run(
        self,
        inputs: Mapping[str, Array],
        int8: Mapping[int, Kernel],
        kept: Iterable[int] = (),
        visit: Visit | None = None,
        known: Mapping[str, Value] | None = None,
    ) -> tuple[Value, ...]:
        """Run the model once; see `Int8Runs.run`."""
        self._ran()
        return self._runs.run(inputs, int8, frozenset(kept), visit, known)

    def outputs(self, given: Given) -> tuple[Value, ...]:
        """Return the outputs in float32, of the first inputs without running them again."""
        if given.number in self._outputs:
            return self._outputs[given.number]
        outputs = self.run(given.inputs, {})
        if given.number < _REMEMBERED:
            self._outputs[given.number] = outputs
        return outputs

    def deployed(self, param: str) -> Mapping[str, Int8Runs]:
        """Return the model and an int8 pair as ncnn runs them with its options.

        Raises
        ------
        EngineError
            If there is no ncnn, or the pair cannot be loaded.
        """
        if self._deployed is None or self._deployed[0] != param:
            require_backend("ncnn")
            self._free()
            models = {"float": self.graph, "int8": load(param)}
            runs = {name: Int8Runs(each, "ncnn", DEPLOYED) for name, each in models.items()}
            self._deployed = param, runs
        return self._deployed[1]

    def run_deployed(self, runs: Int8Runs, inputs: Mapping[str, Array]) -> tuple[Value, ...]:
        """Run one of `deployed`."""
        self._ran()
        return runs.run(inputs, {})


class Measured(NamedTuple):
    """What `AllLayers` measures.

    Attributes
    ----------
    layers : dict of int to LossSums
        By index of the layer: of its output, computed in int8 from its input in float32.
    output : Agreement
        With all layers in int8.
    """

    layers: dict[int, LossSums]
    output: Agreement


@dataclass(frozen=True, slots=True)
class AllLayers:
    """Measures each layer for itself, and the model with all layers in int8.

    Attributes
    ----------
    method : str
    """

    method: Method

    def __call__(self, runs: HeldOutRuns, given: Given) -> Measured:
        """Measure; see `Task`."""
        kernels = runs.kernels(self.method)
        layers = {index: LossSums() for index in kernels}

        def visit(
            operator: RuntimeOperator, inputs: Sequence[Value], outputs: Sequence[Value]
        ) -> None:
            kernel = kernels.get(operator.index)
            if kernel is not None:
                kernel.prepare(inputs)
                layers[operator.index].add(materialise_all(kernel(inputs)), outputs)

        expected = runs.run(given.inputs, {}, visit=visit)
        found = runs.run(given.inputs, kernels)
        return Measured(layers, Agreement.of(found, expected))


@dataclass(frozen=True, slots=True)
class Alone:
    """Measures the model with one layer in int8, for each layer.

    Attributes
    ----------
    method : str
    """

    method: Method

    def __call__(self, runs: HeldOutRuns, given: Given) -> dict[int, LossSums]:
        """Measure; see `Task`."""
        kernels = runs.kernels(self.method)
        known: dict[str, Value] = dict(given.inputs)
        outputs = runs.run(given.inputs, {}, visit=partial(_keep_outputs, known))
        found: dict[int, LossSums] = {}
        for index in sorted(kernels):
            found[index] = LossSums()
            alone = runs.run(given.inputs, {index: kernels[index]}, known=known)
            found[index].add(alone, outputs)
        return found


def _keep_outputs(
    known: dict[str, Value],
    operator: RuntimeOperator,
    _inputs: Sequence[Value],
    outputs: Sequence[Value],
) -> None:
    known |= {each.name: value for each, value in zip(operator.outputs, outputs, strict=True)}


@dataclass(frozen=True, slots=True)
class Mixed:
    """Measures the model with all layers in int8 but some.

    Attributes
    ----------
    method : str
    kept : tuple of int
        Indexes of the layers in float32.
    """

    method: Method
    kept: tuple[int, ...]

    def __call__(self, runs: HeldOutRuns, given: Given) -> Agreement:
        """Measure; see `Task`."""
        found = runs.run(given.inputs, runs.kernels(self.method), self.kept)
        return Agreement.of(found, runs.outputs(given))


@dataclass(frozen=True, slots=True)
class Deployed:
    """Measures ncnn's own runs of the model (``float``) and of an int8 pair (``int8``).

    Attributes
    ----------
    param : str
        Of the pair.
    """

    param: str

    def __call__(self, runs: HeldOutRuns, given: Given) -> dict[str, Agreement]:
        """Measure; see `Task`."""
        deployed = runs.deployed(self.param)
        expected = runs.outputs(given)
        return {
            name: Agreement.of(runs.run_deployed(each, given.inputs), expected)
            for name, each in deployed.items()
        }


def runs_here(
    runs: HeldOutRuns, held_out: Callable[[], Iterator[Mapping[str, Array]]]
) -> HeldOut:
    """Run tasks in this process.

    Parameters
    ----------
    runs : HeldOutRuns
    held_out : callable
        Returns an iterator over inputs.
    """

    def run(task: Task[T], most: int | None = None) -> Iterator[T]:
        for number, inputs in enumerate(islice(held_out(), most)):
            yield task(runs, Given(number, inputs))

    return run


# In a worker


@dataclass(frozen=True, slots=True)
class HeldOutPlan:
    """What workers are told.

    Attributes
    ----------
    model : ModelSpec
    inputs : InputSet
    scales : mapping of int to mapping of str to LayerScales
    backend : str
        As in `CalibrationOptions`.
    """

    model: ModelSpec
    inputs: InputSet
    scales: ScalesOf
    backend: str


class HeldOutWorker:
    """Runs tasks in this process, for another one.

    Parameters
    ----------
    plan : HeldOutPlan

    Raises
    ------
    EngineError
        If the model or the inputs cannot be opened here.
    """

    def __init__(self, plan: HeldOutPlan) -> None:
        graph = load_graph(plan.model)
        self._count = 0
        self._runs = HeldOutRuns(graph, plan.scales, plan.backend, self._ran)
        self._images = plan.model.images
        self._shapes = parse_shapes(plan.model.shapes, graph.input_operands)
        self._reader = InputReader(plan.inputs)

    def run(self, asked: tuple[Task[Any], int, int]) -> tuple[Any, int]:
        """Run a task for an input of the data set.

        Parameters
        ----------
        asked : tuple
            The task, the number of the input among the held-out ones, and in the data set.

        Returns
        -------
        tuple
            The result, and how often the model ran.
        """
        task, number, index = asked
        graph, before = self._runs.graph, self._count
        loaded = self._reader.load(index, graph.input_operands, self._images, self._shapes)
        result = task(self._runs, Given(number, graph.check_inputs(loaded)))
        return result, self._count - before

    def close(self) -> None:
        """Close the inputs."""
        self._reader.close()

    def _ran(self) -> None:
        self._count += 1
