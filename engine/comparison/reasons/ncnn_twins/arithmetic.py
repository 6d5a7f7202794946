"""Products, arithmetic and functions of ncnn in PyTorch's words."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.ncnn_twins.twin import Twin, renamed
from engine.layers.ncnn.arithmetic import extend_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.layers import OperatorCall
    from engine.ncnn.types import Params
    from engine.values import Value

__all__ = [
    "binary", "eltwise", "embed", "gemm", "inner_product", "leaky_relu", "prelu", "reduction",
    "softmax", "unary",
]  # fmt: skip

_BY_COLUMN: Final = 4  # a Gemm adds one number for each column

# By ncnn's number; an operation with exchanged operands has a minus in front.
_BINARY: Final = (
    "add", "sub", "mul", "div", "maximum", "minimum", "pow", "-sub", "-div", "-pow", "atan2",
    "-atan2", "fmod", "-fmod", "logaddexp", "floor_divide", "-floor_divide",
)  # fmt: skip
_UNARY: Final = (
    "abs", "neg", "floor", "ceil", "square", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan",
    "asin", "acos", "atan", "reciprocal", "tanh", "log10", "round", "trunc", "sign", "expm1",
    "sinh", "asinh", "cosh", "acosh", "atanh", "log1p",
)  # fmt: skip
_REDUCTIONS: Final = {0: "sum", 3: "mean", 4: "amax", 5: "amin", 6: "prod"}


def _linear(call: OperatorCall, weight: str, **names: str) -> OperatorCall:
    outputs, inputs = call.attributes[weight].shape
    sizes = {"in_features": inputs, "out_features": outputs, "bias": len(call.attributes) > 1}
    return renamed(call, "nn.Linear", sizes, **names)


def inner_product(call: OperatorCall, _: Params, __: Sequence[Value]) -> Twin | None:
    """Return ``nn.Linear`` of a matrix, or of the elements of another tensor."""
    if "weight" not in call.attributes:
        return None
    made = _linear(call, "weight")
    size = made.params["in_features"]

    def arrange(inputs: Sequence[Value]) -> Sequence[Value]:
        x, *others = inputs
        if isinstance(x, np.ndarray) and (x.ndim != 2 or x.shape[1] != size):
            x = x.reshape(-1)
        return (x, *others)

    return Twin(made, arrange=arrange)


def embed(call: OperatorCall, _: Params, __: Sequence[Value]) -> Twin | None:
    """Return ``nn.Embedding``; None with a bias."""
    if call.attributes.keys() != {"weight"}:
        return None
    rows, width = call.attributes["weight"].shape

    def arrange(inputs: Sequence[Value]) -> Sequence[Value]:
        (index,) = inputs
        if isinstance(index, np.ndarray) and index.dtype.kind == "f":  # ncnn keeps their bits
            return (index.view(np.int32),)
        return inputs

    sizes: dict[str, Value] = {"num_embeddings": rows, "embedding_dim": width}
    return Twin(renamed(call, "nn.Embedding", sizes), is_batched=False, arrange=arrange)


def gemm(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin | None:
    """Return a linear layer, as pnnx writes it."""
    plain = not params.integer("transA") and bool(params.integer("transB"))
    plain = plain and params.number("alpha", 1.0) == params.number("beta", 1.0) == 1
    if not plain or not {"B"} <= call.attributes.keys() <= {"B", "C"}:
        return None
    names = {"B": "weight", "C": "bias"}
    made = _linear(call, "B", **names)
    weights = dict(made.attributes)
    if "bias" in weights:
        if params.integer("constant_broadcast_type_C") != _BY_COLUMN:
            return None
        weights["bias"] = weights["bias"].reshape(-1)
    return Twin(replace(made, attributes=weights), names, is_batched=False)


def softmax(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin:
    """Return ``F.softmax``."""
    return Twin(renamed(call, "F.softmax", {"dim": params.integer("axis")}), is_batched=False)


def leaky_relu(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin | None:
    """Return ``F.leaky_relu``; None for a slope of 0."""
    slope = params.number("slope")
    if not slope:
        return None
    return Twin(renamed(call, "F.leaky_relu", {"negative_slope": slope}), is_batched=False)


def prelu(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin | None:
    """Return ``nn.PReLU``."""
    values = {"num_parameters": params.size("num_slope")}
    names = {"slope": "weight"}
    return Twin(renamed(call, "nn.PReLU", values, **names), names)


def binary(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return an expression of two operands, or of one and a number."""
    kind = params.integer("op_type")
    if not 0 <= kind < len(_BINARY):
        return None
    name = _BINARY[kind]
    texts = ["@0", "@1"]
    if params.integer("with_scalar"):
        texts[1] = repr(float(params.number("b")))
    if name.startswith("-"):
        texts.reverse()
    if len(inputs) != 2:
        return _expression(call, f"{name.removeprefix('-')}({','.join(texts)})")
    one, other = inputs
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return None

    def arrange(given: Sequence[Value]) -> Sequence[Value]:
        a, b = given
        if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
            return given
        return extend_axes(a, b), extend_axes(b, a)

    return replace(
        _expression(call, f"{name.removeprefix('-')}({','.join(texts)})"), arrange=arrange
    )


def eltwise(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return an expression of several operands of one shape."""
    kind, factors = params.integer("op_type"), params.array("coeffs")
    texts = [f"@{place}" for place in range(len(inputs))]
    if not 0 <= kind <= 2:
        return None
    if kind == 1 and factors:
        if len(factors) != len(texts):
            return None
        pairs = zip(texts, factors, strict=True)
        texts = [text if f == 1 else f"mul({text},{float(f)!r})" for text, f in pairs]
    name = ("mul", "add", "maximum")[kind]
    return _expression(call, reduce(lambda one, other: f"{name}({one},{other})", texts))


def unary(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin | None:
    """Return an expression of one operand."""
    kind = params.integer("op_type")
    return _expression(call, f"{_UNARY[kind]}(@0)") if 0 <= kind < len(_UNARY) else None


def _expression(call: OperatorCall, text: str) -> Twin:
    return Twin(renamed(call, "pnnx.Expression", {"expr": text}), is_batched=False)


def reduction(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``torch.mean`` and its kin; None where the result would have other axes."""
    name, x = _REDUCTIONS.get(params.integer("operation")), inputs[0]
    if name is None or not isinstance(x, np.ndarray) or params.number("coeff", 1.0) != 1:
        return None
    axes = tuple(range(x.ndim)) if params.integer("reduce_all", 1) else params.array("axes")
    keeps = bool(params.integer("keepdims"))
    if x.ndim == 1 or (len(axes) == x.ndim and not keeps):
        return None
    values: dict[str, Value] = {"dim": tuple(map(int, axes)), "keepdim": keeps}
    return Twin(renamed(call, f"torch.{name}", values), is_batched=False)
