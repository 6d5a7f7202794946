"""The data set: how far its run is, and the inputs that excite the shown channel most."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QListView,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.errors import EngineError
from engine.text import format_brief, format_count
from kuiper_studio.background import Background, Done
from kuiper_studio.panels.panel import Panel, plain_label
from kuiper_studio.panels.result_dock import TITLES
from kuiper_studio.spin_box import SpinBox

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from engine.datasets import OperandSummary, Sweep
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["DataSetPanel", "Strip"]

_SIDE: Final = 96  # of a picture
_CELL: Final = QSize(112, 124)
_INDEX: Final = Qt.ItemDataRole.UserRole
_CHANNEL_WIDTH: Final = 76
_MOST_KEPT: Final = 512  # pictures
_MOST_LISTED: Final = 12  # inputs that failed


class Strip(Enum):
    """Which inputs are shown."""

    MOST = "Excite it most"
    LEAST = "Excite it least"
    UNUSUAL = "Unusual inputs"


class DataSetPanel(Panel):
    """What a data set did to the shown channel.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    shown : callable
        Returns the operand of the tensor view, and the channel if it is one that the data set
        tells apart; None for no operand.

    Signals
    -------
    channel_chosen : int
        The user wants to see another channel.
    run_requested
        The user wants to run a data set, or to open results.
    page_requested
        The user wants to see the page of the results.
    input_chosen : int
        Number of an input that the user wants to open.
    """

    channel_chosen = Signal(int)
    run_requested = Signal()
    page_requested = Signal()
    input_chosen = Signal(int)

    def __init__(
        self,
        session: StudioSession,
        theme: Theme,
        shown: Callable[[], tuple[str, int | None] | None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("dataSet", TITLES["dataSet"], session, theme, parent)
        self._shown_channel = shown
        self._pictures: dict[tuple[str, int], QIcon | None] = {}
        self._drawn: tuple[object, ...] = ()
        self._background = Background(self)
        self._background.finished.connect(self._on_drawn)
        self.title = plain_label("dataSetTitle", "subtitle")
        self.detail = plain_label("dataSetDetail", "secondary")
        self.remark = plain_label("dataSetRemark", "error")
        self.how = plain_label("dataSetHow", "secondary")
        self.caption = plain_label("dataSetCaption", "secondary")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(10)
        self.bar.setAccessibleName("Progress of the data set")
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("End the run; what is finished is kept")
        self.run = QPushButton("Data set…")
        self.run.setToolTip("Run a data set through the model, or open results")
        self.page = QPushButton("Page")
        self.page.setToolTip("Show the page of the results in the browser")
        self.close_results = QPushButton("Close")
        self.close_results.setToolTip("Show no results; their files stay")
        self.choice = QComboBox()
        self.choice.setAccessibleName("Which inputs")
        self.choice.setToolTip(
            "Inputs that excite the channel most or least, or are unusual for the operand"
        )
        for strip in Strip:
            self.choice.addItem(strip.value, strip)
        self.channel = SpinBox()
        self.channel.setAccessibleName("Channel of the data set")
        self.channel.setToolTip("Channel whose inputs are shown")
        self.channel.setFixedWidth(_CHANNEL_WIDTH)
        self._operand = ""
        self.strip = QListWidget()
        self._build()
        self._connect()
        self.refresh()

    @override
    def keyboard_target(self) -> QWidget:
        return self.strip if self.strip.count() else self.run

    def _build(self) -> None:
        strip = self.strip
        strip.setObjectName("dataSetStrip")
        strip.setAccessibleName("Inputs of the data set")
        strip.setViewMode(QListView.ViewMode.IconMode)
        strip.setResizeMode(QListView.ResizeMode.Adjust)
        strip.setMovement(QListView.Movement.Static)
        strip.setIconSize(QSize(_SIDE, _SIDE))
        strip.setGridSize(_CELL)
        strip.setUniformItemSizes(True)
        strip.setStyleSheet("QListWidget { padding-top: 8px; }")
        strip.setWordWrap(True)
        strip.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        progress = QHBoxLayout()
        progress.setSpacing(8)
        progress.addWidget(self.bar, 1)
        progress.addWidget(self.cancel)
        actions = QHBoxLayout()
        actions.setSpacing(6)
        for widget in (self.run, self.page, self.close_results):
            actions.addWidget(widget)
        actions.addStretch(1)
        below = QWidget()
        column = QVBoxLayout(below)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        head = QVBoxLayout()
        head.setContentsMargins(12, 8, 12, 8)
        head.setSpacing(6)
        self.choice.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        chosen = QHBoxLayout()
        chosen.setSpacing(6)
        chosen.addWidget(self.choice, 1)
        chosen.addWidget(self.channel)
        head.addLayout(chosen)
        self.caption.setWordWrap(True)
        head.addWidget(self.caption)
        column.addLayout(head)
        column.addWidget(strip, 1)
        self.lay_out_head(
            (self.title, self.detail, self.how, self.remark), below, progress, actions
        )

    def _connect(self) -> None:
        sweeping = self.session.sweeping
        sweeping.changed.connect(self.refresh)
        sweeping.progressed.connect(self._show_state)
        self.cancel.clicked.connect(sweeping.cancel)
        self.run.clicked.connect(self.run_requested)
        self.page.clicked.connect(self.page_requested)
        self.close_results.clicked.connect(sweeping.clear)
        self.choice.currentIndexChanged.connect(self.refresh)
        self.channel.valueChanged.connect(self._on_channel)
        self.strip.itemClicked.connect(self._on_chosen)
        self.strip.itemActivated.connect(self._on_chosen)

    # What is shown

    @Slot()
    def refresh(self) -> None:
        """Show what is known of the channel that the tensor view shows."""
        self._show_state()
        found, shown = self.session.sweeping.found, self._shown_channel()
        summary = self.session.sweeping.operand(shown[0]) if shown is not None else None
        channel = self._show_chooser(summary, shown[1] if shown is not None else None)
        strip = self.choice.currentData()
        wanted = (found, shown, channel, strip)
        if wanted == self._drawn:
            return
        self._drawn = wanted
        self.strip.clear()
        self.caption.setText("")
        if found is None:
            return
        if summary is None:
            self.caption.setText("Select an operator whose output the data set has.")
            return
        self.caption.setText(_describe(summary, channel, found.inputs.done))
        for index, text in _inputs(summary, channel, strip):
            self._add(found, index, text)
        if not self.strip.count():
            self.caption.setText(f"{self.caption.text()}\nNo input is unusual for it.")

    def _show_chooser(self, summary: OperandSummary | None, shown: int | None) -> int:
        """Show the channel of the tensor view, or one of its own; return it."""
        count = len(summary.channels.dead) if summary is not None else 1
        name = summary.name if summary is not None else ""
        with QSignalBlocker(self.channel):
            self.channel.setRange(0, count - 1)
            if shown is not None or name != self._operand:
                self.channel.setValue(shown or 0)
        self._operand = name
        self.channel.setVisible(count > 1)
        return self.channel.value()

    @Slot()
    def _show_state(self) -> None:
        sweeping = self.session.sweeping
        found, progress = sweeping.found, sweeping.progress
        for widget in (self.bar, self.cancel):
            widget.setVisible(progress is not None)
        self.run.setEnabled(progress is None and self.session.graph is not None)
        for part in (self.page, self.close_results, self.choice, self.strip):
            part.setVisible(found is not None)
        self.remark.setText(
            f"Another version of the model ran: its {sweeping.difference} were others."
        )
        self.remark.setVisible(bool(sweeping.difference))
        remarks = found.remarks if found is not None and progress is None else ()
        self.how.setText(" ".join(f"{each[:1].upper()}{each[1:]}." for each in remarks))
        self.how.setVisible(bool(remarks))
        self.detail.setToolTip("")
        self.cancel.setEnabled(not sweeping.is_cancelled)
        if progress is not None:
            done, total = progress
            self.bar.setRange(0, total)  # without an end until the inputs are counted
            self.bar.setValue(done)
            count = f"{format_count(done)} of {format_count(total)} inputs"
            self.title.setText("Running a data set")
            self.detail.setText(
                "It ends with the parts that are being computed."
                if sweeping.is_cancelled
                else f"{count if total else 'It begins'}. You can go on meanwhile."
            )
            self.set_suffix(f"{done} / {total}" if total else "")
            return
        self.set_suffix("")
        if found is None and sweeping.stopped is not None:
            done, total = sweeping.stopped
            self.title.setText("The run was cancelled")
            self.detail.setText(
                f"{format_count(done)} of {format_count(total)} inputs are finished."
                " A run into the same folder goes on from there."
                if done
                else "No part was finished."
            )
            return
        if found is None:
            self.title.setText("No data set")
            self.detail.setText(
                "See ranges, dead channels and the inputs that excite a channel most."
            )
            return
        failed = found.inputs.failed_count
        self.title.setText(format_count(found.inputs.done, "input"))
        dead = sum(len(each.dead_channels) for each in found.operands.values())
        parts = [found.inputs.set.source, format_count(dead, "dead channel")]
        if failed:
            parts.append(f"{format_count(failed, 'input')} could not be run")
        self.detail.setText(" · ".join(parts))
        self.detail.setToolTip(_list_failed(found))

    def _add(self, found: Sweep, index: int, text: str) -> None:
        item = QListWidgetItem(text)
        item.setData(_INDEX, index)
        item.setTextAlignment(Qt.AlignmentFlag.AlignHCenter)
        try:
            name = found.inputs.name(index)
        except (EngineError, IndexError):
            name = f"input {index}"
        item.setToolTip(f"{name}\nOpen this input")
        key = str(found.path), index
        picture = self._pictures.get(key)
        item.setIcon(picture if picture is not None else self._blank())
        self.strip.addItem(item)
        if key not in self._pictures:
            while len(self._pictures) >= _MOST_KEPT:
                self._pictures.pop(next(iter(self._pictures)))
            self._pictures[key] = None
            self._background.submit(key, _draw, found, index)

    def _blank(self) -> QIcon:
        pixmap = QPixmap(_SIDE, _SIDE)
        pixmap.fill(self.theme.color("base"))
        return QIcon(pixmap)

    # Slots

    @Slot(object)
    def _on_drawn(self, done: Done) -> None:
        pixels = done.result
        if not isinstance(pixels, np.ndarray) or not isinstance(done.key, tuple):
            return
        self._pictures[done.key] = icon = _icon_of(pixels)
        found = self.session.sweeping.found
        if found is None or str(found.path) != done.key[0]:
            return
        for row in range(self.strip.count()):
            item = self.strip.item(row)
            if item.data(_INDEX) == done.key[1]:
                item.setIcon(icon)

    @Slot(int)
    def _on_channel(self, channel: int) -> None:
        self.channel_chosen.emit(channel)  # the tensor view may tell the same channels apart
        self.refresh()

    @Slot(QListWidgetItem)
    def _on_chosen(self, item: QListWidgetItem) -> None:
        self.input_chosen.emit(item.data(_INDEX))


def _inputs(summary: OperandSummary, channel: int, strip: Strip) -> list[tuple[int, str]]:
    """Return numbers of inputs and what is written below their pictures."""
    if strip is Strip.UNUSUAL:
        return [
            (each.index, f"{each.deviations:+.1f} σ".replace("-", "\N{MINUS SIGN}"))
            for each in summary.outliers
        ]
    channels = summary.channels
    extreme = channels.most if strip is Strip.MOST else channels.least
    place = channel if channel < len(extreme.inputs) else 0
    pairs = zip(extreme.inputs[place].tolist(), extreme.values[place].tolist(), strict=True)
    return [(index, format_brief(value)) for index, value in pairs if index >= 0]


def _describe(summary: OperandSummary, channel: int, inputs: int) -> str:
    """Say what a channel held."""
    channels = summary.channels
    place = channel if channel < len(channels.dead) else 0
    name = f"Channel {place} of" if len(channels.dead) > 1 else "All of"
    low, high, mean = (
        format_brief(float(each[place])) for each in (channels.min, channels.max, channels.mean)
    )
    text = f"{name} {summary.operator or summary.name}: {low} to {high}, mean {mean}"
    dead = round(float(channels.dead[place]) * inputs)
    if dead:
        text += f", all zeros with {format_count(dead)} of {format_count(inputs, 'input')}"
    return text


def _list_failed(found: Sweep) -> str:
    """Say which inputs could not be run, and why."""
    lines = [each.sentence for each in found.inputs.failed[:_MOST_LISTED]]
    if found.inputs.failed_count > len(lines) > 0:
        lines.append(f"and {format_count(found.inputs.failed_count - len(lines))} more")
    return "\n".join(lines)


def _draw(found: Sweep, index: int) -> npt.NDArray[np.uint8] | None:
    """Draw an input, on any thread."""
    from engine.datasets.inputs import InputReader
    from engine.datasets.thumbnails import draw_input

    try:
        with InputReader(found.inputs.set) as reader:
            return draw_input(reader, index, _SIDE)
    except (EngineError, IndexError):
        return None


def _icon_of(pixels: npt.NDArray[np.uint8]) -> QIcon:
    """Return a picture as large as the strip has room for, its pixels visible.

    It is in the middle of a square: the strip gives all items the size of the first.
    """
    height, width = pixels.shape[:2]
    image = QImage(
        np.ascontiguousarray(pixels).data, width, height, 3 * width, QImage.Format.Format_RGB888
    )
    scaled = image.scaled(QSize(_SIDE, _SIDE), Qt.AspectRatioMode.KeepAspectRatio)
    square = QPixmap(_SIDE, _SIDE)
    square.fill(Qt.GlobalColor.transparent)
    painter = QPainter(square)
    left, top = (_SIDE - scaled.width()) // 2, (_SIDE - scaled.height()) // 2
    painter.drawImage(left, top, scaled)
    painter.end()
    return QIcon(square)
