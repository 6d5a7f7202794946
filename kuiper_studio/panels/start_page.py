"""The page without a model: drop area, sample, recent models."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPainterPath, QPen
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.icons import icon, pixmap
from kuiper_studio.panels.dropping import (
    dropped_model,
    dropped_paths,
    name_files,
    take_copy,
)
from kuiper_studio.panels.message_banner import MessageBanner
from kuiper_studio.panels.recent_row import RecentRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from PySide6.QtGui import (
        QDragEnterEvent,
        QDragLeaveEvent,
        QDropEvent,
        QKeyEvent,
        QPaintEvent,
        QShowEvent,
    )

    from kuiper_studio.panels.recents import Recents
    from kuiper_studio.sample_models import SampleModel
    from kuiper_studio.session import Failure
    from kuiper_studio.theme import Theme

__all__ = ["StartPage"]

WIDTH: Final = 622
_SAMPLES_IN_A_ROW: Final = 2  # also with fonts that are half as large again
_HINTS: Final = (
    ("view.commandPalette", "every command"),
    ("help.shortcuts", "keyboard sheet"),
    ("view.toggleTheme", "theme"),
)


class _DropArea(QFrame):
    """Drop area for a model, with a button that opens the dialog.

    Signals
    -------
    open_pressed
    """

    open_pressed = Signal()
    TEXT = "Drop a .param, .bin, .pt, .onnx or a folder here"

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._dragged = ""
        self.setFixedHeight(158)
        self._icon = QLabel()
        self._icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._text = QLabel(self.TEXT)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setProperty("role", "title")
        self.button = QPushButton("Open…")
        self.button.setObjectName("startOpen")
        self.button.setProperty("role", "primary")
        self.button.setAccessibleName("Open a model")
        self.button.setIcon(icon("open", theme, "#FFFFFF"))
        self.button.setIconSize(QSize(15, 15))
        self.button.setMinimumWidth(126)
        self.button.clicked.connect(self.open_pressed)
        note = QLabel("An image or .npy dropped here becomes the input once a model is open")
        note.setProperty("role", "tertiary")
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(9)
        column.addStretch(1)
        for widget in (self._icon, self._text, self.button, note):
            column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(1)
        theme.changed.connect(self._refresh)
        self._refresh()

    def show_dragged(self, path: str) -> None:
        """Show what dropping a file would do; ``""`` after the drag."""
        self._dragged = path
        self._text.setText(f"Open {name_files([path])}" if path else self.TEXT)
        self.update()

    @Slot()
    def _refresh(self) -> None:
        scale = self.devicePixelRatioF()
        self._icon.setPixmap(pixmap("file", self._theme, "text2", 30, scale))
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(self._theme.color("focus"), 2)
        if not self._dragged:
            pen = QPen(self._theme.color("ctl"), 1.5)
            pen.setDashPattern([3, 2.4])
        painter.setPen(pen)
        painter.setBrush(self._theme.color("panel"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        painter.end()


class _Sketch(QWidget):
    """A residual block of four boxes, as the graph view would draw it."""

    _BOXES: Final = (
        ("io", "I/O", "Input"),
        ("conv", "CONV", "Conv2d"),
        ("act", "ACT", "ReLU"),
        ("expr", "EXPR", "add"),
    )

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setFixedWidth(320)
        self.setAccessibleName("Sketch of a residual network")
        theme.changed.connect(self.update)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        area = QRectF(self.rect()).adjusted(-8, 0.5, -0.5, -0.5)
        shape.addRoundedRect(area, 7.5, 7.5)
        painter.setClipPath(shape)
        painter.fillRect(self.rect(), theme.color("base"))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line"))
        for x in range(18, self.width(), 20):
            for y in range(18, self.height(), 20):
                painter.drawEllipse(QPointF(x, y), 0.8, 0.8)
        top = self.height() / 2 - 14
        boxes = [QRectF(17 + 76 * i, top, 56, 43) for i in range(4)]
        self._draw_edges(painter, boxes)
        for box, facts in zip(boxes, self._BOXES, strict=True):
            self._draw_box(painter, box, *facts)
        painter.end()

    def _draw_edges(self, painter: QPainter, boxes: Sequence[QRectF]) -> None:
        color = self._theme.color("text2")
        pen = QPen(color, 1.8)
        for left, right in pairwise(boxes):
            y = left.center().y()
            painter.setPen(pen)
            painter.drawLine(QPointF(left.right(), y), QPointF(right.left() - 6, y))
            self._draw_head(painter, QPointF(right.left() - 1, y), down=False)
        start, end = boxes[0].center().x(), boxes[-1].center().x()
        top, lane = boxes[0].top(), boxes[0].top() - 27
        skip = QPainterPath(QPointF(start, top))
        skip.lineTo(start, lane + 10)
        skip.quadTo(start, lane, start + 10, lane)
        skip.lineTo(end - 10, lane)
        skip.quadTo(end, lane, end, lane + 10)
        skip.lineTo(end, top - 7)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(skip)
        self._draw_head(painter, QPointF(end, top - 1), down=True)

    def _draw_head(self, painter: QPainter, tip: QPointF, *, down: bool) -> None:
        back = QPointF(0, -8) if down else QPointF(-8, 0)
        side = QPointF(3.5, 0) if down else QPointF(0, 3.5)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("text2"))
        painter.drawPolygon([tip, tip + back + side, tip + back - side])

    def _draw_box(
        self, painter: QPainter, box: QRectF, token: str, label: str, name: str
    ) -> None:
        theme = self._theme
        shape = QPainterPath()
        shape.addRoundedRect(box, 5, 5)
        painter.fillPath(shape, theme.color("raised"))
        band = QPainterPath()
        band.addRect(box.left(), box.top(), 5, box.height())
        painter.fillPath(shape.intersected(band), theme.color(token))
        painter.setPen(QPen(theme.color("ctl"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(shape)
        painter.setFont(theme.ui_font(9, 700))
        painter.setPen(theme.color(token))
        painter.drawText(QPointF(box.left() + 10, box.top() + 17), label)
        painter.setFont(theme.ui_font(11, 600))
        painter.setPen(theme.color("text"))
        painter.drawText(QPointF(box.left() + 10, box.top() + 33), name)


class _SampleCard(QFrame):
    """The first sample, and buttons for the others.

    Signals
    -------
    chosen : SampleModel
    """

    chosen = Signal(object)

    def __init__(self, samples: Sequence[SampleModel], theme: Theme) -> None:
        super().__init__()
        first = samples[0]
        self.setProperty("role", "card")
        self.setFixedHeight(148)
        nothing = QLabel("No model at hand?")
        nothing.setProperty("role", "captionBold")
        title = QLabel(f"Sample: {first.title[:1].lower()}{first.title[1:]}")
        title.setProperty("role", "title")
        text = QLabel(f"{first.description}\nOpens ready to step; nothing is downloaded.")
        text.setProperty("role", "tertiary")
        text.setWordWrap(True)
        self.button = QPushButton("Open sample")
        self.button.setObjectName("startSample")
        self.button.setProperty("role", "accent")
        self.button.setIcon(icon("play", theme, "link"))
        self.button.clicked.connect(lambda: self.chosen.emit(first))
        key = QLabel("Enter")
        key.setProperty("role", "key")
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.button)
        buttons.addWidget(key)
        buttons.addStretch(1)
        words = QVBoxLayout()
        words.setContentsMargins(16, 14, 10, 12)
        words.setSpacing(3)
        for widget in (nothing, title, text):
            words.addWidget(widget)
        words.addStretch(1)
        words.addLayout(buttons)
        row = QHBoxLayout(self)
        row.setContentsMargins(1, 1, 1, 1)
        row.setSpacing(0)
        row.addLayout(words, 1)
        row.addWidget(_Sketch(theme))


class StartPage(QScrollArea):
    """The page of a window without a model.

    Parameters
    ----------
    theme : Theme
    samples : sequence of SampleModel
        The default sample first; may be empty.
    recents : Recents

    Signals
    -------
    open_requested
        The user wants to choose a model.
    path_requested : str
        A recent model.
    dropped : list of str
        A model, and what was dropped with it.
    sample_requested : SampleModel
    """

    open_requested = Signal()
    path_requested = Signal(str)
    dropped = Signal(list)
    sample_requested = Signal(object)

    def __init__(
        self,
        theme: Theme,
        samples: Sequence[SampleModel],
        recents: Recents,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("start")
        self.setAccessibleName("Start page")
        self._theme = theme
        self._samples = tuple(samples)
        self._recents = recents
        self._rows: list[RecentRow] = []
        self._caps: dict[str, QLabel] = {}
        self.banner = MessageBanner(theme)
        self.banner.setObjectName("startFailure")
        self.banner.closed.connect(self.banner.clear)
        self._drop = _DropArea(theme)
        self._drop.open_pressed.connect(self.open_requested)
        self.open_button = self._drop.button
        self.sample_button: QPushButton | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAcceptDrops(True)
        self.setWidget(self._make_content())
        recents.changed.connect(self._fill_recents)
        self._fill_recents()

    def show_failure(self, failure: Failure) -> None:
        """Explain why a model could not be opened."""
        self.banner.show_message(failure.title, failure.reason, failure.hint)
        self.verticalScrollBar().setValue(0)

    # Building

    def _make_content(self) -> QWidget:
        column_widget = QWidget()
        column_widget.setFixedWidth(WIDTH)
        column = QVBoxLayout(column_widget)
        column.setContentsMargins(0, 18, 0, 24)
        column.setSpacing(0)
        column.addWidget(self.banner)
        heading = QLabel("Open a model")
        heading.setProperty("role", "heading")
        heading.setContentsMargins(0, 18, 0, 0)
        column.addWidget(heading)
        column.addSpacing(4)
        column.addWidget(self._make_subtitle())
        column.addSpacing(26)
        column.addWidget(self._drop)
        column.addSpacing(24)
        if self._samples:
            self._add_samples(column)
        self._recent_part = self._make_recent_part()
        column.addWidget(self._recent_part)
        column.addSpacing(26)
        column.addLayout(self._make_hints())
        column.addStretch(1)
        page = QFrame()
        page.setProperty("role", "base")
        row = QHBoxLayout(page)
        row.setContentsMargins(24, 0, 24, 0)
        row.addStretch(1)
        row.addWidget(column_widget)
        row.addStretch(1)
        return page

    @staticmethod
    def _make_subtitle() -> QLabel:
        mono = "font-family:'JetBrains Mono'"
        label = QLabel(
            f'A PNNX pair: <span style="{mono}">.param</span> is the graph, '
            f'<span style="{mono}">.bin</span> its weights. pnnx converts '
            f'<span style="{mono}">.pt</span> and <span style="{mono}">.onnx</span> to one.'
        )
        label.setProperty("role", "secondary")
        return label

    def _add_samples(self, column: QVBoxLayout) -> None:
        card = _SampleCard(self._samples, self._theme)
        card.chosen.connect(self.sample_requested)
        self.sample_button = card.button
        column.addWidget(card)
        others = QGridLayout()
        others.setContentsMargins(0, 6, 0, 0)
        others.setHorizontalSpacing(6)
        others.setVerticalSpacing(0)
        if self._samples[1:]:
            label = QLabel("Other samples:")
            label.setProperty("role", "tertiary")
            others.addWidget(label, 0, 0)
        for place, sample in enumerate(self._samples[1:]):
            button = QPushButton(sample.title)
            button.setObjectName(f"sample-{sample.name}")
            button.setProperty("role", "link")
            button.setToolTip(sample.description)
            button.clicked.connect(
                lambda _checked=False, s=sample: self.sample_requested.emit(s)
            )
            row, slot = divmod(place, _SAMPLES_IN_A_ROW)
            others.addWidget(button, row, slot + 1, Qt.AlignmentFlag.AlignLeft)
        others.setColumnStretch(_SAMPLES_IN_A_ROW + 1, 1)
        column.addLayout(others)
        column.addSpacing(18)

    def _make_recent_part(self) -> QWidget:
        part = QWidget()
        title = QLabel("Recent")
        title.setProperty("role", "subtitle")
        clear = QPushButton("Clear")
        clear.setObjectName("startClear")
        clear.setProperty("role", "link")
        clear.setToolTip("Remove all unpinned entries")
        clear.clicked.connect(self._recents.clear)
        head = QHBoxLayout()
        head.setContentsMargins(0, 0, 0, 4)
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(clear)
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        self._recent_rows = QVBoxLayout()
        self._recent_rows.setSpacing(0)
        column.addLayout(self._recent_rows)
        part.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        return part

    def show_keys(self, keys: Mapping[str, str]) -> None:
        """Show the keys of the window's commands, by id."""
        self._drop.button.setText(f"Open…  {keys['file.open']}".rstrip())
        for command, cap in self._caps.items():
            cap.setText(keys[command])
            cap.setVisible(bool(keys[command]))

    def _make_hints(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        for command, text in _HINTS:
            cap = self._caps[command] = QLabel()
            cap.setProperty("role", "key")
            label = QLabel(text)
            label.setProperty("role", "tertiary")
            row.addWidget(cap)
            row.addWidget(label)
            row.addSpacing(12)
        row.addStretch(1)
        return row

    @Slot()
    def _fill_recents(self) -> None:
        for row in self._rows:
            self._recent_rows.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._rows = []
        for entry in self._recents.entries():
            row = RecentRow(entry, self._recents, self._theme)
            row.chosen.connect(self.path_requested)
            self._recent_rows.addWidget(row)
            self._rows.append(row)
        self._recent_part.setVisible(bool(self._rows))

    # Overrides of Qt methods

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fill_recents()  # files may have been added or removed
        (self.sample_button or self.open_button).setFocus()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            super().keyPressEvent(event)
            return
        focused = self.focusWidget()
        if isinstance(focused, (QPushButton, RecentRow)):
            focused.click()
        elif self._samples:
            self.sample_requested.emit(self._samples[0])

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        model = dropped_model(dropped_paths(event))
        self._drop.show_dragged(model)
        if model:
            take_copy(event)
        else:
            event.ignore()  # the window handles inputs

    @override
    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._drop.show_dragged("")

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        self._drop.show_dragged("")
        paths = dropped_paths(event)
        if dropped_model(paths):
            take_copy(event)
            self.dropped.emit(paths)
