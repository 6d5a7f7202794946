"""The five best classes of a vector of scores, by name or by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPen
from typing_extensions import override

from kuiper_studio.tensor_view.canvas import Canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent
    from PySide6.QtWidgets import QWidget

    from engine.meanings.results import Row
    from kuiper_studio.theme import Theme

__all__ = ["TopList"]

_WIDTH: Final = 216
_ROW: Final = 40
_HEAD: Final = 28


class TopList(Canvas):
    """Shows the best scores; a click or the arrow keys select one.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    chosen
        Entry of the vector.
    """

    chosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("tensorTop", "Best classes", theme, parent)
        self._scores: list[Row] = []
        self._title = ""
        self._pick: int | None = None
        self.setFixedWidth(_WIDTH)

    @property
    def scores(self) -> tuple[Row, ...]:
        """The shown scores, best first."""
        return tuple(self._scores)

    @property
    def title(self) -> str:
        """What stands above the scores."""
        return self._title

    def set_scores(self, scores: Sequence[Row], title: str) -> None:
        """Show scores under a title."""
        self._scores, self._title = list(scores), title
        described = (f"{score.name} {score.text}" for score in scores)
        self.setAccessibleDescription(", ".join(described))
        self.update()

    def set_pick(self, entry: int | None) -> None:
        """Mark the picked entry, if it is among them."""
        self._pick = entry
        self.update()

    def row_rect(self, row: int) -> QRectF:
        """Return the rectangle of a score."""
        height = min(_ROW, max(20.0, (self.height() - _HEAD - 6) / max(len(self._scores), 1)))
        return QRectF(1, _HEAD + row * height, self.width() - 1, height)

    def _paint_row(self, painter: QPainter, row: int, score: Row) -> None:
        rect = self.row_rect(row)
        if score.entry == self._pick:
            painter.fillRect(rect, self.theme.color("sel"))
        ink = self.theme.color("selTxt" if score.entry == self._pick else "text")
        inner = rect.adjusted(10, 4, -10, -4)
        bar = QRectF(inner.left(), inner.bottom() - 5, inner.width(), 4)
        text = inner.adjusted(0, 0, 0, -6) if rect.height() >= 30 else inner
        painter.setFont(self.theme.mono_font())
        painter.setPen(ink)
        flags = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(text, int(flags | Qt.AlignmentFlag.AlignRight), score.text)
        used = painter.fontMetrics().horizontalAdvance(score.text) + 10
        painter.setFont(self.theme.ui_font(12, 600 if row == 0 else 400))
        name = painter.fontMetrics().elidedText(
            score.name, Qt.TextElideMode.ElideMiddle, int(text.width() - used)
        )
        painter.drawText(text, int(flags | Qt.AlignmentFlag.AlignLeft), name)
        if rect.height() >= 30:
            painter.fillRect(bar, self.theme.color("hover"))
            bar.setWidth(max(2.0, bar.width() * min(max(score.share, 0.0), 1.0)))
            painter.fillRect(bar, self.theme.color("focus"))

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(_WIDTH, _HEAD + 5 * _ROW)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.theme.color("base"))
        painter.setPen(QPen(self.theme.color("line"), 1))
        painter.drawLine(0, 0, 0, self.height())
        painter.setPen(self.theme.color("text"))
        painter.setFont(self.theme.ui_font(12, 600))
        head = QRectF(10, 4, self.width() - 20, _HEAD - 6)
        flags = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        painter.drawText(head, flags, self._title)
        for row, score in enumerate(self._scores):
            self._paint_row(painter, row, score)
        self.paint_ring(painter)
        painter.end()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        for row, score in enumerate(self._scores):
            if self.row_rect(row).contains(event.position()):
                self.chosen.emit(score.entry)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up.value: -1, Qt.Key.Key_Down.value: 1}.get(event.key())
        if step is None or not self._scores:
            super().keyPressEvent(event)
            return
        entries = [score.entry for score in self._scores]
        at = entries.index(self._pick) + step if self._pick in entries else 0
        self.chosen.emit(entries[min(max(at, 0), len(entries) - 1)])
