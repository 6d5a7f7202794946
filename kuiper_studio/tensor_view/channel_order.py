"""What is special about channels, and in which order they are shown. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.statistics import channel_statistics, find_twins
from engine.text import format_count

if TYPE_CHECKING:
    from engine.values import Array
    from kuiper_studio.engine_service.channel_totals import ChannelTotals

__all__ = [
    "ChannelKeys",
    "Order",
    "SpecialChannels",
    "descending",
    "keys_over_all",
    "likeness",
    "measure_channels",
]


_BLOCK: Final = 1 << 16  # elements of channels that are correlated together, within a cache


class Order(Enum):
    """What channels are ordered by; the largest come first."""

    NUMBER = "number"
    MEAN = "mean"
    LARGEST = "largest value"
    DEVIATION = "standard deviation"
    ZEROS = "share of zeros"
    LIKENESS = "likeness to the shown channel"


@dataclass(frozen=True, slots=True, eq=False)
class ChannelKeys:
    """Numbers of each channel; arrays of shape (C,).

    Attributes
    ----------
    mean, largest, deviation : ndarray of float64
        Of the finite elements; NaN where nothing is.
    zeros : ndarray of float64
        Share of the elements.
    is_constant : ndarray of bool
        All elements are equal and finite.
    is_dead : ndarray of bool
        All elements are 0.
    twin : ndarray of int64
        First channel with the same elements, where that is another one and not constant;
        -1 elsewhere.
    """

    mean: Array
    largest: Array
    deviation: Array
    zeros: Array
    is_constant: Array
    is_dead: Array
    twin: Array

    def sequence(self, order: Order) -> Array:
        """Return the channels in an order of their own numbers, unknown ones last."""
        keys = {
            Order.MEAN: self.mean,
            Order.LARGEST: self.largest,
            Order.DEVIATION: self.deviation,
            Order.ZEROS: self.zeros,
        }.get(order)
        return np.arange(len(self.mean)) if keys is None else descending(keys)

    def describe(self, channel: int) -> str:
        """Say what is special about a channel; ``""`` for nothing."""
        if self.is_dead[channel]:
            return "dead: all zeros"
        if self.is_constant[channel]:
            return "constant"
        return f"equal to channel {self.twin[channel]}" if self.twin[channel] >= 0 else ""

    def summary(self) -> str:
        """Count what is special: ``3 dead, 1 constant, 2 duplicates``; ``""`` for nothing."""
        dead, constant = int(self.is_dead.sum()), int((self.is_constant & ~self.is_dead).sum())
        twins = int((self.twin >= 0).sum())
        parts = (
            f"{dead} dead" if dead else "",
            f"{constant} constant" if constant else "",
            format_count(twins, "duplicate") if twins else "",
        )
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, eq=False)
class SpecialChannels:
    """What is special about channels in the shown tensor, and over all inputs that were run.

    Attributes
    ----------
    here : ChannelKeys
    over_all : ChannelKeys or None
        None while it is not known.
    totals : ChannelTotals or None
        What `over_all` was made of.
    """

    here: ChannelKeys
    over_all: ChannelKeys | None = None
    totals: ChannelTotals | None = None

    @property
    def inputs(self) -> int:
        """Number of inputs that were run; 0 while it is not known."""
        return self.totals.inputs if self.totals is not None else 0

    def describe(self, channel: int) -> str:
        """Say what is special about a channel, and with how many inputs."""
        text, inputs = self.here.describe(channel), self.inputs
        if self.totals is None or self.over_all is None or inputs < 2:
            return text
        if dead := int(self.totals.dead_in[channel]):
            start = text or "dead"
            return f"{start}, in {'all' if dead == inputs else f'{dead} of'} {inputs} inputs"
        always = text and text == self.over_all.describe(channel)
        return f"{text}, in all {inputs} inputs" if always else text

    def summary(self) -> str:
        """Count what is special here and in all inputs, a line each; ``""`` for nothing."""
        text = self.here.summary()
        if not text or self.over_all is None or self.inputs < 2:
            return f"Channels: {text}" if text else ""
        always = self.over_all.summary() or "none"
        return f"Channels: {text}\nIn all {self.inputs} inputs: {always}"


def descending(keys: Array) -> Array:
    """Return the order of keys, largest first; equal ones by place, NaN last."""
    return np.argsort(-keys, kind="stable")


def measure_channels(planes: Array) -> ChannelKeys:
    """Measure channels.

    Parameters
    ----------
    planes : ndarray of shape (C, H, W)
        Real values.
    """
    found = channel_statistics(planes, 0)
    size = planes[0].size
    whole = (found.nan == 0) & (found.pinf == 0) & (found.ninf == 0)
    constant = whole & (found.min == found.max)
    return ChannelKeys(
        found.mean,
        found.max,
        found.std,
        found.zeros / max(size, 1),
        constant,
        found.zeros == size,
        find_twins(planes, np.stack([found.min, found.max, found.mean], axis=1), constant),
    )


def keys_over_all(totals: ChannelTotals) -> ChannelKeys:
    """Return the numbers of channels over all inputs; a twin is one with every input."""
    numbers = np.arange(len(totals.low))
    whole = totals.finite == totals.count
    constant = whole & (totals.low == totals.high)
    return ChannelKeys(
        totals.mean,
        totals.high,
        totals.deviation,
        totals.zeros / max(totals.count, 1),
        constant,
        totals.zeros == totals.count,
        np.where((totals.alike < numbers) & ~constant, totals.alike, -1),
    )


def likeness(planes: Array, channel: int) -> Array:
    """Correlate each channel with one of them.

    Parameters
    ----------
    planes : ndarray of shape (C, H, W)
        Real values; what is not finite counts as 0.
    channel : int

    Returns
    -------
    ndarray of shape (C,), float64
        Pearson's correlation; 1 for the channel itself, 0 where one is constant.
    """
    rows = planes.reshape(len(planes), -1)
    wanted = _standardized(rows[channel : channel + 1])[0]
    step = max(1, _BLOCK // max(rows.shape[1], 1))
    parts = [
        _standardized(rows[start : start + step]) @ wanted
        for start in range(0, len(rows), step)
    ]
    found = np.concatenate(parts)
    found[channel] = 1.0
    return found


def _standardized(rows: Array) -> Array:
    """Return rows less their means, of length 1; all zeros for constant ones."""
    values = np.where(np.isfinite(rows), rows, 0).astype(np.float64)
    largest = np.abs(values).max(axis=1, initial=0.0, keepdims=True)
    values /= np.where(largest > 0, largest, 1.0)  # squares neither over- nor underflow
    values -= values.mean(axis=1, keepdims=True)
    length = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    varies = length > 1e-9 * np.sqrt(rows.shape[1])
    found: Array = np.divide(values, length, out=np.zeros_like(values), where=varies)
    return found
