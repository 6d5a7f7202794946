"""One element of a tensor, and what it is compared with. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

if TYPE_CHECKING:
    from engine.comparison import Measures
    from engine.values import Array

__all__ = ["Counterpart", "Element", "subtract"]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a tensor.

    Attributes
    ----------
    index : tuple of int
        Into the array.
    value : generic
        The array's element.
    text : str
        `value` in full precision.
    color : str
        Its colour in the picture, ``#RRGGBB``; ``""`` if it is not painted.
    own : str
        Whose `value` is, where both sides are shown; else ``""``.
    compared : str
        The other side's element and the difference, where both sides are shown; else ``""``.
    colored : str
        The elements that are green and blue beside it; ``""`` where none are.
    label : str
        Of its row, or its entry; ``""`` for none.
    meant : str
        What a quantised number stands for; ``""`` for others.
    """

    index: tuple[int, ...]
    value: Any
    text: str
    color: str = ""
    own: str = ""
    compared: str = ""
    colored: str = ""
    label: str = ""
    meant: str = ""

    @override
    def __str__(self) -> str:
        """Index and value, as the status bar shows them."""
        place = f"[{', '.join(map(str, self.index))}]"
        own = f"{self.own} " if self.own else ""
        meant = f" {self.meant}" if self.meant else ""
        label = f" \u201c{self.label}\u201d" if self.label else ""
        return f"{place}{label} {own}{self.text}{meant}{self.colored}{self.compared}"


@dataclass(frozen=True, slots=True, eq=False)
class Counterpart:
    """What a value is compared with, while both are shown.

    Attributes
    ----------
    array : ndarray or None
        The reference's tensor, of the same shape; None while it is fetched.
    measures : Measures or None
        How far the value is from it; None where it is no reference.
    worst : tuple of int
        Index of that element, where the tensors differ by more than rounding; else empty.
    limit : float
        Difference up to which elements count as equal.
    largest : float
        Largest absolute difference; infinite where the channels give the range themselves.
    names : (str, str)
        Of the value and of what is beside it, as an element's text has them.
    """

    array: Array | None
    measures: Measures | None = None
    worst: tuple[int, ...] = ()
    limit: float = 0.0
    largest: float = math.inf
    names: tuple[str, str] = ("ours", "reference")


def subtract(ours: Array, theirs: Array) -> Array:
    """Return the difference of two arrays of one shape, in at least float32.

    Infinities of one sign differ by NaN.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        wide = np.result_type(ours.dtype, theirs.dtype, np.float32)
        return np.subtract(ours, theirs, dtype=wide)
