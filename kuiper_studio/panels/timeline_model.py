"""Costs, estimates, bars and scales of the timeline, as arrays by operator.

No Qt. A measured time is kept until another model is opened and serves as the estimate after
a restart. The estimate of an operator that never ran comes from its multiply-accumulates, or
from its bytes if it has none, at the rate measured so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from engine.states import OperatorStatus
from kuiper_studio.families import family_of
from kuiper_studio.item_models.comparison_rows import DifferenceKind
from kuiper_studio.item_models.difference_marks import DifferenceMarks
from kuiper_studio.item_models.statuses import DISPLAY_STATUS, DisplayStatus
from kuiper_studio.session.costs import CostTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.cost import ValueSource
    from engine.runtime import RuntimeOperator
    from kuiper_studio.session import Record

__all__ = [
    "LEAST_ERROR",
    "Bars",
    "ErrorBars",
    "Measure",
    "Scale",
    "TimelineModel",
    "error_fractions",
    "error_top",
    "fractions",
    "round_ticks",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]


class Measure(Enum):
    """The quantity that the height of a bar shows."""

    TIME = "time"
    MACS = "MACs"
    ERROR = "error"


class Scale(Enum):
    """The scale of heights."""

    LINEAR = "Linear"
    ROOT = "Square root"
    LOG = "Logarithmic"


LEAST_ERROR: Final = 1e-8
"""The foot of the scale of errors, below the rounding of float32."""
_MOST_ERROR: Final = 1e8
_DECADES: Final = 4
_K = DifferenceKind
# The worst operator of a bar decides; None for an operator that has no output.
_SEVERITY: Final = (None, _K.EQUAL, _K.OTHER, _K.INHERITED, _K.BORN)


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars to paint, one per operator or per `size` consecutive operators.

    Attributes
    ----------
    size : int
        Operators per bar; the last may have fewer.
    total : ndarray, (B,) float64
        Measured and estimated together.
    measured : ndarray, (B,) float64
        The measured part.
    costliest : ndarray, (B,) int64
        Index of the operator that gives the bar its colour.
    ran, failed, unsupported, blocked, nonfinite : ndarray, (B,) bool
        Whether all of the bar's operators ran (or failed), any failed, any has no layer,
        all are blocked, any is known to have given NaN or Inf.
    """

    size: int
    total: Floats
    measured: Floats
    costliest: Ints
    ran: Flags
    failed: Flags
    unsupported: Flags
    blocked: Flags
    nonfinite: Flags


@dataclass(frozen=True, slots=True)
class ErrorBars:
    """Bars of differences from a reference, one per operator or several.

    Attributes
    ----------
    size : int
        Operators per bar; the last may have fewer.
    worst : ndarray, (B,) int64
        Index of the operator that a bar shows.
    errors : ndarray, (B,) float64
        Largest difference over the reference's largest element; NaN where there is none.
    born : ndarray, (B,) float64
        The part of it that is born in the operator; NaN where it was not measured.
    kinds : tuple of (DifferenceKind or None)
        None where there is nothing to compare.
    """

    size: int
    worst: Ints
    errors: Floats
    born: Floats
    kinds: tuple[DifferenceKind | None, ...]


class _Errors(NamedTuple):
    """What a comparison says, by operator.

    Attributes
    ----------
    marks : DifferenceMarks
        Of the comparison.
    kinds : list of DifferenceKind or None
    relative, born : ndarray
        NaN where there is none.
    rank : ndarray
        The worse, the larger; the larger error among those of a kind.
    """

    marks: DifferenceMarks[str]
    kinds: list[DifferenceKind | None]
    relative: Floats
    born: Floats
    rank: Floats


class TimelineModel:
    """Costs and states of the operators of one model.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        In execution order.
    costs : CostTable, optional
        Their costs, which somebody else keeps up to date; by default `note` does.

    Attributes
    ----------
    families : tuple of str
        Colour token of each operator.
    status : ndarray, (N,) int8
        Members of `DisplayStatus`.
    nonfinite : frozenset of int
        Indexes of operators that are known to have given NaN or Inf.
    marks : mapping of str to DifferenceMark
        What a comparison says about operators, by name.
    tolerance : float
        Of that comparison.
    """

    def __init__(
        self, operators: Sequence[RuntimeOperator] = (), costs: CostTable | None = None
    ) -> None:
        self.operators = operators
        tokens: dict[str, str] = {}
        for operator in operators:
            if operator.type not in tokens:
                tokens[operator.type] = family_of(operator.type).token
        self.families = tuple(tokens[operator.type] for operator in operators)
        self._costs = costs if costs is not None else CostTable(operators)
        self._notes_costs = costs is None
        self._known: Floats = np.full(len(operators), np.nan)
        self._supplied = np.zeros(len(operators), np.bool_)
        self.status = np.zeros(len(operators), np.int8)
        self._idle = np.array(
            [
                DisplayStatus.PENDING if o.error is None else DisplayStatus.UNSUPPORTED
                for o in operators
            ],
            np.int8,
        )
        self._ends = np.array([o.is_input or o.is_output for o in operators], np.bool_)
        self.nonfinite: frozenset[int] = frozenset()
        self.marks = DifferenceMarks[str]()
        self._errors: _Errors | None = None  # found for a picture, which each step draws
        self.tolerance = 0.0
        self.forget()

    def __len__(self) -> int:
        return len(self.operators)

    # Updates

    def note(self, records: Iterable[Record], values: ValueSource) -> None:
        """Add executed operators, with their actual shapes."""
        for record in records:
            place = record.index
            self.status[place] = DISPLAY_STATUS[record.status]
            if record.status is OperatorStatus.EXECUTED:
                self._supplied[place] = bool(record.overrides) and not record.seconds
                if not self._supplied[place]:
                    self._known[place] = record.seconds
                if self._notes_costs:
                    self._costs.note(record, values)

    def forget(self, index: int | None = None) -> None:
        """Reset an operator, or all; measured times are kept."""
        chosen = slice(None) if index is None else index
        self.status[chosen] = self._idle[chosen]
        self._supplied[chosen] = False

    # Queries

    @property
    def macs(self) -> Floats:
        """Multiply-accumulates of each operator; 0 where a shape is not known."""
        return self._costs.macs

    @property
    def any_measured(self) -> bool:
        """Whether any time was measured; without one, estimates have no unit."""
        return bool(np.nansum(self._known) > 0)

    @property
    def measured(self) -> Flags:
        """Return whether each operator has run in this pass."""
        return np.isin(self.status, (DisplayStatus.EXECUTED, DisplayStatus.FAILED))

    def values(self, measure: Measure) -> Floats:
        """Return seconds or MACs of each operator, with estimates of missing seconds."""
        return self.seconds() if measure is Measure.TIME else self.macs

    def seconds(self) -> Floats:
        """Return seconds of each operator, measured or estimated."""
        known = ~np.isnan(self._known)
        has_macs = self.macs > 0
        per_mac = self._rate(self.macs, known & has_macs)
        per_byte = self._rate(self._costs.nbytes, known & ~has_macs)
        # If only one of the two rates has been measured, one multiply-accumulate counts like
        # one byte. If neither has, only the proportions count.
        per_mac, per_byte = per_mac or per_byte or 1e-9, per_byte or per_mac or 1e-9
        guessed = np.where(has_macs, self.macs * per_mac, self._costs.nbytes * per_byte)
        guessed[self._ends] = 0.0
        return np.where(self._supplied, 0.0, np.where(known, self._known, guessed))

    def _rate(self, amount: Floats, chosen: Flags) -> float:
        total = float(amount[chosen].sum())
        return float(self._known[chosen].sum()) / total if total else 0.0

    def spent_and_left(self) -> tuple[float, float]:
        """Return the seconds measured in this pass, and those estimated for the rest."""
        seconds = self.seconds()
        spent = float(seconds[self.status == DisplayStatus.EXECUTED].sum())
        left = float(seconds[self.status == DisplayStatus.PENDING].sum())
        return spent, left

    def bars(self, measure: Measure, size: int = 1) -> Bars:
        """Make bars of `size` operators each.

        Parameters
        ----------
        measure : Measure
        size : int
            At least 1.
        """
        values = np.where(self.status == DisplayStatus.BLOCKED, 0.0, self.values(measure))
        starts = np.arange(0, len(self), size)
        measured = self.measured
        nonfinite = np.zeros(len(self), np.bool_)
        nonfinite[list(self.nonfinite)] = True

        def all_of(flags: Flags) -> Flags:
            return np.logical_and.reduceat(flags, starts)

        def any_of(flags: Flags) -> Flags:
            return np.logical_or.reduceat(flags, starts)

        padded = np.full(len(starts) * size, -1.0)
        padded[: len(self)] = values
        costliest = starts + padded.reshape(-1, size).argmax(axis=1)
        return Bars(
            size,
            np.add.reduceat(values, starts),
            np.add.reduceat(np.where(measured, values, 0.0), starts),
            costliest,
            all_of(measured),
            any_of(self.status == DisplayStatus.FAILED),
            any_of(self.status == DisplayStatus.UNSUPPORTED),
            all_of(self.status == DisplayStatus.BLOCKED),
            any_of(nonfinite),
        )

    def error_bars(self, size: int = 1) -> ErrorBars:
        """Make bars of the comparison, of `size` operators each.

        Parameters
        ----------
        size : int
            At least 1.
        """
        if self._errors is None or self._errors.marks is not self.marks:
            self._errors = self._find_errors()
        known = self._errors
        count = len(range(0, len(self), size))
        padded = np.full(count * size, -1.0)
        padded[: len(self)] = known.rank
        worst = np.arange(count) * size + padded.reshape(-1, size).argmax(axis=1)
        kinds = tuple(known.kinds[place] for place in worst)
        return ErrorBars(size, worst, known.relative[worst], known.born[worst], kinds)

    def _find_errors(self) -> _Errors:
        marks = [self.marks.get(operator.name) for operator in self.operators]
        kinds = [mark.kind if mark is not None else None for mark in marks]
        relative, born = (
            np.array([getattr(mark, name, None) for mark in marks], np.float64)
            for name in ("relative", "born")
        )
        severity = np.array([_SEVERITY.index(kind) for kind in kinds], np.float64)
        shares = error_fractions(relative, _MOST_ERROR)
        return _Errors(self.marks, kinds, relative, born, severity + 0.5 * shares)


def error_fractions(errors: Floats, top: float) -> Floats:
    """Map errors to heights from 0 to 1 on a logarithmic scale; NaN to 0.

    Parameters
    ----------
    errors : ndarray
    top : float
        Greater than `LEAST_ERROR`, which has height 0.
    """
    bounded = np.clip(np.nan_to_num(errors, nan=0.0, posinf=top), LEAST_ERROR, top)
    return np.asarray(np.log10(bounded / LEAST_ERROR) / math.log10(top / LEAST_ERROR))


def error_top(errors: Floats, tolerance: float) -> float:
    """Return the power of ten, 1 or more, that is the top of a scale of errors."""
    finite = errors[np.isfinite(errors)]
    largest = max(float(finite.max(initial=0.0)), tolerance, 1.0)
    return min(10.0 ** math.ceil(math.log10(largest) - 1e-9), _MOST_ERROR)


def fractions(values: npt.NDArray[Any], top: float, scale: Scale) -> Floats:
    """Map values from 0 to `top` to heights from 0 to 1.

    Parameters
    ----------
    values : ndarray
    top : float
        Greater than 0. The logarithmic scale begins at a ten-thousandth of it.
    scale : Scale
    """
    relative = np.clip(np.asarray(values, np.float64) / top, 0.0, 1.0)
    if scale is Scale.LINEAR:
        return relative
    if scale is Scale.ROOT:
        return np.sqrt(relative)
    lowest = 10.0**-_DECADES
    return np.asarray(1.0 + np.log10(np.maximum(relative, lowest)) / _DECADES)


def round_ticks(top: float, scale: Scale, count: int = 2) -> tuple[float, ...]:
    """Return round numbers that label an axis from 0 to `top`.

    Parameters
    ----------
    top : float
        Greater than 0.
    scale : Scale
    count : int
        About how many.
    """
    if scale is Scale.LINEAR:
        return _linear_ticks(top, count)
    finders: dict[Scale, Callable[[float], float]] = {
        Scale.ROOT: lambda share: top * share * share,
        Scale.LOG: lambda share: top * 10.0 ** (_DECADES * (share - 1.0)),
    }
    wanted = [finders[scale]((place + 1) / (count + 0.5)) for place in range(count)]
    return tuple(sorted({_round_down(value) for value in wanted}))


def _linear_ticks(top: float, count: int) -> tuple[float, ...]:
    step = _round_down(top / count)
    while top / step >= count + 1:
        step = _next_round(step)
    return tuple(step * place for place in range(1, int(top / step + 1e-9) + 1))


def _round_down(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten up to a number."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (5.0, 2.0, 1.0) if m * power <= value * (1 + 1e-9))


def _next_round(value: float) -> float:
    """Return the next larger 1, 2 or 5 times a power of ten."""
    return _round_down(value * 2.6)
