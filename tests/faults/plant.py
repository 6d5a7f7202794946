"""The faults: each changes one operator of a graph, or an input, as a converter might."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.cost import is_free
from engine.pnnx import Parameter
from faults.conversions import CONVERSIONS
from faults.planted import Planted, change_parameter, replace_weight, value_of, weights_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from engine.pnnx import Graph, Operator

__all__ = ["INPUT_KINDS", "KINDS", "Planted", "plant", "plant_in_input"]


def plant(
    graph: Graph, kind: str, rng: Generator, taken: frozenset[str] = frozenset()
) -> Planted | None:
    """Plant a fault of a kind in a random operator; None if it fits no operator.

    No operator of `taken` is changed.
    """
    places = [
        operator
        for operator in graph.operators
        if operator.type not in {"pnnx.Input", "pnnx.Output"} and operator.name not in taken
    ]
    for index in rng.permutation(len(places)):
        found = KINDS[kind](graph, places[index], rng)
        if found is not None:
            return found
    return None


def weight_values(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    keys = weights_of(operator, 2)
    if not keys:
        return None
    key = keys[rng.integers(len(keys))]
    array = operator.attrs[key].array.copy()
    if rng.integers(2):  # all of them, a little
        array *= 1 + 0.05 * rng.standard_normal(array.shape)
    else:  # one output channel
        array[rng.integers(len(array))] *= -1.5
    replace_weight(operator, key, array)
    consumers = operator.outputs[0].consumers if operator.type == "pnnx.Attribute" else ()
    reasons = "weight_values" if len(array) > 1 else "weight_values,scale"
    return Planted(reasons, operator.name, tuple(c.name for c in consumers))


def weight_layout(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    keys = weights_of(operator, 2)
    if operator.type in {"nn.LSTM", "nn.GRU"}:  # gates in another order
        order = [1, 0, 2, 3] if operator.type == "nn.LSTM" else [1, 0, 2]
        for key in weights_of(operator):
            gates = np.split(operator.attrs[key].array, len(order))
            replace_weight(operator, key, np.concatenate([gates[index] for index in order]))
        return Planted("weight_layout", operator.name)
    keys = [k for k in keys if operator.attrs[k].shape[-1] == operator.attrs[k].shape[-2] > 1]
    if not keys or operator.type == "pnnx.Attribute":
        return None
    key = keys[rng.integers(len(keys))]
    array = operator.attrs[key].array
    turned = np.swapaxes(array, -1, -2) if rng.integers(2) else array[..., ::-1]
    replace_weight(operator, key, turned)
    return Planted("weight_layout", operator.name)


def bias(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    keys = [key for key in weights_of(operator) if "bias" in key]
    if not keys or "Norm" in operator.type:
        return None
    key = keys[rng.integers(len(keys))]
    array = operator.attrs[key].array
    choices = (array * 0, array + 0.1, array[::-1], -array)
    replace_weight(operator, key, choices[rng.integers(len(choices))])
    return Planted("bias", operator.name)


def scale(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if "weight" not in weights_of(operator, 2):
        return None
    factor = rng.uniform(1.05, 2)
    replace_weight(operator, "weight", operator.attrs["weight"].array * factor)
    if rng.integers(2) and "bias" in operator.attrs:  # the whole result
        replace_weight(operator, "bias", operator.attrs["bias"].array * factor)
    return Planted("scale", operator.name)


def channel_order(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Reverse the channels of the weights that read them."""
    if not operator.type.startswith(("nn.Conv", "F.conv")):
        return None
    if "weight" not in operator.attrs or value_of(operator, "groups") != 1:
        return None
    array, axis = operator.attrs["weight"].array, "Transpose" not in operator.type
    if array.shape[int(axis)] < 2:
        return None
    replace_weight(operator, "weight", np.flip(array, int(axis)))
    return Planted("channel_order,weight_layout", operator.name)


_WINDOWED = ("nn.Conv", "nn.MaxPool", "nn.AvgPool", "F.max_pool", "F.avg_pool")


def _spatial(kind: str, key: str, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Any:
    def plant_it(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
        if not operator.type.startswith(_WINDOWED):
            return None
        value = value_of(operator, key)
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            return None
        return change_parameter(kind, operator, key, change(value))

    return plant_it


def dilation(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if not operator.type.startswith("nn.Conv") or max(value_of(operator, "kernel_size")) < 2:
        return None
    value = value_of(operator, "dilation")
    other = tuple(v + 1 if max(value) == 1 else 1 for v in value)
    if rng.integers(2) and "Transpose" not in operator.type:  # with the size as before
        kernel, padding = value_of(operator, "kernel_size"), value_of(operator, "padding")
        if not all(isinstance(p, int) for p in padding):
            return None
        more = [(d - o) * (k - 1) for d, o, k in zip(other, value, kernel, strict=True)]
        if not any(m % 2 for m in more):
            padding = tuple(p + m // 2 for p, m in zip(padding, more, strict=True))
            operator.params["padding"] = Parameter.of(padding)
    return change_parameter("dilation,padding", operator, "dilation", other)


def groups(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Change the groups of a convolution to 1, or to others that fit the weights' sizes."""
    count = value_of(operator, "groups")
    if not operator.type.startswith("nn.Conv") or not isinstance(count, int) or count < 2:
        return None
    array = operator.attrs["weight"].array
    if rng.integers(2) or "Transpose" in operator.type:
        return change_parameter("groups", operator, "groups", 1)  # which its weights do not fit
    made, of_group = array.shape[:2]
    dense = np.zeros((made, of_group * count, *array.shape[2:]), np.float32)
    for index, kernel in enumerate(array):
        first = index // (made // count) * of_group
        dense[index, first : first + of_group] = kernel
    off = rng.standard_normal(dense.shape) * 0.3 * array.std()
    replace_weight(operator, "weight", np.where(dense == 0, off, dense))
    return change_parameter("groups", operator, "groups", 1)


def ceil_mode(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    return _switched("ceil_mode", operator)


def count_include_pad(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    return _switched("count_include_pad", operator)


def align_corners(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    return _switched("align_corners", operator)


def _switched(key: str, operator: Operator) -> Planted | None:
    value = value_of(operator, key)
    return change_parameter(key, operator, key, not value) if isinstance(value, bool) else None


def eps(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if "eps" not in operator.params:
        return None
    return change_parameter("eps", operator, "eps", (1e-3, 1e-2, 0.1)[rng.integers(3)])


def normalization(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if "Norm" not in operator.type or "weight" not in operator.attrs:
        return None
    way = rng.integers(3)
    if way == 0:  # only the weights of the affine transformation are lost
        replace_weight(operator, "weight", np.ones(operator.attrs["weight"].shape))
        return Planted("normalization,weight_values", operator.name)
    key = "affine" if "affine" in operator.params else "elementwise_affine"
    if way == 1 and key in operator.params:
        operator.attrs.clear()
        return change_parameter("normalization", operator, key, value=False)
    count = value_of(operator, "num_groups")
    if isinstance(count, int):
        return change_parameter(
            "normalization,parameter,groups", operator, "num_groups", count // 2
        )
    return None


_ACTIVATIONS = (
    "nn.ReLU", "F.relu", "nn.ReLU6", "F.relu6", "nn.GELU", "F.gelu", "nn.SiLU", "F.silu",
    "nn.Sigmoid", "F.sigmoid", "nn.Hardswish", "F.hardswish", "F.tanh", "nn.Tanh",
    "F.leaky_relu", "nn.LeakyReLU", "nn.ELU", "F.elu", "nn.Hardsigmoid",
    "F.softplus", "nn.Mish",
)  # fmt: skip


def activation_missing(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if operator.type not in _ACTIVATIONS:
        return None
    operator.type = "nn.Identity"
    operator.params.clear()
    return Planted("activation_missing", operator.name)


def activation_gone(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Remove an activation from the graph; the producer of its input counts as the origin.

    So does what moves its result, for the same is activated before it is moved.
    """
    if operator.type not in _ACTIVATIONS:
        return None
    source, result = operator.inputs[0], operator.outputs[0]
    consumers = list(result.consumers)
    producer = source.producer
    if producer is None or len(source.consumers) != 1 or producer.type == "pnnx.Input":
        return None
    for consumer in dict.fromkeys(consumers):
        for index, each in enumerate(consumer.inputs):
            if each is result:
                consumer.replace_input(index, source)
    graph.remove_operator(operator)
    level, names = consumers, dict.fromkeys(each.name for each in consumers)
    while level:
        moved = [o for each in level if is_free(each.type) for o in each.outputs]
        level = [consumer for operand in moved for consumer in operand.consumers]
        names |= dict.fromkeys(each.name for each in level)
    return Planted("activation_missing", producer.name, tuple(names))


def activation_extra(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Add an activation after an operator."""
    linear = ("nn.Linear", "nn.Conv", "pnnx.Expression", "torch.cat", "torch.matmul")
    if not operator.type.startswith((*linear, "nn.LayerNorm")) or len(operator.outputs) != 1:
        return None
    result = operator.outputs[0]
    if result.dtype != "f32" or not result.consumers:
        return None
    name = ("F.relu", "F.silu", "F.tanh")[rng.integers(3)]
    added = graph.new_operator_after(name, f"{operator.name}_added", operator)
    made = graph.new_operand(f"{result.name}_added")
    made.shape, made.dtype = result.shape, result.dtype
    for consumer in dict.fromkeys(result.consumers):
        for index, each in enumerate(consumer.inputs):
            if each is result:
                consumer.replace_input(index, made)
    added.add_input(result, "input")
    added.add_output(made)
    return Planted("activation_extra", added.name, (operator.name,))


def activation_other(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if operator.type not in _ACTIVATIONS:
        return None
    others = [
        t
        for t in ("F.relu", "F.silu", "F.gelu", "F.sigmoid", "F.tanh")
        if t.split(".")[1].lower() != operator.type.split(".")[1].lower()
    ]
    operator.type = others[rng.integers(len(others))]
    operator.params.clear()
    operator.input_names[0] = "input"
    return Planted("activation_extra,activation_missing", operator.name)


def axis(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    value = value_of(operator, "dim")
    types = {
        "nn.Softmax",
        "F.softmax",
        "F.log_softmax",
        "torch.mean",
        "torch.cat",
        "torch.chunk",
    }
    if operator.type not in types or not isinstance(value, int):
        return None
    shape = operator.inputs[0].shape
    if shape is None or len(shape) < 2:
        return None
    return change_parameter("axis", operator, "dim", (value % len(shape) - 1) % len(shape))


def expression(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if operator.type != "pnnx.Expression" or len(operator.inputs) < 1:
        return None
    text = str(operator.params["expr"])
    swaps = (("add(", "sub("), ("mul(", "add("), ("div(", "mul("), ("sub(", "add("))
    found = [(old, new) for old, new in swaps if old in text]
    if not found:
        return None
    old, new = found[rng.integers(len(found))]
    operator.params["expr"] = Parameter.parse(text.replace(old, new, 1))
    return Planted("expression", operator.name)


def constant(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Change a constant of an expression."""
    if operator.type != "pnnx.Expression" or len(operator.inputs) < 1:
        return None
    text = str(operator.params["expr"])
    numbers = [n for n in re.finditer(r"(?<![@\w.])-?\d+\.\d+(e[-+]\d+)?", text) if float(n[0])]
    if not numbers:
        return None
    number = numbers[rng.integers(len(numbers))]
    other = f"{float(number[0]) * (1.5, 0.7, -1)[rng.integers(3)]:e}"
    changed = text[: number.start()] + other + text[number.end() :]
    operator.params["expr"] = Parameter.parse(changed)
    return Planted("expression,scale", operator.name)


def precision(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Round weights as bfloat16 or int8 do."""
    if "weight" not in weights_of(operator, 2) or operator.type == "nn.Embedding":
        return None
    array = operator.attrs["weight"].array
    if rng.integers(2):
        bits = array.view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)
    else:
        step = np.abs(array).max() / 127
        rounded = np.round(array / step) * step
    replace_weight(operator, "weight", rounded)
    return Planted("precision,weight_values", operator.name)


def parameter(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Change a parameter that no other kind of fault changes."""
    kind, params = operator.type, operator.params
    if kind == "Tensor.permute":
        dims = value_of(operator, "dims")
        if len(dims) < 3:
            return None
        return change_parameter(
            "parameter,axis", operator, "dims", (*dims[:-2], dims[-1], dims[-2])
        )
    if kind == "torch.roll":
        shifts = tuple(v + 1 for v in value_of(operator, "shifts"))
        return change_parameter("parameter", operator, "shifts", shifts)
    if kind == "nn.MultiheadAttention" and value_of(operator, "num_heads") % 2 == 0:
        return change_parameter(
            "parameter", operator, "num_heads", value_of(operator, "num_heads") // 2
        )
    if kind == "F.leaky_relu":
        return change_parameter("parameter", operator, "negative_slope", 0.01)
    if kind == "Tensor.select":
        return change_parameter("parameter", operator, "index", value_of(operator, "index") + 1)
    if kind == "F.upsample" and "align_corners" in params:
        return change_parameter("parameter,align_corners", operator, "mode", "bicubic")
    if kind == "F.upsample_nearest":
        operator.type = "F.upsample"
        params["mode"], params["align_corners"] = Parameter.of("bilinear"), Parameter.of(False)
        return Planted("parameter", operator.name)
    if kind.endswith("GELU") or kind == "F.gelu":
        params["approximate"] = Parameter.of("tanh")
        return Planted("parameter", operator.name)
    return None


KINDS: dict[str, Callable[[Graph, Operator, Generator], Planted | None]] = {
    "weight_values": weight_values,
    "weight_layout": weight_layout,
    "bias": bias,
    "scale": scale,
    "channel_order": channel_order,
    "padding": _spatial("padding", "padding", lambda v: tuple(p + 1 for p in v)),
    "padding_less": _spatial("padding", "padding", lambda v: tuple(max(0, p - 1) for p in v)),
    "stride": _spatial("stride", "stride", lambda v: tuple(p % 2 + 1 for p in v)),
    "dilation": dilation,
    "groups": groups,
    "ceil_mode": ceil_mode,
    "count_include_pad": count_include_pad,
    "align_corners": align_corners,
    "eps": eps,
    "normalization": normalization,
    "activation_missing": activation_missing,
    "activation_gone": activation_gone,
    "activation_extra": activation_extra,
    "activation_other": activation_other,
    "axis": axis,
    "expression": expression,
    "constant": constant,
    "precision": precision,
    "parameter": parameter,
    **CONVERSIONS,
}
"""Kinds of faults in operators."""


def _reversed_channels(x: np.ndarray, rng: Generator) -> np.ndarray:
    return x[:, ::-1]


def _scaled(x: np.ndarray, rng: Generator) -> np.ndarray:
    return x * (255.0, 1 / 255, 2.0)[rng.integers(3)]


def _normalized(x: np.ndarray, rng: Generator) -> np.ndarray:
    shape = (1, -1, *[1] * (x.ndim - 2))
    mean, std = rng.uniform(0.3, 0.6, x.shape[1]), rng.uniform(0.1, 0.3, x.shape[1])
    return (x - mean.reshape(shape)) / std.reshape(shape)


def _other_layout(x: np.ndarray, rng: Generator) -> np.ndarray:
    if rng.integers(2) and x.shape[2] == x.shape[3]:
        return np.swapaxes(x, 2, 3)
    return x.transpose(0, 2, 3, 1).reshape(x.shape)  # NHWC taken for NCHW


INPUT_KINDS: dict[str, Callable[[np.ndarray, Generator], np.ndarray]] = {
    "channel_order": _reversed_channels,
    "scale": _scaled,
    "mean_std": _normalized,
    "input_layout": _other_layout,
}
"""Kinds of faults in inputs."""


def plant_in_input(
    graph: Graph, inputs: list[np.ndarray], kind: str, rng: Generator
) -> tuple[Planted, list[np.ndarray]] | None:
    """Plant a fault of a kind in the first input, an image; None if the input is no image.

    Returns the fault and the inputs.
    """
    image, source = inputs[0], next(o for o in graph.operators if o.type == "pnnx.Input")
    if image.dtype != np.float32 or image.ndim != 4:
        return None
    other = np.ascontiguousarray(INPUT_KINDS[kind](image, rng), np.float32)
    if np.array_equal(other, image):  # channels of a grey image have no order
        return None
    return Planted(kind, source.name), [other, *inputs[1:]]
