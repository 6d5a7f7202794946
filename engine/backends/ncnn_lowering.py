"""Lowers a subgraph to one network of ncnn.

The network states the shape of every image, because ncnn chooses its convolution kernels by it.
Without a shape ncnn chooses a slow kernel.

In ncnn a value is an image of three axes, without the batch, or a vector. A value that several
layers read needs a Split layer.

Winograd's transformation spreads NaN and infinities over a tile, and some element-wise layers
ignore them. So the network has one more result, which shows them wherever they appear: averages
over the pixels of each channel.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from engine.backends.lowering import LoweringError
from engine.backends.ncnn_layers import (
    ACTIVATION_TYPES,
    AVERAGE_POOLING,
    LARGEST,
    MAGIC,
    REVERSED_SUB,
    VALID_PADDING,
    convolution_params,
    format_layer,
    format_params,
    inner_product_params,
    weights_of,
)
from engine.backends.node_kinds import ELEMENTWISE
from engine.backends.onnx_lowering import infer_shapes
from engine.backends.subgraph import keep_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from engine.backends.ncnn_layers import Params
    from engine.backends.subgraph import Node, Refinement, Subgraph
    from engine.values import Array

__all__ = ["NcnnNetwork", "NcnnOutput", "first_unsupported", "lower_to_ncnn"]

# Sides of an image (C, H, W), or of a vector (F,).
Sides: TypeAlias = tuple[int, ...]

_UNARY: Final = [kind for kind, row in ELEMENTWISE.items() if row.ncnn and row.operands == 1]
_BINARY: Final = [kind for kind, row in ELEMENTWISE.items() if row.ncnn and row.operands == 2]
_SMALLEST: Final = float(np.finfo(np.float32).tiny)
_REVERSED: Final = {"Sub": REVERSED_SUB}  # with the number as the first operand
_ADD: Final = {"op_type": ELEMENTWISE["Add"].ncnn_op_type}
_LEAST_OF_SWISH: Final = -88.0  # with 5e-37
# Parameters of ncnn's layer by the node's attributes, in ncnn's order.
_ACTIVATION_PARAMS: Final[Mapping[str, Callable[[Node], Mapping[str, float]]]] = {
    "Relu": lambda _: {},
    "LeakyRelu": lambda node: {"slope": float(node.attributes["alpha"])},
    "Sigmoid": lambda _: {},
    "Gelu": lambda _: {"fast_gelu": 0},
    "HardSigmoid": lambda node: {
        name: float(node.attributes[name]) for name in ("alpha", "beta")
    },
}
# These layers may return NaN or infinities for finite numbers. Other layers never do.
_GENERATORS: Final = frozenset(
    [
        "Input", "Convolution", "ConvolutionDepthWise", "Deconvolution", "InnerProduct",
        "BatchNorm", "BinaryOp", "UnaryOp",
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NcnnOutput:
    """A result of the network.

    Attributes
    ----------
    blob : int
        Its number in the network.
    shape : tuple of int
        Its shape as an operand.
    elempack : bool
        Whether it may be returned as ncnn packs it.
    seen_by : int or None
        Number of the blob to compute next, while this one is in a cache.
    """

    blob: int
    shape: tuple[int, ...]
    elempack: bool
    seen_by: int | None


@dataclass(frozen=True, slots=True)
class NcnnNetwork:
    """A finished network.

    Attributes
    ----------
    text : str
        As in a ``.param`` file.
    weights : tuple of ndarray
        Contents of a ``.bin`` file, in order.
    inputs : tuple of (str, tuple of int)
        Operands that are passed as ``in0`` and so on, with their sides.
    outputs : tuple of NcnnOutput
    verdict : int
        Number of a blob that is finite if all results are finite.
    watched : tuple of (int, int)
        Parts of that blob: how many of its numbers check a value, and how many outputs come
        before that value.
    refinements : tuple of Refinement
    """

    text: str
    weights: tuple[Array, ...]
    inputs: tuple[tuple[str, Sides], ...]
    outputs: tuple[NcnnOutput, ...]
    verdict: int
    watched: tuple[tuple[int, int], ...]
    refinements: tuple[Refinement, ...]


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer and its one result.

    Attributes
    ----------
    kind : str
        As ncnn names it.
    sources : tuple of int
        Indices of the layers whose values it reads.
    sides : tuple of int
    params : mapping of str to object
        By name; see `ncnn_layers`.
    text : str
        Its line in a file.
    weights : tuple of ndarray
    """

    kind: str
    sources: tuple[int, ...]
    sides: Sides
    params: Params
    text: str
    weights: tuple[Array, ...] = field(default=(), repr=False)

    @property
    def is_generator(self) -> bool:
        """Whether it may return NaN or infinities for finite numbers."""
        return self.kind in _GENERATORS and "activation_type" not in self.params

    @property
    def is_sum(self) -> bool:
        """Whether it adds two values of the same sides."""
        return self.kind == "BinaryOp" and self.params == _ADD


def lower_to_ncnn(graph: Subgraph, elempack: Collection[str]) -> NcnnNetwork:
    """Lower a subgraph to a network of ncnn.

    Parameters
    ----------
    graph : Subgraph
    elempack : collection of str
        Operands that may be returned as ncnn packs them; the others are in NCHW.

    Raises
    ------
    LoweringError
        If ncnn cannot compute it, or there is no convolution.
    """
    writer = _Writer(graph)
    if writer.written < len(graph.nodes):
        raise LoweringError(f"{graph.nodes[writer.written].kind} in ncnn")
    return writer.finish(keep_pairs(graph.values_of(elempack), graph.pairs))


def first_unsupported(graph: Subgraph) -> str | None:
    """Return the first operand that ncnn cannot compute; None for no operand."""
    return graph.first_operand_beyond(_Writer(graph).written)


class _Writer:
    """Writes a network of as many nodes as ncnn can compute.

    Parameters
    ----------
    graph : Subgraph

    Attributes
    ----------
    written : int
        Number of these nodes, from the first on.
    """

    def __init__(self, graph: Subgraph) -> None:
        self._constants, self._outputs = graph.constants, graph.outputs
        self._refinements = tuple(graph.refinements)
        self._shapes = infer_shapes(graph)
        self._has_convolution = False
        self._layers: list[_Layer] = []
        self._values: dict[str, int] = {}  # indices of layers, by the names of values
        self._inputs: list[tuple[str, Sides]] = []
        for each in graph.inputs:
            sides = _sides_of(each.shape)
            if sides is not None and each.dtype == np.float32:
                self._values[each.name] = self._add("Input", (), sides)
                self._inputs.append((each.operand, sides))
        self.written = 0
        with contextlib.suppress(LoweringError):
            for node in graph.nodes:
                self._write(node)
                self.written += 1

    def _write(self, node: Node) -> None:
        writer = self._writers.get(node.kind)
        if writer is None:
            raise LoweringError(f"{node.kind} in ncnn")
        self._values[node.output] = writer(self, node)

    def finish(self, free: Collection[str]) -> NcnnNetwork:
        """Finish the network.

        Parameters
        ----------
        free : collection of str
            Values that may be returned as ncnn packs them.

        Raises
        ------
        LoweringError
            If there is no convolution, so that it would not be faster.
        """
        if not self._has_convolution:
            raise LoweringError("no convolution")
        given = [self._values[output.name] for output in self._outputs]
        seen_by = self._add_averages()
        verdict = self._joined(seen_by.values())
        text, numbers = self._format_text()
        return NcnnNetwork(
            text,
            tuple(weight for layer in self._layers for weight in layer.weights),
            tuple(self._inputs),
            tuple(
                NcnnOutput(
                    numbers[place],
                    self._shapes[output.name] if output.shape is None else output.shape,
                    output.name in free,
                    numbers[seen_by[place]] if place in seen_by else None,
                )
                for output, place in zip(self._outputs, given, strict=True)
            ),
            numbers[verdict],
            tuple(
                (self._layers[by].sides[0], sum(other < place for other in given))
                for place, by in seen_by.items()
            ),
            self._refinements,
        )

    # Nodes; each method returns the index of the layer with its value

    def _convolution(self, node: Node) -> int:
        image, weight, bias = self._operands(node)
        attributes = node.attributes
        groups = attributes.get("group", 1)
        windows = [*attributes["kernel_shape"], *attributes["strides"], *attributes["pads"]]
        if weight.ndim != 4 or self._layers[image].sides[0] != weight.shape[1] * groups:
            raise LoweringError("no images, or other channels")
        self._has_convolution = True
        if len(self._layers[image].sides) == 1 and groups == 1 and windows == [1] * 4 + [0] * 4:
            return self._add_linear(image, weight, bias)  # of one pixel, a vector
        weights, sides = weights_of(weight, bias), self._result_sides(node)
        kind, params = "Convolution", _params(attributes, weights)
        if groups > 1:
            kind, params["group"] = "ConvolutionDepthWise", groups
        return self._add(kind, (self._as_image(image),), sides, params, weights)

    def _transposed_convolution(self, node: Node) -> int:
        image, weight, bias = self._operands(node)
        attributes = node.attributes
        if weight.ndim != 4 or any(attributes["output_padding"]) or attributes["group"] > 1:
            raise LoweringError("no images, output padding, or groups")
        self._has_convolution = True
        weights = weights_of(weight.swapaxes(0, 1), bias)
        params, sides = _params(attributes, weights), self._result_sides(node)
        return self._add("Deconvolution", (self._as_image(image),), sides, params, weights)

    def _linear(self, node: Node) -> int:
        vector, weight, bias = self._operands(node)
        alpha = node.attributes.get("alpha", 1.0)
        if self._layers[vector].sides != weight.shape[1:] or alpha != 1:
            raise LoweringError("several rows, or a factor")
        return self._add_linear(vector, weight, bias)

    def _add_linear(self, vector: int, weight: Array, bias: Array | None) -> int:
        """Add a linear layer."""
        weights = weights_of(weight, bias)
        sides = weight.shape[:1]
        return self._add(
            "InnerProduct", (vector,), sides, inner_product_params(weights), weights
        )

    def _operands(self, node: Node) -> tuple[int, Array, Array | None]:
        """Return the value that a node with weights reads."""
        source, weight, *bias = node.inputs
        arrays = [self._constants.get(name) for name in (weight, *bias)]
        if any(array is None or array.dtype != np.float32 for array in arrays):
            raise LoweringError("computed weights, or weights of another dtype")
        first = arrays[0]
        assert first is not None  # noqa: S101 - seen above
        return self._read(source), first, arrays[1] if bias else None

    def _pooling(self, node: Node) -> int:
        (source,) = node.inputs
        attributes = node.attributes
        if set(attributes.get("dilations", (1,))) != {1} or len(attributes["pads"]) != 4:
            raise LoweringError("dilation, or no images")
        (height, width), (down, right) = attributes["kernel_shape"], attributes["strides"]
        above, left, below, behind = attributes["pads"]
        params = {
            "pooling_type": AVERAGE_POOLING if node.kind == "AveragePool" else 0,
            "kernel_w": width,
            "kernel_h": height,
            "stride_w": right,
            "stride_h": down,
            "pad_left": left,
            "pad_right": behind,
            "pad_top": above,
            "pad_bottom": below,
            "pad_mode": VALID_PADDING,
            "avgpool_count_include_pad": attributes.get("count_include_pad", 0),
        }
        image = self._as_image(self._read(source))
        return self._add("Pooling", (image,), self._result_sides(node), params)

    def _average(self, node: Node) -> int:
        return self._average_of(self._as_image(self._read(node.inputs[0])))

    def _average_of(self, image: int) -> int:
        return self._add(
            "Pooling",
            (image,),
            self._layers[image].sides[:1],
            {"pooling_type": AVERAGE_POOLING, "global_pooling": 1},
        )

    def _batch_norm(self, node: Node) -> int:
        image = self._as_image(self._read(node.inputs[0]))
        weight, bias, mean, variance = (self._constants[name] for name in node.inputs[1:])
        params = {"channels": mean.size, "eps": float(node.attributes["epsilon"])}
        weights = weight, mean, variance, bias
        return self._add("BatchNorm", (image,), self._layers[image].sides, params, weights)

    def _concatenation(self, node: Node) -> int:
        sources = [self._read(name) for name in node.inputs]
        if node.attributes["axis"] != 1:
            raise LoweringError("along another axis")
        sides = self._result_sides(node)
        if len(sides) == 3:
            sources = [self._as_image(source) for source in sources]
        elif any(len(self._layers[source].sides) != 1 for source in sources):
            raise LoweringError("vectors and images")
        return self._add("Concat", sources, sides, {"axis": 0})

    def _reshape(self, node: Node) -> int:
        source = self._read(node.inputs[0])
        sides = self._result_sides(node)
        if sides == self._layers[source].sides:
            return source
        if len(sides) == 1:
            return self._add("Reshape", (source,), sides, {"w": sides[0]})
        raise LoweringError("another image")

    def _softmax(self, node: Node) -> int:
        source = self._read(node.inputs[0])
        if node.attributes["axis"] != 1:
            raise LoweringError("along another axis")
        return self._add(
            "Softmax", (source,), self._layers[source].sides, {"axis": 0, "fixbug0": 1}
        )

    def _clip(self, node: Node) -> int:
        source = self._read(node.inputs[0])
        low, high = (self._scalar(name) for name in node.inputs[1:])
        if low is None or high is None:
            raise LoweringError("computed bounds")
        return self._add_activation(source, "Clip", {"min": low, "max": high})

    def _unary(self, node: Node) -> int:
        (name,) = node.inputs
        source = self._read(name)
        kind = ELEMENTWISE[node.kind].ncnn
        if kind == "UnaryOp":
            sides = self._layers[source].sides
            return self._add(kind, (source,), sides, {"op_type": _op_type(node)})
        return self._add_activation(source, kind, _ACTIVATION_PARAMS[node.kind](node))

    def _add_activation(self, source: int, kind: str, params: Mapping[str, float]) -> int:
        """Add an element-wise layer.

        ncnn computes these in place. If both values are kept, it first makes a copy on one
        thread. Folding an element-wise operator into a 1x1 convolution that multiplies each
        channel by 1 halves the time.
        """
        sides = self._layers[source].sides
        activation_type = ACTIVATION_TYPES.get((kind, len(params)))
        channels = sides[0]
        # In blocks of four channels a convolution's sigmoid is off by ten units in the last
        # place on processors with AVX2; the layer itself is not.
        is_inaccurate = kind == "Sigmoid" and channels % 8 != 0
        if activation_type is None or len(sides) == 1 or is_inaccurate:
            return self._add(kind, (source,), sides, params)
        by_channel: dict[str, float | Sequence[float]] = {
            "num_output": channels,
            "kernel_w": 1,
            "kernel_h": 1,
            "weight_data_size": channels,
            "group": channels,
            "activation_type": activation_type,
        }
        if params:
            by_channel["activation_params"] = [*map(float, params.values())]
        weights = weights_of(np.ones(channels, np.float32), None)
        return self._add("ConvolutionDepthWise", (source,), sides, by_channel, weights)

    def _swish(self, node: Node) -> int:
        source = self._read(node.inputs[0])
        # Below this ncnn's Sigmoid is constant, which is a large error after a multiplication
        # by x.
        limits = {"min": _LEAST_OF_SWISH, "max": LARGEST}
        limited = self._add_activation(source, "Clip", limits)
        return self._add("Swish", (limited,), self._layers[source].sides)

    def _binary(self, node: Node) -> int:
        if len(node.inputs) != 2:
            raise LoweringError("other than two operands")
        place = self._with_number(node)
        if place is not None:
            return place
        if node.kind == "Div":
            raise LoweringError("a division by a computed value, or of a number")
        return self._of_two_values(node)

    def _with_number(self, node: Node) -> int | None:
        """Add an operator of a value and a constant number; None if there is no such number."""
        code = _op_type(node)
        pairs = list(zip(node.inputs, reversed(node.inputs), strict=True))
        for first, (name, other) in enumerate(pairs):
            number = self._scalar(name, len(self._shapes.get(other, ())))
            if number is None:
                continue
            # ncnn multiplies by the reciprocal.
            if node.kind == "Div" and not (first and number and _is_normal(number, 1 / number)):
                continue
            source = self._read(other)
            code = code if first else _REVERSED.get(node.kind, code)
            params = {"op_type": code, "with_scalar": 1, "b": number}
            return self._add("BinaryOp", (source,), self._layers[source].sides, params)
        return None

    def _of_two_values(self, node: Node) -> int:
        sources = [self._read(name) for name in node.inputs]
        shapes = [self._shapes.get(name) for name in node.inputs]
        sides = [self._layers[source].sides for source in sources]
        if shapes[0] == shapes[1] and sides[0] != sides[1]:
            sources = [self._as_image(source) for source in sources]
        elif shapes[0] != shapes[1]:
            # One number per channel, which is a vector in ncnn.
            vectors = [len(each) == 1 for each in sides]
            if sum(vectors) != 1 or sides[0][0] != sides[1][0]:
                raise LoweringError("other sizes")
            if any(len(shape or ()) != 4 for shape in shapes):
                raise LoweringError("other axes")
        return self._add("BinaryOp", sources, max(sides, key=len), {"op_type": _op_type(node)})

    # Functions of the class: bound methods would keep an instance and its weights until the
    # collector runs.
    _writers: ClassVar[dict[str, Callable[[_Writer, Node], int]]] = {
        **dict.fromkeys(_UNARY, _unary),
        **dict.fromkeys(_BINARY, _binary),
        "Conv": _convolution,
        "ConvTranspose": _transposed_convolution,
        "Gemm": _linear,
        "MaxPool": _pooling,
        "AveragePool": _pooling,
        "GlobalAveragePool": _average,
        "BatchNormalization": _batch_norm,
        "Concat": _concatenation,
        "Reshape": _reshape,
        "Softmax": _softmax,
        "Clip": _clip,
        "Swish": _swish,
    }

    # Values

    def _read(self, name: str) -> int:
        place = self._values.get(name)
        if place is None:
            raise LoweringError("a value of other axes, or a constant")
        return place

    def _scalar(self, name: str, axes: int = 0) -> float | None:
        """Return a constant number with at most `axes` axes, as many as the other value."""
        constant = self._constants.get(name)
        if constant is None or constant.size != 1 or constant.ndim > axes:
            return None
        return float(constant.item())

    def _as_image(self, place: int) -> int:
        """Reshape a vector to an image of one pixel."""
        sides = self._layers[place].sides
        if len(sides) == 3:
            return place
        return self._add("Reshape", (place,), (*sides, 1, 1), {"w": 1, "h": 1, "c": sides[0]})

    def _result_sides(self, node: Node) -> Sides:
        shape = self._shapes.get(node.output)
        sides = None if shape is None else _sides_of(shape)
        if sides is None or shape is None:
            raise LoweringError("a result of other axes")
        if len(shape) == 4 and node.kind not in {"Reshape", "Concat"}:
            return shape[1:]
        return sides

    def _add(
        self,
        kind: str,
        sources: Iterable[int],
        sides: Sides,
        params: Params | None = None,
        weights: tuple[Array, ...] = (),
    ) -> int:
        given = params or {}
        text = format_params(kind, given)
        self._layers.append(_Layer(kind, tuple(sources), sides, given, text, weights))
        return len(self._layers) - 1

    # NaN and infinities

    def _add_averages(self) -> dict[int, int]:
        """Add channel averages of values that may not be finite; return their layers.

        A sum, or a normalisation by stored statistics, is not finite where its operand is not.
        """
        summed = {
            source
            for layer in self._layers
            if layer.is_sum or layer.kind == "BatchNorm"
            for source in layer.sources
        }
        looked_at = [
            place
            for place, layer in enumerate(self._layers)
            if layer.is_generator and place not in summed
        ]
        return {
            place: place if len(self._layers[place].sides) == 1 else self._average_of(place)
            for place in looked_at
        }

    def _joined(self, places: Collection[int]) -> int:
        size = sum(self._layers[place].sides[0] for place in places)
        if len(places) == 1:
            return next(iter(places))
        return self._add("Concat", places, (size,), {"axis": 0})

    def _format_text(self) -> tuple[str, list[int]]:
        """Return the lines of a file, and the number of each layer's blob."""
        readers = Counter(source for layer in self._layers for source in layer.sources)
        lines, numbers = [], []
        count = 0
        inputs = 0
        left: dict[int, list[str]] = {}  # names for readers, the next one last
        for place, layer in enumerate(self._layers):
            name = f"b{place}"
            if layer.kind == "Input":
                name, inputs = f"in{inputs}", inputs + 1
            read = [left[source].pop() for source in layer.sources]
            lines.append(
                format_layer(layer.kind, f"l{place}", read, [name], layer.text, layer.sides)
            )
            numbers.append(count)
            count += 1
            left[place] = [name]
            if readers[place] > 1:
                names = [f"{name}_{part}" for part in range(readers[place])]
                lines.append(format_layer("Split", f"s{place}", [name], names, "", layer.sides))
                count += len(names)
                left[place] = names
        return "\n".join([MAGIC, f"{len(lines)} {count}", *lines, ""]), numbers


def _sides_of(shape: tuple[int, ...]) -> Sides | None:
    """Return a shape's sides in ncnn; None if it has none."""
    if not all(shape) or shape[:1] != (1,):
        return None
    if len(shape) == 4:
        return shape[1:2] if shape[2:] == (1, 1) else shape[1:]
    return shape[1:] if len(shape) == 2 else None


def _params(attributes: Mapping[str, Any], weights: tuple[Array, ...]) -> dict[str, int]:
    above, left, below, right = attributes["pads"]
    return convolution_params(
        attributes["kernel_shape"], attributes["dilations"], attributes["strides"],
        ((above, below), (left, right)), weights,
    )  # fmt: skip


def _is_normal(*numbers: float) -> bool:
    """Return whether every number is finite in float32 and is none that ncnn takes for 0."""
    return all(_SMALLEST <= abs(number) <= LARGEST for number in numbers)


def _op_type(node: Node) -> int:
    op_type = ELEMENTWISE[node.kind].ncnn_op_type
    assert op_type is not None  # noqa: S101 - the table has it for layers of several
    return op_type
