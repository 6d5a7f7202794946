"""Labels that elide a long text or word in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QTextLayout, QTextOption
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget
from typing_extensions import override

from kuiper_studio.item_models.text import tip_text, with_short_words

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

__all__ = ["LONGEST_WORD", "ElidedLabel", "ElidedLines", "SteadyLabel", "WrappedLabel"]

LONGEST_WORD: Final = 36  # characters, as fit into a dock


class ElidedLabel(QLabel):
    """One line; the whole text is in the tool tip.

    A text may have a short one, which takes its place where there is no room for the whole.

    Parameters
    ----------
    role : str
        See the style sheet.
    """

    def __init__(self, role: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._short = ""
        self.setProperty("role", role)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)

    def show_text(self, text: str, short: str) -> None:
        """Show a text, or a short one where there is no room for it."""
        self.setText(text)
        self._short = short
        self.update()

    def lines(self) -> list[str]:
        """Return what is shown."""
        width = self.contentsRect().width()
        fits = self.fontMetrics().horizontalAdvance(self.text()) <= width
        text = self.text() if fits else self._short or self.text()
        return [self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, width)]

    # Overrides of Qt methods

    @override
    def setText(self, text: str) -> None:
        self._short = ""
        super().setText(text)
        self.setToolTip(tip_text(text))

    @override
    def sizeHint(self) -> QSize:
        size = super().sizeHint()
        return QSize(size.width() + 1, size.height())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(min(24, self.sizeHint().width()), super().minimumSizeHint().height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.contentsRect(), self.alignment(), "\n".join(self.lines()))
        painter.end()


class ElidedLines(ElidedLabel):
    """Wrapped text, as high as its lines; what exceeds the last one is elided there.

    Parameters
    ----------
    role : str
        See the style sheet.
    most : int
        Lines at most.
    """

    def __init__(self, role: str, most: int, parent: QWidget | None = None) -> None:
        super().__init__(role, parent)
        self._most = most
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_most(self, most: int) -> None:
        """Change how many lines there are at most."""
        self._most = most
        self._fit()

    @override
    def show_text(self, text: str, short: str) -> None:
        super().show_text(text, short)
        self._fit()

    @override
    def lines(self) -> list[str]:
        whole, is_whole = self._broken(self.text())
        return whole if is_whole or not self._short else self._broken(self._short)[0]

    def _broken(self, text: str) -> tuple[list[str], bool]:
        """Return the lines of a text, and whether all of it is in them."""
        width = self.contentsRect().width()
        layout = QTextLayout(text, self.font())
        layout.setTextOption(_anywhere())
        layout.beginLayout()
        starts: list[int] = []
        while len(starts) < self._most:
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(width)
            starts.append(line.textStart())
        is_whole = not layout.createLine().isValid()
        layout.endLayout()
        parts = [
            text[start:end].strip()
            for start, end in zip(starts, [*starts[1:], len(text)], strict=True)
        ]
        cut = Qt.TextElideMode.ElideMiddle
        lines = [self.fontMetrics().elidedText(part, cut, width) for part in parts]
        return lines, is_whole

    def _fit(self) -> None:
        self.setFixedHeight(max(1, len(self.lines())) * self.fontMetrics().lineSpacing())

    # Overrides of Qt methods

    @override
    def setText(self, text: str) -> None:
        super().setText(text)
        self._fit()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


def _anywhere() -> QTextOption:
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    return option


class WrappedLabel(QLabel):
    """Plain text on lines; a name in it that is longer than a line loses its middle.

    The whole text is then in the tool tip. Without word wrap it is a label as any other.

    Parameters
    ----------
    role : str
        See the style sheet.
    longest : int
        Characters of a word at most.
    """

    def __init__(
        self, role: str = "", longest: int = LONGEST_WORD, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._longest = longest
        self._is_cut = False
        self.setProperty("role", role)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setWordWrap(True)

    # Override of a Qt method

    @override
    def setText(self, text: str) -> None:
        shown = with_short_words(text, self._longest) if self.wordWrap() else text
        super().setText(shown)
        was_cut, self._is_cut = self._is_cut, shown != text
        if was_cut or self._is_cut:
            self.setToolTip(tip_text(text) if self._is_cut else "")


class SteadyLabel(QWidget):
    """One line of text that follows the mouse: a change of it lays out nothing.

    Each change of a QLabel lays out the whole window, which takes longer than a frame.

    Parameters
    ----------
    name : str
        Name of the object.
    role : str
        See the style sheet.
    """

    def __init__(self, name: str, role: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self._measure = QLabel("0", self)  # has font and colour of the role
        self._measure.setProperty("role", role)
        self._measure.hide()
        self.setObjectName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def text(self) -> str:
        """Return the whole text."""
        return self._text

    def setText(self, text: str) -> None:  # noqa: N802 - as a QLabel has it
        """Show another text."""
        if text != self._text:
            self._text = text
            self.setAccessibleName(text)
            self.setToolTip(tip_text(text))
            self.update()

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(80, self._measure.sizeHint().height())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(24, self._measure.sizeHint().height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._measure.ensurePolished()
        painter.setFont(self._measure.font())
        painter.setPen(self._measure.palette().color(self._measure.foregroundRole()))
        shown = painter.fontMetrics().elidedText(
            self._text, Qt.TextElideMode.ElideRight, self.width()
        )
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, shown)
        painter.end()
