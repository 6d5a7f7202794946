"""A small ONNX model, written node by node, for one operator or for several in a row.

Inputs and outputs may be declared in another shape than the operands have, as long as the
bytes are the same: an unbatched image goes in as a batch of one, a stack of rows as one
matrix, and nothing is copied for it. Large constants stay outside of the model, so that the
weights are read where they lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engine.backends.forms import NoFormError, Operand
from engine.backends.heap import aligned
from engine.backends.ncnn_graph import NcnnNetwork, NcnnWriter
from engine.backends.onnx_accurate import expand_inexact
from engine.backends.onnx_blocked import opsets, written_in_blocks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from engine.promotion import DType
    from engine.values import Array

__all__ = ["OnnxGraph", "OnnxInput", "OnnxModel", "OnnxOutput"]

_OPSET: Final = 20
_IR_VERSION: Final = 9
_LAID_OUT: Final = frozenset(["Conv", "MaxPool", "AveragePool", "GlobalAveragePool"])
_KINDS: Final = {
    np.dtype(np.float32): onnx.TensorProto.FLOAT,
    np.dtype(np.int64): onnx.TensorProto.INT64,
}
_INSIDE_BYTES: Final = 1024  # of a constant that is written into the model


@dataclass(frozen=True, slots=True)
class OnnxInput:
    """One input of a model.

    Attributes
    ----------
    name : str
    operand : str
        The operand that it reads; several inputs may read one in different shapes.
    shape : tuple of int
        As declared.
    dtype : dtype
    """

    name: str
    operand: str
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class OnnxOutput:
    """What one operator gives.

    Attributes
    ----------
    name : str
    shape : tuple of int or None
        What shape it is to be given afterwards; None as it comes.
    above_infinity : tuple of int
        Which of the operator's inputs must hold neither NaN nor -inf.
    finite : bool
        Whether the output must hold neither NaN nor infinities.
    blocks : tuple of int or None
        Where it comes in blocks of channels: its shape in memory, (N, G, H, W, b). See
        `onnx_blocked`.
    """

    name: str
    shape: tuple[int, ...] | None
    above_infinity: tuple[int, ...] = ()
    finite: bool = False
    blocks: tuple[int, int, int, int, int] | None = None

    @property
    def declared(self) -> tuple[int, ...] | None:
        """Shape that the model declares; None where ONNX Runtime is to find it."""
        if self.blocks is None:
            return None
        samples, groups, height, width, size = self.blocks
        return samples, groups * size, height, width


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A finished model.

    Attributes
    ----------
    content : bytes
        As ONNX stores it.
    weights : mapping of str to ndarray
        Constants that are to be handed over beside it; C-contiguous and aligned.
    inputs : tuple of OnnxInput
    outputs : tuple of OnnxOutput
        One for each operator, in order.
    has_convolution : bool
        Whether ONNX Runtime would change the layout of images for it.
    """

    content: bytes
    weights: Mapping[str, Array]
    inputs: tuple[OnnxInput, ...]
    outputs: tuple[OnnxOutput, ...]
    has_convolution: bool


class OnnxGraph:
    """Collects nodes, constants and the operands that they read.

    Attributes
    ----------
    natural : tuple of int or None
        Shape of what the present operator gives, where that is known.
    """

    def __init__(self) -> None:
        self.natural: tuple[int, ...] | None = None
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, Array] = {}
        self._inputs: dict[str, OnnxInput] = {}
        self._outputs: list[OnnxOutput] = []
        self._ends: list[tuple[str, int]] = []  # operands, and the nodes up to each
        # Operands that are computed here: the value's name, and its shape where that is known.
        self._computed: dict[str, tuple[str, tuple[int, ...] | None]] = {}
        self._same: dict[str, str] = {}
        self._reshaped: dict[tuple[str, tuple[int, ...]], str] = {}
        self._above_infinity: list[int] = []
        self._finite = False
        self._count = 0
        self._expanded: list[onnx.NodeProto] | None = None  # once no more nodes come

    def read(
        self, operand: object, shape: Sequence[int] | None = None, *, integers: bool = False
    ) -> str:
        """Read an operand.

        Parameters
        ----------
        operand : Operand, ndarray or number
            An array or number is a constant.
        shape : sequence of int, optional
            To read it in, of as many elements; its own without.
        integers : bool
            Whether it may be of int64.

        Returns
        -------
        str
            Name of the value.

        Raises
        ------
        NoFormError
            If it is anything else.
        """
        if not isinstance(operand, Operand):
            return self.constant(operand, shape)
        if operand.dtype != np.float32 and not integers:
            raise NoFormError(f"an operand of {operand.dtype}")
        wanted = operand.shape if shape is None else tuple(shape)
        if math.prod(wanted) != math.prod(operand.shape):
            raise NoFormError(f"{operand.shape} cannot be read as {wanted}")
        source = self._same.get(operand.name, operand.name)
        if source in self._computed:
            return self._in_shape(*self._computed[source], wanted)
        name = f"{source}_{'x'.join(map(str, wanted))}"
        self._inputs[name] = OnnxInput(name, source, wanted, operand.dtype)
        return name

    def _in_shape(
        self, name: str, shape: tuple[int, ...] | None, wanted: tuple[int, ...]
    ) -> str:
        if shape == wanted:
            return name
        if (name, wanted) not in self._reshaped:
            sizes = self.integers(*wanted)
            self._reshaped[name, wanted] = self.node("Reshape", name, sizes, allowzero=1)
        return self._reshaped[name, wanted]

    def constant(self, value: object, shape: Sequence[int] | None = None) -> str:
        """Add a constant: an array, or a float32 from a number."""
        if isinstance(value, (bool, complex, str)) or value is None:
            raise NoFormError(f"{value!r} is no constant here")
        array = np.asarray(value)
        if not isinstance(value, np.ndarray) and array.dtype != np.int64:
            array = array.astype(np.float32)
        if array.dtype not in _KINDS:
            raise NoFormError(f"a constant of {array.dtype} is not supported")
        if shape is not None:
            array = array.reshape(shape)
        name = self._name("c")
        self._constants[name] = array
        return name

    def integers(self, *values: int) -> str:
        """Add a constant list of int64."""
        return self.constant(np.asarray(values, np.int64))

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node.

        Parameters
        ----------
        op_type : str
            As ONNX names it.
        *inputs : str
            Names of values, ``""`` for an optional one that is left out.
        **attributes
            Those that are None are left out.

        Returns
        -------
        str
            Name of the output.
        """
        output = self._name("v")
        given = {k: v for k, v in attributes.items() if v is not None}
        self._nodes.append(helper.make_node(op_type, inputs, [output], **given))
        return output

    def require_above_infinity(self, operand: Operand) -> None:
        """Leave the work to the reference where an operand holds NaN or -inf.

        For nodes that pass over them.
        """
        self._above_infinity.append(operand.index)

    def require_finite(self) -> None:
        """Leave the work to the reference where the output holds NaN or infinities.

        For nodes that make them where there are none, or of others.
        """
        self._finite = True

    def give(
        self, operand: str, result: str, shape: tuple[int, ...] | None, *, out: bool = True
    ) -> None:
        """End an operator: say which value is its result.

        Parameters
        ----------
        operand : str
            Name of the operand for operators behind.
        result : str
            Name of the value.
        shape : tuple of int or None
            See `OnnxOutput.shape`.
        out : bool
            Whether the model gives it out.

        Raises
        ------
        NoFormError
            If nothing was computed.
        """
        if not self._is_computed(result):
            raise NoFormError("nothing is computed")
        if out:
            self._outputs.append(
                OnnxOutput(result, shape, tuple(self._above_infinity), self._finite)
            )
        self._ends.append((operand, len(self._nodes)))
        self._computed[operand] = (result, self.natural if shape is None else None)
        self._above_infinity, self._finite = [], False

    def may_give(self, name: str) -> bool:
        """Whether a value is computed here, and no operator's result that is given out."""
        return self._is_computed(name) and all(name != output.name for output in self._outputs)

    def _is_computed(self, name: str) -> bool:
        return any(name in node.output for node in reversed(self._nodes))

    def same(self, operand: str, other: str) -> None:
        """Say that an operand has the bytes of another one, in another shape perhaps."""
        self._same[operand] = self._same.get(other, other)

    def finish(self, free: Collection[str] | None = None) -> OnnxModel:
        """Close the model.

        Parameters
        ----------
        free : collection of str, optional
            Write it with images in blocks of channels, and give these operands as they are
            then; the others in the common order, as are all without.

        Raises
        ------
        NoFormError
            If it reads nothing, or gains nothing by blocks of channels.
        """
        if not self._inputs:
            raise NoFormError("nothing is computed")
        nodes = self._for_onnx_runtime()
        if free is None:
            return self._closed(nodes, self._constants, self._outputs)
        shapes = self._shapes()
        written = written_in_blocks(
            nodes, self._constants, shapes, [o.name for o in self._outputs],
            self._values_of(free),
        )  # fmt: skip
        if written is None:
            raise NoFormError("no images to be computed in blocks of channels")
        outputs = []
        for output in self._outputs:
            finite = output.finite or output.name in written.padded
            name, blocks = written.blocked.get(output.name, (output.name, None))
            shape = output.shape
            if blocks is not None and shape is None:
                shape = shapes[output.name]
            outputs.append(OnnxOutput(name, shape, output.above_infinity, finite, blocks))
        return self._closed(written.nodes, {**self._constants, **written.constants}, outputs)

    def for_ncnn(self, free: Collection[str]) -> NcnnNetwork:
        """Write it as a network of ncnn.

        Parameters
        ----------
        free : collection of str
            Operands that may be given in blocks of channels; the others are in the common
            order.

        Raises
        ------
        NoFormError
            If ncnn cannot compute it, or there is no convolution.
        """
        writer = self._ncnn_writer()
        if writer.written < len(self._nodes):
            raise NoFormError(f"{self._nodes[writer.written].op_type} in ncnn")
        return writer.finished(self._values_of(free))

    def foreign_to_ncnn(self) -> str | None:
        """Find the first operand that is not to be had with `for_ncnn`."""
        written = self._ncnn_writer().written
        return next((operand for operand, end in self._ends if end > written), None)

    def _ncnn_writer(self) -> NcnnWriter:
        return NcnnWriter(
            self._nodes, self._constants, self._shapes(), self._inputs.values(), self._outputs
        )

    def _for_onnx_runtime(self) -> list[onnx.NodeProto]:
        if self._expanded is None:
            self._expanded = expand_inexact(self._nodes, self.constant)
        return self._expanded

    def _values_of(self, operands: Iterable[str]) -> frozenset[str]:
        return frozenset(self._computed[operand][0] for operand in operands)

    def _closed(
        self,
        nodes: Sequence[onnx.NodeProto],
        constants: Mapping[str, Array],
        outputs: Sequence[OnnxOutput],
    ) -> OnnxModel:
        read = {name for node in nodes for name in node.input}
        arrays = {name: array for name, array in constants.items() if name in read}
        outside = {
            name: aligned(array)
            for name, array in arrays.items()
            if array.nbytes > _INSIDE_BYTES
        }
        model = self._model(nodes, outputs, arrays)
        return OnnxModel(
            model.SerializeToString(),
            outside,
            tuple(self._inputs.values()),
            tuple(outputs),
            any(node.op_type in _LAID_OUT for node in nodes),
        )

    def _model(
        self,
        nodes: Sequence[onnx.NodeProto],
        outputs: Sequence[OnnxOutput],
        constants: Mapping[str, Array],
    ) -> onnx.ModelProto:
        declared = [
            helper.make_tensor_value_info(i.name, _KINDS[i.dtype], i.shape)
            for i in self._inputs.values()
        ]
        given = [
            helper.make_tensor_value_info(o.name, onnx.TensorProto.FLOAT, o.declared)
            if o.declared
            else helper.make_empty_tensor_value_info(o.name)
            for o in outputs
        ]
        stored = [
            numpy_helper.from_array(array, name)
            if array.nbytes <= _INSIDE_BYTES
            else _declared_outside(name, array)
            for name, array in constants.items()
        ]
        graph = helper.make_graph(nodes, "operators", declared, given, stored)
        return helper.make_model(
            graph,
            opset_imports=opsets(_OPSET, nodes),
            ir_version=_IR_VERSION,
            producer_name="kuiper-studio",
        )

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the values that are known without computing them."""
        model = self._model(self._for_onnx_runtime(), self._outputs, self._constants)
        graph = onnx.shape_inference.infer_shapes(model).graph
        found = {}
        for value in (*graph.input, *graph.value_info, *graph.output):
            sizes = value.type.tensor_type.shape.dim
            if value.type.tensor_type.HasField("shape") and all(
                size.HasField("dim_value") for size in sizes
            ):
                found[value.name] = tuple(size.dim_value for size in sizes)
        return found

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


def _declared_outside(name: str, array: Array) -> onnx.TensorProto:
    """A constant that is handed over beside the model; its place is never read."""
    outside = onnx.TensorProto(
        name=name,
        data_type=_KINDS[array.dtype],
        dims=array.shape,
        data_location=onnx.TensorProto.EXTERNAL,
    )
    outside.external_data.add(key="location", value=name)
    return outside
