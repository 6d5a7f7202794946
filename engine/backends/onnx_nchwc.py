"""Rewrites a model to keep images in NCHWc, the layout of ONNX Runtime's convolutions.

NCHWc has channels in blocks of 8 or 16, as many as the processor computes at once, with the
channels of a block innermost. By default ONNX Runtime converts each result to NCHW. With every
operand as a result, these conversions take as long as a third of the convolutions. A model with
the operators of that layout returns results unconverted.

The operators are those that ONNX Runtime's own optimiser writes (domain
``com.microsoft.nchwc``). They replace others under the same conditions as there. Channels that
do not fill the last block are followed by padding: zeros, or what element-wise operators make
of zeros. Downstream the padding is multiplied by weights of zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import onnx
from onnx import helper

from engine.backends.heap import unload
from engine.backends.node_kinds import ELEMENTWISE
from engine.backends.subgraph import Node, keep_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from engine.values import Array

__all__ = ["NchwcNodes", "nchwc_block_size", "rewrite_in_nchwc"]

_DOMAIN: Final = "com.microsoft.nchwc"
_AT_ONCE: Final = 4  # fewest channels that are converted to NCHWc

_UNARY: Final = [kind for kind, row in ELEMENTWISE.items() if row.nchwc and row.operands == 1]
_BINARY: Final = [kind for kind, row in ELEMENTWISE.items() if row.nchwc and row.operands == 2]


@cache
def nchwc_block_size() -> int:
    """Return the channels per block on this processor; 0 if it has no such layout."""
    import onnxruntime as ort

    sides = (1, _AT_ONCE, 1, 1)
    graph = helper.make_graph(
        [helper.make_node("ReorderInput", ["x"], ["y"], domain=_DOMAIN)],
        "probe",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, sides)],
        [helper.make_empty_tensor_value_info("y")],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(_DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        (found,) = session.run(None, {"x": np.zeros(sides, np.float32)})
    except Exception:  # noqa: BLE001 - processors and versions without it
        return 0
    return int(found.shape[1])


@dataclass(slots=True)
class NchwcNodes:
    """A model's nodes, with images in NCHWc where possible.

    Attributes
    ----------
    nodes : list of Node
    constants : dict of str to ndarray
        The new constants, by name.
    nchwc : dict of str to (str, tuple of int)
        Results in NCHWc: the name of that value, and its shape in memory, (N, G, H, W, b). ONNX
        Runtime declares it as (N, G b, H, W).
    padded : set of str
        Results with padding after their channels. They are valid only if they are finite,
        because zero times infinity is NaN.
    """

    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    nchwc: dict[str, tuple[str, tuple[int, int, int, int, int]]] = field(default_factory=dict)
    padded: set[str] = field(default_factory=set)


def rewrite_in_nchwc(
    nodes: Iterable[Node],
    constants: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    results: Iterable[str],
    free: frozenset[str],
    pairs: Collection[tuple[str | None, str]] = (),
) -> NchwcNodes | None:
    """Rewrite a model with images in NCHWc.

    Parameters
    ----------
    nodes : iterable of Node
        In order.
    constants : mapping of str to ndarray
    shapes : mapping of str to tuple of int
        All known shapes.
    results : iterable of str
        The model's results.
    free : frozenset of str
        Results that may be in NCHWc.
    pairs : collection of (str or None, str), optional
        Pairs of values that must have the same layout; None is in NCHW.

    Returns
    -------
    NchwcNodes or None
        None if no convolution can be computed in NCHWc.
    """
    if not nchwc_block_size():
        return None
    writer = _Writer(constants, shapes, nchwc_block_size())
    for node in nodes:
        writer.write(node)
    if not writer.convolutions:
        return None
    chosen = keep_pairs(free & writer.missing, pairs)
    for name in results:
        writer.give(name, in_nchwc=name in chosen)
    return writer.found


class _Writer:
    """Writes nodes, and converts values to the layout that each needs."""

    def __init__(
        self,
        constants: Mapping[str, Array],
        shapes: Mapping[str, tuple[int, ...]],
        size: int,
    ) -> None:
        self.found = NchwcNodes()
        self.convolutions = 0
        self._constants, self._shapes, self._size = constants, shapes, size
        self._nchwc: dict[str, str] = {}  # names in NCHWc, by the names in NCHW
        self.missing: set[str] = set()  # values that exist in NCHWc only
        self._positive: set[str] = set()  # safe divisors, including their padding

    def write(self, node: Node) -> None:
        """Write a node, in NCHWc if that is possible and saves a conversion."""
        if node.kind == "Exp" or (
            node.kind in {"Add", "Mul"} and all(map(self._is_positive, node.inputs))
        ):
            self._positive.add(node.output)
        writer = self._writers.get(node.kind)
        if writer is None or not writer(self, node):
            for name in node.inputs:
                self._to_nchw(name)
            self.found.nodes.append(node)

    def give(self, name: str, *, in_nchwc: bool) -> None:
        """Add a result."""
        if name in self._nchwc and self._shapes[name][1] % self._size:
            self.found.padded.add(name)
        if in_nchwc:
            samples, channels, height, width = self._shapes[name]
            groups = self._pad_channels(channels) // self._size
            shape = samples, groups, height, width, self._size
            self.found.nchwc[name] = self._nchwc[name], shape
        else:
            self._to_nchw(name)

    # Nodes; each method returns whether it wrote the node

    def _convolution(self, node: Node) -> bool:
        image, weight_name, *bias_name = node.inputs
        weight, shape = self._constants.get(weight_name), self._shapes.get(image, ())
        if weight is None or weight.ndim != 4 or len(shape) != 4 or not all(shape):
            return False
        outputs, inputs = weight.shape[:2]
        attributes = dict(node.attributes)
        groups = attributes.get("group", 1)
        depthwise = groups > 1 and inputs == 1 and outputs == groups  # depthwise
        few = groups == 1 and inputs < self._size  # the first layer reads NCHW
        if (
            groups > 1
            and not depthwise
            and (inputs % self._size or outputs // groups % self._size)
        ):
            return False
        if few:
            self._to_nchw(image)
        source = image if few else self._to_nchwc(image)
        if source is None:
            return False
        names = [source, self._add(self._filter(weight, by_channel=few or depthwise))]
        unload(weight)  # the file's copy is no longer needed
        for name in bias_name:
            bias = _pad(self._constants[name], self._pad_channels(outputs), 0)
            names.append(self._add(bias))
        attributes["group"] = self._pad_channels(groups) if depthwise else groups
        self._node(node, f"{_DOMAIN}.Conv", names, attributes)
        self.convolutions += 1
        return True

    def _filter(self, weight: Array, *, by_channel: bool) -> Array:
        """Return weights (O, I, H, W) in the library's layout.

        `by_channel` is for inputs in NCHW.
        """
        size = self._size
        weight = _pad(weight, self._pad_channels(len(weight)), 0)
        outputs, inputs, *window = weight.shape
        if by_channel:  # O/b, I, H, W, b
            groups = weight.reshape(outputs // size, size, inputs, *window)
            return np.ascontiguousarray(np.moveaxis(groups, 1, -1)).reshape(weight.shape)
        weight = _pad(weight, self._pad_channels(inputs), 1)
        inputs = weight.shape[1]  # O/b, I/b, H, W, b of the inputs, b of the outputs
        both = weight.reshape(outputs // size, size, inputs // size, size, *window)
        return np.ascontiguousarray(both.transpose(0, 2, 4, 5, 3, 1)).reshape(weight.shape)

    def _pooling(self, node: Node) -> bool:
        (image,) = node.inputs
        if image not in self._nchwc:
            return False
        self._node(node, f"{_DOMAIN}.{node.kind}", [self._nchwc[image]], node.attributes)
        return True

    def _unary(self, node: Node) -> bool:
        image, *numbers = node.inputs
        if image not in self._nchwc:
            return False
        names = [self._nchwc[image], *numbers]
        self._node(node, node.kind, names, node.attributes)
        return True

    def _binary(self, node: Node) -> bool:
        names = list(node.inputs)
        if len(names) != 2 or not any(name in self._nchwc for name in names):
            return False
        shapes = [self._shapes.get(name) for name in names]
        if any(self._is_number(name) for name in names):
            both: list[str | None] = [self._nchwc.get(name, name) for name in names]
        elif shapes[0] is None or shapes[1] is None:
            return False
        elif shapes[0] == shapes[1]:
            both = [self._to_nchwc(name) for name in names]
        else:
            return self._scaling(node, (shapes[0], shapes[1]))
        if None in both:
            return False
        self._node(node, node.kind, [n for n in both if n], {})
        return True

    def _quotient(self, node: Node) -> bool:
        if not self._is_positive(node.inputs[-1]):
            return False
        return self._unary(node) if len(node.inputs) == 1 else self._binary(node)

    def _scaling(self, node: Node, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
        """Write a node of an image and one number per channel."""
        whole = np.broadcast_shapes(*shapes)
        channels = (*whole[:2], 1, 1)
        if len(whole) != 4 or not all(shape in {whole, channels} for shape in shapes):
            return False
        blocked = [self._to_nchwc(name) for name in node.inputs]
        if None in blocked:
            return False
        rows = whole[0] * self._pad_channels(whole[1]) // self._size
        read = [
            self._reshape(name, (rows, shape[2] * shape[3], self._size))
            for name, shape in zip(blocked, shapes, strict=True)
            if name is not None
        ]
        product = f"{node.output}.rows"
        self.found.nodes.append(Node(node.kind, tuple(read), product))
        sizes = (whole[0], self._pad_channels(whole[1]), *whole[2:])
        self._reshape(product, sizes, self._name_in_nchwc(node.output))
        return True

    def _concatenation(self, node: Node) -> bool:
        if not any(name in self._nchwc for name in node.inputs):
            return False
        shapes = [self._shapes.get(name, ()) for name in node.inputs]
        if node.attributes["axis"] != 1:
            return False
        if any(len(shape) != 4 or shape[1] % self._size for shape in shapes):
            return False
        names = [self._to_nchwc(name) for name in node.inputs]
        if None in names:
            return False
        self._node(node, "Concat", [n for n in names if n], {"axis": 1})
        return True

    # Functions of the class: bound methods would keep an instance and its weights until the
    # collector runs.
    _writers: ClassVar[dict[str, Callable[[_Writer, Node], bool]]] = {
        "Conv": _convolution,
        "MaxPool": _pooling,
        "AveragePool": _pooling,
        "GlobalAveragePool": _pooling,
        "Concat": _concatenation,
        "Div": _quotient,
        "Reciprocal": _quotient,
        **dict.fromkeys(_UNARY, _unary),
        **dict.fromkeys(_BINARY, _binary),
    }

    # Values

    def _to_nchwc(self, name: str) -> str | None:
        """Return a value in NCHWc, converting it if necessary; None if it cannot be."""
        if name not in self._nchwc:
            shape = self._shapes.get(name, ())
            if name in self._constants or len(shape) != 4 or shape[1] % _AT_ONCE:
                return None
            if self._is_the_same_in_nchwc(shape):
                self._nchwc[name] = name
            else:
                self.found.nodes.append(
                    Node(f"{_DOMAIN}.ReorderInput", (name,), f"{name}.blocks")
                )
                self._nchwc[name] = f"{name}.blocks"
        return self._nchwc[name]

    def _to_nchw(self, name: str) -> None:
        """Return a value in NCHW, converting it if necessary."""
        if name in self.missing:
            self.missing.remove(name)
            channels = self._shapes[name][1]
            self.found.nodes.append(
                Node(
                    f"{_DOMAIN}.ReorderOutput",
                    (self._nchwc[name],),
                    name,
                    {"channels": channels},
                )
            )

    def _name_in_nchwc(self, name: str) -> str:
        """Return the name of a node's result in NCHWc."""
        if self._is_the_same_in_nchwc(self._shapes[name]):
            self._nchwc[name] = name
        else:
            self._nchwc[name] = f"{name}.blocks"
            self.missing.add(name)
        return self._nchwc[name]

    def _is_the_same_in_nchwc(self, shape: tuple[int, ...]) -> bool:
        """Return whether an image has a single pixel, whose memory is the same in NCHW."""
        return shape[2:] == (1, 1) and shape[1] % self._size == 0

    def _node(
        self, node: Node, kind: str, inputs: Iterable[str], attributes: Mapping[str, Any]
    ) -> None:
        output = self._name_in_nchwc(node.output)
        self.found.nodes.append(Node(kind, tuple(inputs), output, attributes))

    def _reshape(self, name: str, shape: tuple[int, ...], output: str = "") -> str:
        sizes = self._add(np.asarray(shape, np.int64))
        output = output or f"{sizes}.rows"
        self.found.nodes.append(Node("Reshape", (name, sizes), output))
        return output

    def _add(self, array: Array) -> str:
        name = f"blocks{len(self.found.constants)}"
        self.found.constants[name] = array
        return name

    def _pad_channels(self, channels: int) -> int:
        """Return the number of channels including padding."""
        return -(-channels // self._size) * self._size

    def _is_positive(self, name: str) -> bool:
        constant = self._constants.get(name)
        return name in self._positive or (constant is not None and bool(np.all(constant > 0)))

    def _is_number(self, name: str) -> bool:
        constant = self._constants.get(name)
        return constant is not None and constant.size == 1 and constant.ndim <= 4


def _pad(array: Array, count: int, axis: int) -> Array:
    """Pad an array with zeros along an axis to a length of `count`."""
    missing = count - array.shape[axis]
    if not missing:
        return array
    return np.pad(array, [(0, missing if at == axis else 0) for at in range(array.ndim)])
