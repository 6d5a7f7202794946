"""The faults: each changes one operator of a graph as a converter might."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.pnnx import Attribute, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from engine.pnnx import Graph, Operator

__all__ = ["KINDS", "Planted", "plant"]


@dataclass(frozen=True)
class Planted:
    """A fault that was planted.

    Attributes
    ----------
    kind : str
        As the reasons of a comparison are called.
    operator : str
        Where.
    also : tuple of str
        Operators that may as well be named, because nobody can tell them apart.
    """

    kind: str
    operator: str
    also: tuple[str, ...] = ()


def plant(graph: Graph, kind: str, rng: Generator) -> Planted | None:
    """Plant a fault of a kind at a random place; None where it has no place."""
    places = [operator for operator in graph.operators if operator.type != "pnnx.Output"]
    for index in rng.permutation(len(places)):
        operator = places[index]
        found = KINDS[kind](graph, operator, rng)
        if found is not None:
            return found
    return None


def _changed(kind: str, operator: Operator, key: str, value: Any) -> Planted | None:
    operator.params[key] = Parameter.of(value)
    return Planted(kind, operator.name)


def _weights_of(operator: Operator, least: int = 1) -> list[str]:
    return [
        key
        for key, attribute in operator.attrs.items()
        if attribute.dtype == "f32" and len(attribute.shape) >= least
    ]


def _replace(operator: Operator, key: str, array: np.ndarray) -> None:
    operator.attrs[key] = Attribute.from_array(np.ascontiguousarray(array, np.float32))


def weight_values(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    keys = _weights_of(operator, 2)
    if not keys:
        return None
    key = keys[rng.integers(len(keys))]
    array = operator.attrs[key].array.copy()
    if rng.integers(2):  # all of them, a little
        array *= 1 + 0.05 * rng.standard_normal(array.shape)
    else:  # one output channel
        array[rng.integers(len(array))] *= -1.5
    _replace(operator, key, array)
    return Planted("weight_values", operator.name)


def weight_layout(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    keys = _weights_of(operator, 2)
    keys = [k for k in keys if operator.attrs[k].shape[-1] == operator.attrs[k].shape[-2] > 1]
    if not keys:
        return None
    array = operator.attrs[keys[0]].array
    turned = np.swapaxes(array, -1, -2) if rng.integers(2) else array[..., ::-1]
    _replace(operator, keys[0], turned)
    return Planted("weight_layout", operator.name)


def bias(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if "bias" not in operator.attrs or operator.attrs["bias"].dtype != "f32":
        return None
    array = operator.attrs["bias"].array
    _replace(operator, "bias", array * 0 if rng.integers(2) else array + 0.1)
    return Planted("bias", operator.name)


def scale(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    keys = _weights_of(operator, 2)
    if "weight" not in keys:
        return None
    _replace(operator, "weight", operator.attrs["weight"].array * rng.uniform(1.05, 2))
    return Planted("scale", operator.name)


def channel_order(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if operator.type not in {"nn.Conv2d", "F.conv2d"} or "weight" not in operator.attrs:
        return None
    array = operator.attrs["weight"].array
    if array.ndim != 4 or array.shape[1] < 2:
        return None
    _replace(operator, "weight", array[:, ::-1])
    return Planted("channel_order", operator.name)


def _spatial(kind: str, key: str, change: Callable[[tuple[int, ...]], tuple[int, ...]]):
    def plant_it(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
        if key not in operator.params or not operator.type.startswith(
            ("nn.Conv", "nn.MaxPool", "nn.AvgPool")
        ):
            return None
        value = operator.params[key].value
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            return None
        return _changed(kind, operator, key, change(value))

    return plant_it


def dilation(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if not operator.type.startswith("nn.Conv") or max(operator.params["kernel_size"].value) < 2:
        return None
    value = operator.params["dilation"].value
    return _changed("dilation", operator, "dilation", tuple(v + 1 for v in value))


def ceil_mode(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if "ceil_mode" not in operator.params:
        return None
    return _changed("ceil_mode", operator, "ceil_mode", not operator.params["ceil_mode"].value)


def count_include_pad(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if "count_include_pad" not in operator.params:
        return None
    value = operator.params["count_include_pad"].value
    return _changed("count_include_pad", operator, "count_include_pad", not value)


def align_corners(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if not isinstance(getattr(operator.params.get("align_corners"), "value", None), bool):
        return None
    value = operator.params["align_corners"].value
    return _changed("align_corners", operator, "align_corners", not value)


def eps(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if "eps" not in operator.params:
        return None
    return _changed("eps", operator, "eps", float(operator.params["eps"].value) * 1000)


def normalization(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if "Norm" not in operator.type or "weight" not in operator.attrs:
        return None
    _replace(operator, "weight", np.ones(operator.attrs["weight"].shape))
    return Planted("normalization", operator.name)


_ACTIVATIONS = (
    "nn.ReLU", "F.relu", "nn.ReLU6", "F.relu6", "nn.GELU", "F.gelu", "nn.SiLU", "F.silu",
    "nn.Sigmoid", "F.sigmoid", "nn.Hardswish", "F.hardswish", "F.tanh", "nn.Tanh",
)  # fmt: skip


def activation_missing(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if operator.type not in _ACTIVATIONS:
        return None
    operator.type = "nn.Identity"
    operator.params.clear()
    return Planted("activation_missing", operator.name)


def activation_gone(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Take an activation out of the graph: what produces its input lacks it then."""
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
    names = tuple(dict.fromkeys(consumer.name for consumer in consumers))
    return Planted("activation_missing", producer.name, names)


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
    return Planted("activation_extra", operator.name)


def axis(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    value = getattr(operator.params.get("dim"), "value", None)
    if operator.type not in {"nn.Softmax", "F.softmax", "torch.mean"}:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    shape = operator.inputs[0].shape
    if shape is None or len(shape) < 2:
        return None
    return _changed("axis", operator, "dim", (value % len(shape) - 1) % len(shape))


def expression(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    if operator.type != "pnnx.Expression" or len(operator.inputs) < 1:
        return None
    text = str(operator.params["expr"])
    for old, new in (("add(", "sub("), ("mul(", "add("), ("div(", "mul("), ("sub(", "add(")):
        if old in text:
            operator.params["expr"] = Parameter.parse(text.replace(old, new, 1))
            return Planted("expression", operator.name)
    return None


def parameter(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Change one number among the parameters of an operator that only moves elements."""
    moves = {
        "torch.roll": "shifts",
        "Tensor.slice": "starts",
        "Tensor.permute": "dims",
        "torch.transpose": "dim0",
        "nn.MultiheadAttention": "num_heads",
    }
    key = moves.get(operator.type)
    if key is None or key not in operator.params:
        return None
    value = operator.params[key].value
    if operator.type == "Tensor.permute" and isinstance(value, tuple) and len(value) > 2:
        return _changed("parameter", operator, key, (*value[:-2], value[-1], value[-2]))
    if operator.type == "torch.roll" and isinstance(value, tuple):
        return _changed("parameter", operator, key, tuple(v + 1 for v in value))
    if operator.type == "nn.MultiheadAttention" and isinstance(value, int) and value % 2 == 0:
        return _changed("parameter", operator, key, value // 2)
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
    "ceil_mode": ceil_mode,
    "count_include_pad": count_include_pad,
    "align_corners": align_corners,
    "eps": eps,
    "normalization": normalization,
    "activation_missing": activation_missing,
    "activation_gone": activation_gone,
    "activation_other": activation_other,
    "axis": axis,
    "expression": expression,
    "parameter": parameter,
}
