"""Writes out how the output size of a convolution or pooling is computed.

The formulas are those of PyTorch's documentation of the operators.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.runtime import RuntimeOperator

__all__ = ["SizeFormula", "size_formulas"]

_WINDOWED: Final = re.compile(r"(?:nn\.|F\.)(conv|max_?pool|avg_?pool)(\d)d$", re.IGNORECASE)
_TRANSPOSED: Final = re.compile(r"(?:nn\.|F\.)conv_?transpose(\d)d$", re.IGNORECASE)
_AXES: Final = {1: ("W",), 2: ("H", "W"), 3: ("D", "H", "W")}

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SizeFormula:
    """The size along one axis, or along several with the same formula.

    Attributes
    ----------
    axes : tuple of str
        ``H``, ``W``, ``D``.
    expression : str
        For example ``⌊(56 + 2·1 − 1·(3−1) − 1) / 1⌋ + 1``.
    size : int
        The result.
    """

    axes: tuple[str, ...]
    expression: str
    size: int


@dataclass(frozen=True, slots=True)
class _Window:
    """One axis of a sliding window."""

    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    output_padding: int = 0


def size_formulas(
    operator: RuntimeOperator, input_shape: Sequence[int | str | None] | None
) -> tuple[SizeFormula, ...]:
    """Write out the spatial size of an operator's output.

    Parameters
    ----------
    operator : RuntimeOperator
    input_shape : sequence of int, str or None, or None
        Of the first input.

    Returns
    -------
    tuple of SizeFormula
        Axes with the same formula are combined. Empty for other operators, and for unknown
        sizes.
    """
    transposed = _TRANSPOSED.match(operator.type)
    windowed = _WINDOWED.match(operator.type)
    match = transposed or windowed
    if match is None or input_shape is None:
        return ()
    rank = int(match[match.lastindex or 1])
    windows = _windows(operator, input_shape, rank)
    if windows is None:
        return ()
    ceil_mode = operator.params.get("ceil_mode") is True
    parts = []
    for axis, window in zip(_AXES[rank], windows, strict=True):
        text, size = (
            _transposed(window) if transposed else _sliding(window, ceil_mode=ceil_mode)
        )
        parts.append((axis, text, size))
    return _merged(parts)


def _windows(
    operator: RuntimeOperator, input_shape: Sequence[int | str | None], rank: int
) -> tuple[_Window, ...] | None:
    sizes = input_shape[-rank:]
    kernel = _kernel(operator, rank)
    known = tuple(size for size in sizes if isinstance(size, int))
    if kernel is None or len(known) != rank:
        return None
    params = operator.params
    stride = _spread(params, "stride", rank, default=None)
    if stride is None:
        # The default stride of a pooling is its window, that of a convolution is one.
        stride = kernel if "pool" in operator.type.lower() else (1,) * rank
    dilation = _spread(params, "dilation", rank, default=1)
    padding = _padding(params, rank, kernel, dilation)
    extra = _spread(params, "output_padding", rank, default=0)
    if dilation is None or padding is None or extra is None or 0 in stride:
        return None
    return tuple(
        _Window(*facts)
        for facts in zip(known, kernel, stride, padding, dilation, extra, strict=True)
    )


def _kernel(operator: RuntimeOperator, rank: int) -> Shape | None:
    kernel = _spread(operator.params, "kernel_size", rank, default=None)
    if kernel is not None:
        return kernel
    weight = operator.attributes.get("weight")
    shape: tuple[int | str | None, ...] | None = weight.shape if weight is not None else None
    if shape is None and len(operator.inputs) > 1:
        shape = operator.inputs[1].shape
    if shape is None or len(shape) != rank + 2:
        return None
    known = tuple(dim for dim in shape[2:] if isinstance(dim, int))
    return known if len(known) == rank else None


def _spread(
    params: Mapping[str, object], name: str, rank: int, default: int | None
) -> Shape | None:
    """Return one value per axis for a parameter that may be a single number."""
    value = params.get(name, default)
    if value is None:
        value = default
    if isinstance(value, int):
        return (value,) * rank
    if isinstance(value, tuple) and len(value) == 1:
        value = value * rank
    if isinstance(value, tuple) and len(value) == rank:
        return tuple(item for item in value if isinstance(item, int))
    return None


def _padding(
    params: Mapping[str, object], rank: int, kernel: Shape, dilation: Shape | None
) -> Shape | None:
    named = params.get("padding", 0)
    if named == "valid":
        return (0,) * rank
    if named == "same":
        # An odd total cannot be written as 2·p; such a formula is left out.
        totals = [d * (k - 1) for k, d in zip(kernel, dilation or (1,) * rank, strict=True)]
        return tuple(t // 2 for t in totals) if all(t % 2 == 0 for t in totals) else None
    return _spread(params, "padding", rank, default=0)


def _sliding(window: _Window, *, ceil_mode: bool) -> tuple[str, int]:
    w = window
    span = w.size + 2 * w.padding - w.dilation * (w.kernel - 1) - 1
    top = f"{w.size} + 2·{w.padding} − {w.dilation}·({w.kernel}−1) − 1"
    if not ceil_mode:
        return f"⌊({top}) / {w.stride}⌋ + 1", span // w.stride + 1
    size = math.ceil(span / w.stride) + 1
    text = f"⌈({top}) / {w.stride}⌉ + 1"
    if (size - 1) * w.stride >= w.size + w.padding:
        # PyTorch drops a window that would begin after the input and its padding.
        return f"{text} − 1", size - 1
    return text, size


def _transposed(window: _Window) -> tuple[str, int]:
    w = window
    text = (
        f"({w.size}−1)·{w.stride} − 2·{w.padding} + {w.dilation}·({w.kernel}−1)"
        f" + {w.output_padding} + 1"
    )
    size = (
        (w.size - 1) * w.stride
        - 2 * w.padding
        + w.dilation * (w.kernel - 1)
        + w.output_padding
        + 1
    )
    return text, size


def _merged(parts: Sequence[tuple[str, str, int]]) -> tuple[SizeFormula, ...]:
    formulas: dict[tuple[str, int], tuple[str, ...]] = {}
    for axis, text, size in parts:
        formulas[text, size] = (*formulas.get((text, size), ()), axis)
    return tuple(SizeFormula(axes, text, size) for (text, size), axes in formulas.items())
