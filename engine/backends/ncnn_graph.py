"""Operators in a row as one network of ncnn.

The network is written from the nodes of a small ONNX model, in which every parameter has been
read and every shape is known: ncnn chooses among its ways to compute a convolution by the
size of the image, and where it is not told that it takes one that suits none.

A value is an image of three axes in ncnn, without the batch, or a vector. Where it is read by
several layers ncnn wants a layer that splits it.

NaN and infinities are another matter: Winograd's transformation spreads them over a tile, and
what is element by element passes over some of them. So the network has one more result, in
which they are seen wherever they come up: averages over the pixels of each channel.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from engine.backends.forms import NoFormError
from engine.backends.ncnn_forms import convolution_params, product_params, weights_of
from engine.backends.onnx_blocked import attributes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import onnx

    from engine.backends.onnx_graph import OnnxInput, OnnxOutput
    from engine.values import Array

__all__ = ["NcnnNetwork", "NcnnOutput", "NcnnWriter"]

# An image (C, H, W), or a vector (F,).
Sides: TypeAlias = tuple[int, ...]

_LARGEST: Final = float(np.finfo(np.float32).max)
_SMALLEST: Final = float(np.finfo(np.float32).tiny)
_BINARY: Final = {"Add": 0, "Sub": 1, "Mul": 2, "Div": 3, "Max": 4, "Min": 5}
_REVERSED: Final = {"Sub": 7}  # where the number comes first
_ADD: Final = "0=0"
_LEAST_OF_SWISH: Final = -88.0  # where it is 5e-37
_ACTIVATION, _ACTIVATION_NUMBERS = 9, -23310
# What is here and below is within a few units in the last place of what is right, element by
# element (tests/accuracy): ncnn's own TanH, ELU, Mish, HardSwish, Swish, exponential and
# logarithm are not, nor is a division by what it takes for 0 below the smallest normal number.
_UNARY: Final = {"Abs": 0, "Neg": 1, "Floor": 2, "Ceil": 3, "Sqrt": 5}
# By ONNX's names: ncnn's name, and its numbers in order.
_ELEMENTWISE: Final[dict[str, Callable[[Mapping[str, Any]], tuple[str, list[object]]]]] = {
    "Relu": lambda _: ("ReLU", []),
    "LeakyRelu": lambda given: ("ReLU", [_number(given["alpha"])]),
    "Sigmoid": lambda _: ("Sigmoid", []),
    "Gelu": lambda _: ("GELU", [0]),
    "HardSigmoid": lambda given: (
        "HardSigmoid", [_number(given["alpha"]), _number(given["beta"])],
    ),
}  # fmt: skip
# What convolutions do on the way out, by ncnn's name and how many numbers it takes.
_ON_THE_WAY: Final = {
    ("ReLU", 0): 1, ("ReLU", 1): 2, ("Clip", 2): 3, ("Sigmoid", 0): 4,
}  # fmt: skip
# May give NaN or infinities for other numbers; the rest never does, and of these not those
# that only do what they do on the way out.
_GENERATORS: Final = frozenset(
    [
        "Input", "Convolution", "ConvolutionDepthWise", "Deconvolution", "InnerProduct",
        "BatchNorm", "BinaryOp", "UnaryOp",
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NcnnOutput:
    """A result that the network gives out.

    Attributes
    ----------
    blob : int
        Its number in the network.
    shape : tuple of int
        What shape it is to be given.
    packed : bool
        Whether it may be taken out as it lies there, in blocks of channels.
    seen_by : int or None
        Number of the blob that is to be computed next, while this one is in a cache.
    """

    blob: int
    shape: tuple[int, ...]
    packed: bool
    seen_by: int | None


@dataclass(frozen=True, slots=True)
class NcnnNetwork:
    """A finished network.

    Attributes
    ----------
    text : str
        As in a ``.param`` file.
    weights : tuple of ndarray
        What a ``.bin`` file holds, in order.
    inputs : tuple of (str, tuple of int)
        Operands to be handed over as ``in0`` and so on, and the sides to be given to them.
    outputs : tuple of NcnnOutput
    verdict : int
        Number of the blob that is finite where all that was computed is.
    watched : tuple of (int, int)
        What it is put together of: how many numbers look at a value, and how many of the
        outputs come before that.
    """

    text: str
    weights: tuple[Array, ...]
    inputs: tuple[tuple[str, Sides], ...]
    outputs: tuple[NcnnOutput, ...]
    verdict: int
    watched: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer, and the one value that it gives.

    Attributes
    ----------
    kind : str
        As ncnn names it.
    sources : tuple of int
        Places of the layers whose values it reads.
    sides : tuple of int
    params : str
    weights : tuple of ndarray
    """

    kind: str
    sources: tuple[int, ...]
    sides: Sides
    params: str = ""
    weights: tuple[Array, ...] = field(default=(), repr=False)

    @property
    def is_generator(self) -> bool:
        """Whether it may give NaN or infinities for other numbers."""
        return self.kind in _GENERATORS and f" {_ACTIVATION}=" not in self.params

    @property
    def is_sum(self) -> bool:
        """Whether it adds two values of the same sides."""
        return self.kind == "BinaryOp" and self.params == _ADD


class NcnnWriter:
    """Writes a model once more, for ncnn: as many nodes as it can.

    Parameters
    ----------
    nodes : sequence of NodeProto
        In order.
    constants : mapping of str to ndarray
    shapes : mapping of str to tuple of int
        Of all values that are known.
    inputs : iterable of OnnxInput
    outputs : sequence of OnnxOutput

    Attributes
    ----------
    written : int
        How many nodes ncnn can compute, from the first on.
    """

    def __init__(
        self,
        nodes: Sequence[onnx.NodeProto],
        constants: Mapping[str, Array],
        shapes: Mapping[str, tuple[int, ...]],
        inputs: Iterable[OnnxInput],
        outputs: Sequence[OnnxOutput],
    ) -> None:
        self._constants, self._shapes, self._outputs = constants, shapes, outputs
        self._has_convolution = False
        self._layers: list[_Layer] = []
        self._values: dict[str, int] = {}  # places of layers, by the names of values
        self._inputs: list[tuple[str, Sides]] = []
        for each in inputs:
            sides = _sides_of(each.shape)
            if sides is not None and each.dtype == np.float32:
                self._values[each.name] = self._add("Input", (), sides)
                self._inputs.append((each.operand, sides))
        self.written = 0
        with contextlib.suppress(NoFormError):
            for node in nodes:
                self._write(node)
                self.written += 1

    def _write(self, node: onnx.NodeProto) -> None:
        writer = self._writers.get(node.op_type)
        if writer is None:
            raise NoFormError(f"{node.op_type} in ncnn")
        self._values[node.output[0]] = writer(self, node)

    def finished(self, free: Collection[str]) -> NcnnNetwork:
        """Close the network.

        Parameters
        ----------
        free : collection of str
            Values that may be given out in blocks of channels.

        Raises
        ------
        NoFormError
            If there is no convolution: nothing to win.
        """
        if not self._has_convolution:
            raise NoFormError("no convolution")
        given = [self._values[output.name] for output in self._outputs]
        seen_by = self._add_averages()
        verdict = self._joined(seen_by.values())
        text, numbers = self._text()
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
        )

    # Nodes; each gives the place of the layer that gives its value

    def _convolution(self, node: onnx.NodeProto) -> int:
        image, weight, bias = self._operands(node)
        attributes = attributes_of(node)
        groups = attributes.get("group", 1)
        windows = [*attributes["kernel_shape"], *attributes["strides"], *attributes["pads"]]
        if weight.ndim != 4 or self._layers[image].sides[0] != weight.shape[1] * groups:
            raise NoFormError("no images, or other channels")
        self._has_convolution = True
        if len(self._layers[image].sides) == 1 and groups == 1 and windows == [1] * 4 + [0] * 4:
            return self._products(image, weight, bias)  # of one pixel, a vector
        weights, sides = weights_of(weight, bias), self._result_sides(node)
        kind, params = "Convolution", _params(attributes, weights)
        if groups > 1:
            kind, params[7] = "ConvolutionDepthWise", groups
        return self._add(kind, (self._as_image(image),), sides, params, weights)

    def _transposed(self, node: onnx.NodeProto) -> int:
        image, weight, bias = self._operands(node)
        attributes = attributes_of(node)
        if weight.ndim != 4 or any(attributes["output_padding"]) or attributes["group"] > 1:
            raise NoFormError("no images, output padding, or groups")
        self._has_convolution = True
        weights = weights_of(weight.swapaxes(0, 1), bias)
        params, sides = _params(attributes, weights), self._result_sides(node)
        return self._add("Deconvolution", (self._as_image(image),), sides, params, weights)

    def _product(self, node: onnx.NodeProto) -> int:
        vector, weight, bias = self._operands(node)
        alpha = attributes_of(node).get("alpha", 1.0)
        if self._layers[vector].sides != weight.shape[1:] or alpha != 1:
            raise NoFormError("several rows, or a factor")
        return self._products(vector, weight, bias)

    def _products(self, vector: int, weight: Array, bias: Array | None) -> int:
        """Add the products of a vector with rows of weights."""
        weights = weights_of(weight, bias)
        sides = weight.shape[:1]
        return self._add("InnerProduct", (vector,), sides, product_params(weights), weights)

    def _operands(self, node: onnx.NodeProto) -> tuple[int, Array, Array | None]:
        """What a node with weights reads."""
        source, weight, *bias = node.input
        arrays = [self._constants.get(name) for name in (weight, *bias)]
        if any(array is None or array.dtype != np.float32 for array in arrays):
            raise NoFormError("weights that are computed, or of another dtype")
        first = arrays[0]
        assert first is not None  # noqa: S101 - seen above
        return self._read(source), first, arrays[1] if bias else None

    def _pooling(self, node: onnx.NodeProto) -> int:
        (source,) = node.input
        attributes = attributes_of(node)
        if set(attributes.get("dilations", (1,))) != {1} or len(attributes["pads"]) != 4:
            raise NoFormError("dilation, or no images")
        (height, width), (down, right) = attributes["kernel_shape"], attributes["strides"]
        above, left, below, behind = attributes["pads"]
        params = {
            0: int(node.op_type == "AveragePool"), 1: width, 11: height, 2: right, 12: down,
            3: left, 14: behind, 13: above, 15: below, 5: 1,
            6: attributes.get("count_include_pad", 0),
        }  # fmt: skip
        image = self._as_image(self._read(source))
        return self._add("Pooling", (image,), self._result_sides(node), params)

    def _average(self, node: onnx.NodeProto) -> int:
        return self._average_of(self._as_image(self._read(node.input[0])))

    def _average_of(self, image: int) -> int:
        return self._add("Pooling", (image,), self._layers[image].sides[:1], {0: 1, 4: 1})

    def _batch_norm(self, node: onnx.NodeProto) -> int:
        image = self._as_image(self._read(node.input[0]))
        weight, bias, mean, variance = (self._constants[name] for name in node.input[1:])
        params = {0: mean.size, 1: _number(attributes_of(node)["epsilon"])}
        weights = weight, mean, variance, bias
        return self._add("BatchNorm", (image,), self._layers[image].sides, params, weights)

    def _concatenation(self, node: onnx.NodeProto) -> int:
        sources = [self._read(name) for name in node.input]
        if attributes_of(node)["axis"] != 1:
            raise NoFormError("along another axis")
        sides = self._result_sides(node)
        if len(sides) == 3:
            sources = [self._as_image(source) for source in sources]
        elif any(len(self._layers[source].sides) != 1 for source in sources):
            raise NoFormError("vectors and images")
        return self._add("Concat", sources, sides, {0: 0})

    def _reshape(self, node: onnx.NodeProto) -> int:
        source = self._read(node.input[0])
        sides = self._result_sides(node)
        if sides == self._layers[source].sides:
            return source
        if len(sides) == 1:
            return self._add("Reshape", (source,), sides, {0: sides[0]})
        raise NoFormError("another image")

    def _softmax(self, node: onnx.NodeProto) -> int:
        source = self._read(node.input[0])
        if attributes_of(node)["axis"] != 1:
            raise NoFormError("along another axis")
        return self._add("Softmax", (source,), self._layers[source].sides, {0: 0, 1: 1})

    def _clip(self, node: onnx.NodeProto) -> int:
        source = self._read(node.input[0])
        low, high = (self._scalar(name) for name in node.input[1:])
        if low is None or high is None:
            raise NoFormError("bounds that are computed")
        return self._activated(source, "Clip", [_number(low), _number(high)])

    def _unary(self, node: onnx.NodeProto) -> int:
        (name,) = node.input
        source, attributes = self._read(name), attributes_of(node)
        if node.op_type in _UNARY:
            sides = self._layers[source].sides
            return self._add("UnaryOp", (source,), sides, {0: _UNARY[node.op_type]})
        kind, numbers = _ELEMENTWISE[node.op_type](attributes)
        return self._activated(source, kind, numbers)

    def _activated(self, source: int, kind: str, numbers: Sequence[object]) -> int:
        """Add a layer element by element.

        ncnn computes these in place, of a copy that it makes on one thread where both are to
        be kept. What it can do on the way out of a convolution takes half of the time behind
        one that multiplies each channel by 1.
        """
        sides = self._layers[source].sides
        on_the_way = _ON_THE_WAY.get((kind, len(numbers)))
        if on_the_way is None or len(sides) == 1:
            return self._add(kind, (source,), sides, dict(enumerate(numbers)))
        channels = sides[0]
        params: dict[int, Any] = {0: channels, 1: 1, 11: 1, 6: channels, 7: channels}
        params[_ACTIVATION] = on_the_way
        if numbers:
            params[_ACTIVATION_NUMBERS] = ",".join(map(str, [len(numbers), *numbers]))
        weights = weights_of(np.ones(channels, np.float32), None)
        return self._add("ConvolutionDepthWise", (source,), sides, params, weights)

    def _swish(self, node: onnx.NodeProto) -> int:
        source = self._read(node.input[0])
        # From there down its Sigmoid stays what it is, and times a large number that is one.
        limits = [_number(_LEAST_OF_SWISH), _number(_LARGEST)]
        limited = self._activated(source, "Clip", limits)
        return self._add("Swish", (limited,), self._layers[source].sides)

    def _binary(self, node: onnx.NodeProto) -> int:
        code = _BINARY[node.op_type]
        if len(node.input) != 2:
            raise NoFormError("other than two operands")
        divides = node.op_type == "Div"
        pairs = list(zip(node.input, reversed(node.input), strict=True))
        for first, (name, other) in enumerate(pairs):
            number = self._scalar(name, len(self._shapes.get(other, ())))
            # It multiplies by the reciprocal.
            if divides and not (first and number and _is_normal(number, 1 / number)):
                continue
            if number is not None:
                source = self._read(other)
                code = code if first else _REVERSED.get(node.op_type, code)
                params = {0: code, 1: 1, 2: _number(number)}
                return self._add("BinaryOp", (source,), self._layers[source].sides, params)
        if divides:
            raise NoFormError("a division by what is computed, or of a number")
        sources = [self._read(name) for name in node.input]
        shapes = [self._shapes.get(name) for name in node.input]
        sides = [self._layers[source].sides for source in sources]
        if shapes[0] == shapes[1] and sides[0] != sides[1]:
            sources = [self._as_image(source) for source in sources]
        elif shapes[0] != shapes[1]:
            # A number for each channel; ncnn takes a vector for that.
            vectors = [len(each) == 1 for each in sides]
            if sum(vectors) != 1 or sides[0][0] != sides[1][0]:
                raise NoFormError("other sizes")
            if any(len(shape or ()) != 4 for shape in shapes):
                raise NoFormError("other axes")
        return self._add("BinaryOp", sources, max(sides, key=len), {0: code})

    # Of the class: bound methods would have an instance, and the weights that it holds, wait
    # for the collector.
    _writers: ClassVar[dict[str, Callable[[NcnnWriter, onnx.NodeProto], int]]] = {
        "Conv": _convolution,
        "ConvTranspose": _transposed,
        "Gemm": _product,
        "MaxPool": _pooling,
        "AveragePool": _pooling,
        "GlobalAveragePool": _average,
        "BatchNormalization": _batch_norm,
        "Concat": _concatenation,
        "Reshape": _reshape,
        "Softmax": _softmax,
        "Clip": _clip,
        "Swish": _swish,
        **dict.fromkeys(_BINARY, _binary),
        **dict.fromkeys((*_ELEMENTWISE, *_UNARY), _unary),
    }

    # Values

    def _read(self, name: str) -> int:
        place = self._values.get(name)
        if place is None:
            raise NoFormError("a value of other axes, or a constant")
        return place

    def _scalar(self, name: str, axes: int = 0) -> float | None:
        """A constant number, of no more than so many axes: beside it a value keeps its own."""
        constant = self._constants.get(name)
        if constant is None or constant.size != 1 or constant.ndim > axes:
            return None
        return float(constant.item())

    def _as_image(self, place: int) -> int:
        """Have a vector as an image of one pixel."""
        sides = self._layers[place].sides
        if len(sides) == 3:
            return place
        return self._add("Reshape", (place,), (*sides, 1, 1), {0: 1, 1: 1, 2: sides[0]})

    def _result_sides(self, node: onnx.NodeProto) -> Sides:
        shape = self._shapes.get(node.output[0])
        sides = None if shape is None else _sides_of(shape)
        if sides is None or shape is None:
            raise NoFormError("a result of other axes")
        if len(shape) == 4 and node.op_type not in {"Reshape", "Concat"}:
            return shape[1:]
        return sides

    def _add(
        self,
        kind: str,
        sources: Iterable[int],
        sides: Sides,
        params: Mapping[int, object] | None = None,
        weights: tuple[Array, ...] = (),
    ) -> int:
        text = " ".join(f"{key}={value}" for key, value in (params or {}).items())
        self._layers.append(_Layer(kind, tuple(sources), sides, text, weights))
        return len(self._layers) - 1

    # NaN and infinities

    def _add_averages(self) -> dict[int, int]:
        """Average the channels of what may not be finite; the places, by what they look at.

        What is not finite in the operand of a sum, or of what normalises by stored statistics,
        is not finite in its result.
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
        return self._add("Concat", places, (size,), {0: 0})

    def _text(self) -> tuple[str, list[int]]:
        """Lines as in a file, and the number of each layer's blob."""
        readers = Counter(source for layer in self._layers for source in layer.sources)
        lines, numbers = [], []
        count = 0
        inputs = 0
        left: dict[int, list[str]] = {}  # names for those who read a value, the next one last
        for place, layer in enumerate(self._layers):
            name = f"b{place}"
            if layer.kind == "Input":
                name, inputs = f"in{inputs}", inputs + 1
            read = [left[source].pop() for source in layer.sources]
            lines.append(
                _line(layer.kind, f"l{place}", read, [name], layer.params, layer.sides)
            )
            numbers.append(count)
            count += 1
            left[place] = [name]
            if readers[place] > 1:
                names = [f"{name}_{part}" for part in range(readers[place])]
                lines.append(_line("Split", f"s{place}", [name], names, "", layer.sides))
                count += len(names)
                left[place] = names
        return "\n".join(["7767517", f"{len(lines)} {count}", *lines, ""]), numbers


def _line(
    kind: str, name: str, sources: Sequence[str], results: Sequence[str], params: str,
    sides: Sides,
) -> str:  # fmt: skip
    size = [3, *sides[::-1]] if len(sides) == 3 else [1, sides[0], 1, 1]
    hint = ",".join(map(str, [4 * len(results), *size * len(results)]))
    words = [kind, name, str(len(sources)), str(len(results)), *sources, *results, params]
    return " ".join([*filter(None, words), f"-23330={hint}"])


def _sides_of(shape: tuple[int, ...]) -> Sides | None:
    """How ncnn has a value of a shape; None where it does not, or there is nothing in it."""
    if not all(shape) or shape[:1] != (1,):
        return None
    if len(shape) == 4:
        return shape[1:2] if shape[2:] == (1, 1) else shape[1:]
    return shape[1:] if len(shape) == 2 else None


def _params(attributes: Mapping[str, Any], weights: tuple[Array, ...]) -> dict[int, int]:
    above, left, below, right = attributes["pads"]
    return convolution_params(
        attributes["kernel_shape"], attributes["dilations"], attributes["strides"],
        ((above, below), (left, right)), weights,
    )  # fmt: skip


def _is_normal(*numbers: float) -> bool:
    """Whether numbers are none that ncnn takes for 0, or infinite, in float32."""
    return all(_SMALLEST <= abs(number) <= _LARGEST for number in numbers)


def _number(value: float) -> str:
    """A number such that ncnn takes it for no integer; infinities are beyond all others.

    All digits that a float32 has: ncnn reads no more than 15 characters before 2026.
    """
    if np.isnan(value):
        raise NoFormError("NaN, which ncnn does not read")
    return format(min(max(float(np.float32(value)), -_LARGEST), _LARGEST), ".8e")
