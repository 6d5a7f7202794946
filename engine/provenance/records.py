"""What this package's functions return; frozen, and made of NumPy arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engine.runtime.operator import OperatorLabel

__all__ = [
    "Box",
    "Breakdown",
    "EffectiveWeight",
    "Factor",
    "FieldCheck",
    "GridAlignment",
    "GridCell",
    "Interval",
    "Kind",
    "PlaceHistory",
    "Provenance",
    "ReceptiveField",
    "Relation",
    "Source",
    "Step",
    "Terms",
    "Visit",
    "join_boxes",
]


class Kind(Enum):
    """How an element follows from its terms."""

    SUM = "sum"
    """The sum of all products, and of `offset`."""
    ACTIVATED = "activated"
    """A function of the sum of all products and of `offset`, which is the last of the steps."""
    CHOICE = "choice"
    """One of the products, the largest or the smallest."""
    SHARE = "share"
    """One of the products, divided by the sum of all."""
    MOVE = "move"
    """An element of an input, unchanged."""
    FUNCTION = "function"
    """A function of a few elements."""
    NORMALISED = "normalised"
    """One product and an offset; their factors follow from many elements."""
    GATES = "gates"
    """A function of the gates of a recurrent cell; the products are those of its input."""
    INPUT = "input"
    """An element of the model's input."""
    WEIGHT = "weight"
    """An element of a weight."""
    SUPPLIED = "supplied"
    """An element that the user supplied."""
    UNKNOWN = "unknown"
    """There is no breakdown; `Provenance.reason` says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """One of the two or more numbers of each product.

    Attributes
    ----------
    name : str
        Of an operand, of a weight, or of numbers that the operator computes.
    is_operand : bool
    indices : ndarray of int64, shape (T, D)
        Index of each value; -1 for a value that lies in the padding. D is 0 for numbers without
        an index.
    values : ndarray of float64, shape (T,)
    """

    name: str
    is_operand: bool
    indices: npt.NDArray[np.int64] = field(repr=False)
    values: npt.NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The products that make an element.

    Attributes
    ----------
    factors : tuple of Factor
        A product has one of each.
    products : ndarray of float64, shape (T,)
    shape : tuple of int
        How the T terms are arranged, e.g. channels, rows and columns of a window.
    axes : tuple of str
        What the dimensions of `shape` are.
    """

    factors: tuple[Factor, ...]
    products: npt.NDArray[np.float64] = field(repr=False)
    shape: tuple[int, ...]
    axes: tuple[str, ...]

    @property
    def partial_sums(self) -> npt.NDArray[np.float64]:
        """Sums over all but the first dimension; shape (C,)."""
        first = self.shape[0] if self.shape else 1
        sums: npt.NDArray[np.float64] = self.products.reshape(first, -1).sum(axis=1)
        return sums


class Step(NamedTuple):
    """A number on the way to an element, such as a mean."""

    name: str
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """How an operator makes one element.

    Attributes
    ----------
    kind : Kind
    formula : str
        In symbols, with the indices filled in.
    terms : Terms
    total : float
        The element, computed in float64.
    error : float
        How far a result in the operator's own precision may be from `total`.
    offset : float or None
        Added to the products.
    offset_name : str
        What it is, e.g. ``bias[41]``.
    chosen : int or None
        The term that is the element, or whose share it is.
    steps : tuple of Step
    """

    kind: Kind
    formula: str
    terms: Terms
    total: float
    error: float
    offset: float | None = None
    offset_name: str = ""
    chosen: int | None = None
    steps: tuple[Step, ...] = ()


class Interval(NamedTuple):
    """Positions of one axis.

    Attributes
    ----------
    start, stop : int
        First position, and the one after the last.
    low, high : int or None
        The same before it is cut at the ends of the axis; None if that is unknown.
    """

    start: int
    stop: int
    low: int | None = None
    high: int | None = None

    @classmethod
    def cut(cls, low: int, high: int, size: int) -> Interval:
        """Make an interval of an axis from one that may reach beyond its ends."""
        start = min(max(low, 0), size)
        return cls(start, max(min(high, size), start), low, high)

    @classmethod
    def whole(cls, size: int) -> Interval:
        """Make the interval of all positions."""
        return cls(0, size)

    @property
    def reach(self) -> tuple[int, int]:
        """First position and the one after the last, beyond the ends where that is known."""
        if self.low is None or self.high is None:
            return self.start, self.stop
        return self.low, self.high

    def join(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both."""
        if self == other:
            return self
        start, stop, low, high = self
        start_2, stop_2, low_2, high_2 = other
        if low is None or high is None or low_2 is None or high_2 is None:
            low = high = None
        else:
            low, high = min(low, low_2), max(high, high_2)
        return Interval(min(start, start_2), max(stop, stop_2), low, high)


Box: TypeAlias = tuple[Interval, ...]
"""An interval for each axis."""


def join_boxes(one: Box | None, other: Box) -> Box:
    """Return the smallest box that contains both."""
    if one is None or one == other:
        return other
    return tuple([a.join(b) for a, b in zip(one, other, strict=True)])


@dataclass(frozen=True, slots=True)
class Source:
    """The region of an operand that an element depends on.

    Attributes
    ----------
    operand : str
    shape : tuple of int
        Of the operand.
    box : Box
    stride : tuple of (int or None)
        By axis: how far the region moves when the element's index along the axis in the same
        place, counted from the last, moves by one; None if it is unknown.
    offset : tuple of (int or None)
        By axis: where the region of index 0 begins, also beyond the first position; None if
        it is unknown.
    """

    operand: str
    shape: tuple[int, ...]
    box: Box
    stride: tuple[int | None, ...] = ()
    offset: tuple[int | None, ...] = ()

    @property
    def slices(self) -> tuple[slice, ...]:
        """The region as an index of the array."""
        return tuple([slice(each.start, each.stop) for each in self.box])

    @property
    def size(self) -> int:
        """Number of elements in the region."""
        return math.prod([each.stop - each.start for each in self.box])

    @property
    def is_whole(self) -> bool:
        """Whether the region is all of the operand."""
        return self.size == math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell of a picture of an operand, and the element that it shows.

    Attributes
    ----------
    row, column : int
    index : tuple of int
    """

    row: int
    column: int
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GridAlignment:
    """How a picture of an operand lies on an input of the model.

    Attributes
    ----------
    source : str
        The input.
    sizes : (int, int)
        Rows and columns of the input.
    rows, columns : (float, float) or None
        Where the first cell begins, and the size of a cell, in elements of the input; None if
        every cell depends on the whole axis.
    extent : (int, int)
        Rows and columns of the receptive field of a cell, also beyond the edges.
    """

    source: str
    sizes: tuple[int, int]
    rows: tuple[float, float] | None
    columns: tuple[float, float] | None
    extent: tuple[int, int]

    @property
    def is_known(self) -> bool:
        """Whether receptive fields tell where the cells are."""
        return self.rows is not None and self.columns is not None


@dataclass(frozen=True, slots=True, eq=False)
class ReceptiveField:
    """What an element depends on.

    Attributes
    ----------
    operand : str
    index : tuple of int
    inputs : tuple of Source
        Of the model's inputs that it depends on.
    guessed : tuple of OperatorLabel
        Operators on the way whose regions are unknown, so that all of their inputs count.
    operators : int
        Number of operators on the way.
    """

    operand: str
    index: tuple[int, ...]
    inputs: tuple[Source, ...]
    guessed: tuple[OperatorLabel, ...]
    operators: int


@dataclass(frozen=True, slots=True, eq=False)
class EffectiveWeight:
    """How much an element changes with each position of an input, for this input.

    Attributes
    ----------
    operand : str
    index : tuple of int
    source : str
        The input.
    gradient : ndarray of float64
        Derivative of the element by each element of the input; of the input's shape.
    """

    operand: str
    index: tuple[int, ...]
    source: str
    gradient: npt.NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FieldCheck:
    """An element, computed by NumPy without and with noise outside its receptive field.

    Attributes
    ----------
    operand : str
    index : tuple of int
    value, again : float
        The element without noise, and with it.
    changed : int
        Elements of the inputs that had noise.
    """

    operand: str
    index: tuple[int, ...]
    value: float
    again: float
    changed: int

    @property
    def is_same(self) -> bool:
        """Whether the noise has changed nothing, not even by rounding."""
        return self.value == self.again or (math.isnan(self.value) and math.isnan(self.again))


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """Where one element of an operand comes from.

    Attributes
    ----------
    operand : str
    index : tuple of int
    shape : tuple of int
        Of the operand.
    dtype : str
        Of the operand.
    operator : OperatorLabel
        Its producer.
    kind : Kind
    value : float
        What the engine computed.
    breakdown : Breakdown or None
        None if there is nothing to break down, or `reason` says why there is none.
    reason : str
    sources : tuple of Source
        The regions of the operator's inputs that it depends on.
    """

    operand: str
    index: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    operator: OperatorLabel
    kind: Kind
    value: float
    breakdown: Breakdown | None = None
    reason: str = ""
    sources: tuple[Source, ...] = ()

    @property
    def difference(self) -> float:
        """Distance of the engine's value from the breakdown's total; 0 without a breakdown."""
        if self.breakdown is None:
            return 0.0
        total = self.breakdown.total
        if self.value == total or (math.isnan(self.value) and math.isnan(total)):
            return 0.0
        return abs(self.value - total)

    @property
    def agrees(self) -> bool:
        """Whether the engine's value is within the stated error of the total."""
        return self.breakdown is None or self.difference <= self.breakdown.error


class Relation(Enum):
    """How an operand is related to the picked one."""

    PICKED = "picked"
    """It is an output of the same operator."""
    UPSTREAM = "upstream"
    """The picked one depends on it."""
    DOWNSTREAM = "downstream"
    """It depends on the picked one."""
    BESIDE = "beside"
    """Neither depends on the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Visit:
    """What one operand has at a place: a row of elements, such as its channels.

    Attributes
    ----------
    operator : OperatorLabel
        The producer.
    operand : str
    index : tuple of int
        Of the element of the row that is farthest from zero, or NaN; of the picked element
        itself in its own operand.
    value : float
        Of that element; of complex numbers the magnitude, as in all that follows.
    relation : Relation
    is_placed : bool
        False if the operand has no such place, as behind a global pooling: then the row has all
        of its elements.
    count : int
        Elements of the row.
    minimum, maximum, mean : float
        Of the finite elements; NaN if there are none.
    zeros, non_finite : int
        Numbers of zeros, and of NaN and infinities.
    strip : ndarray of float32, shape (N,)
        The row in order; of a long one the element farthest from zero in each of 256 runs.
    """

    operator: OperatorLabel
    operand: str
    index: tuple[int, ...]
    value: float
    relation: Relation
    is_placed: bool
    count: int
    minimum: float
    maximum: float
    mean: float
    zeros: int
    non_finite: int
    strip: npt.NDArray[np.float32] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class PlaceHistory:
    """One place through all operands.

    Attributes
    ----------
    operand : str
        The one that was picked.
    index : tuple of int
        Of the picked element.
    place : str
        Where it is in its operand, in words, such as ``row 3 of 7 · column 2 of 7``; ``""`` if
        its axes have no places.
    visits : tuple of Visit
        In execution order; without constants.
    left_out : int
        Operands without the place that are too large for a row, and lists.
    """

    operand: str
    index: tuple[int, ...]
    place: str
    visits: tuple[Visit, ...] = field(repr=False)
    left_out: int
