"""Expressions of sizes of operands, in ncnn's notation.

``0w,*(0h,2),-1`` are three sizes: the width of the first operand, twice its height, and -1.
Every function has a fixed number of arguments, so brackets and commas only separate words. The
words are evaluated from the last to the first. Follows eval_list_expression of ncnn's
``src/expression.cpp`` (a4d2ea1, July 2026) for the functions that sizes need.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from engine.errors import LayerError
from engine.layers.layer import NotInNumpyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["evaluate_sizes"]

_SEPARATORS: Final = re.compile(r"[(),]+")
_SIZE: Final = re.compile(r"([0-9])([whdcn])")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?")
_LARGEST: Final = 2**31
_AXES: Final = {1: "w", 2: "hw", 3: "chw", 4: "cdhw"}


def _quotient(a: float, b: float) -> float:
    if not b:
        raise LayerError("a size is divided by 0")
    return math.trunc(a / b) if isinstance(a, int) and isinstance(b, int) else math.floor(a / b)


_BINARY: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": _quotient,
    "max": max,
    "min": min,
}
_UNARY: Final[dict[str, Callable[[float], float]]] = {
    "abs": abs,
    "neg": lambda a: -a,
    "square": lambda a: a * a,
    "trunc": math.trunc,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": lambda a: math.floor(abs(a) + 0.5) * (1 if a >= 0 else -1),
}


def evaluate_sizes(text: str, shapes: Sequence[tuple[int, ...]]) -> list[int]:
    """Evaluate sizes.

    Parameters
    ----------
    text : str
    shapes : sequence of tuple of int
        Of the operands.

    Returns
    -------
    list of int

    Raises
    ------
    LayerError
        If the text is invalid, or a size does not fit into 32 bits.
    NotInNumpyError
        If it contains another function.
    """
    stack: list[float] = []
    for word in reversed([word for word in _SEPARATORS.split(text) if word]):
        count = 2 if word in _BINARY else 1 if word in _UNARY else 0
        if len(stack) < count:
            raise LayerError(f"expression {text!r} lacks an argument of {word}")
        if size := _SIZE.fullmatch(word):
            stack.append(_size_of(shapes, int(size[1]), size[2]))
        elif count == 2:
            stack.append(_BINARY[word](stack.pop(), stack.pop()))
        elif count:
            stack.append(_UNARY[word](stack.pop()))
        elif _NUMBER.fullmatch(word):
            stack.append(int(word) if word.lstrip("+-").isdigit() else float(word))
        else:
            raise NotInNumpyError(f"NumPy has no code for {word!r} in an expression of sizes")
        if not abs(stack[-1]) < _LARGEST:
            raise LayerError(f"expression {text!r} gives a size beyond 32 bits")
    return [math.trunc(value) for value in reversed(stack)]


def _size_of(shapes: Sequence[tuple[int, ...]], place: int, axis: str) -> int:
    if place >= len(shapes):
        raise LayerError(f"an expression asks for operand {place} of {len(shapes)}")
    return dict(zip(_AXES[len(shapes[place])], shapes[place], strict=True)).get(axis, 1)
