"""The user's choices for one operand: what is shown of it, and in which range. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kuiper_studio.tensor_view.complex_parts import Part

if TYPE_CHECKING:
    from engine.values import Array
    from kuiper_studio.tensor_view.places import Region

__all__ = ["Choice", "DataSetValues", "Scope", "ValueRange"]


class Scope(Enum):
    """The values that an automatic range is fitted to."""

    CHANNEL = "this channel"
    TENSOR = "this tensor"
    TYPE = "this type"
    RUN = "the whole run"

    @property
    def is_wide(self) -> bool:
        """Whether it is of more than the shown tensor."""
        return self in {Scope.TYPE, Scope.RUN}


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values at the two ends of a colour map; `low` is below `high`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class DataSetValues:
    """What an operand held over a data set.

    Attributes
    ----------
    inputs : int
    low, high : float
        Finite.
    counts : ndarray of shape (B,)
    edges : ndarray of shape (B + 1,)
        Ascending, within `low` and `high`; several may be equal.
    """

    inputs: int
    low: float
    high: float
    counts: Array
    edges: Array


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choices for one operand; None means automatic.

    Attributes
    ----------
    member : int
        Of a tuple.
    fixed : tuple of int
        Indexes of the fixed axes.
    channel : int or None
    pick : (int, int) or None
        Row and column of the picked element.
    region : Region or None
        Rectangle of a picture whose statistics are shown.
    color_map : str or None
    scope : Scope or None
        None where all operands share a scope.
    range, axis : ValueRange or None
        Range of the colours, and axis of the range bar.
    symmetric : bool or None
        Whether the range is symmetric about zero.
    complex_part : Part
        What is shown of complex numbers.
    is_log : bool
        Whether colours have a logarithmic scale.
    channels_last : bool
        Whether the last dimension is read as the channel.
    folded : bool
        Whether positions are folded to pictures, where the layout says how.
    part : int
        Which of the parts that one dimension joins is folded; -1 for the first grid.
    colors : (int, int, int)
        Positions of the colour axis that are red, green and blue.
    """

    member: int = 0
    fixed: tuple[int, ...] = ()
    channel: int | None = None
    pick: tuple[int, int] | None = None
    region: Region | None = None
    color_map: str | None = None
    scope: Scope | None = None
    range: ValueRange | None = None
    axis: ValueRange | None = None
    symmetric: bool | None = None
    is_log: bool = False
    complex_part: Part = Part.MAGNITUDE
    channels_last: bool = False
    folded: bool = True
    part: int = -1
    colors: tuple[int, int, int] = (0, 1, 2)
