"""Faults that converters make beside parameters: orders, ends and operands that are lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.pnnx import Attribute, Parameter
from faults.planted import Planted, change_parameter, replace_weight, value_of, weights_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.random import Generator

    from engine.pnnx import Graph, Operand, Operator

__all__ = ["CONVERSIONS"]

_MATRIX = ("nn.Conv", "nn.Linear", "F.conv", "F.linear")


def weight_one(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Change one number of a weight."""
    if "weight" not in weights_of(operator, 2) or operator.type == "nn.Embedding":
        return None
    array = operator.attrs["weight"].array.copy()
    place = tuple(rng.integers(size) for size in array.shape)
    array[place] += (1.0, -1.0)[rng.integers(2)] * 4 * np.abs(array).max()
    replace_weight(operator, "weight", array)
    return Planted("weight_values", operator.name)


def weights_exchanged(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Exchange the weights of two layers of the same shape."""
    if not weights_of(operator, 2):
        return None
    shapes = {key: each.shape for key, each in operator.attrs.items()}
    twins = [
        other
        for other in graph.operators
        if other is not operator
        and other.type == operator.type
        and {key: each.shape for key, each in other.attrs.items()} == shapes
        and not all(
            np.array_equal(other.attrs[k].array, operator.attrs[k].array) for k in shapes
        )
    ]
    if not twins:
        return None
    twin = twins[rng.integers(len(twins))]
    ours, theirs = dict(operator.attrs), dict(twin.attrs)
    operator.attrs.update(theirs)
    twin.attrs.update(ours)
    return Planted("weight_values", operator.name, (twin.name,))


def bias_one(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Change the bias of one channel."""
    if "bias" not in weights_of(operator) or "Norm" in operator.type:
        return None
    array = operator.attrs["bias"].array.copy()
    array[rng.integers(len(array))] += 0.5
    replace_weight(operator, "bias", array)
    return Planted("bias", operator.name)


def statistics(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Lose the statistics of a batch norm, as running ones or as folded into a layer."""
    if operator.type.startswith("nn.BatchNorm"):
        key = ("running_mean", "running_var")[rng.integers(2)]
        shape = operator.attrs[key].shape
        replace_weight(operator, key, np.full(shape, float(key == "running_var")))
        return Planted("normalization,weight_values,scale,bias", operator.name)
    if not operator.type.startswith("nn.Conv") or "weight" not in weights_of(operator, 2):
        return None
    array = operator.attrs["weight"].array
    axis = int("Transpose" in operator.type)
    shape = [1] * array.ndim
    shape[axis] = -1
    factors = rng.uniform(0.4, 2.5, array.shape[axis])
    replace_weight(operator, "weight", array * factors.reshape(shape))
    return Planted("scale,weight_values", operator.name)


_TWO = re.compile(r"(sub|div|pow|atan2)\((@\d+),(@\d+)\)")


def operands_exchanged(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Exchange the operands of a subtraction, division, product of matrices or joining."""
    if operator.type == "pnnx.Expression":
        text = str(operator.params["expr"])
        found = list(_TWO.finditer(text))
        if not found:
            return None
        each = found[rng.integers(len(found))]
        swapped = f"{each[1]}({each[3]},{each[2]})"
        operator.params["expr"] = Parameter.parse(
            text[: each.start()] + swapped + text[each.end() :]
        )
        return Planted("expression", operator.name)
    types = {"torch.cat", "torch.stack", "torch.matmul", "F.scaled_dot_product_attention"}
    if operator.type not in types or len(operator.inputs) < 2:
        return None
    one, other = operator.inputs[:2]
    if one is other:
        return None
    operator.replace_input(0, other)
    operator.replace_input(1, one)
    return Planted("channel_order,expression,parameter,axis", operator.name)


def residual_lost(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Lose one operand of a sum."""
    if operator.type != "pnnx.Expression" or len(operator.inputs) != 2:
        return None
    if str(operator.params["expr"]) != "add(@0,@1)":
        return None
    kept = int(rng.integers(2))
    if operator.inputs[kept].shape != operator.outputs[0].shape:
        return None
    operator.remove_input(1 - kept)
    operator.type = "nn.Identity"
    operator.params.clear()
    return Planted("expression", operator.name)


_FUNCTIONS = (
    ("sqrt(", "rsqrt("), ("rsqrt(", "sqrt("), ("sin(", "cos("), ("cos(", "sin("),
    ("max(", "min("), ("min(", "max("), ("exp(", "square("), ("square(", "abs("),
)  # fmt: skip


def function_other(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Compute another function in an expression."""
    if operator.type != "pnnx.Expression" or not operator.inputs:
        return None
    text = str(operator.params["expr"])
    found = [
        (place, new, old)
        for old, new in _FUNCTIONS
        for place in re.finditer(rf"(?<!\w){re.escape(old)}", text)
    ]
    if not found:
        return None
    place, new, _ = found[rng.integers(len(found))]
    operator.params["expr"] = Parameter.parse(text[: place.start()] + new + text[place.end() :])
    return Planted("expression", operator.name)


_REDUCTIONS = ("torch.mean", "torch.sum", "torch.amax", "torch.norm", "torch.logsumexp")


def reduction(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Reduce along other axes, by another function, or with other ones kept."""
    if operator.type not in _REDUCTIONS:
        return None
    way, dims, shape = rng.integers(3), value_of(operator, "dim"), operator.inputs[0].shape
    if way == 0 and isinstance(dims, tuple) and shape is not None:
        other = tuple((d % len(shape) - 1) % len(shape) for d in dims)
        return change_parameter("axis", operator, "dim", other)
    if way == 1 and isinstance(value_of(operator, "keepdim"), bool):
        return change_parameter(
            "parameter", operator, "keepdim", not value_of(operator, "keepdim")
        )
    others = {"torch.mean": "torch.sum", "torch.sum": "torch.mean"}
    if operator.type not in others:
        return None
    operator.type = others[operator.type]
    return Planted("scale,parameter", operator.name)


def limits(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Clamp elsewhere, or with another slope below 0."""
    changes: dict[str, Callable[[float], float]] = {
        "min": lambda v: v - 0.2, "max": lambda v: v * 0.5, "min_val": lambda v: v + 0.2,
        "max_val": lambda v: v * 0.5, "negative_slope": lambda v: v * 2,
        "alpha": lambda v: v * 0.5, "beta": lambda v: v * 2,
    }  # fmt: skip
    keys = [k for k in changes if isinstance(value_of(operator, k), (int, float))]
    if not keys:
        return None
    key = keys[rng.integers(len(keys))]
    other = float(changes[key](value_of(operator, key)))
    reasons = "parameter,activation_missing,activation_extra"
    return change_parameter(reasons, operator, key, other)


def moved(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Exchange other axes, or give a reshape two sizes in the other order."""
    if operator.type == "torch.transpose":
        shape = operator.inputs[0].shape
        if shape is None or len(shape) < 3:
            return None
        dims = [
            value_of(operator, "dim0") % len(shape),
            value_of(operator, "dim1") % len(shape),
        ]
        others = [n for n in reversed(range(len(shape))) if n not in dims and shape[n] != 1]
        rest = others[0] if others else dims[0]
        return change_parameter("axis", operator, "dim0", rest)
    if operator.type in {"Tensor.reshape", "Tensor.view"}:
        sizes = value_of(operator, "shape")
        if not isinstance(sizes, tuple):
            return None
        places = [index for index, size in enumerate(sizes) if size != 1]
        if len(places) < 2 or sizes[places[0]] == sizes[places[1]]:
            return None
        other = list(sizes)
        other[places[0]], other[places[1]] = sizes[places[1]], sizes[places[0]]
        return change_parameter("parameter,axis,input_layout", operator, "shape", tuple(other))
    return None


def part(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Take another part of a tensor: a slice that starts elsewhere, or the next part."""
    if operator.type == "Tensor.slice":
        start, end = value_of(operator, "start"), value_of(operator, "end")
        shape = operator.inputs[0].shape
        if not isinstance(start, int) or not isinstance(end, int) or shape is None:
            return None
        size = shape[value_of(operator, "dim")]
        if 0 <= start < end < size:
            operator.params["start"] = Parameter.of(start + 1)
            return change_parameter("parameter", operator, "end", end + 1)
        return change_parameter("parameter", operator, "start", start + 1)
    if operator.type not in {
        "torch.chunk",
        "torch.split",
        "torch.unbind",
        "torch.tensor_split",
    }:
        return None
    results = operator.outputs
    if len(results) < 2 or results[0].shape != results[1].shape:
        return None
    one, other = results[:2]
    consumers = [*one.consumers], [*other.consumers]
    for readers, old, new in ((consumers[0], one, other), (consumers[1], other, one)):
        for reader in dict.fromkeys(readers):
            places = [i for i, each in enumerate(reader.inputs) if each is old]
            if reader in consumers[0] and reader in consumers[1]:
                return None
            for place in places:
                reader.replace_input(place, new)
    names = _reached(each for found in consumers for each in found)
    reasons = "channel_order,parameter,axis,weight_layout,expression"
    return Planted(reasons, operator.name, tuple(names))


def _reached(operators: Iterable[Operator]) -> list[str]:
    """Return the names of operators, and of those that follow by functions of one tensor.

    Values do not tell whether tensors are exchanged before such functions or behind them, nor
    before or behind what is done with both, as by the shared layers of a Siamese network. A
    product of matrices with its factors exchanged is the same, transposed.
    """
    found: dict[str, None] = {}
    level = [*dict.fromkeys(operators)]
    while level:
        found |= dict.fromkeys(each.name for each in level)
        passed = [
            each
            for each in level
            if (len(each.inputs) == 1 and not each.attrs)
            or any(_is_alike(each, other) for other in level)
        ]
        below = [c for each in passed for operand in each.outputs for c in operand.consumers]
        level = [*dict.fromkeys(below)]
    return list(found)


def _is_alike(one: Operator, other: Operator) -> bool:
    """Whether two operators do the same with one input that differs."""
    if one.type != other.type or one.params != other.params:
        return False
    if len(one.inputs) != len(other.inputs) or one.attrs.keys() != other.attrs.keys():
        return False
    pairs = zip(one.inputs, other.inputs, strict=True)
    if sum(first is not second for first, second in pairs) != 1:
        return False
    return all(np.array_equal(one.attrs[n].array, other.attrs[n].array) for n in one.attrs)


def output_order(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Give the outputs of a layer in another order: thirds, halves, or interleaved."""
    if not operator.type.startswith(_MATRIX) or "Transpose" in operator.type:
        return None
    if "weight" not in weights_of(operator, 2) or value_of(operator, "groups") not in {None, 1}:
        return None
    count = operator.attrs["weight"].shape[0]
    parts = next((n for n in (3, 2, 4) if count % n == 0 and count > n), None)
    if parts is None:
        return None
    rows = np.arange(count).reshape(parts, -1)
    order = rows.T.reshape(-1) if rng.integers(2) else np.roll(rows, 1, axis=0).reshape(-1)
    for key in weights_of(operator):
        replace_weight(operator, key, operator.attrs[key].array[order])
    return Planted("weight_layout", operator.name)


def pad(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Pad at the other ends, with other numbers, or in another way."""
    if operator.type == "F.pad":
        amounts = value_of(operator, "pad")
        if rng.integers(2) and amounts != amounts[::-1]:
            pairs = zip(amounts[1::2], amounts[::2], strict=True)
            other = tuple(n for pair in pairs for n in pair)
            return change_parameter("padding", operator, "pad", other)
        if value_of(operator, "mode") != "constant":
            return change_parameter("padding,parameter", operator, "mode", "constant")
        operator.params["value"] = Parameter.of(1.0)
        return Planted("padding,parameter", operator.name)
    if not {"padding", "padding_mode"} <= operator.params.keys():
        return None
    if not any(value_of(operator, "padding")):
        return None
    other = "reflect" if value_of(operator, "padding_mode") == "zeros" else "zeros"
    return change_parameter("padding", operator, "padding_mode", other)


def pad_symmetric(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Pad both ends in a convolution instead of one end before it."""
    if operator.type != "F.pad" or sum(value_of(operator, "pad")) % 2:
        return None
    source, result = operator.inputs[0], operator.outputs[0]
    readers = list(result.consumers)
    if len(readers) != 1 or not readers[0].type.startswith("nn.Conv"):
        return None
    (reader,) = readers
    amounts = value_of(operator, "pad")
    ends = [a + b for a, b in zip(amounts[::2], amounts[1::2], strict=True)][::-1]
    padding = value_of(reader, "padding")
    if len(ends) != len(padding):
        return None
    other = tuple(p + (end + 1) // 2 for p, end in zip(padding, ends, strict=True))
    reader.replace_input(0, source)
    graph.remove_operator(operator)
    return change_parameter("padding", reader, "padding", other)


def pooling(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Take the mean instead of the maximum, or the other way round."""
    found = re.match(r"(nn\.Adaptive|F\.adaptive_)(Max|Avg|max|avg)(.*)", operator.type)
    if found is not None:
        other = {"Max": "Avg", "Avg": "Max", "max": "avg", "avg": "max"}[found[2]]
        operator.type = f"{found[1]}{other}{found[3]}"
        if other in {"Max", "max"}:
            operator.params["return_indices"] = Parameter.of(False)
        else:
            operator.params.pop("return_indices", None)
        return Planted("parameter", operator.name)
    if not operator.type.startswith(("nn.MaxPool", "F.max_pool")):
        return None
    if any(d != 1 for d in value_of(operator, "dilation")):
        return None
    operator.type = operator.type.replace("Max", "Avg").replace("max", "avg")
    for key in ("dilation", "return_indices"):
        operator.params.pop(key, None)
    operator.params["count_include_pad"] = Parameter.of(True)
    operator.params["divisor_override"] = Parameter.of(None)
    return Planted("parameter", operator.name)


def attention(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Scale scores otherwise, or mask those of later tokens."""
    if operator.type != "F.scaled_dot_product_attention":
        return None
    if rng.integers(2):
        operator.params["scale"] = Parameter.of(1.0)
        return Planted("parameter,scale", operator.name)
    return change_parameter(
        "parameter", operator, "is_causal", not value_of(operator, "is_causal")
    )


def constant_moved(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Move a constant tensor or the rows of an embedding by one, or turn it."""
    if operator.type not in {"pnnx.Attribute", "nn.Embedding"}:
        return None
    (key, attribute), *_ = operator.attrs.items()
    array = attribute.array
    if array.dtype == bool or array.size < 2:
        return None
    axis = max(range(array.ndim), key=lambda n: (array.shape[n] > 1, -n))
    turned = np.flip(array, axis) if rng.integers(2) else np.roll(array, 1, axis)
    operator.attrs[key] = Attribute.from_array(np.ascontiguousarray(turned))
    reasons = "weight_layout,weight_values,channel_order,parameter,axis,bias,scale"
    return Planted(reasons, operator.name, _readers(operator))


def _readers(operator: Operator) -> tuple[str, ...]:
    operands: list[Operand] = operator.outputs if operator.type == "pnnx.Attribute" else []
    return tuple(dict.fromkeys(c.name for operand in operands for c in operand.consumers))


def constants_exchanged(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Exchange two constant tensors of the same shape, as the tables of rotary positions."""
    if operator.type != "pnnx.Attribute":
        return None
    ((key, attribute),) = operator.attrs.items()
    twins = [
        (other, name, each)
        for other in graph.operators
        if other.type == operator.type and other is not operator
        for name, each in other.attrs.items()
        if each.shape == attribute.shape and each.dtype == attribute.dtype
        if not np.array_equal(each.array, attribute.array)
    ]
    if not twins:
        return None
    twin, name, theirs = twins[rng.integers(len(twins))]
    operator.attrs[key], twin.attrs[name] = theirs, attribute
    also = (twin.name, *_readers(operator), *_readers(twin))
    return Planted("weight_values,expression", operator.name, also)


def branches_exchanged(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Connect the results of two layers with each other's readers, as queries and keys."""
    if not operator.type.startswith(_MATRIX) or "weight" not in weights_of(operator, 2):
        return None
    (one,) = operator.outputs
    above = _upstream(operator)
    others = [
        each.outputs[0]
        for each in graph.operators
        if each.type == operator.type and each is not operator and each not in above
        if each.outputs[0].shape == one.shape and operator not in _upstream(each)
    ]
    if not others:
        return None
    other = others[rng.integers(len(others))]
    readers = [dict.fromkeys(each.consumers) for each in (one, other)]
    if readers[0].keys() & readers[1].keys():
        return None
    for found, old, new in zip(readers, (one, other), (other, one), strict=True):
        for reader in found:
            for place, each in enumerate(list(reader.inputs)):
                if each is old:
                    reader.replace_input(place, new)
    graph.operators.sort(key=lambda each: len(_upstream(each)))  # producers first
    assert other.producer is not None
    below = [set(_reached(found)) for found in readers]
    reasons = "expression,weight_values"
    if below[0] & below[1]:  # what joins both, such as a concatenation
        reasons += ",channel_order"
    names = _reached(each for found in readers for each in found)
    return Planted(reasons, operator.name, (other.producer.name, *names))


def _upstream(operator: Operator) -> list[Operator]:
    found: dict[Operator, None] = {}
    waiting = [operator]
    while waiting:
        for operand in waiting.pop().inputs:
            if operand.producer is not None and operand.producer not in found:
                found[operand.producer] = None
                waiting.append(operand.producer)
    return list(found)


def norm_other(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Normalize by root mean squares instead of deviations, or by other groups."""
    if operator.type == "nn.LayerNorm" and value_of(operator, "elementwise_affine"):
        operator.type = "nn.RMSNorm"
        operator.attrs.pop("bias", None)
        return Planted("normalization", operator.name)
    if operator.type == "nn.GroupNorm":
        count = value_of(operator, "num_groups")
        other = 1 if rng.integers(2) else value_of(operator, "num_channels")
        reasons = "normalization,parameter,groups"
        return change_parameter(
            reasons, operator, "num_groups", None if other == count else other
        )
    return None


def directions(graph: Graph, operator: Operator, rng: Generator) -> Planted | None:
    """Exchange the directions of a recurrent layer, or its axes of time and batch."""
    if operator.type not in {"nn.LSTM", "nn.GRU", "nn.RNN"}:
        return None
    if not value_of(operator, "bidirectional") or rng.integers(2):
        other = not value_of(operator, "batch_first")
        return change_parameter("parameter", operator, "batch_first", other)
    attrs: dict[str, Any] = dict(operator.attrs)
    for key, attribute in attrs.items():
        reverse = f"{key}_reverse"
        if reverse in attrs:
            operator.attrs[key], operator.attrs[reverse] = attrs[reverse], attribute
    return Planted("weight_layout", operator.name)


CONVERSIONS: dict[str, Callable[[Graph, Operator, Generator], Planted | None]] = {
    "weight_one": weight_one,
    "weights_exchanged": weights_exchanged,
    "bias_one": bias_one,
    "statistics": statistics,
    "operands_exchanged": operands_exchanged,
    "residual_lost": residual_lost,
    "function_other": function_other,
    "reduction": reduction,
    "limits": limits,
    "moved": moved,
    "part": part,
    "output_order": output_order,
    "pad": pad,
    "pad_symmetric": pad_symmetric,
    "pooling": pooling,
    "attention": attention,
    "constant_moved": constant_moved,
    "constants_exchanged": constants_exchanged,
    "branches_exchanged": branches_exchanged,
    "norm_other": norm_other,
    "directions": directions,
}
"""Kinds of faults."""
