"""The legend of the agreement of a segmentation with its mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from engine.meanings.masks import Match
from engine.text import format_share
from kuiper_studio.panels.output_images import MATCH_COLORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QPaintEvent

    from kuiper_studio.theme import Theme

__all__ = ["MatchLegend"]

_WORDS: Final = {
    Match.AGREEMENT: "agreement",
    Match.FALSE: "false",
    Match.MISSED: "missed",
    Match.OTHER: "other class",
}
_TIPS: Final = (
    "Agreement: output and mask have the class. False: only the output has it. Missed: only "
    "the mask has it. Other class: both have one, but not the same. Shares of the pixels whose "
    "class the mask knows"
)
_SWATCH: Final = 10
_LINE: Final = 16
_GAP: Final = 14


class MatchLegend(QWidget):
    """Colours with words and shares, in as many lines as they need.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shares: Mapping[Match, float] = {}
        self.setObjectName("outputLegend")
        self.setAccessibleName("Agreement with the mask")
        self.setToolTip(_TIPS)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    @property
    def texts(self) -> tuple[str, ...]:
        """What is written beside the colours."""
        return tuple(
            f"{_WORDS[each]} {format_share(share)}" for each, share in self._shares.items()
        )

    def show_shares(self, shares: Mapping[Match, float]) -> None:
        """Show shares of pixels."""
        self._shares = shares
        self.setAccessibleDescription(", ".join(self.texts))
        self.updateGeometry()
        self.update()

    def _places(self, width: float) -> list[QRectF]:
        """Return where each entry is, with its swatch."""
        metrics = QFontMetricsF(self._theme.ui_font(11))
        found: list[QRectF] = []
        left = top = 0.0
        for text in self.texts:
            wide = _SWATCH + 5 + metrics.horizontalAdvance(text)
            if left and left + wide > width:
                left, top = 0.0, top + _LINE
            found.append(QRectF(left, top, wide, _LINE))
            left += wide + _GAP
        return found

    # Overrides of Qt methods

    @override
    def hasHeightForWidth(self) -> bool:
        return True

    @override
    def heightForWidth(self, width: int) -> int:
        return int(max((each.bottom() for each in self._places(width)), default=_LINE)) + 2

    @override
    def sizeHint(self) -> QSize:
        return QSize(160, self.heightForWidth(max(self.width(), 160)))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self._theme.ui_font(11))
        for area, match, text in zip(
            self._places(self.width()), self._shares, self.texts, strict=True
        ):
            swatch = QRectF(area.left(), area.center().y() - _SWATCH / 2 + 1, _SWATCH, _SWATCH)
            painter.fillRect(swatch, MATCH_COLORS[match])
            painter.setPen(self._theme.color("text2"))
            beside = area.adjusted(_SWATCH + 5, 0, 1, 0)
            painter.drawText(beside, Qt.AlignmentFlag.AlignVCenter, text)
        painter.end()
