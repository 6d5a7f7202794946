"""Measures ranges and special values of channels before painting. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.text import format_brief

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["ChannelFacts", "channel_facts", "percentile_range", "rebin", "thinned"]

_PERCENTILE_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class ChannelFacts:
    """Range and special values of each channel.

    Attributes
    ----------
    low, high : ndarray of shape (C,), float64
        Of the finite values; NaN where there is none.
    special : ndarray of shape (C,), int64
        Number of NaN and infinite values.
    """

    low: Array
    high: Array
    special: Array

    def flat_text(self, channel: int) -> str:
        """Return the value of a constant channel, shortened; ``""`` for others."""
        low = float(self.low[channel])
        if self.special[channel] or low != self.high[channel]:
            return ""
        return format_brief(low, 2)


def channel_facts(planes: Array) -> ChannelFacts:
    """Measure the channels of real planes of shape (C, H, W)."""
    flat = planes.reshape(len(planes), -1)
    low, high = flat.min(axis=1).astype(np.float64), flat.max(axis=1).astype(np.float64)
    special = np.zeros(len(flat), np.int64)
    for channel in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high))):
        finite = flat[channel][np.isfinite(flat[channel])]
        special[channel] = flat.shape[1] - finite.size
        low[channel] = finite.min() if finite.size else np.nan
        high[channel] = finite.max() if finite.size else np.nan
    return ChannelFacts(low, high, special)


def rebin(counts: Array, edges: Array, low: float, high: float, bins: int = 256) -> Array:
    """Return a histogram over other bins, as if values were spread evenly within each bin.

    Parameters
    ----------
    counts : ndarray of shape (B,)
    edges : ndarray of shape (B + 1,)
        Ascending.
    low, high : float
        Ends of the other bins.
    bins : int, optional
        Their number.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    found: Array = np.diff(np.interp(np.linspace(low, high, bins + 1), edges, sums))
    return found


def percentile_range(values: Array, share: float = 1.0) -> tuple[float, float] | None:
    """Return the range without the lowest and highest percent of the finite values.

    Parameters
    ----------
    values : ndarray
        Real. Of more than a million, evenly spaced ones are used.
    share : float, optional
        In percent, at each end.

    Returns
    -------
    (float, float) or None
        None if nothing is finite.
    """
    flat = thinned(values, _PERCENTILE_LIMIT)
    finite = flat[np.isfinite(flat)]
    if not finite.size:
        return None
    # In halves, because the difference of two values may overflow.
    low, high = np.percentile(finite.astype(np.float64) / 2, (share, 100 - share)) * 2
    return float(low), float(high)


def thinned(values: Array, limit: int) -> Array:
    """Return at most `limit` evenly spaced values; a view if these are all."""
    flat = values.reshape(-1)
    return flat[:: -(-flat.size // limit)] if flat.size > limit else flat
