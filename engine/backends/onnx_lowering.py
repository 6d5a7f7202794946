"""Lowers a subgraph to an ONNX model for ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engine.backends.heap import aligned
from engine.backends.lowering import LoweringError
from engine.backends.onnx_accurate import expand_inexact
from engine.backends.onnx_nchwc import rewrite_in_nchwc
from engine.backends.subgraph import SubgraphOutput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from engine.backends.subgraph import Node, Refinement, Subgraph, SubgraphInput
    from engine.promotion import DType
    from engine.values import Array

__all__ = ["OnnxModel", "OnnxOutput", "infer_outputs", "infer_shapes", "lower_to_onnx"]

_OPSET: Final = 20
_IR_VERSION: Final = 9
# Nodes for which ONNX Runtime would change the layout of images.
_LAID_OUT: Final = frozenset(["Conv", "MaxPool", "AveragePool", "GlobalAveragePool"])
# Operators that ONNX lacks: ONNX Runtime's docs/ContribOperators.md.
_DOMAINS: Final = {"Attention": "com.microsoft"}
_DTYPES: Final = {
    np.dtype(np.float32): onnx.TensorProto.FLOAT,
    np.dtype(np.int64): onnx.TensorProto.INT64,
}
_FLOAT32: Final = np.dtype(np.float32)
_RESULTS: Final[dict[int, DType]] = {
    onnx.TensorProto.FLOAT: _FLOAT32,
    onnx.TensorProto.INT64: np.dtype(np.int64),
    onnx.TensorProto.BOOL: np.dtype(np.bool_),
}
_INSIDE_BYTES: Final = 1024  # largest constant that is stored in the model


@dataclass(frozen=True, slots=True)
class OnnxOutput(SubgraphOutput):
    """A result of an operator in ONNX Runtime.

    Attributes
    ----------
    nchwc : tuple of int or None
        If it is in NCHWc: its shape in memory, (N, G, H, W, b). See `onnx_nchwc`.
    """

    nchwc: tuple[int, int, int, int, int] | None = None

    @property
    def declared(self) -> tuple[int, ...] | None:
        """Shape that the model declares; None if ONNX Runtime infers it."""
        if self.nchwc is None:
            return None
        samples, groups, height, width, size = self.nchwc
        return samples, groups * size, height, width


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A finished model.

    Attributes
    ----------
    content : bytes
        The serialised model.
    weights : mapping of str to ndarray
        Constants that are passed beside it; C-contiguous and aligned.
    inputs : tuple of SubgraphInput
    outputs : tuple of OnnxOutput
        One for each operator, in order.
    refinements : tuple of Refinement
    has_convolution : bool
        Whether ONNX Runtime would change the layout of images for it.
    """

    content: bytes
    weights: Mapping[str, Array]
    inputs: tuple[SubgraphInput, ...]
    outputs: tuple[OnnxOutput, ...]
    refinements: tuple[Refinement, ...]
    has_convolution: bool


def lower_to_onnx(graph: Subgraph, nchwc: Collection[str] | None = None) -> OnnxModel:
    """Lower a subgraph to an ONNX model.

    Parameters
    ----------
    graph : Subgraph
    nchwc : collection of str, optional
        Operands to return in NCHWc, in which images are then computed. The others, and all by
        default, are in NCHW.

    Raises
    ------
    LoweringError
        If it reads nothing, or NCHWc has no advantage.
    """
    if not graph.inputs:
        raise LoweringError("nothing is computed")
    nodes, constants = _expand(graph)
    if nchwc is None:
        outputs = [_output(output) for output in graph.outputs]
        return _close(graph, nodes, constants, outputs)
    shapes = _infer_shapes(graph, nodes, constants)
    rewritten = rewrite_in_nchwc(
        nodes, constants, shapes, [o.name for o in graph.outputs], graph.values_of(nchwc),
        graph.pairs,
    )  # fmt: skip
    if rewritten is None:
        raise LoweringError("no images to compute in NCHWc")
    outputs = []
    for output in graph.outputs:
        finite = output.finite or output.name in rewritten.padded
        name, blocks = rewritten.nchwc.get(output.name, (output.name, None))
        shape = output.shape
        if blocks is not None and shape is None:
            shape = shapes[output.name]
        outputs.append(OnnxOutput(name, shape, output.above_infinity, finite, blocks))
    return _close(graph, rewritten.nodes, {**constants, **rewritten.constants}, outputs)


def infer_shapes(graph: Subgraph) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a subgraph's values that are known without computing them."""
    return _infer_shapes(graph, *_expand(graph))


def infer_outputs(graph: Subgraph) -> list[tuple[tuple[int, ...], DType] | None]:
    """Return shapes and dtypes of a subgraph's results; None where they are not known."""
    inferred = _run_inference(graph, *_expand(graph))
    values = {value.name: value for value in (*inferred.value_info, *inferred.output)}
    found: list[tuple[tuple[int, ...], DType] | None] = []
    for output in graph.outputs:
        value = values.get(output.name)
        shape = output.shape
        if shape is None and value is not None:
            shape = _shape_of(value)
        # ONNX does not know the nodes that only ONNX Runtime has; their results are float32.
        kind = 0 if value is None else value.type.tensor_type.elem_type
        found.append(None if shape is None else (shape, _RESULTS.get(kind, _FLOAT32)))
    return found


def _expand(graph: Subgraph) -> tuple[list[Node], dict[str, Array]]:
    """Return nodes and constants, without inaccurate nodes."""
    constants = dict(graph.constants)

    def add_number(number: float) -> str:
        name = f"n{len(constants)}"
        constants[name] = np.asarray(number, np.float32)
        return name

    return expand_inexact(graph.nodes, add_number), constants


def _output(output: SubgraphOutput) -> OnnxOutput:
    return OnnxOutput(output.name, output.shape, output.above_infinity, output.finite)


def _close(
    graph: Subgraph,
    nodes: Iterable[Node],
    constants: Mapping[str, Array],
    outputs: Sequence[OnnxOutput],
) -> OnnxModel:
    protos = [_make_proto(node) for node in nodes]
    read = {name for proto in protos for name in proto.input}
    arrays = {name: array for name, array in constants.items() if name in read}
    outside = {
        name: aligned(array) for name, array in arrays.items() if array.nbytes > _INSIDE_BYTES
    }
    model = _make_model(graph.inputs, protos, arrays, outputs)
    return OnnxModel(
        model.SerializeToString(),
        outside,
        graph.inputs,
        tuple(outputs),
        tuple(graph.refinements),
        any(proto.op_type in _LAID_OUT for proto in protos),
    )


def _make_proto(node: Node) -> onnx.NodeProto:
    domain, _, kind = node.kind.rpartition(".")
    return helper.make_node(
        kind,
        node.inputs,
        [node.output],
        domain=domain or _DOMAINS.get(kind),
        **node.attributes,
    )


def _make_model(
    inputs: Iterable[SubgraphInput],
    protos: Sequence[onnx.NodeProto],
    constants: Mapping[str, Array],
    outputs: Iterable[OnnxOutput],
) -> onnx.ModelProto:
    declared = [
        helper.make_tensor_value_info(i.name, _DTYPES[i.dtype], i.shape) for i in inputs
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
        else _declare_outside(name, array)
        for name, array in constants.items()
    ]
    graph = helper.make_graph(protos, "operators", declared, given, stored)
    own = sorted({proto.domain for proto in protos if proto.domain})
    opsets = [("", _OPSET), *((domain, 1) for domain in own)]
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(*opset) for opset in opsets],
        ir_version=_IR_VERSION,
        producer_name="kuiper-studio",
    )


def _infer_shapes(
    graph: Subgraph, nodes: Iterable[Node], constants: Mapping[str, Array]
) -> dict[str, tuple[int, ...]]:
    inferred = _run_inference(graph, nodes, constants)
    found = {}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        shape = _shape_of(value)
        if shape is not None:
            found[value.name] = shape
    return found


def _run_inference(
    graph: Subgraph, nodes: Iterable[Node], constants: Mapping[str, Array]
) -> onnx.GraphProto:
    protos = [_make_proto(node) for node in nodes]
    model = _make_model(graph.inputs, protos, constants, map(_output, graph.outputs))
    return onnx.shape_inference.infer_shapes(model).graph


def _shape_of(value: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """Return a value's shape; None if it is not known."""
    tensor = value.type.tensor_type
    sizes = tensor.shape.dim
    if not tensor.HasField("shape") or not all(size.HasField("dim_value") for size in sizes):
        return None
    return tuple(size.dim_value for size in sizes)


def _declare_outside(name: str, array: Array) -> onnx.TensorProto:
    """Declare a constant that is passed beside the model; its location is never read."""
    outside = onnx.TensorProto(
        name=name,
        data_type=_DTYPES[array.dtype],
        dims=array.shape,
        data_location=onnx.TensorProto.EXTERNAL,
    )
    outside.external_data.add(key="location", value=name)
    return outside
