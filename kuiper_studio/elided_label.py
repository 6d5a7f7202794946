"""A label that elides a long text in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget
from typing_extensions import override

from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

__all__ = ["ElidedLabel"]


class ElidedLabel(QLabel):
    """One line; the whole text is in the tool tip.

    Parameters
    ----------
    role : str
        See the style sheet.
    """

    def __init__(self, role: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", role)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)

    # Overrides of Qt methods

    @override
    def setText(self, text: str) -> None:
        super().setText(text)
        self.setToolTip(tip_text(text))

    @override
    def sizeHint(self) -> QSize:
        size = super().sizeHint()
        return QSize(size.width() + 1, size.height())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        shown = self.fontMetrics().elidedText(
            self.text(), Qt.TextElideMode.ElideMiddle, self.contentsRect().width()
        )
        painter.drawText(self.contentsRect(), self.alignment(), shown)
        painter.end()
