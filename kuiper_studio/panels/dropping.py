"""Files that are dragged over the window: which they are, and what dropping them would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget
from typing_extensions import override

from engine.conversion.suffixes import SUFFIXES
from engine.paths import is_folder
from engine.text import format_count
from kuiper_studio.icons import pixmap
from kuiper_studio.item_models.text import elided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QDropEvent, QPaintEvent

    from kuiper_studio.theme import Theme

__all__ = ["DropHint", "dropped_model", "dropped_paths", "name_files", "take_copy"]

_LONGEST_NAME: Final = 48  # characters


def dropped_paths(event: QDropEvent) -> list[str]:
    """Return the files and folders of this machine that are dragged."""
    return [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]


def dropped_model(paths: Sequence[str]) -> str:
    """Return the model among dropped files: a ``.param``, else what else can be opened.

    Returns
    -------
    str
        ``""`` for none.
    """
    found = [path for path in paths if Path(path).suffix.lower() == ".param"]
    others = {".bin", *SUFFIXES}
    found += [p for p in paths if Path(p).suffix.lower() in others or is_folder(p)]
    return found[0] if found else ""


def take_copy(event: QDropEvent) -> None:
    """Take what is dragged and leave it where it is.

    A file manager deletes what was moved: with Shift held, or between folders of one disk,
    it proposes to.
    """
    event.setDropAction(Qt.DropAction.CopyAction)
    event.accept()


def name_files(paths: Sequence[str]) -> str:
    """Return the name of a dragged file, or how many there are."""
    if len(paths) == 1:
        return elided(Path(paths[0]).name, _LONGEST_NAME)
    return format_count(len(paths), "file")


class DropHint(QWidget):
    """Says over the middle of a widget what dropping would do, and lets the mouse through.

    Parameters
    ----------
    theme : Theme
    over : QWidget
    """

    def __init__(self, theme: Theme, over: QWidget) -> None:
        super().__init__(over)
        self._over = over
        self.setObjectName("dropHint")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._theme = theme
        self._icon, self._text = QLabel(), QLabel()
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setProperty("role", "title")
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 14, 24, 14)
        row.setSpacing(10)
        row.addWidget(self._icon)
        row.addWidget(self._text)
        self.hide()

    def say(self, text: str) -> None:
        """Show what dropping would do; ``""`` after the drag."""
        self._text.setText(text)
        self.setVisible(bool(text))
        if text:
            scale = self.devicePixelRatioF()
            self._icon.setPixmap(pixmap("file", self._theme, "text2", 20, scale))
            self.adjustSize()
            self.move(self._over.rect().center() - self.rect().center())
            self.raise_()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.color("focus"), 2))
        painter.setBrush(self._theme.color("panel"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        painter.end()
