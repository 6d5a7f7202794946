"""Totals of the channels of operands, over all inputs that a model was run with."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.statistics import channel_statistics, find_twins
from kuiper_studio.engine_service.channels import ChannelView

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from engine.axes import ViewPlan
    from engine.values import Array

__all__ = ["ChannelTotals", "RunTotals"]

_MOST_CHANNELS: Final = 1 << 18  # of all operands together; 80 bytes each
_MOST_OF_ONE: Final = 8192
_MOST_INPUTS: Final = 1 << 16  # that are told apart


@dataclass(frozen=True, slots=True, eq=False)
class ChannelTotals:
    """What channels held over several inputs; arrays of shape (C,).

    Attributes
    ----------
    inputs : int
        Number of different inputs.
    count : int
        Number of elements of a channel, over all inputs.
    low, high, mean, squares : ndarray of float64
        Of the finite elements; NaN where nothing is. `squares` is the sum of the squared
        distances from the mean.
    finite, zeros : ndarray of int64
        Number of such elements.
    dead_in : ndarray of int64
        Number of inputs with which all elements were 0.
    alike : ndarray of int64
        First channel that had the same elements with every input; the channel's own number
        where there is no earlier one.
    """

    inputs: int
    count: int
    low: npt.NDArray[np.float64] = field(repr=False)
    high: npt.NDArray[np.float64] = field(repr=False)
    mean: npt.NDArray[np.float64] = field(repr=False)
    squares: npt.NDArray[np.float64] = field(repr=False)
    finite: npt.NDArray[np.int64] = field(repr=False)
    zeros: npt.NDArray[np.int64] = field(repr=False)
    dead_in: npt.NDArray[np.int64] = field(repr=False)
    alike: npt.NDArray[np.int64] = field(repr=False)

    @property
    def deviation(self) -> npt.NDArray[np.float64]:
        """Standard deviation of the finite elements of each channel; NaN where nothing is."""
        return np.sqrt(self.squares / np.where(self.finite > 0, self.finite, np.nan))

    def joined(self, other: ChannelTotals) -> ChannelTotals:
        """Return the totals of the inputs of both."""
        finite = self.finite + other.finite
        share = other.finite / np.maximum(finite, 1)
        # Where one side has no finite element, its NaN must not reach the other.
        mine, theirs = np.nan_to_num(self.mean), np.nan_to_num(other.mean)
        mean = np.where(self.finite > 0, mine + (theirs - mine) * share, theirs)
        apart = np.where((self.finite > 0) & (other.finite > 0), theirs - mine, 0.0)
        squares = self.squares + other.squares + apart**2 * self.finite * share
        return ChannelTotals(
            self.inputs + other.inputs,
            self.count + other.count,
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
            np.where(finite > 0, mean, np.nan),
            squares,
            finite,
            self.zeros + other.zeros,
            self.dead_in + other.dead_in,
            _both(self.alike, other.alike),
        )


def total_of(
    channels: Array, check_cancelled: Callable[[], None] | None = None
) -> ChannelTotals:
    """Return the totals of one input.

    Parameters
    ----------
    channels : ndarray of shape (C, ...)
        Real.
    check_cancelled : callable, optional
        See `channel_statistics`.
    """
    facts = channel_statistics(channels, 0, check_cancelled)
    size = math.prod(channels.shape[1:])
    finite = size - facts.nan - facts.pinf - facts.ninf
    alike = find_twins(
        channels,
        np.stack([facts.min, facts.max, facts.mean], axis=1),
        np.zeros(len(channels), bool),
    )
    return ChannelTotals(
        1,
        size,
        facts.min,
        facts.max,
        facts.mean,
        np.where(finite > 0, facts.std**2 * finite, 0.0),
        finite,
        facts.zeros,
        (facts.zeros == size).astype(np.int64),
        np.where(alike < 0, np.arange(len(channels)), alike),
    )


class RunTotals:
    """Totals of operands; each input counts once. Thread-safe.

    At most 262 144 channels are kept, of the operands that were counted first.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[str, _Entry] = {}
        self._channels = 0

    def clear(self) -> None:
        """Forget everything: what the operands hold has another reason now."""
        with self._lock:
            self._entries.clear()
            self._channels = 0

    def count(
        self,
        operand: str,
        array: Array,
        source: bytes,
        view: ChannelView | None = None,
        check_cancelled: Callable[[], None] | None = None,
    ) -> ChannelTotals | None:
        """Add what an operand holds with an input, unless it is known already.

        Parameters
        ----------
        operand : str
        array : ndarray
        source : bytes
            Tells the input from others.
        view : ChannelView, optional
            Which axis has the channels; what is fixed in it counts as a whole. By default
            the axis that was looked at last. Another one begins anew.
        check_cancelled : callable, optional
            Called every few milliseconds; when it raises, nothing is added.

        Returns
        -------
        ChannelTotals or None
            None for an array without channels of real numbers, or with too many.
        """
        with self._lock:
            entry = self._entries.get(operand)
            wanted = _axis_of(array, view, entry)
            if wanted is None or array.dtype.kind not in "biuf" or not array.size:
                return None
            channels = ChannelView(array.shape, wanted[0], (), wanted[1]).channels(array)
            if (
                entry is None
                or (entry.axis, entry.plan) != wanted
                or len(entry) != len(channels)
            ):
                entry = self._begin(operand, wanted, len(channels))
            if entry is None or source in entry.sources:
                return entry.totals if entry is not None else None
            if len(entry.sources) < _MOST_INPUTS:
                found = total_of(channels, check_cancelled)
                entry.totals = entry.totals.joined(found) if entry.totals is not None else found
                entry.sources.add(source)
            return entry.totals

    def _begin(
        self, operand: str, wanted: tuple[int, ViewPlan | None], size: int
    ) -> _Entry | None:
        before = self._entries.pop(operand, None)
        self._channels -= before.size if before is not None else 0
        if size > _MOST_OF_ONE or self._channels + size > _MOST_CHANNELS:
            return None
        self._channels += size
        self._entries[operand] = _Entry(*wanted, size)
        return self._entries[operand]


@dataclass(slots=True)
class _Entry:
    """The totals of an operand, and the inputs that they are of."""

    axis: int
    plan: ViewPlan | None
    size: int
    sources: set[bytes] = field(default_factory=set)
    totals: ChannelTotals | None = None

    def __len__(self) -> int:
        return self.size


def _axis_of(
    array: Array, view: ChannelView | None, entry: _Entry | None
) -> tuple[int, ViewPlan | None] | None:
    """Return the axis of the channels, and how the array is folded before."""
    if view is not None:
        return (view.axis, view.plan) if view.shape == array.shape else None
    if entry is not None:
        fits = (
            entry.plan.shape == array.shape
            if entry.plan is not None
            else array.ndim > entry.axis
        )
        return (entry.axis, entry.plan) if fits else None
    return (1, None) if array.ndim >= 4 and array.shape[1] > 1 else None


def _both(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the first channel of each that is alike on both sides."""
    pairs = one * len(one) + other
    _, first, group = np.unique(pairs, return_index=True, return_inverse=True)
    found: npt.NDArray[np.int64] = first.astype(np.int64)[group.reshape(-1)]
    return found
