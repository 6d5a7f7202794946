"""Operators and operands of the executable graph, and how a layer is called."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from typing_extensions import override

from engine.errors import (
    EngineError,
    InferenceError,
    InferStatus,
    LayerError,
    ParameterError,
    UnsupportedOperatorError,
)
from engine.layers import Outputs, reason_of
from engine.layers.arguments import cast
from engine.layers.layer import LibraryLayer
from engine.memory_bound import current_room, require_extent
from engine.ncnn.reader import INPUT as NCNN_INPUT
from engine.ncnn.reader import OUTPUT as NCNN_OUTPUT
from engine.runtime.parameter import RuntimeAttribute, RuntimeParameter, runtime_parameter
from engine.runtime.tied_weights import NONE
from engine.tensor import Tensor
from engine.values import describe_value, freeze

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.random import Generator

    from engine.layers import Layer, LayerFile, Storage
    from engine.layers.notes import OperatorNote
    from engine.pnnx import Attribute, Operator, Parameter, Shape
    from engine.values import Array, Value

__all__ = [
    "BASE",
    "INPUT_TYPES",
    "OUTPUT_TYPES",
    "Bound",
    "LayerProvider",
    "OperatorLabel",
    "RuntimeOperand",
    "RuntimeOperator",
]

Item = TypeVar("Item")

INPUT_TYPES: Final = frozenset({"pnnx.Input", NCNN_INPUT})
OUTPUT_TYPES: Final = frozenset({"pnnx.Output", NCNN_OUTPUT})
BASE: Final = "base"
"""Argument that takes the tensor which the first input is a view of, see `runtime.storage`."""

# Operators without inputs that hold an argument, and the parameter with its value.
_CONSTANT_OF: Final = {"prim::Constant": "value", "pnnx.Expression": "expr"}

# Operators that make a tensor of one number; a dtype of ONNX's is not among their parameters.
_OF_ONE_NUMBER: Final = frozenset({"torch.empty", "torch.full", "torch.ones", "torch.zeros"})

# Operators whose result is a list, even of one member, unless it is a tensor.
_LISTS: Final = frozenset({"pnnx.Expression", "prim::Constant", "Tensor.size", "aten::size"})


class RuntimeOperand:
    """A tensor of the graph, shared by its producer and all consumers.

    Values live in sessions, not here, so that one graph serves many sessions.

    Attributes
    ----------
    name : str
    index : int
        Position among the graph's operands.
    producer : RuntimeOperator or None
    consumers : tuple of RuntimeOperator
        One entry per use: an operator that takes the operand twice appears twice.
    shape : tuple of int, str or None, or None
        The exported shape; a None dimension is unknown (``?``), a str one a symbol. None if the
        file has no shape.
    dtype : numpy.dtype or None
        None if the file has no dtype.
    """

    __slots__ = ("consumers", "dtype", "index", "name", "producer", "shape")

    def __init__(
        self,
        name: str,
        index: int,
        shape: tuple[int | str | None, ...] | None,
        dtype: np.dtype[Any] | None,
    ) -> None:
        self.name, self.index, self.shape, self.dtype = name, index, shape, dtype
        self.producer: RuntimeOperator | None = None
        self.consumers: tuple[RuntimeOperator, ...] = ()

    @staticmethod
    def tensors(value: Array) -> list[Tensor]:
        """Split a value of this operand into KuiperInfer's per-sample tensors.

        Parameters
        ----------
        value : ndarray of shape (N, C, H, W), or fewer dimensions

        Returns
        -------
        list of Tensor
            N tensors that alias `value`.
        """
        return Tensor.batch(value)

    @override
    def __repr__(self) -> str:
        return f"RuntimeOperand({self.name!r}, shape={self.shape}, dtype={self.dtype})"


class Bound(NamedTuple):
    """Result of building an operator's layer.

    Attributes
    ----------
    layer : Layer or None
        The checked layer; its weights are zeros unless the layer is from a user's file.
    error : EngineError or None
        Why there is no layer; also None for an input or output, which needs none.
    file : Path or None
        The user's file that the layer comes from.
    """

    layer: Layer | None = None
    error: EngineError | None = None
    file: Path | None = None


class LayerProvider(Protocol):
    """A source of layers."""

    @property
    def from_onnx(self) -> bool:
        """Whether the file was made from an ONNX model."""
        ...

    @property
    def param_path(self) -> Path:
        """The ``.param`` file."""
        ...

    def bind(self, operator: RuntimeOperator) -> Bound:
        """Check an operator; errors are returned, not raised."""
        ...

    def with_weights(self, operator: RuntimeOperator) -> Layer:
        """Build the layer of an operator that was checked, with its weights.

        Raises
        ------
        EngineError
            If a weight cannot be read, or the layer cannot be built with it.
        """
        ...

    @property
    def files(self) -> tuple[LayerFile, ...]:
        """The user's layer files, with their types."""
        ...

    def is_random(self, operator: RuntimeOperator) -> bool:
        """Whether an operator draws random numbers, or may."""
        ...

    def note(self, type: str) -> OperatorNote:  # noqa: A002 - pnnx's own word
        """Return the note on a type."""
        ...


@dataclass(frozen=True, slots=True)
class OperatorLabel:
    """Index, type and name of an operator, without its graph; can be pickled.

    Attributes
    ----------
    index : int
        Position in execution order.
    type, name : str
    """

    index: int
    type: str
    name: str


class RuntimeOperator:
    """An operator, its index in execution order, and its layer.

    The layer is built when it, or its error, is first used. Weights are read when it first
    computes.

    Parameters
    ----------
    operator : Operator
        Of the file.
    index : int
    inputs, outputs : tuple of RuntimeOperand
        As in the file.
    source : LayerProvider
    line : int
    tied : frozenset of int, optional
        Places of inputs that only repeat a weight of the operator; they are left out.

    Attributes
    ----------
    name : str
        Unique in the graph.
    type : str
        As the file writes it, e.g. ``nn.Conv2d``.
    index : int
        Position in execution order.
    inputs, outputs : tuple of RuntimeOperand
        The same objects as its neighbours'.
    input_names : tuple of str
        PyTorch's argument name of each input, ``""`` where the file gives none.
    tied_inputs : tuple of RuntimeOperand
        Inputs in the file that only repeat a weight of its own; they are not among `inputs`.
    line : int
        Of the ``.param`` file, counted from 1.
    storage : Storage or None
        Layout of the first input in the last one, for a type that reads memory by strides; None
        if it has its own memory.
    """

    __slots__ = (
        "__dict__",  # for cached_property
        "_operator",
        "_source",
        "_tied",
        "index",
        "inputs",
        "line",
        "name",
        "outputs",
        "storage",
        "tied_inputs",
        "type",
    )

    def __init__(
        self,
        operator: Operator,
        index: int,
        inputs: tuple[RuntimeOperand, ...],
        outputs: tuple[RuntimeOperand, ...],
        source: LayerProvider,
        line: int,
        tied: frozenset[int] = NONE,
    ) -> None:
        self._operator = operator
        self.name, self.type = operator.name, operator.type
        self.index, self.line = index, line
        self._source, self._tied = source, tied
        self.inputs = self._untied(inputs) if tied else inputs
        self.tied_inputs = tuple([inputs[place] for place in sorted(tied)]) if tied else ()
        self.outputs = outputs
        self.storage: Storage | None = None

    @property
    def input_names(self) -> tuple[str, ...]:
        """PyTorch's argument name of each input, ``""`` where the file gives none."""
        names = tuple(self._operator.input_names)
        if self._tied:
            names = self._untied(names)
        return names if len(names) == len(self.inputs) else (*names, BASE)

    def _untied(self, items: Sequence[Item]) -> tuple[Item, ...]:
        return tuple([item for place, item in enumerate(items) if place not in self._tied])

    def lies_in(self, base: RuntimeOperand | None, storage: Storage) -> None:
        """Add the base of which the first input is a view, while the graph is built.

        Parameters
        ----------
        base : RuntimeOperand or None
            None if it is unknown.
        storage : Storage
            Layout of the first input in it.
        """
        self.storage = storage
        if base is not None:
            self.inputs = (*self.inputs, base)
            base.consumers = (*base.consumers, self)

    @cached_property
    def params(self) -> Mapping[str, Value]:
        """Parameters as plain values, by name."""
        return MappingProxyType({k: p.value for k, p in self._operator.params.items()})

    @cached_property
    def parameters(self) -> Mapping[str, RuntimeParameter]:
        """Parameters with their types, by name."""
        return MappingProxyType(
            {k: runtime_parameter(p) for k, p in self._operator.params.items()}
        )

    @cached_property
    def attributes(self) -> Mapping[str, RuntimeAttribute]:
        """Weights by name."""
        return MappingProxyType(
            {k: RuntimeAttribute(a) for k, a in self._operator.attrs.items()}
        )

    @property
    def has_attributes(self) -> bool:
        """Whether the operator has weights."""
        return bool(self._operator.attrs)

    @property
    def is_input(self) -> bool:
        """Whether it is an input of the model."""
        return self.type in INPUT_TYPES

    @property
    def is_output(self) -> bool:
        """Whether it is an output of the model."""
        return self.type in OUTPUT_TYPES

    @property
    def is_constant(self) -> bool:
        """Whether its result does not depend on the model's inputs: it has no input."""
        return not self.inputs and not self.is_input

    @property
    def reason(self) -> str:
        """Why it cannot run; ``""`` if it can."""
        return str(self.error) if self.error is not None else ""

    @cached_property
    def _bound(self) -> Bound:
        return self._source.bind(self)

    @cached_property
    def layer(self) -> Layer | None:
        """The layer; None if there is an `error`, and for an input or output.

        Raises
        ------
        LayerError
            If a weight cannot be read, because the file has changed since it was opened.
        """
        checked = self.checked_layer
        if checked is None or not self.has_attributes or self.layer_file is not None:
            return checked
        return self._source.with_weights(self)

    @property
    def checked_layer(self) -> Layer | None:
        """The layer, perhaps built without weights."""
        return self._bound.layer

    @property
    def error(self) -> EngineError | None:
        """Why the operator cannot run: no layer for its type, or wrong parameters.

        A model with such an operator opens, and everything that does not depend on it runs.
        """
        return self._bound.error

    @property
    def layer_file(self) -> Path | None:
        """The user's file that the layer comes from; None for the engine's own."""
        return self._bound.file

    @cached_property
    def random(self) -> bool:
        """Whether it may draw random numbers; an operand can disable that."""
        return self._source.is_random(self)

    @property
    def from_onnx(self) -> bool:
        """Whether the file was made from an ONNX model."""
        return self._source.from_onnx

    @property
    def place(self) -> str:
        """Where it stands: name of the file and line."""
        return f"{self._source.param_path.name}:{self.line}"

    @property
    def label(self) -> OperatorLabel:
        """Index, type and name."""
        return OperatorLabel(self.index, self.type, self.name)

    @property
    def note(self) -> OperatorNote:
        """The note on its type."""
        return self._source.note(self.type)

    @property
    def parameter_texts(self) -> tuple[tuple[str, str], ...]:
        """Parameters in the file's notation."""
        return tuple([(key, p.text) for key, p in self._operator.params.items()])

    def copy_with(
        self,
        attributes: Mapping[str, Attribute],
        params: Mapping[str, Parameter] | None = None,
    ) -> RuntimeOperator:
        """Return a copy of the operator with other weights or parameters, beside the graph.

        Parameters
        ----------
        attributes : mapping of str to Attribute
            By name; the other weights stay.
        params : mapping of str to Parameter, optional
            By name; the other parameters stay.
        """
        file = copy(self._operator)
        file.attrs = {**self._operator.attrs, **attributes}
        file.params = {**self._operator.params, **(params or {})}
        twin = RuntimeOperator(
            file, self.index, self.inputs, self.outputs, self._source, self.line
        )
        twin.storage, twin.tied_inputs, twin._tied = self.storage, self.tied_inputs, self._tied
        return twin

    def generator(self, seed: int) -> Generator:
        """Make the random generator of one execution.

        It depends only on the seed and the operator's index, not on what ran before. NumPy
        guarantees the bits of a seed; distributions may change with its version.

        Parameters
        ----------
        seed : int
            Not negative.
        """
        # Imported here: the window has operators too, but draws no numbers.
        from numpy.random import PCG64, Generator, SeedSequence

        return Generator(PCG64(SeedSequence(seed, spawn_key=(self.index,))))

    def forward(
        self, inputs: Sequence[Value], generator: Generator | None = None
    ) -> tuple[Value, ...]:
        """Compute the outputs.

        Parameters
        ----------
        inputs : sequence of Value
            One per input operand.
        generator : Generator, optional
            For a `random` operator; default that of seed 0.

        Returns
        -------
        tuple of Value
            One per output operand; arrays are read-only and may alias `inputs`.

        Raises
        ------
        UnsupportedOperatorError, ParameterError
            If the operator has no layer.
        InferenceError
            For any error inside the layer, with operator, type and input shapes.
        """
        layer = self._layer_for(inputs)
        if len(inputs) != len(self.inputs):
            raise self._failure(
                inputs,
                f"{len(inputs)} inputs were given, the operator takes {len(self.inputs)}",
                InferStatus.kInferInputsEmpty
                if not inputs
                else InferStatus.kInferArraySizeMismatch,
            )
        try:
            with np.errstate(all="ignore"):  # inf and NaN are results here, as in PyTorch
                if self.random:
                    draws = {layer.generator: generator or self.generator(0)}
                    results = self._spread(layer.forward(*inputs, **draws))
                else:
                    results = self._spread(layer.forward(*inputs))
            return tuple([_bounded(freeze(result)) for result in results])
        except LayerError as exc:
            raise self._failure(inputs, self._format_reason(exc), exc.status) from exc
        except ParameterError as exc:  # of a layer whose parameters came as operands
            status = InferStatus.kInferParameterError
            raise self._failure(inputs, reason_of(exc), status) from exc
        except Exception as exc:
            # A layer may be the user's code: any exception means that the operator failed.
            raise self._failure(inputs, reason_of(exc)) from exc

    def _layer_for(self, inputs: Sequence[Value]) -> Layer:
        try:
            layer = self.layer
        except EngineError as exc:  # of weights
            raise self._failure(inputs, reason_of(exc)) from exc
        if layer is None:
            raise self.error or UnsupportedOperatorError(self.name, self.type)
        if isinstance(layer, LibraryLayer):
            raise UnsupportedOperatorError(self.name, self.type, reason=layer.reason)
        return layer

    def constants(self) -> dict[int, Value]:
        """Return constant inputs of the file, by index."""
        found: dict[int, Value] = {}
        for place, operand in enumerate(self.inputs):
            producer = operand.producer
            if producer is None or producer.inputs or producer.type not in _CONSTANT_OF:
                continue
            value = producer.params.get(_CONSTANT_OF[producer.type])
            if not isinstance(value, str):  # of an expression, a text to be evaluated
                found[place] = value
        return found

    @property
    def result_count(self) -> int:
        """Return the expected number of results."""
        return self._unpacked_count or len(self.outputs)

    @property
    def output_shapes(self) -> tuple[Shape | None, ...]:
        """Return the file's shapes of the outputs."""
        return tuple([operand.shape for operand in self.outputs])

    @property
    def _unpacked_count(self) -> int:
        """Return the number of members of a single output that is only unpacked.

        pnnx joins the two operators at its usual level of optimisation, not below.
        """
        if len(self.outputs) != 1:
            return 0
        consumers = self.outputs[0].consumers
        if not consumers or consumers[0].type != "prim::TupleUnpack":
            return 0
        if len(consumers) > 1 and any(c.type != "prim::TupleUnpack" for c in consumers):
            return 0
        return len(consumers[0].outputs)

    def _spread(self, result: object) -> tuple[object, ...]:
        """One result per output operand."""
        wanted = len(self.outputs)
        if wanted == 1 and type(result) is np.ndarray and result.ndim and self._plain:
            return (result,)  # nearly all there are, of which nothing needs to be asked
        unpacked = self._unpacked_count
        if isinstance(result, Outputs) and 1 < unpacked <= len(result):
            return (tuple(result[:unpacked]),)
        if isinstance(result, Outputs) and len(result) >= wanted:
            return tuple(result[:wanted])
        if wanted == 1 and not isinstance(result, Outputs):
            # A list has no shape in the file: an annotated output is its only member, as
            # of a torch.split that gives one part.
            alone = isinstance(result, (tuple, list)) and len(result) == 1
            if alone and self.type not in _LISTS:
                return (result if self.outputs[0].shape is None else result[0],)  # type: ignore[index]
            return (self._as_annotated(result),)
        if isinstance(result, (tuple, list)) and len(result) == wanted:
            return tuple(result)
        if wanted == 0:
            return ()
        count = len(result) if isinstance(result, (tuple, list)) else 1
        raise LayerError(
            f"the layer gave {count} results, the file has {wanted} outputs",
            InferStatus.kInferOutputsEmpty
            if not count
            else InferStatus.kInferArraySizeMismatch,
        )

    @cached_property
    def _plain(self) -> bool:
        """Return whether a tensor with dimensions is returned unchanged."""
        return self.type not in _OF_ONE_NUMBER

    def _as_annotated(self, result: object) -> object:
        """Restore dtype and dimensions that pnnx loses from ONNX.

        A tensor of one number has a dtype there, and ``ReduceMax`` over everything may keep
        dimensions of size 1. What has no dimensions is never annotated.
        """
        shape, dtype = self.outputs[0].shape, self.outputs[0].dtype
        if not shape or not isinstance(result, (np.ndarray, np.generic)):
            return result
        array = np.asarray(result)
        if dtype is not None and array.dtype != dtype and self.type in _OF_ONE_NUMBER:
            array = array if self.params.get("dtype") else cast(array, dtype)
        if not array.ndim and set(shape) == {1}:
            return array.reshape((1,) * len(shape))
        return array

    def _format_reason(self, error: LayerError) -> str:
        """Return the reason of a layer's error; name a constant that fixes the size."""
        reason = reason_of(error)
        if error.pinned_by not in self.params:
            return reason
        pinned = str(self.params[error.pinned_by]).replace(" ", "")
        return f"it fixes the size by {error.pinned_by}={pinned}: {reason}"

    def _failure(
        self,
        inputs: Sequence[Value],
        reason: str,
        status: InferStatus = InferStatus.kInferUnknown,
    ) -> InferenceError:
        shapes = [describe_value(value) for value in inputs]
        return InferenceError(self.name, self.type, shapes, reason, status)

    @override
    def __repr__(self) -> str:
        return f"RuntimeOperator({self.index}, {self.type}, {self.name!r})"


def _bounded(value: Value) -> Value:
    """Return a result, if reading all of it stays within the memory bound.

    A stretched axis takes no memory by itself.
    """
    if isinstance(value, np.ndarray) and value.nbytes > current_room().bound:
        require_extent(value.shape, value.dtype)
    return value
