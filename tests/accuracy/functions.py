"""The element-wise functions: operator types, float64 references, and PyTorch's functions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FUNCTIONS", "Function"]


@dataclass(frozen=True)
class Function:
    """An element-wise function.

    Attributes
    ----------
    right : callable
        The exact function, from float64 arrays to float64.
    eager : str
        PyTorch's function, as an expression of ``torch``, ``F`` and the tensors ``x``, ``y``.
    kinds : tuple of (str, mapping)
        Operator types with their parameters.
    operands : int
    weights : mapping of str to ndarray
    """

    right: Callable[..., np.ndarray]
    eager: str
    kinds: tuple[tuple[str, Mapping[str, Any]], ...]
    operands: int = 1
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)


def _module(
    right: Callable[..., np.ndarray], eager: str, kind: str, **params: object
) -> Function:
    return Function(right, eager, ((kind, params),))


def _called(right: Callable[..., np.ndarray], name: str, operands: int = 1) -> Function:
    """Make a function that is both an operator and part of expressions."""
    arguments = ",".join(f"@{index}" for index in range(operands))
    kinds = ((f"torch.{name}", {}), ("pnnx.Expression", {"expr": f"{name}({arguments})"}))
    tensors = "x" if operands == 1 else "x, y"
    return Function(right, f"torch.{name}({tensors})", kinds, operands)


def _expression(right: Callable[..., np.ndarray], text: str, eager: str) -> Function:
    return Function(right, eager, (("pnnx.Expression", {"expr": text}),), 1 + ("@1" in text))


def _each(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """Make a reference from a function of Python's `math`."""

    def compute(x: np.ndarray) -> np.ndarray:
        return np.fromiter((function(each) for each in x.tolist()), np.float64, x.size)

    return compute


def _sigmoid(x: np.ndarray) -> np.ndarray:
    power = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, power) / (1 + power)


def _tanh_of_softplus(x: np.ndarray) -> np.ndarray:
    """``tanh(log(1 + exp(x)))``, computed without a difference."""
    power = np.exp(np.minimum(x, 40))
    return power * (power + 2) / (power * (power + 2) + 2)


def _gelu_by_tanh(x: np.ndarray) -> np.ndarray:
    inner = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * _sigmoid(np.clip(inner, -1e4, 1e4))


def _tanhshrink(x: np.ndarray) -> np.ndarray:
    series = x**3 / 3 * (1 - 0.4 * x**2)
    return np.where(np.abs(x) < 1e-3, series, x - np.tanh(x))


def _threshold(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0.5, x, -2.0)


def _expm1_below(alpha: float, scale: float = 1.0) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: scale * np.where(x > 0, x, alpha * np.expm1(x))


_TENTH: Final = float(np.float32(0.1))  # PyTorch multiplies by a float32
_RRELU: Final = float(np.float32((1 / 8 + 1 / 3) / 2))
_SELU: Final = 1.6732632423543772, 1.0507009873554805
_SLOPES: Final = np.linspace(0.125, 1.0, 16, dtype=np.float32)
_erf, _erfc = _each(math.erf), _each(math.erfc)

FUNCTIONS: Final[dict[str, Function]] = {
    "relu": _module(lambda x: np.maximum(x, 0), "F.relu(x)", "nn.ReLU"),
    "relu6": _module(lambda x: np.clip(x, 0, 6), "F.relu6(x)", "nn.ReLU6"),
    "hardtanh": _module(lambda x: np.clip(x, -1.5, 0.5), "F.hardtanh(x, -1.5, 0.5)",
                        "nn.Hardtanh", min_val=-1.5, max_val=0.5),
    "threshold": _module(_threshold, "F.threshold(x, 0.5, -2)", "nn.Threshold",
                         threshold=0.5, value=-2.0),
    "leaky relu": _module(lambda x: np.where(x > 0, x, x * _TENTH), "F.leaky_relu(x, 0.1)",
                          "nn.LeakyReLU", negative_slope=0.1),
    "rrelu": _module(lambda x: np.where(x > 0, x, x * _RRELU), "F.rrelu(x)", "nn.RReLU",
                     lower=1 / 8, upper=1 / 3),
    "elu": _module(_expm1_below(1.0), "F.elu(x)", "nn.ELU", alpha=1.0),
    "elu 1.5": _module(_expm1_below(1.5), "F.elu(x, 1.5)", "nn.ELU", alpha=1.5),
    "selu": _module(_expm1_below(*_SELU), "F.selu(x)", "nn.SELU"),
    "celu": _module(lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2)), "F.celu(x, 2.0)",
                    "nn.CELU", alpha=2.0),
    "sigmoid": Function(_sigmoid, "torch.sigmoid(x)",
                        (("nn.Sigmoid", {}), ("torch.sigmoid", {}))),
    "log sigmoid": _module(lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
                           "F.logsigmoid(x)", "nn.LogSigmoid"),
    "hardsigmoid": _module(lambda x: np.clip(x + 3, 0, 6) / 6, "F.hardsigmoid(x)",
                           "nn.Hardsigmoid"),
    "silu": _module(lambda x: x * _sigmoid(x), "F.silu(x)", "nn.SiLU"),
    "hardswish": _module(lambda x: x * (np.clip(x + 3, 0, 6) / 6), "F.hardswish(x)",
                         "nn.Hardswish"),
    "mish": _module(lambda x: x * _tanh_of_softplus(x), "F.mish(x)", "nn.Mish"),
    "gelu": _module(lambda x: x / 2 * _erfc(-x / math.sqrt(2)), "F.gelu(x)", "nn.GELU",
                    approximate="none"),
    "gelu by tanh": _module(_gelu_by_tanh, "F.gelu(x, approximate='tanh')", "nn.GELU",
                            approximate="tanh"),
    "softplus": _module(lambda x: np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 30)))),
                        "F.softplus(x)", "nn.Softplus"),
    "tanh": _module(np.tanh, "torch.tanh(x)", "nn.Tanh"),
    "tanhshrink": _module(_tanhshrink, "F.tanhshrink(x)", "nn.Tanhshrink"),
    "softsign": _module(lambda x: x / (1 + np.abs(x)), "F.softsign(x)", "nn.Softsign"),
    "hardshrink": _module(lambda x: np.where(np.abs(x) <= 0.5, 0, x), "F.hardshrink(x)",
                          "nn.Hardshrink"),
    "softshrink": _module(lambda x: x - np.clip(x, -0.5, 0.5), "F.softshrink(x)",
                          "nn.Softshrink"),
    "prelu": Function(
        lambda x: np.where(x > 0, x, x * _SLOPES.astype(float)[:, None, None]),
        "F.prelu(x, torch.from_numpy(weight))", (("nn.PReLU", {}),),
        weights={"weight": _SLOPES}),
    "square": _expression(np.square, "square(@0)", "torch.square(x)"),
    "max": _expression(np.maximum, "max(@0,@1)", "torch.maximum(x, y)"),
    "min": _expression(np.minimum, "min(@0,@1)", "torch.minimum(x, y)"),
    "add a number": _expression(lambda x: x + 3, "add(@0,3)", "x + 3"),
    "take from a number": _expression(lambda x: 1 - x, "sub(1,@0)", "1 - x"),
    "divide by a number": _expression(lambda x: x / 3, "div(@0,3)", "x / 3"),
    "divide by a large number": _expression(
        lambda x: x / float(np.float32(2e38)), "div(@0,2e38)", "x / 2e38"),
    "divide a number": _expression(lambda x: 1 / x, "div(1,@0)", "1 / x"),
    **{name: _called(right, name) for name, right in {
        "abs": np.abs, "ceil": np.ceil, "floor": np.floor, "neg": np.negative,
        "reciprocal": np.reciprocal, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
        "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
        "log10": np.log10, "erf": _erf, "sin": np.sin, "cos": np.cos, "tan": np.tan,
        "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
        "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    }.items()},
    **{name: _called(right, name, 2) for name, right in {
        "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
        "atan2": np.arctan2,
    }.items()},
    **{name: _expression(right, f"{name}(@0,@1)", f"torch.{name}(x, y)") for name, right in {
        "add": np.add, "sub": np.subtract, "div": np.divide,
    }.items()},
}  # fmt: skip
