"""The column of statistics of channel and tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from engine.text import format_count, format_number, format_share
from kuiper_studio.theme import restyle

if TYPE_CHECKING:
    from engine.comparison import Measures
    from engine.statistics import TensorStatistics
    from kuiper_studio.engine_service.channels import ChannelDistances
    from kuiper_studio.theme import Theme

__all__ = ["StatisticsPanel", "fact_texts"]

_WIDTH: Final = 168
_FACTS: Final = ("min", "max", "mean", "std", "zeros")
_OF_CHANNEL: Final = ("max", "MAE", "RMSE", "differ")
_DISTANCES: Final = ("max", "MAE", "RMSE", "cosine", "SNR", "within 1‰", "NaN / Inf")


def fact_texts(facts: TensorStatistics | None) -> tuple[str, ...]:
    """Format the numbers of a section; ellipses while they are measured."""
    if facts is None:
        return ("…",) * len(_FACTS)
    ends = tuple(
        format_count(value) if isinstance(value, int) else format_number(value)
        for value in (facts.min, facts.max)
    )
    zeros = format_share(facts.zero_fraction)
    return (*ends, format_number(facts.mean), format_number(facts.std), zeros)


def distance_texts(measures: Measures) -> tuple[str, ...]:
    """Format how far a tensor is from the reference's."""
    return (
        format_number(measures.max_abs),
        format_number(measures.mae),
        format_number(measures.rmse),
        format_number(measures.cosine) if measures.cosine is not None else "–",
        f"{measures.snr_db:.1f} dB" if math.isfinite(measures.snr_db) else "–",
        format_share(measures.within_permille),
        f"{format_count(measures.non_finite)} differ" if measures.non_finite else "agree",
    )


def channel_texts(distances: ChannelDistances, channel: int) -> tuple[str, ...]:
    """Format how far a channel is from the reference's."""
    numbers = distances.largest, distances.mae, distances.rmse
    differing = format_count(int(distances.differing[channel]))
    return (
        *(format_number(float(each[channel])) for each in numbers),
        f"{differing} / {format_count(distances.count)}",
    )


class StatisticsPanel(QScrollArea):
    """Shows statistics of a channel and of its tensor, or of their differences.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._special: int | None = 0
        self._has_channel = True
        self._has_distances = False
        self.setObjectName("tensorStatistics")
        self.setAccessibleName("Statistics")
        self.setFixedWidth(_WIDTH)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._channel = _Section("channelFacts", _FACTS)
        self._tensor = _Section("tensorFacts", (*_FACTS, "NaN / Inf"))
        self._region = _Section("regionFacts", _FACTS)
        self._of_channel = _Section("channelDifference", _OF_CHANNEL)
        self._difference = _Section("tensorDifferenceFacts", _DISTANCES)
        self._special_channels = QLabel()
        self._special_channels.setObjectName("specialChannels")
        self._special_channels.setProperty("role", "secondary")
        self._special_channels.setWordWrap(True)
        self._special_channels.setContentsMargins(10, 0, 10, 2)
        self._special_channels.setToolTip(
            "Channels that are all zeros, that have one value, and that equal another one"
        )
        self._special_channels.hide()
        self._line, self._line_below, self._line_above = QFrame(), QFrame(), QFrame()
        for line in (self._line, self._line_below, self._line_above):
            line.setProperty("role", "line")
        compared = self._of_channel, self._line_below, self._difference
        for part in (*compared, self._region, self._line_above):
            part.hide()
        inside = QFrame()
        inside.setProperty("role", "base")
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 5, 0, 3)
        column.setSpacing(3)
        for widget in (
            self._region, self._line_above, self._channel, self._line, self._tensor,
            self._special_channels,
            self._of_channel, self._line_below, self._difference,
        ):  # fmt: skip
            column.addWidget(widget)
        column.addStretch(1)
        self.setWidget(inside)
        theme.changed.connect(self._tint)

    def show_channel(self, title: str, facts: TensorStatistics | None) -> None:
        """Show a channel's statistics; no title for a tensor without channels."""
        self._has_channel = bool(title)
        self._show_sections(compared=not self._difference.isHidden())
        if title:
            self._channel.show_facts(title, fact_texts(facts))

    def show_region(self, title: str, facts: TensorStatistics | None) -> None:
        """Show the statistics of a rectangle above the others; no title for none."""
        for widget in (self._region, self._line_above):
            widget.setVisible(bool(title))
        if title:
            self._region.show_facts(title, fact_texts(facts))

    def show_special_channels(self, summary: str) -> None:
        """Show how many channels are dead, constant or duplicates; ``""`` for none."""
        self._special_channels.setText(summary)
        self._special_channels.setVisible(bool(summary))

    def show_difference(self, measures: Measures | None) -> None:
        """Show how far the tensor is from the reference's, instead of statistics.

        None for a tensor that is shown alone.
        """
        self._show_sections(compared=measures is not None)
        if measures is not None:
            self._difference.show_facts("Difference", distance_texts(measures))

    def show_channel_difference(self, distances: ChannelDistances | None, channel: int) -> None:
        """Show how far a channel is from the reference's; None while it is measured."""
        self._has_distances = distances is not None
        self._show_sections(compared=not self._difference.isHidden())
        if distances is not None:
            self._of_channel.show_facts(f"Channel {channel}", channel_texts(distances, channel))

    def _show_sections(self, *, compared: bool) -> None:
        self._difference.setVisible(compared)
        self._tensor.setVisible(not compared)
        self._channel.setVisible(self._has_channel and not compared)
        self._line.setVisible(self._has_channel and not compared)
        for widget in (self._of_channel, self._line_below):
            widget.setVisible(self._has_distances and compared)

    def show_tensor(self, title: str, facts: TensorStatistics | None) -> None:
        """Show the whole tensor's statistics; None while they are measured."""
        special = "…"
        self._special = None
        if facts is not None:
            infinite = facts.pinf + facts.ninf
            special = f"{format_count(facts.nan)} / {format_count(infinite)}"
            self._special = facts.nan + infinite
        self._tensor.show_facts(title, (*fact_texts(facts), special))
        self._tint()

    @Slot()
    def _tint(self) -> None:
        """Colour the count: green for 0, else the colour of NaN."""
        token = {None: "text", 0: "done"}.get(self._special, "nan")
        color = self._theme.color(token).name()
        for value in self._tensor.values[-1:]:  # none before the first facts
            restyle(value, f"color: {color};")


class _Section(QWidget):
    """A title and rows of a label and a number, which are made with the first facts."""

    def __init__(self, name: str, labels: tuple[str, ...]) -> None:
        super().__init__()
        self.setObjectName(name)
        self._labels = labels
        self._title = QLabel()
        self._title.setProperty("role", "subtitle")
        self._grid = grid = QGridLayout(self)
        grid.setContentsMargins(10, 0, 10, 2)
        grid.setVerticalSpacing(1)
        grid.setHorizontalSpacing(8)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._title, 0, 0, 1, 2)
        self.values: list[QLabel] = []

    def _make_rows(self) -> None:
        for row, text in enumerate(self._labels, start=1):
            label, value = QLabel(text), QLabel()
            label.setProperty("role", "secondary")
            value.setProperty("role", "mono")
            value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            value.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            label.setBuddy(value)
            self._grid.addWidget(label, row, 0)
            self._grid.addWidget(value, row, 1)
            self.values.append(value)

    def show_facts(self, title: str, texts: tuple[str, ...]) -> None:
        if not self.values:
            self._make_rows()
        self._title.setText(title)
        self.setAccessibleName(title)
        for value, text in zip(self.values, texts, strict=True):
            value.setText(text)
