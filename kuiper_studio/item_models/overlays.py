"""Values by which the operators of the graph are coloured, their scale and their texts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from engine.states import OperatorStatus
from engine.text import format_amount, format_brief, format_bytes, format_count, format_duration
from kuiper_studio.item_models.difference_marks import operator_marks
from kuiper_studio.session.overlaying import OverlayKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from kuiper_studio.session import StudioSession

__all__ = ["LEVELS", "NO_LEVEL", "Overlay", "OverlayModel", "Scale"]

Floats: TypeAlias = npt.NDArray[np.float64]
Levels: TypeAlias = npt.NDArray[np.int16]
_K = OverlayKind

LEVELS: Final = 256
"""Number of colours of a scale."""
NO_LEVEL: Final = -1
"""Level of an operator without a value."""
_SPAN: Final = 1e3
"""From here on a scale is logarithmic."""
_LEAST: Final = 1e-8  # lower end of a logarithmic scale, at least, as a part of the upper one
_SUMMED: Final = frozenset({_K.TIME, _K.MACS, _K.MEMORY, _K.WEIGHTS, _K.NONFINITE})
_CLASSES: Final = ("finite", "Inf", "NaN")
"""Instead of a scale, by level."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From the least to the largest value.

    Attributes
    ----------
    low, high : float
        Equal where all operators have one value; infinite only then.
    is_log : bool
    reaches_below, reaches_above : bool
        Whether values lie outside: zeros, or infinite ones. They have the colours of the ends.
    """

    low: float
    high: float
    is_log: bool = False
    reaches_below: bool = False
    reaches_above: bool = False

    @property
    def middle(self) -> float:
        """The value of the middle colour."""
        if self.is_log:
            return math.sqrt(self.low) * math.sqrt(self.high)
        return self.low / 2 + self.high / 2

    def levels(self, values: Floats) -> Levels:
        """Return the colour of each value, from 0 to 255, or NO_LEVEL for NaN.

        Parameters
        ----------
        values : ndarray of shape (N,)

        Returns
        -------
        ndarray of shape (N,), int16
        """
        low, high = self.low, self.high
        if low == high:
            shares = np.where(values >= low, float(high > 0), 0.0)
        elif self.is_log:
            shares = np.log(np.clip(values, low, high) / low) / np.log(high / low)
        else:
            part = 1.0 if math.isfinite(high - low) else 0.5  # of numbers that are so large
            shares = (np.clip(values, low, high) * part - low * part) / (
                high * part - low * part
            )
        known = ~np.isnan(values)
        levels = np.full(len(values), NO_LEVEL, np.int16)
        levels[known] = np.rint(shares[known] * (LEVELS - 1))
        return levels


@dataclass(frozen=True, slots=True)
class _Quantity:
    """How a quantity is shown.

    Attributes
    ----------
    title : str
    format : callable
        Its text, with the unit.
    absent : str
        What an operator without a value is.
    nothing : str
        What to say while no operator has a value.
    is_log : bool
        Whether its scale is logarithmic, however short.
    from_zero : bool
        Whether a linear scale of positive values begins at 0.
    box_format : callable or None
        A shorter text, for a box.
    short_title : str
        For the head of a narrow column; ``""`` for the first word of the title.
    """

    title: str
    format: Callable[[float], str]
    absent: str
    nothing: str
    is_log: bool = False
    from_zero: bool = True
    box_format: Callable[[float], str] | None = None
    short_title: str = ""


def _format_size(nbytes: float) -> str:
    return format_bytes(round(nbytes))


_MOST_SHORT: Final = 8  # characters of a title in the head of a column

_QUANTITIES: Final = {
    _K.TIME: _Quantity("Time", format_duration, "no time", "nothing has run yet"),
    _K.MACS: _Quantity(
        "Multiply-accumulates",
        lambda count: format_amount(count, "MAC"),
        "none",
        "no operator has any",
        box_format=lambda count: format_amount(count, ""),
        short_title="MACs",
    ),
    _K.MEMORY: _Quantity("Memory of outputs", _format_size, "none", "no size is known"),
    _K.WEIGHTS: _Quantity("Weights", _format_size, "none", "no operator has any"),
    _K.ZEROS: _Quantity(
        "Zeros", lambda share: f"{100 * share:.3g} %", "no value", "nothing has run yet"
    ),
    _K.LARGEST: _Quantity(
        "Largest magnitude", format_brief, "no value", "nothing has run yet", is_log=True
    ),
    _K.NONFINITE: _Quantity(
        "NaN and Inf", format_brief, "no value", "nothing has run yet", short_title="NaN, Inf"
    ),
    _K.ERROR: _Quantity(
        "Difference",
        format_brief,
        "not compared",
        "nothing is compared yet",
        is_log=True,
        short_title="Diff.",
    ),
    _K.OWN: _Quantity(
        "Own numbers", format_brief, "no number", "no operator has one", from_zero=False
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """The colours of all operators by one quantity.

    Attributes
    ----------
    kind : OverlayKind
    title : str
    values : ndarray of shape (N,), float64
        NaN for none.
    levels : ndarray of shape (N,), int16
        From 0 to LEVELS - 1, or the index of a class; NO_LEVEL for none.
    scale : Scale or None
        None for classes, and where no operator has a value.
    classes : tuple of str
        Instead of a scale.
    """

    kind: OverlayKind
    title: str
    values: Floats
    levels: Levels
    scale: Scale | None = None
    classes: tuple[str, ...] = ()

    def gathered(self, starts: npt.NDArray[np.intp]) -> Overlay:
        """Return the colours of groups of consecutive operators.

        Parameters
        ----------
        starts : ndarray of shape (M,), int64
            First operator of each; its value is the sum where sums make sense, and the scale
            reaches to the largest sum. Else it is the largest value.
        """
        known = ~np.isnan(self.values)
        if self.kind in _SUMMED:
            values = np.add.reduceat(np.where(known, self.values, 0.0), starts)
        else:
            values = np.maximum.reduceat(np.where(known, self.values, -np.inf), starts)
        values[~np.logical_or.reduceat(known, starts)] = np.nan
        if self.scale is None:
            levels = np.maximum.reduceat(self.levels, starts)
            return replace(self, values=values, levels=levels)
        summed = _make_scale(values, _QUANTITIES[self.kind]) if self.kind in _SUMMED else None
        scale = summed or self.scale
        return replace(self, values=values, levels=scale.levels(values), scale=scale)

    def group_text(self, first: int, last: int) -> str:
        """Return the value of consecutive operators, as `gathered`; ``""`` for none."""
        bounds = sorted({0, first, last + 1} - {len(self.values)})
        return self.gathered(np.array(bounds, np.intp)).box_text(bounds.index(first))

    @property
    def short_title(self) -> str:
        """The title in the head of a narrow column."""
        word = _QUANTITIES[self.kind].short_title or self.title.partition(" ")[0]
        return word if len(word) <= _MOST_SHORT else f"{word[: _MOST_SHORT - 1]}…"

    @property
    def absent(self) -> str:
        """What an operator without a value is."""
        return _QUANTITIES[self.kind].absent

    @property
    def nothing(self) -> str:
        """What to say where no operator has a value."""
        return _QUANTITIES[self.kind].nothing

    @property
    def none_text(self) -> str:
        """Why no operator is ranked."""
        return self.nothing if self.is_empty else f"all {self.classes[0]}"

    @property
    def is_empty(self) -> bool:
        """Whether no operator has a value."""
        return bool((self.levels == NO_LEVEL).all())

    @property
    def lacks_some(self) -> bool:
        """Whether an operator has no value."""
        return bool((self.levels == NO_LEVEL).any())

    def format(self, value: float) -> str:
        """Format a value with its unit."""
        return _QUANTITIES[self.kind].format(value)

    @property
    def ends(self) -> tuple[str, str, str]:
        """The least, middle and largest value of the scale as texts; empty without a scale."""
        scale = self.scale
        if scale is None:
            return "", "", ""
        low, high = self.format(scale.low), self.format(scale.high)
        return (
            f"≤ {low}" if scale.reaches_below else low,
            self.format(scale.middle),
            f"≥ {high}" if scale.reaches_above else high,
        )

    @property
    def range_text(self) -> str:
        """What the colours stand for, in words."""
        if self.is_empty:
            return self.nothing
        if self.classes:
            return ", ".join(self.classes)
        low, _, high = self.ends
        return f"all {low}" if low == high else f"{low} to {high}"

    def text(self, index: int) -> str:
        """Return the value of an operator in words, or what it is without one."""
        if self.levels[index] == NO_LEVEL:
            return self.absent
        if self.classes:
            return self._count_text(index)
        return self.format(float(self.values[index]))

    def box_text(self, index: int) -> str:
        """Return the value of an operator for its box; ``""`` for none."""
        if self.levels[index] == NO_LEVEL:
            return ""
        brief = _QUANTITIES[self.kind].box_format
        return self.text(index) if brief is None else brief(float(self.values[index]))

    @property
    def ranked(self) -> npt.NDArray[np.intp]:
        """Indices of the operators with a value, the largest first; none that are finite."""
        has_value = self.levels > 0 if self.classes else self.levels != NO_LEVEL
        order = np.argsort(-self.values, kind="stable")
        return np.asarray(order[has_value[order]])

    def _count_text(self, index: int) -> str:
        level, count = int(self.levels[index]), int(self.values[index])
        return f"{format_count(count)} {self.classes[level]}" if level else self.classes[0]


class OverlayModel:
    """Follows a session, and computes an overlay when it is asked for.

    Parameters
    ----------
    session : StudioSession
        Its present graph counts.
    """

    def __init__(self, session: StudioSession) -> None:
        self._session, self._graph = session, session.graph
        self._known: Overlay | None = None
        self._finders: dict[OverlayKind, Callable[[], Floats]] = {
            _K.TIME: self._seconds,
            _K.MACS: lambda: _positive(session.costs.macs),
            _K.MEMORY: lambda: _positive(session.costs.output_nbytes),
            _K.WEIGHTS: lambda: _positive(session.costs.weight_nbytes),
            _K.ZEROS: lambda: session.measuring.table.zeros,
            _K.LARGEST: lambda: session.measuring.table.largest,
            _K.ERROR: self._errors,
            _K.OWN: self._own,
        }

    def forget(self) -> None:
        """Compute anew what is asked for next, because what it was made of has changed."""
        self._known = None

    @property
    def shown(self) -> Overlay | None:
        """The overlay; None while operators have the colours of their families."""
        kind = self._session.overlaying.kind
        if kind is _K.FAMILY or self._graph is None or self._session.graph is not self._graph:
            return None
        if self._known is None or self._known.kind is not kind:
            self._known = self._make(kind)
        return self._known

    def _make(self, kind: OverlayKind) -> Overlay:
        if kind is _K.NONFINITE:
            return self._make_classes()
        values = self._finders[kind]()
        quantity = _QUANTITIES[kind]
        scale = _make_scale(values, quantity)
        if kind is _K.ZEROS and scale is not None:
            scale = Scale(0.0, 1.0)
        levels = (scale or Scale(0.0, 1.0)).levels(values)
        title = self._session.overlaying.source if kind is _K.OWN else quantity.title
        return Overlay(kind, title, values, levels, scale)

    def _make_classes(self) -> Overlay:
        table = self._session.measuring.table
        levels = np.where(table.nan > 0, 2, np.where(table.inf > 0, 1, 0)).astype(np.int16)
        levels[~table.known] = NO_LEVEL
        values = np.where(table.nan > 0, table.nan, table.inf)
        title = _QUANTITIES[_K.NONFINITE].title
        return Overlay(_K.NONFINITE, title, values, levels, classes=_CLASSES)

    # Values by quantity, NaN where there is none

    def _empty(self) -> Floats:
        count = len(self._graph.operators) if self._graph is not None else 0
        return np.full(count, np.nan)

    def _seconds(self) -> Floats:
        values = self._empty()
        for record in self._session.snapshot.records:
            if record.status is OperatorStatus.EXECUTED and record.seconds > 0:
                values[record.index] = record.seconds
        return values

    def _errors(self) -> Floats:
        values = self._empty()
        if self._graph is not None:
            for name, mark in operator_marks(self._session).items():
                if mark.relative is not None:
                    values[self._graph.operator(name).index] = mark.relative
        return values

    def _own(self) -> Floats:
        values = self._empty()
        if self._graph is not None:
            for name, number in self._session.overlaying.numbers.items():
                values[self._graph.operator(name).index] = number
        return values


def _positive(values: Floats) -> Floats:
    """Return the values, NaN where one is 0: what costs nothing has no colour."""
    return np.asarray(np.where(values > 0, values, np.nan))


def _make_scale(values: Floats, quantity: _Quantity) -> Scale | None:
    """Make the scale of some values; logarithmic where they span three decades."""
    known = values[~np.isnan(values)]
    finite = known[np.isfinite(known)]
    if not len(finite):
        return Scale(math.inf, math.inf) if len(known) else None
    above = len(finite) < len(known)
    low, high = float(finite.min()), float(finite.max())
    positive = finite[finite > 0]
    if low >= 0 and len(positive):
        least = float(positive.min())
        if least < high and (quantity.is_log or high / least > _SPAN):
            least = max(least, high * _LEAST)
            return Scale(
                least, high, is_log=True, reaches_below=low < least, reaches_above=above
            )
    return Scale(min(low, 0.0) if quantity.from_zero else low, high, reaches_above=above)
