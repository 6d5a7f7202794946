"""RuntimeGraph: an executable PNNX model, with KuiperInfer's states."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.collector import collector_paused
from engine.conversion.suffixes import is_source
from engine.errors import (
    ConversionError,
    FeedError,
    ModelFileError,
    SessionStateError,
    UnknownNameError,
    UnsupportedOperatorError,
    describe_shapes,
)
from engine.model_files import load as load_pair
from engine.model_files import pair
from engine.pnnx import DTYPES
from engine.runtime.layer_source import LayerSource
from engine.runtime.open_slices import count_open_slices
from engine.runtime.operator import RuntimeOperand, RuntimeOperator
from engine.runtime.storage import find_storage
from engine.runtime.structure import find_structure
from engine.runtime.tied_weights import NONE, find_tied_inputs
from engine.shapes import bind_symbols, fill_symbols, fits, other_sizes
from engine.states import OperatorStatus
from engine.text import format_count, format_shape
from engine.values import flatten_value, materialise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import networkx as nx
    import numpy.typing as npt

    from engine.conversion.records import Conversion, ConversionOptions
    from engine.file_versions import FileVersion
    from engine.layers import LayerFile
    from engine.pnnx import Graph, Operator
    from engine.runtime.executor import StepRecord
    from engine.runtime.export_faults import ExportFault
    from engine.runtime.operator import LayerProvider
    from engine.runtime.structure import GraphStructure
    from engine.shapes import ExportedShape
    from engine.values import Array, Held, Value

__all__ = ["GraphState", "RuntimeGraph", "load"]


class GraphState(Enum):
    """State of a graph; values are KuiperInfer's.

    Attributes
    ----------
    NEED_INIT
        The files have not been read.
    NEED_BUILD
        They have; the operators have no order yet.
    COMPLETE
        It can run.
    """

    NEED_INIT = -2
    NEED_BUILD = -1
    COMPLETE = 0


class RuntimeGraph:
    """A PNNX model that can run.

    Parameters
    ----------
    param_path : path
        The ``.param`` file.
    bin_path : path, optional
        The ``.bin`` file; found by its content beside `param_path` when not given. A model
        whose ``.bin`` is not there opens as structure only.

    Attributes
    ----------
    state : GraphState
    conversion : Conversion or None
        How the pair was made of a TorchScript or ONNX file; None for a pair that was opened.
    """

    def __init__(self, param_path: str | Path, bin_path: str | Path | None = None) -> None:
        self.param_path = Path(param_path)
        self._bin_argument = Path(bin_path) if bin_path is not None else None
        self.state = GraphState.NEED_INIT
        self.conversion: Conversion | None = None
        self._file: Graph | None = None
        self._layers: LayerProvider | None = None
        self._parts: _Parts | None = None
        self._structure: GraphStructure | None = None
        self._unsupported: tuple[RuntimeOperator, ...] | None = None
        self._lock = Lock()

    # States

    def init(self) -> None:
        """Read the files.

        Raises
        ------
        ModelFileError
            With path, line and reason.
        """
        self._file = load_pair(self.param_path, self._bin_argument)
        self._layers = self._parts = self._structure = self._unsupported = None
        self.state = GraphState.NEED_BUILD

    @classmethod
    def of_file(
        cls,
        param_path: Path,
        file: Graph,
        layers: LayerProvider,
        structure: GraphStructure | None = None,
    ) -> RuntimeGraph:
        """Wrap a graph that was read already, whose layers come from elsewhere.

        Parameters
        ----------
        param_path : Path
        file : Graph
        layers : LayerProvider
        structure : GraphStructure, optional
            Of the graph; found when it is asked for by default.

        Returns
        -------
        RuntimeGraph
            In state COMPLETE.
        """
        graph = cls(param_path, file.weights_path)
        graph._file, graph._layers = file, layers
        graph._parts = graph._make_parts(layers) if file.is_made else None
        graph._structure = structure
        graph.state = GraphState.COMPLETE
        return graph

    def build(self) -> None:
        """Order the operators, share the operands and fix the source of layers.

        Calls `init` first if necessary. The layer of an operator is built, and its errors are
        found, on first use. The operators of a long file are also made on first use.

        Raises
        ------
        ModelFileError
            If the operators form a cycle.
        """
        if self.state is GraphState.NEED_INIT:
            self.init()
        missing = None
        if not self.has_weights:
            missing = ModelFileError(
                self.param_path,
                "its weights are missing: the model was opened without a .bin file",
            )
        self._layers = LayerSource(self.file, self.param_path, missing)
        self._parts = self._make_parts(self._layers) if self.file.is_made else None
        self._unsupported = None
        self.state = GraphState.COMPLETE

    def forward(self, inputs: Sequence[npt.ArrayLike], seed: int = 0) -> tuple[Value, ...]:
        """Run the whole graph once, keeping only the outputs.

        Parameters
        ----------
        inputs : sequence of array_like
            In the order of the ``pnnx.Input`` operators.
        seed : int
            Random seed, as in a session.

        Returns
        -------
        tuple of Value
            In the order of the ``pnnx.Output`` operators; tuples are flattened. Arrays are
            read-only.

        Raises
        ------
        FeedError
            If `inputs` do not fit.
        InferenceError, UnsupportedOperatorError, ParameterError
            If an operator cannot run.
        """
        # Imported here: the window has graphs too, but runs none itself.
        from engine.runtime.executor import Executor, RunInputs

        fed = self.check_inputs(inputs)
        executor = Executor(self.operators, self.input_operands, RunInputs(fed, seed=seed))
        values: dict[str, Held] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        consumers = {name: len(operand.consumers) for name, operand in self.operands.items()}
        outputs: list[Value] = []
        for operator in self.operators:
            record = executor.execute(operator, values, shapes.get)
            if record.status is OperatorStatus.UNSUPPORTED:
                raise operator.error or UnsupportedOperatorError(operator.name, operator.type)
            if operator.is_output:
                outputs += materialise_all(values[operand.name] for operand in operator.inputs)
            _pass_on(record, values, shapes, consumers)
            del record  # which holds its outputs
        return tuple(flatten_value(tuple(outputs)))

    # Contents

    @property
    def file(self) -> Graph:
        """The file's graph."""
        if self._file is None:
            raise SessionStateError("the graph is not initialised: call init() first")
        return self._file

    @property
    def source_path(self) -> Path:
        """The file that was opened: the ``.param``, or what it was converted from."""
        return self.conversion.source if self.conversion is not None else self.param_path

    @property
    def versions(self) -> tuple[FileVersion, ...]:
        """The user's files that it was read from, as they were then."""
        return self.conversion.versions if self.conversion is not None else self.file.versions

    @property
    def bin_path(self) -> Path | None:
        """The weights' file; None for a model opened as structure only."""
        return self.file.weights_path

    @property
    def has_weights(self) -> bool:
        """Whether there is a ``.bin``."""
        return self.file.has_weights

    @property
    def layer_files(self) -> tuple[LayerFile, ...]:
        """The user's layer files that the graph was built with."""
        return self._layers.files if self._layers is not None else ()

    @property
    def operators(self) -> tuple[RuntimeOperator, ...]:
        """Operators in execution order."""
        return self._contents().operators

    @property
    def operands(self) -> Mapping[str, RuntimeOperand]:
        """Operands by name, in file order."""
        return self._contents().operands

    def operator(self, name: str) -> RuntimeOperator:
        """Return an operator by name.

        Parameters
        ----------
        name : str

        Returns
        -------
        RuntimeOperator
            Shared by all sessions of the graph.

        Raises
        ------
        UnknownNameError
            With the nearest name as a suggestion.
        """
        by_name = self._contents().by_name
        try:
            return by_name[name]
        except KeyError:
            raise UnknownNameError("operator", name, by_name) from None

    def operand(self, name: str) -> RuntimeOperand:
        """Return an operand by name.

        Parameters
        ----------
        name : str

        Returns
        -------
        RuntimeOperand
            Shared by all sessions of the graph.

        Raises
        ------
        UnknownNameError
            With the nearest name as a suggestion.
        """
        try:
            return self.operands[name]
        except KeyError:
            raise UnknownNameError("operand", name, self.operands) from None

    @property
    def input_operands(self) -> tuple[RuntimeOperand, ...]:
        """Inputs of the model, in the order of the ``pnnx.Input`` operators."""
        return self._contents().fed

    @property
    def output_operands(self) -> tuple[RuntimeOperand, ...]:
        """Outputs of the model, in the order of the ``pnnx.Output`` operators."""
        return self._contents().given

    @property
    def unsupported(self) -> tuple[RuntimeOperator, ...]:
        """Operators that cannot run; each one's `reason` says why."""
        if self._unsupported is None:
            with collector_paused():
                found = [op for op in self.operators if op.error is not None]
            self._unsupported = tuple(found)
        return self._unsupported

    @property
    def structure(self) -> GraphStructure:
        """Which operators are connected, and how far each is from the inputs."""
        if self._structure is None:
            import networkx as nx

            with collector_paused():
                digraph = nx.DiGraph()
                digraph.add_nodes_from(range(len(self.operators)))
                digraph.add_edges_from(
                    (operand.producer.index, operator.index)
                    for operator in self.operators
                    for operand in operator.inputs
                    if operand.producer is not None
                )
                self._structure = find_structure(digraph)
                digraph.clear()  # its views would keep it until the collector runs
        return self._structure

    @property
    def export_faults(self) -> tuple[ExportFault, ...]:
        """Where the export is not what the model was, as far as the file itself shows."""
        from engine.runtime.export_faults import find_export_faults

        from_onnx = self._layers is not None and self._layers.from_onnx
        with collector_paused():
            return find_export_faults(self.operators, from_onnx=from_onnx)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Copy the structure into networkx.

        Returns
        -------
        networkx.MultiDiGraph
            Nodes are operator names, with `operator`, `index` and `type`; an edge's key is
            the operand's name and the input's position.
        """
        import networkx as nx

        graph = nx.MultiDiGraph()
        graph.add_nodes_from(
            (op.name, {"operator": op, "index": op.index, "type": op.type})
            for op in self.operators
        )
        for operator in self.operators:
            for position, operand in enumerate(operator.inputs):
                if operand.producer is not None:
                    graph.add_edge(
                        operand.producer.name, operator.name, key=(operand.name, position)
                    )
        return graph

    # Feeding

    def check_inputs(
        self, inputs: Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]
    ) -> dict[str, Array]:
        """Check values for the inputs and convert them to the inputs' dtypes.

        Parameters
        ----------
        inputs : sequence of array_like, or mapping of str to array_like
            In the order of the ``pnnx.Input`` operators, or by operand name.

        Returns
        -------
        dict of str to ndarray
            By operand name; C-contiguous read-only copies. Sizes may differ from those
            the model was exported at, ranks may not, but for a batch of one that a model of
            ncnn has not.

        Raises
        ------
        FeedError
            If one is missing, surplus, of another rank, or of a dtype that cannot be
            converted without loss of kind; or if a symbol would stand for two sizes.
        """
        if self.state is not GraphState.COMPLETE:
            raise SessionStateError("the graph is not built: call build() first")
        operands = self.input_operands
        if hasattr(inputs, "keys"):
            given = dict(inputs)
            unknown = given.keys() - {operand.name for operand in operands}
            if unknown:
                raise FeedError(
                    f"{', '.join(sorted(unknown))} is no input of the model; its inputs are "
                    f"{', '.join(operand.name for operand in operands)}"
                )
            missing = [o.name for o in operands if o.name not in given]
            if missing:
                raise FeedError(f"no value was given for input {', '.join(missing)}")
        else:
            listed = list(inputs)
            if len(listed) != len(operands):
                raise FeedError(
                    f"{len(listed)} inputs were given, the model takes {len(operands)}: "
                    + describe_shapes(_format_operand(operand) for operand in operands)
                )
            given = dict(zip((o.name for o in operands), listed, strict=True))
        drops_batch = self.file.format == "ncnn"
        checked = {
            o.name: _convert(o, np.asarray(given[o.name]), drops_batch=drops_batch)
            for o in operands
        }
        bind_symbols(operands, _shapes_of(checked))
        return checked

    def check_output(
        self,
        name: str,
        value: npt.ArrayLike | tuple[npt.ArrayLike, ...],
        fed: Mapping[str, Array],
    ) -> Value:
        """Check a value that overrides an operand.

        Parameters
        ----------
        name : str
            Of the operand.
        value : array_like, or tuple of array_like for an operand without a shape
        fed : mapping of str to ndarray
            The inputs that belong to it, by operand name; may be empty.

        Returns
        -------
        Value
            Read-only copies in the operand's dtype. Sizes must be the file's, unless the inputs
            have other sizes than the exported ones.

        Raises
        ------
        UnknownNameError
            If there is no such operand.
        FeedError
            If it is an input of the model, or the value does not fit.
        """
        operand = self.operand(name)
        if operand.producer is not None and operand.producer.is_input:
            raise FeedError(f"operand {name} is an input of the model: feed it")
        if isinstance(value, tuple) and operand.shape is None:
            return tuple(_as_dtype(f"operand {name}", operand, item) for item in value)
        array = np.asarray(value)
        expected = self._expected_shape(operand, fed)
        if expected is not None and not fits(array.shape, expected):
            raise FeedError(
                f"operand {name} is {format_shape(expected)}, and the value to supply is "
                f"{format_shape(array.shape)}"
            )
        return _as_dtype(f"operand {name}", operand, array)

    def _expected_shape(
        self, operand: RuntimeOperand, fed: Mapping[str, Array]
    ) -> ExportedShape | None:
        """Return the expected shape: the file's, or only its rank at other input sizes."""
        if operand.shape is None:
            return None
        inputs, shapes = self.input_operands, _shapes_of(fed)
        if other_sizes(inputs, shapes):
            return (None,) * len(operand.shape)
        return fill_symbols(operand.shape, bind_symbols(inputs, shapes))

    # Building

    def _contents(self) -> _Parts:
        """The operators and operands; empty before `build`."""
        if self._parts is None:
            if self._layers is None:
                return _NO_PARTS
            with self._lock:
                if self._parts is None:
                    self._parts = self._make_parts(self._layers)
        return self._parts

    def _make_parts(self, layers: LayerProvider) -> _Parts:
        with collector_paused():
            ordered = _execution_order(self.file, self.param_path)
            operands = {
                name: RuntimeOperand(
                    name, index, operand.shape, DTYPES[operand.dtype] if operand.dtype else None
                )
                for index, (name, operand) in enumerate(self.file.operands.items())
            }
            tied = find_tied_inputs(self.file, ordered)
            lines = _lines_of(ordered, self.file)
            operators = tuple(
                RuntimeOperator(
                    operator,
                    index,
                    tuple([operands[operand.name] for operand in operator.inputs]),
                    tuple([operands[operand.name] for operand in operator.outputs]),
                    layers,
                    lines[index],
                    tied.get(operator.name, NONE),
                )
                for index, operator in enumerate(ordered)
            )
            _connect(operators)
            find_storage(operators)
            return _Parts(
                operators,
                {op.name: op for op in operators},
                operands,
                tuple([o for op in operators if op.is_input for o in op.outputs]),
                tuple([o for op in operators if op.is_output for o in op.inputs]),
            )


class _Parts(NamedTuple):
    """The parts of a graph."""

    operators: tuple[RuntimeOperator, ...]
    by_name: dict[str, RuntimeOperator]
    operands: dict[str, RuntimeOperand]
    fed: tuple[RuntimeOperand, ...]
    given: tuple[RuntimeOperand, ...]


_FIRST_LINE: Final = 3  # behind the magic number and the counts
_NO_PARTS: Final = _Parts((), {}, {}, (), ())


def _connect(operators: Sequence[RuntimeOperator]) -> None:
    several: dict[RuntimeOperand, list[RuntimeOperator]] = {}  # few operands have
    for operator in operators:
        for operand in operator.outputs:
            operand.producer = operator
        for operand in operator.inputs:
            if not operand.consumers:
                operand.consumers = (operator,)
            else:
                several.setdefault(operand, [*operand.consumers]).append(operator)
    for operand, taking in several.items():
        operand.consumers = tuple(taking)


def load(
    param_path: str | Path,
    bin_path: str | Path | None = None,
    *,
    conversion: ConversionOptions | None = None,
    report: Callable[[str], None] = lambda _line: None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> RuntimeGraph:
    """Open a model, ready to run: a pair of PNNX or ncnn, or a file that pnnx converts.

    Parameters
    ----------
    param_path : path
        The ``.param`` file, or whatever else `engine.model_files.pair` takes: a folder with
        one in it, its name without suffixes, or the ``.bin``. Or a TorchScript or ONNX file.
    bin_path : path, optional
        The ``.bin`` file; found by its content beside `param_path` when not given.
    conversion : ConversionOptions, optional
        Sizes of inputs, for a TorchScript or ONNX file.
    report, is_cancelled : callable, optional
        Of a conversion; see `engine.conversion.convert`.

    Returns
    -------
    RuntimeGraph
        In state COMPLETE. Weights are read on first use, those of a small file at once. What
        was read stays valid when the files change.

    Raises
    ------
    ModelFileError
        With path, line and reason.
    ConversionCancelledError
        If `is_cancelled` says so.
    FeedError
        If sizes of `conversion` do not fit the file.
    """
    if not is_source(Path(param_path)):
        return _load_pair(*pair(param_path, bin_path))
    from engine.conversion.convert import convert
    from engine.conversion.records import ConversionOptions

    if bin_path is not None:
        raise ModelFileError(param_path, "it has its own weights; leave the .bin out")
    options = conversion or ConversionOptions()

    def load_converted(optlevel: int) -> tuple[RuntimeGraph, Conversion]:
        converted = convert(
            param_path, replace(options, optlevel=optlevel), report=report,
            is_cancelled=is_cancelled,
        )  # fmt: skip
        return _load_pair(*pair(converted.param, converted.bin), converted), converted

    try:
        graph, _ = load_converted(options.optlevel)
    except ConversionError as exc:
        other = _load_less_joined(load_converted, options, 0) if exc.crashed else None
        if other is None:
            raise
        return other
    wrong = _count_faults(graph)
    other = _load_less_joined(load_converted, options, wrong) if wrong else None
    return other or _load_with_slices(load_converted, options, graph) or graph


def _load_less_joined(
    load_converted: Callable[[int], tuple[RuntimeGraph, Conversion]],
    options: ConversionOptions,
    wrong: int,
) -> RuntimeGraph | None:
    """Convert a file so that pnnx joins fewer operators; None if that is no better.

    `wrong` is how many faults there are otherwise; 0 if pnnx crashed.
    """
    from engine.conversion.records import MOST_JOINED

    if options.optlevel != MOST_JOINED:
        return None
    try:
        graph, converted = load_converted(MOST_JOINED - 1)
    except ModelFileError:  # the first failure tells more
        return None
    if _count_faults(graph) >= max(wrong, 1):
        return None
    graph.conversion = replace(converted, notes=(*converted.notes, _format_joined(wrong)))
    return graph


def _load_with_slices(
    load_converted: Callable[[int], tuple[RuntimeGraph, Conversion]],
    options: ConversionOptions,
    joined: RuntimeGraph,
) -> RuntimeGraph | None:
    """Convert a file with open sizes so that pnnx keeps its slices; None if it has none.

    It removes a slice that states the same sizes before and behind it. An open size is the same
    as any part of it.
    """
    from engine.conversion.records import MOST_JOINED

    if not options.shapes2 or options.optlevel != MOST_JOINED:
        return None
    try:
        graph, converted = load_converted(MOST_JOINED - 1)
    except ConversionError:
        return None
    lost = count_open_slices(graph.operators) - count_open_slices(joined.operators)
    if lost <= 0:
        return None
    note = (
        f"pnnx removed {format_count(lost, 'slice')} of open sizes, so this is what it makes "
        "with optlevel=1, of more and smaller operators"
    )
    graph.conversion = replace(converted, notes=(*converted.notes, note))
    return graph


def _load_pair(
    param: Path, weights: Path | None, conversion: Conversion | None = None
) -> RuntimeGraph:
    graph = RuntimeGraph(param, weights)
    graph.conversion = conversion
    graph.init()
    graph.build()
    return graph


def _count_faults(graph: RuntimeGraph) -> int:
    return sum(fault.certain for fault in graph.export_faults)


def _format_joined(wrong: int) -> str:
    what = f"joined {format_count(wrong, 'operator')} wrongly" if wrong else "crashed"
    return (
        f"pnnx {what}, so this is what it makes with optlevel=1, of more and smaller operators"
    )


def _is_ordered(operators: Sequence[Operator]) -> bool:
    """Return whether every operator comes after the producers of its inputs."""
    produced: set[str] = set()
    for operator in operators:
        for operand in operator.inputs:
            if operand.name not in produced:
                return False
        for operand in operator.outputs:
            produced.add(operand.name)
    return True


def _execution_order(graph: Graph, path: Path) -> Sequence[Operator]:
    """Return a topological order: the file's if it is one."""
    if _is_ordered(graph.operators):
        return graph.operators
    import networkx as nx

    digraph = nx.DiGraph()
    digraph.add_nodes_from(range(len(graph.operators)))
    place = {id(operator): index for index, operator in enumerate(graph.operators)}
    for index, operator in enumerate(graph.operators):
        for operand in operator.inputs:
            if operand.producer is not None:
                digraph.add_edge(place[id(operand.producer)], index)
    try:
        order = list(nx.lexicographical_topological_sort(digraph))
    except nx.NetworkXUnfeasible:
        raise ModelFileError(path, "its operators form a cycle") from None
    return [graph.operators[index] for index in order]


def _lines_of(operators: Sequence[Operator], graph: Graph) -> Sequence[int]:
    """Lines of operators in the file, which has one for each behind its two first."""
    in_order = range(_FIRST_LINE, _FIRST_LINE + len(operators))
    if operators is graph.operators:
        return in_order
    lines = {id(o): line for o, line in zip(graph.operators, in_order, strict=True)}
    return [lines[id(operator)] for operator in operators]


def _format_operand(operand: RuntimeOperand) -> str:
    if operand.shape is None:
        return f"{operand.name} of any shape"
    return f"{operand.name} of {format_shape(operand.shape)}"


def _convert(operand: RuntimeOperand, value: Array, *, drops_batch: bool = False) -> Array:
    """Copy `value` as the input's dtype.

    A model of ncnn has no batch axis: with `drops_batch` one of size 1 is left out.
    """
    if drops_batch and operand.shape is not None and value.ndim == len(operand.shape) + 1:
        value = value[0] if value.shape[0] == 1 else value
    if operand.shape is not None and value.ndim != len(operand.shape):
        advice = ""
        if drops_batch and value.ndim == len(operand.shape) + 1:
            advice = f"; layers of ncnn take one sample at a time: feed one of the {len(value)}"
        raise FeedError(
            f"input {_format_operand(operand)} was given {describe_shapes([value.shape])}, "
            f"which has {value.ndim} dimensions and not {len(operand.shape)}{advice}"
        )
    return _as_dtype(f"input {operand.name}", operand, value)


def _as_dtype(what: str, operand: RuntimeOperand, value: npt.ArrayLike) -> Array:
    """Copy `value` as the operand's dtype, read-only."""
    array = np.asarray(value)
    dtype = operand.dtype if operand.dtype is not None else array.dtype
    if not np.can_cast(array.dtype, dtype, casting="same_kind"):
        raise FeedError(
            f"{what} takes {dtype}, and {array.dtype} cannot become that without loss"
        )
    copied = np.array(array, dtype=dtype, order="C")
    copied.flags.writeable = False
    return copied


def _pass_on(
    record: StepRecord,
    values: dict[str, Held],
    shapes: dict[str, tuple[int, ...]],
    consumers: dict[str, int],
) -> None:
    """Store the outputs of a step, and drop values without further consumers."""
    for name, value in (record.outputs.resident or {}).items():
        if isinstance(value, np.ndarray):
            shapes[name] = value.shape
        if consumers[name]:
            values[name] = value
    for operand in record.operator.inputs:
        name = operand.name
        consumers[name] -= 1
        if not consumers[name]:
            values.pop(name, None)


def _shapes_of(values: Mapping[str, Value]) -> dict[str, tuple[int, ...]]:
    return {n: value.shape for n, value in values.items() if isinstance(value, np.ndarray)}
