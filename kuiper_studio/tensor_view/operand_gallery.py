"""The input operands of a failed operator, side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.pictures import default_map, finite_range, fitted_range, render_picture, shrink
from engine.text import format_count, format_dtype, format_shape
from kuiper_studio.item_models.text import caption_text, elided, tip_text
from kuiper_studio.tensor_view.images import Coloring, to_image
from kuiper_studio.tensor_view.numbers import format_range
from kuiper_studio.tensor_view.reading import Kind
from kuiper_studio.tensor_view.view_model import TensorViewModel
from kuiper_studio.tensor_view.viewport import fit_zoom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QMouseEvent, QPaintEvent

    from engine.statistics import TensorStatistics
    from engine.values import Array, Value
    from kuiper_studio.theme import Theme

__all__ = ["OperandCard", "OperandGallery"]

_CARD_WIDTH: Final = 300
# Shifted by its padding, to line up with the text above.
_LINK_STYLE: Final = (
    'font-family: "JetBrains Mono", monospace; font-size: 11px; margin-left: -5px;'
)


@dataclass(frozen=True, slots=True)
class OperandCard:
    """One operand.

    Attributes
    ----------
    place : int
        Index among the operator's inputs.
    name : str
    producer : str
        Name of the operator that computed it; ``""`` for none.
    value : Value
    facts : TensorStatistics or None
        Statistics of an array.
    channel : int or None
        The last selected channel.
    missing : bool
        Whether it has no value.
    coming : bool
        Whether its value is on its way.
    channels_last : bool
        Whether its last dimension is read as the channels.
    """

    place: int
    name: str
    producer: str
    value: Value = field(repr=False, compare=False)
    facts: TensorStatistics | None = field(default=None, compare=False)
    channel: int | None = None
    missing: bool = False
    coming: bool = False
    channels_last: bool = False


class OperandGallery(QScrollArea):
    """Shows operands as pictures with their shapes and ranges.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    operand_chosen
        Name of an operand to show in full.
    producer_chosen
        Name of the operator that computed one.
    """

    operand_chosen = Signal(object)
    producer_chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("tensorOperands")
        self.setAccessibleName("Operands of the failed operator")
        self._theme = theme
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.cards: tuple[OperandCard, ...] = ()
        theme.changed.connect(self._rebuild)

    def show_cards(self, cards: Sequence[OperandCard]) -> None:
        """Show operands in order, unless they are shown already."""
        if tuple(cards) == self.cards and all(
            new.value is old.value for new, old in zip(cards, self.cards, strict=True)
        ):
            return
        self.cards = tuple(cards)
        self._rebuild()

    @Slot()
    def _rebuild(self) -> None:
        inside = QFrame()
        inside.setProperty("role", "base")
        row = QHBoxLayout(inside)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for card in self.cards:
            if row.count():
                line = QFrame()
                line.setStyleSheet(f"background: {self._theme.color('line').name()};")
                line.setFixedWidth(1)
                row.addWidget(line)
            shown = _Card(card, self._theme)
            shown.operand_chosen.connect(self.operand_chosen)
            shown.producer_chosen.connect(self.producer_chosen)
            row.addWidget(shown, 1)
        # Pictures of one shape are of one size.
        made, pictures = inside.findChildren(_Card), inside.findChildren(_Picture)
        for shown in made:
            shown.words.setMinimumWidth(max(each.words.sizeHint().width() for each in made))
        for picture in pictures:
            picture.row = pictures
        self.setWidget(inside)


class _Picture(QWidget):
    """A small picture, as large as there is room for it and the others of its row."""

    clicked = Signal()

    def __init__(self, card: OperandCard) -> None:
        super().__init__()
        self._image: QImage | None = None
        self._plane: Array | None = None
        self._coloring = Coloring()
        self.row = [self]
        self.setObjectName(f"operandPicture{card.place}")
        self.setAccessibleName(f"Picture of operand {card.name}")
        self.setToolTip("Show this operand")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setMinimumSize(80, 60)
        model = TensorViewModel()
        model.set_value(card.name, card.value)
        if card.channels_last:
            model.set_channels_last(True)
        if model.reading.kind is Kind.PLANES:
            if card.channel is not None:
                model.set_channel(card.channel)
            self._plane = model.plane
            low, high = finite_range(self._plane) or (0.0, 1.0)
            name = default_map(*(model.tensor_range or (0.0, 1.0)))
            self._coloring = Coloring(*fitted_range(low, high, symmetric=low < 0), name)
        elif model.array is not None and model.array.size:
            self._image = to_image(render_picture(model.array))

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(180, 180)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._plane is not None:
            rows, columns = self._plane.shape
            room = min(picture.width() for picture in self.row)  # one pixel may be left over
            zoom = fit_zoom((rows, columns), (room, self.height()))
            size = max(1, round(rows * min(zoom, 1))), max(1, round(columns * min(zoom, 1)))
            if self._image is None or (self._image.height(), self._image.width()) != size:
                self._image = to_image(self._coloring.paint(shrink(self._plane, *size)))
            factor = max(zoom, 1.0)
            target = QRectF(0, 0, size[1] * factor, size[0] * factor)
            painter.drawImage(target, self._image)
        elif self._image is not None:
            painter.drawImage(QRectF(0, 0, self.width(), min(self.height(), 96)), self._image)
        painter.end()

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.clicked.emit()


class _Card(QWidget):
    """A picture with its description beside it."""

    operand_chosen = Signal(object)
    producer_chosen = Signal(object)

    def __init__(self, card: OperandCard, theme: Theme) -> None:
        super().__init__()
        self._card = card
        self.setMinimumWidth(_CARD_WIDTH)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 12, 12, 12)
        row.setSpacing(16)
        shown = not (card.missing or card.coming)
        if shown:
            picture = _Picture(card)
            picture.clicked.connect(self._on_operand_clicked)
            row.addWidget(picture, 1)
        self.words = self._make_words(theme)
        row.addWidget(self.words, 0)
        row.addStretch(0 if shown else 1)

    def _make_words(self, theme: Theme) -> QWidget:
        card = self._card
        words = QWidget()
        column = QVBoxLayout(words)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        head = QHBoxLayout()
        head.setSpacing(8)
        place = _label(f"@{card.place}", "mono2")
        place.setStyleSheet(f"color: {theme.color('text3').name()};")
        head.addWidget(place)
        head.addWidget(_label(f"operand {elided(card.name, 24)}", "subtitle"))
        head.addStretch(1)
        column.addLayout(head)
        column.addWidget(_label(self._kind(), "mono"))
        if card.producer:
            link = QPushButton(caption_text(elided(card.producer, 28)))
            link.setProperty("role", "link")
            link.setStyleSheet(_LINK_STYLE)
            link.setToolTip(tip_text(f"Select operator {card.producer}"))
            link.clicked.connect(self._on_producer_clicked)
            column.addWidget(link, 0, Qt.AlignmentFlag.AlignLeft)
        if card.facts is not None:
            column.addSpacing(4)
            column.addLayout(_facts_grid(card.facts))
        column.addStretch(1)
        return words

    def _kind(self) -> str:
        value = self._card.value
        if self._card.missing:
            return "has no value"
        if self._card.coming:
            return "is being fetched"
        if isinstance(value, np.ndarray):
            return f"{format_shape(value.shape)} {format_dtype(value.dtype)}"
        return f"tuple of {len(value)}" if isinstance(value, tuple) else elided(repr(value), 28)

    @Slot()
    def _on_operand_clicked(self) -> None:
        self.operand_chosen.emit(self._card.name)

    @Slot()
    def _on_producer_clicked(self) -> None:
        self.producer_chosen.emit(self._card.producer)


def _facts_grid(facts: TensorStatistics) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(12)
    grid.setVerticalSpacing(3)
    if facts.finite:
        span = format_range(facts.min, facts.max)
    else:
        span = "nothing finite" if facts.count else "no elements"
    rows = (
        ("range", span),
        ("NaN", format_count(facts.nan)),
        ("Inf", format_count(facts.pinf + facts.ninf)),
    )
    for row, (name, text) in enumerate(rows):
        grid.addWidget(_label(name, "secondary"), row, 0)
        grid.addWidget(_label(text, "mono"), row, 1)
    grid.setColumnStretch(1, 1)
    return grid


def _label(text: str, role: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label
