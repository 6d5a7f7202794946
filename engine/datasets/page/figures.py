"""Figures of the page, as SVG: the histogram of an operand, and its channels."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.text import format_brief, format_count

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.datasets.results import ChannelSummary, OperandSummary

__all__ = ["draw_channels", "draw_histogram", "list_channels"]

_WIDTH, _HEIGHT, _FOOT = 240.0, 64.0, 14.0
_BARS: Final = 80
_TAIL: Final = 0.001  # of the elements, at each end of the marked range
_CELL: Final = 7.0
_A_ROW: Final = 34  # cells
_MOST_CELLS: Final = 1024
_MOST_LISTED: Final = 40  # runs of channel numbers


def draw_histogram(operand: OperandSummary) -> str:
    """Draw a histogram with logarithmic heights, and the range of all but the extremes."""
    low, high = operand.min, operand.max
    label = f"Histogram of {operand.name}, logarithmic"
    parts = [
        f'<svg class="histogram" viewBox="0 0 {_WIDTH:g} {_HEIGHT + _FOOT:g}" role="img">',
        f"<title>{escape(label)}</title>",
    ]
    if not (math.isfinite(low) and math.isfinite(high)):
        text = "no finite element"
        parts.append(f'<text x="{_WIDTH / 2:g}" y="{_HEIGHT / 2:g}">{text}</text></svg>')
        return "".join(parts)
    span = high - low
    counts, edges = _gather(operand)
    tallest = math.log1p(int(counts.max())) or 1.0
    slot = _WIDTH / len(counts)
    for place, count in enumerate(counts.tolist()):
        if not count:
            continue
        high_bar = max(math.log1p(count) / tallest * (_HEIGHT - 4), 1.0)
        title = (
            f"{format_brief(edges[place])} to {format_brief(edges[place + 1])}: "
            f"{format_count(count)}"
        )
        parts.append(
            f'<rect x="{place * slot:.2f}" y="{_HEIGHT - high_bar:.2f}" '
            f'width="{slot + 0.05:.2f}" height="{high_bar:.2f}"><title>{title}</title></rect>'
        )
    if span > 0:
        ends = operand.quantile(_TAIL), operand.quantile(1 - _TAIL)
        left, right = ((end - low) / span * _WIDTH for end in ends)
        parts.append(
            f'<line class="most" x1="{left:.2f}" x2="{right:.2f}" y1="{_HEIGHT + 1.5:g}" '
            f'y2="{_HEIGHT + 1.5:g}"/>'
        )
        if low < 0 < high:
            zero = -low / span * _WIDTH
            parts.append(
                f'<line class="zero" x1="{zero:.2f}" x2="{zero:.2f}" y1="0" y2="{_HEIGHT:g}"/>'
            )
    bottom = _HEIGHT + _FOOT - 1
    parts.append(f'<text x="0" y="{bottom:g}">{format_brief(low)}</text>')
    parts.append(
        f'<text x="{_WIDTH:g}" y="{bottom:g}" text-anchor="end">{format_brief(high)}</text>'
    )
    return "".join([*parts, "</svg>"])


def _gather(operand: OperandSummary) -> tuple[npt.NDArray[np.int64], list[float]]:
    """Return the counts of fewer bins, from the least to the greatest element, and ends."""
    histogram, low, high = operand.histogram, operand.min, operand.max
    if high <= low:
        return np.array([max(int(histogram.counts.sum()), 1)]), [low, high]
    places = (histogram.edges[:-1] + histogram.width / 2 - low) / (high - low) * _BARS
    bars = np.clip(places, 0, _BARS - 1).astype(np.int64)
    counts = np.bincount(bars, weights=histogram.counts, minlength=_BARS).astype(np.int64)
    return counts, np.linspace(low, high, _BARS + 1).tolist()


def draw_channels(channels: ChannelSummary) -> str:
    """Draw a cell for each channel: the darker, the more inputs it is dead with."""
    dead = channels.dead[:_MOST_CELLS].tolist()
    rows = -(-len(dead) // _A_ROW)
    width, height = min(len(dead), _A_ROW) * _CELL, rows * _CELL
    parts = [
        f'<svg class="channels" width="{width:g}" height="{height:g}" role="img">',
        "<title>Channels: filled where they are dead</title>",
    ]
    for channel, share in enumerate(dead):
        row, column = divmod(channel, _A_ROW)
        kind = ' class="dead"' if share == 1 else ""
        title = f"channel {channel}: dead with {share:.1%} of the inputs"
        parts.append(
            f'<rect{kind} x="{column * _CELL + 0.5:g}" y="{row * _CELL + 0.5:g}" '
            f'width="{_CELL - 1:g}" height="{_CELL - 1:g}" fill-opacity="{share:.3g}">'
            f"<title>{title}</title></rect>"
        )
    return "".join([*parts, "</svg>"])


def list_channels(numbers: list[int]) -> str:
    """List channel numbers, three neighbours and more together: ``3, 5, 7 to 9``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [
        f"{first} to {last}"
        if last - first > 1
        else ", ".join(str(number) for number in range(first, last + 1))
        for first, last in runs
    ]
    shown = ", ".join(texts[:_MOST_LISTED])
    return f"{shown} …" if len(texts) > _MOST_LISTED else shown
