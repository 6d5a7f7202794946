"""The model of a sweep, as a worker holds it: loaded once, with its session."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.axes import Kind, infer_layouts
from engine.datasets.values import BatchValues
from engine.dump import select_operators
from engine.errors import EngineError, FeedError, SweepError, UnknownNameError
from engine.exclusions import ExclusionCache
from engine.file_versions import FileVersion
from engine.inputs import ImageOptions
from engine.ncnn.options import EXACT
from engine.runtime import load
from engine.runtime.reach import find_constant
from engine.session import Session
from engine.shapes import parse_shapes
from engine.text import format_shape
from engine.values import LazyArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.axes import Layout
    from engine.runtime import RuntimeGraph, RuntimeOperand
    from engine.values import Array, Value

__all__ = [
    "LoadedModel",
    "ModelSpec",
    "OperandFacts",
    "load_graph",
    "once",
    "own_batch",
    "picture_size",
    "repeated",
    "require_operands",
    "settle_kernels",
]

_CHANNELS: Final = frozenset({Kind.CHANNEL, Kind.FEATURE, Kind.CLASS, Kind.VOCABULARY})
_MOST_CHANNELS: Final = 1 << 14  # of an operand that are told apart
_CHOOSING: Final = 3  # runs, after which kernels do not change any more
_AGREE: Final = 1e-5  # of an operand's largest element: what kernels differ by with the batch


class OperandFacts(NamedTuple):
    """What is known of an operand from the first input that ran.

    Attributes
    ----------
    name : str
    operator, type : str
        Its producer.
    shape : tuple of int
        Of one input; a leading batch of one is left out where `batched`.
    dtype : str
    batched : bool
        Whether the first dimension of its value is the batch.
    axis : int or None
        Of the channels, in `shape`; None where they are not told apart.
    dimensions : tuple of str
        What the dimensions of `shape` mean, as far as that is known.
    constant : bool
        Whether it is computed from no input of the model.
    """

    name: str
    operator: str
    type: str
    shape: tuple[int, ...]
    dtype: str
    batched: bool
    axis: int | None
    dimensions: tuple[str, ...]
    constant: bool

    @property
    def channels(self) -> int:
        """Number of channels; 1 where they are not told apart."""
        return 1 if self.axis is None else self.shape[self.axis]


@dataclass(frozen=True)
class ModelSpec:
    """Describes a model, for workers to load.

    Attributes
    ----------
    param, bin : str or None
        Paths, the same for all workers.
    size, bin_size : int or None
        Of the files in bytes: another file at the path is not taken for the model.
    layers : tuple of str
        The user's layers.
    backend, ncnn_options, seed, memory_bound
        Of the session.
    images : ImageOptions
    shapes : tuple of str
        Input sizes.
    operators : tuple of str or None
        Patterns of the operators whose outputs are wanted.
    operands : tuple of OperandFacts
        The operands that are wanted, in execution order; empty until they are known.
    batch : int
        Inputs that run at once.
    fixed_batch : int
        Inputs that the model takes at once by its shapes, where different ones fill them;
        otherwise 1.
    """

    param: str
    bin: str | None
    size: int
    bin_size: int | None
    layers: tuple[str, ...] = ()
    backend: str = "auto"
    ncnn_options: str = EXACT.text
    seed: int = 0
    memory_bound: int | None = None
    images: ImageOptions = field(default_factory=ImageOptions)
    shapes: tuple[str, ...] = ()
    operators: tuple[str, ...] | None = None
    operands: tuple[OperandFacts, ...] = ()
    batch: int = 1
    fixed_batch: int = 1

    @property
    def input_bytes(self) -> int:
        """Bytes of the wanted operands of one input."""
        return sum(
            math.prod(facts.shape) * np.dtype(facts.dtype).itemsize for facts in self.operands
        )


class LoadedModel:
    """A loaded model and its session; runs inputs and gives the values of operands.

    Parameters
    ----------
    spec : ModelSpec
    graph : RuntimeGraph, optional
        The model, if it is loaded already.

    Attributes
    ----------
    spec : ModelSpec
    graph : RuntimeGraph
    session : Session

    Raises
    ------
    SweepError
        If the files are not those of the client.
    EngineError
        If the model cannot be loaded.
    """

    def __init__(self, spec: ModelSpec, graph: RuntimeGraph | None = None) -> None:
        self.spec = spec
        self.graph = graph if graph is not None else load_graph(spec)
        self.session = Session(
            self.graph,
            backend=spec.backend,
            seed=spec.seed,
            memory_bound=spec.memory_bound,
            ncnn_options=spec.ncnn_options,
            excluded=ExclusionCache().load_for(self.graph),
        )
        self.shapes = parse_shapes(spec.shapes, self.graph.input_operands)
        self.wanted = _wanted(self.graph, spec.operators)
        self._until = self._last_operator()
        self._is_warm = False

    @property
    def inputs(self) -> Sequence[RuntimeOperand]:
        """The inputs of the model."""
        return self.graph.input_operands

    @cached_property
    def facts(self) -> Mapping[str, OperandFacts]:
        """The wanted operands by name."""
        return {facts.name: facts for facts in self.spec.operands}

    @cached_property
    def _batched(self) -> Mapping[str, bool]:
        return {facts.name: facts.batched for facts in self.spec.operands}

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one input, and return the values of the wanted operands.

        Lists and integers are left out.

        Raises
        ------
        EngineError
            If an operator fails, or one that is needed cannot run.
        """
        held = self._hold(inputs)
        return {
            name: value.array if isinstance(value, LazyArray) else value
            for name, value in held.items()
        }

    def _hold(self, inputs: Mapping[str, Array]) -> dict[str, Array | LazyArray]:
        """Run inputs, and return values as the session has them.

        Raises
        ------
        EngineError
            If an operator fails, or one that is needed cannot run.
        """
        session = self.session
        with session.within_bound():
            session.feed(inputs)
        values = {
            name: value
            for record in session.run(self._until)
            for name, value in (record.outputs.resident or {}).items()
        }
        found: dict[str, Array | LazyArray] = {}
        for operand in self.wanted:
            value = values.get(operand.name)
            if isinstance(value, (np.ndarray, LazyArray)):
                found[operand.name] = value
        return found

    def run_batch(self, inputs: Sequence[Mapping[str, Array]]) -> BatchValues:
        """Run several inputs; the first axis of each value are these inputs.

        A batch that is not full repeats its last input, so that kernels for one size serve all.

        Raises
        ------
        EngineError
            If an operator fails.
        FeedError
            If an operand has not the channels that it has with the first input.
        """
        batch, count = self.spec.batch, len(inputs)
        if batch == 1:
            self._warm_up(inputs[0])
            held = self._hold(inputs[0])
            values = BatchValues(held, self._batched)
            for facts in self.spec.operands:
                _require_shape(facts, held, values)
            return values
        filled = [*inputs, *[inputs[-1]] * (batch - count)]
        joined = {name: np.concatenate([each[name] for each in filled]) for name in inputs[0]}
        self._warm_up(joined)
        return BatchValues(self._hold(joined), self._batched, count)

    def _warm_up(self, inputs: Mapping[str, Array]) -> None:
        """Run the first inputs until the session has chosen its kernels.

        Otherwise the first inputs of each worker would have other last bits than the rest.
        """
        if not self._is_warm:
            settle_kernels(self.session, lambda: self._hold(inputs))
        self._is_warm = True

    def describe(self, values: Mapping[str, Array], batch: int = 1) -> tuple[OperandFacts, ...]:
        """Describe the operands of an input that ran by itself, or that fills a batch."""
        shapes = {name: value.shape for name, value in values.items()}
        layouts = infer_layouts(self.graph, shapes)
        constant = find_constant(self.graph)
        return tuple(
            _describe(operand, values[operand.name], layouts.get(operand.name), batch, constant)
            for operand in self.wanted
            if operand.name in values
        )

    def parameters(self, facts: OperandFacts) -> Mapping[str, Value]:
        """Return the parameters of an operand's producer."""
        producer = self.graph.operand(facts.name).producer
        return producer.params if producer is not None else {}

    def allows_batches(self, inputs: Sequence[Mapping[str, Array]]) -> bool:
        """Return whether two inputs at once give what they give one by one.

        Parameters
        ----------
        inputs : sequence of mapping of str to ndarray
            Two inputs.
        """
        one, two = inputs
        if any(
            one[name].shape != two[name].shape or one[name].shape[:1] != (1,) for name in one
        ) or any(operator.random for operator in self.graph.operators):
            return False
        singles = [_copies(self.run(each)) for each in inputs]
        try:
            both = self.run({name: np.concatenate([one[name], two[name]]) for name in one})
        except EngineError:
            return False
        return all(
            name in both and _agrees(both[name], [single[name] for single in singles])
            for name in singles[0]
        )

    def can_fill(self, inputs: Sequence[Mapping[str, Array]]) -> bool:
        """Return whether different inputs in a batch give what each gives all over it.

        Parameters
        ----------
        inputs : sequence of mapping of str to ndarray
            Two inputs, for a model with an `own_batch`.
        """
        batch = own_batch(self.graph, self.spec)
        if any(operator.random for operator in self.graph.operators):
            return False
        try:
            singles = [_copies(self.run(repeated(each, batch))) for each in inputs]
            one, two = inputs
            mixed = [one, two, *[one] * (batch - 2)]
            both = self.run({name: np.concatenate([x[name] for x in mixed]) for name in one})
        except EngineError:
            return False
        return all(
            value.shape[:1] == (batch,)
            and name in both
            and _agrees(both[name][:2], [single[name][:1] for single in singles])
            for name, value in singles[0].items()
        )

    def one_of(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return an input once, where different ones fill the model's batch.

        Raises
        ------
        FeedError
            If it is several inputs.
        """
        batch = self.spec.fixed_batch
        return dict(inputs) if batch == 1 else once(inputs, batch)

    def _last_operator(self) -> str | None:
        """Return the first operator that need not run."""
        last = max((o.producer.index for o in self.wanted if o.producer), default=-1)
        operators = self.graph.operators
        return operators[last + 1].name if last + 1 < len(operators) else None


def settle_kernels(session: Session, run: Callable[[], object]) -> None:
    """Run a session until it has chosen its kernels.

    Parameters
    ----------
    session : Session
    run : callable
        Feeds and runs it.
    """
    kernels: list[str] | None = None
    for _ in range(_CHOOSING):
        run()
        before, kernels = kernels, [record.kernel for record in session.records]
        if kernels == before:
            return


def own_batch(graph: RuntimeGraph, spec: ModelSpec) -> int:
    """Return how many inputs a model takes at once by its shapes; 1 for one, or any number."""
    if spec.shapes or graph.file.format != "pnnx":
        return 1  # the user decides, or there is no batch
    shapes = [operand.shape for operand in graph.input_operands]
    batches = {x[0] if x is not None and len(x) == 4 else None for x in shapes}
    batch = batches.pop() if len(batches) == 1 else None
    return batch if isinstance(batch, int) else 1


def picture_size(graph: RuntimeGraph) -> tuple[int, int] | None:
    """Return the rows and columns of the pictures that a model takes.

    None where it takes several inputs, no picture, or any size, as models in ncnn's format do.
    """
    shapes = [operand.shape for operand in graph.input_operands]
    shape = shapes[0] if len(shapes) == 1 else None
    if shape is None or len(shape) not in {3, 4} or shape[-3] not in {1, 3}:
        return None
    rows, columns = shape[-2:]
    return (rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None


def once(inputs: Mapping[str, Array], batch: int) -> dict[str, Array]:
    """Return an input as it is without the repetitions that fill a batch.

    Raises
    ------
    FeedError
        If it is several inputs.
    """
    for name, x in inputs.items():
        if x.shape[:1] not in {(1,), (batch,)} or any((each != x[0]).any() for each in x[1:]):
            raise FeedError(f"input {name} of {format_shape(x.shape)} is several inputs")
    return {name: x[:1] for name, x in inputs.items()}


def repeated(inputs: Mapping[str, Array], batch: int) -> dict[str, Array]:
    """Return an input so often that it fills a batch."""
    return {name: np.repeat(x, batch, axis=0) for name, x in inputs.items()}


def require_operands(model: LoadedModel, names: Iterable[str]) -> None:
    """Check that a study gets the operands that it needs.

    Raises
    ------
    SweepError
        If one is left out, or has no value.
    """
    missing = [name for name in names if name not in model.facts]
    if missing:
        raise SweepError(
            f"operand {missing[0]} is needed, but it is not among the operators that are swept "
            "or has no value; leave --operators out"
        )


def _require_shape(
    facts: OperandFacts, held: Mapping[str, Array | LazyArray], values: BatchValues
) -> None:
    """Check that an operand of one input has its channels."""
    if facts.name not in held:
        raise FeedError(f"operand {facts.name} has no value")
    shape, axis = values.shape(facts.name), facts.axis
    if len(shape) != len(facts.shape) + 1 or shape[0] != 1 or (
        axis is not None and shape[axis + 1] != facts.channels
    ):  # fmt: skip
        raise FeedError(
            f"operand {facts.name} has the shape {held[facts.name].shape}, which does not fit "
            "the channels that it has with the first input"
        )


def load_graph(spec: ModelSpec) -> RuntimeGraph:
    """Load a model in a worker.

    Raises
    ------
    SweepError
        If the files are not those of the client.
    EngineError
        If the model cannot be loaded.
    """
    if spec.layers:
        from engine.layers import load_layers

        for path in spec.layers:
            load_layers(path)
    for name, size in ((spec.param, spec.size), (spec.bin, spec.bin_size)):
        version = FileVersion.of(Path(name)) if name is not None else None
        if name is not None and (version is None or version.size != size):
            raise SweepError(
                f"a worker does not find the model at {name} as the client has it: all must "
                "read the same files"
            )
    return load(spec.param, spec.bin)


def _wanted(graph: RuntimeGraph, patterns: Sequence[str] | None) -> list[RuntimeOperand]:
    selected = select_operators(graph, patterns)
    found = [operand for operator in selected for operand in operator.outputs]
    if not found:
        raise UnknownNameError("operator with an output", " ".join(patterns or ()), ())
    return found


def _describe(
    operand: RuntimeOperand,
    value: Array,
    layout: Layout | None,
    batch: int,
    constant: frozenset[int],
) -> OperandFacts:
    kinds = [axis.kind for axis in layout.axes] if layout is not None else []
    if len(kinds) != value.ndim:
        kinds = [Kind.UNKNOWN] * value.ndim
    unknown = value.ndim >= 2 and kinds[0] is Kind.UNKNOWN
    batched = value.shape[:1] == (batch,) and (unknown or kinds[0] is Kind.BATCH)
    shape = value.shape[1:] if batched else value.shape
    meant = kinds[1:] if batched else kinds
    named = [place for place, kind in enumerate(meant) if kind in _CHANNELS]
    axis = named[0] if named else 0 if shape else None
    if axis is not None and not 0 < shape[axis] <= _MOST_CHANNELS:
        axis = None
    producer = operand.producer
    return OperandFacts(
        operand.name,
        producer.name if producer is not None else "",
        producer.type if producer is not None else "",
        shape,
        value.dtype.name,
        batched,
        axis,
        tuple(kind.value if kind is not Kind.UNKNOWN else "" for kind in meant),
        producer is not None and producer.index in constant,
    )


def _copies(values: Mapping[str, Array]) -> dict[str, Array]:
    return {name: value.copy() for name, value in values.items()}


def _agrees(both: Array, singles: Sequence[Array]) -> bool:
    if both.shape[:1] != (2,) or any(single.shape[:1] != (1,) for single in singles):
        return False
    expected = np.concatenate(singles)
    if both.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return bool(np.array_equal(both, expected))
    finite = expected[np.isfinite(expected)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    return bool(np.allclose(both, expected, rtol=0, atol=_AGREE * largest, equal_nan=True))
