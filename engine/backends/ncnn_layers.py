"""Formats layers of ncnn, with parameters by name.

ncnn numbers the parameters of each type of layer. The names are those of its source
(``src/layer/*.cpp``), where ``load_param`` defines the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.backends.lowering import LoweringError
from engine.ncnn.types import param_id

if TYPE_CHECKING:
    from engine.values import Array

__all__ = [
    "ACTIVATION_TYPES",
    "AVERAGE_POOLING",
    "LARGEST",
    "MAGIC",
    "REVERSED_SUB",
    "VALID_PADDING",
    "Params",
    "convolution_params",
    "format_layer",
    "format_number",
    "format_params",
    "inner_product_params",
    "layer_types",
    "weights_of",
]

# Parameters by name: a number, or several.
Params: TypeAlias = Mapping[str, float | Sequence[float]]

MAGIC: Final = "7767517"  # the first line of a ``.param`` file
LARGEST: Final = float(np.finfo(np.float32).max)
AVERAGE_POOLING: Final = 1  # a ``pooling_type``; 0 takes the largest
VALID_PADDING: Final = 1  # a ``pad_mode``: no window begins after the padding
REVERSED_SUB: Final = 7  # an ``op_type``: the second operand minus the first
# By the type of a layer: the ``activation_type`` of the fused activation, and its number of
# parameters.
ACTIVATION_TYPES: Final = {
    ("ReLU", 0): 1, ("ReLU", 1): 2, ("Clip", 2): 3, ("Sigmoid", 0): 4,
}  # fmt: skip

_ARRAY_ID: Final = -23300  # minus the number of a parameter that is a list
_SHAPE_HINT_ID: Final = -23330
# Precedes the first weight of most layers: they are plain float32.
_FLOAT32_MARK: Final = np.zeros(1, np.float32)


def format_params(kind: str, params: Params) -> str:
    """Format the parameters of a type of layer for a ``.param`` file.

    Raises
    ------
    LoweringError
        If one is NaN.
    """
    words = []
    for name, value in params.items():
        key = param_id(kind, name)
        if isinstance(value, Sequence):
            numbers = ",".join([str(len(value)), *map(_format, value)])
            words.append(f"{_ARRAY_ID - key}={numbers}")
        else:
            words.append(f"{key}={_format(value)}")
    return " ".join(words)


def _format(value: float) -> str:
    return str(value) if isinstance(value, int) else format_number(value)


def format_number(value: float) -> str:
    """Format a number so that ncnn reads a float; infinities become the largest one.

    It has all digits of a float32; ncnn before 2026 reads at most 15 characters.

    Raises
    ------
    LoweringError
        If it is NaN, which ncnn cannot read.
    """
    if np.isnan(value):
        raise LoweringError("NaN, which ncnn cannot read")
    return format(float(np.float32(min(max(value, -LARGEST), LARGEST))), ".8e")


def format_layer(
    kind: str, name: str, sources: Sequence[str], results: Sequence[str], params: str,
    sides: Sequence[int] = (),
) -> str:  # fmt: skip
    """Format a layer as a line of a ``.param`` file.

    Parameters
    ----------
    kind : str
    name : str
    sources, results : sequence of str
        Names of blobs.
    params : str
        From `format_params`.
    sides : sequence of int, optional
        Sides of each result, (C, H, W) or (F,), by which ncnn chooses its kernels.
    """
    words = [kind, name, str(len(sources)), str(len(results)), *sources, *results, params]
    if sides:
        size = [3, *sides[::-1]] if len(sides) == 3 else [1, sides[0], 1, 1]
        hint = ",".join(map(str, [4 * len(results), *size * len(results)]))
        words.append(f"{_SHAPE_HINT_ID}={hint}")
    return " ".join(filter(None, words))


def layer_types(text: str) -> set[str]:
    """Types of the layers in the text of a ``.param`` file."""
    return {line.split(None, 1)[0] for line in text.splitlines()[2:]}


def weights_of(weight: Array, bias: Array | None) -> tuple[Array, ...]:
    """Return the weights of a layer for a ``.bin`` file."""
    return (_FLOAT32_MARK, weight) if bias is None else (_FLOAT32_MARK, weight, bias)


def convolution_params(
    kernel: Sequence[int],
    dilation: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    weights: tuple[Array, ...],
) -> dict[str, int]:
    """Return the parameters of a convolution of any kind; windows are height first."""
    (top, bottom), (left, right) = padding
    return {
        "num_output": len(weights[1]),
        "kernel_w": kernel[1],
        "kernel_h": kernel[0],
        "dilation_w": dilation[1],
        "dilation_h": dilation[0],
        "stride_w": stride[1],
        "stride_h": stride[0],
        "pad_left": left,
        "pad_right": right,
        "pad_top": top,
        "pad_bottom": bottom,
        "bias_term": len(weights) - 2,
        "weight_data_size": weights[1].size,
    }


def inner_product_params(weights: tuple[Array, ...]) -> dict[str, int]:
    """Return the parameters of a linear layer."""
    return {
        "num_output": len(weights[1]),
        "bias_term": len(weights) - 2,
        "weight_data_size": weights[1].size,
    }
