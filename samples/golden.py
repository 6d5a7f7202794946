"""Golden activations: an exported PNNX pair, run operator by operator with PyTorch.

pnnx renames, merges and fuses what it exports, so the operands of a ``.param`` file are not
the outputs of the module's own layers. This file therefore reads the exported pair itself
and calls PyTorch's operator for each line. It shares no code with the project's engine: that
is what makes its results a judge of the engine. It knows only the operators that the samples
use, and stops at any other.
"""

from __future__ import annotations

import operator
import re
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

# A tensor, a Python number, or a tuple of values.
Value = Any

DTYPES = {"f32": "<f4", "f64": "<f8", "i64": "<i8", "i32": "<i4", "u8": "|u1", "bool": "|b1"}


@dataclass
class Node:
    """One line of the ``.param`` file."""

    type: str
    name: str
    inputs: list[str]
    outputs: list[str]
    params: dict[str, Value] = field(default_factory=dict)
    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    argument_names: dict[str, str] = field(default_factory=dict)


def read_pair(param: Path, weights: Path) -> list[Node]:
    """Read the operators of a pair in the order of the file, weights included."""
    with zipfile.ZipFile(weights) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    magic, counts, *lines = param.read_text(encoding="utf-8").splitlines()
    if magic != "7767517" or int(counts.split()[0]) != len(lines):
        raise ValueError(f"{param}: not a PNNX file of {counts} operators and operands")
    return [_read_node(line, entries) for line in lines]


def _read_node(line: str, entries: dict[str, bytes]) -> Node:
    kind, name, input_count, output_count, *rest = line.split()
    n_in, n_out = int(input_count), int(output_count)
    node = Node(kind, name, rest[:n_in], rest[n_in : n_in + n_out])
    for token in rest[n_in + n_out :]:
        key, _, text = token.partition("=")
        if key.startswith("@"):
            node.weights[key[1:]] = _weight(text, entries[f"{name}.{key[1:]}"])
        elif key.startswith("$"):
            node.argument_names[key[1:]] = text
        elif not key.startswith("#"):
            node.params[key] = text if key == "expr" else _parameter(text)
    return node


def _weight(text: str, raw: bytes) -> torch.Tensor:
    dims, dtype = text[1:].split(")")
    shape = [int(dim) for dim in dims.split(",") if dim]
    return torch.from_numpy(np.frombuffer(raw, DTYPES[dtype]).reshape(shape).copy())


def _parameter(text: str) -> Value:
    """Read one parameter: null, bool, int, float, string, or a tuple of those."""
    if text[:1] in {"(", "["}:
        return tuple(_parameter(item) for item in text[1:-1].split(",") if item)
    words = {"None": None, "True": True, "False": False}
    if text in words:
        return words[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


# Expressions -------------------------------------------------------------------------------

TOKEN = re.compile(r"@\d+|[A-Za-z_]\w*|[-+]?[\d.]+(?:e[-+]?\d+)?|[(),\[\]]")

SIMPLE = """
    abs acos acosh asin asinh atan atan2 atanh ceil cos cosh erf exp expm1 floor fmod log log10
    log1p neg reciprocal remainder round rsqrt sign sin sinh sqrt square tan tanh trunc
"""


def _of_tensors(function: Callable[..., Value]) -> Callable[..., Value]:
    """Let a function of two tensors take a number beside a tensor."""

    def call(first: Value, second: Value) -> Value:
        return function(*(torch.as_tensor(value) for value in (first, second)))

    return call


# Python's own operators treat numbers beside tensors as eager PyTorch does.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: getattr(torch, name) for name in SIMPLE.split()},
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "max": _of_tensors(torch.maximum),
    "maximum": _of_tensors(torch.maximum),
    "min": _of_tensors(torch.minimum),
    "minimum": _of_tensors(torch.minimum),
    "size": lambda x, dim: x.shape[dim],
}


def evaluate_expression(text: str, operands: Sequence[Value]) -> Value:
    """Evaluate ``add(@0,mul(@1,2))`` and its like by recursive descent."""
    tokens = TOKEN.findall(text)
    if "".join(tokens) != text:
        raise ValueError(f"cannot read the expression {text!r}")
    value, end = _term(tokens, 0, operands)
    if end != len(tokens):
        raise ValueError(f"something follows the expression {text!r}")
    return value


def _term(tokens: list[str], at: int, operands: Sequence[Value]) -> tuple[Value, int]:
    token = tokens[at]
    if token.startswith("@"):
        return operands[int(token[1:])], at + 1
    if token == "[":
        items, end = _terms(tokens, at + 1, operands, "]")
        return tuple(items), end
    if token in FUNCTIONS:
        arguments, end = _terms(tokens, at + 2, operands, ")")
        return FUNCTIONS[token](*arguments), end
    return _parameter(token), at + 1


def _terms(
    tokens: list[str], at: int, operands: Sequence[Value], closing: str
) -> tuple[list[Value], int]:
    items = []
    while True:
        item, at = _term(tokens, at, operands)
        items.append(item)
        if tokens[at] == closing:
            return items, at + 1
        at += 1  # the comma


# Operators ---------------------------------------------------------------------------------


def _conv(node: Node, x: torch.Tensor) -> torch.Tensor:
    p = node.params
    if p["padding_mode"] != "zeros":
        raise ValueError(f"{node.name}: padding mode {p['padding_mode']} is not known here")
    return functional.conv2d(
        x, node.weights["weight"], node.weights.get("bias"), p["stride"], p["padding"],
        p["dilation"], p["groups"],
    )  # fmt: skip


def _conv_transpose(node: Node, x: torch.Tensor) -> torch.Tensor:
    p = node.params
    return functional.conv_transpose2d(
        x, node.weights["weight"], node.weights.get("bias"), p["stride"], p["padding"],
        p["output_padding"], p["groups"], p["dilation"],
    )  # fmt: skip


def _slice(node: Node, x: torch.Tensor) -> torch.Tensor:
    p = node.params
    if "dim" in p:
        many = ((p["dim"], p["start"], p["end"], p["step"]),)
    else:
        many = tuple(zip(p["dims"], p["starts"], p["ends"], p["steps"], strict=True))
        if any(chosen != 2**31 - 1 for chosen in p.get("selects", ())):
            raise ValueError(f"{node.name}: picking one index is not known here")
    for dim, start, end, step in many:
        index = [slice(None)] * x.ndim
        index[dim] = slice(start, end, step)
        x = x[tuple(index)]
    return x


# Each takes the node and its input values, and returns one value or a tuple of outputs.
OPERATORS: dict[str, Callable[..., Value]] = {
    "nn.Conv2d": _conv,
    "nn.ConvTranspose2d": _conv_transpose,
    "nn.Linear": lambda n, x: functional.linear(x, n.weights["weight"], n.weights.get("bias")),
    "nn.ReLU": lambda _, x: torch.relu(x),
    "F.sigmoid": lambda _, x: torch.sigmoid(x),
    "F.tanh": lambda _, x: torch.tanh(x),
    "F.softmax": lambda n, x: torch.softmax(x, n.params["dim"]),
    "nn.MaxPool2d": lambda n, x: functional.max_pool2d(x, **n.params),
    "F.max_pool2d": lambda n, x: functional.max_pool2d(x, **n.params),
    "nn.AdaptiveAvgPool2d": lambda n, x: functional.adaptive_avg_pool2d(x, **n.params),
    "F.upsample_nearest": lambda n, x: functional.interpolate(x, **n.params, mode="nearest"),
    "F.pad": lambda n, x: functional.pad(x, **n.params),
    "torch.flatten": lambda n, x: torch.flatten(x, **n.params),
    "Tensor.reshape": lambda n, x: x.reshape(n.params["shape"]),
    "Tensor.permute": lambda n, x: x.permute(n.params["dims"]),
    "Tensor.slice": _slice,
    "torch.transpose": lambda n, x: torch.transpose(x, n.params["dim0"], n.params["dim1"]),
    "F.normalize": lambda n, x: functional.normalize(x, **n.params),
    "torch.cat": lambda n, *xs: torch.cat(xs, n.params["dim"]),
    "torch.chunk": lambda n, x: torch.chunk(x, **n.params),
    "torch.split": lambda n, x: x.split(n.params["split_size_or_sections"], n.params["dim"]),
    "torch.mean": lambda n, x: torch.mean(x, **n.params),
    "torch.matmul": lambda _, x, y: torch.matmul(x, y),
    "pnnx.Attribute": lambda n: n.weights["data"],
    "pnnx.Expression": lambda n, *xs: evaluate_expression(n.params["expr"], xs),
    "prim::TupleConstruct": lambda _, *xs: (xs,),
}


def run_pair(
    param: Path, weights: Path, inputs: Sequence[torch.Tensor]
) -> tuple[dict[str, Value], list[Value]]:
    """Run a pair with PyTorch.

    Returns
    -------
    values : dict
        The value of every operand, inputs included, by its PNNX name.
    outputs : list
        The values of the pnnx.Output operators, tuples flattened.
    """
    waiting = list(inputs)
    values: dict[str, Value] = {}
    outputs: list[Value] = []
    for node in read_pair(param, weights):
        taken = [values[name] for name in node.inputs]
        if node.type == "pnnx.Input":
            made = waiting.pop(0)
        elif node.type == "pnnx.Output":
            outputs += flatten(taken)
            continue
        else:
            made = OPERATORS[node.type](node, *taken)
        many = made if isinstance(made, tuple | list) else (made,)
        values.update(zip(node.outputs, many, strict=True))
    if waiting:
        raise ValueError(f"{param}: {len(waiting)} inputs are left over")
    return values, outputs


def flatten(values: Sequence[Value]) -> list[Value]:
    """Flatten nested tuples and lists."""
    flat: list[Value] = []
    for value in values:
        flat += flatten(value) if isinstance(value, tuple | list) else [value]
    return flat


def as_arrays(values: dict[str, Value]) -> dict[str, np.ndarray]:
    """Store operand values as arrays: item ``i`` of a tuple-valued operand N is ``N[i]``."""
    arrays: dict[str, np.ndarray] = {}
    for name, value in values.items():
        if isinstance(value, tuple | list):
            arrays |= as_arrays({f"{name}[{i}]": item for i, item in enumerate(value)})
        elif isinstance(value, torch.Tensor):
            arrays[name] = np.ascontiguousarray(value.detach().numpy())
        else:
            arrays[name] = np.asarray(value)
    return arrays
