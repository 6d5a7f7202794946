"""The line above two tabs: how one was fitted to the other, or why it was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QSpinBox, QWidget

from kuiper_studio.elided_label import ElidedLabel

if TYPE_CHECKING:
    from kuiper_studio.tensor_view.fitting import Fitted

__all__ = ["PairNote"]


class PairNote(QWidget):
    """Hidden while there is nothing to say.

    Signals
    -------
    start_chosen : int
        The slice is to begin elsewhere.
    """

    start_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = ElidedLabel("secondary")
        self.text.setObjectName("tensorNote")
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.start = QSpinBox()
        self.start.setObjectName("tensorSliceStart")
        self.start.setAccessibleName("Where the slice begins")
        self.start.setToolTip("Index at which the slice of the other tab begins")
        self.start.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        self.start.setKeyboardTracking(False)
        self.start.valueChanged.connect(self.start_chosen)
        self._from = QLabel("from")
        self._from.setProperty("role", "secondary")
        self._from.setBuddy(self.start)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 12, 4)
        row.setSpacing(6)
        row.addWidget(self.text, 1)
        row.addWidget(self._from)
        row.addWidget(self.start)
        self.hide()

    def show_reason(self, reason: str) -> None:
        """Say why nothing stands beside the tab; ``""`` for nothing."""
        self._show(reason, 0, 0)

    def show_fitted(self, title: str, fitted: Fitted) -> None:
        """Say how the tab of a title was fitted; nothing where it has the shape."""
        text = f"{title}: {fitted.words}" if fitted.words else ""
        self._show(text, fitted.start, fitted.last)

    def _show(self, text: str, start: int, last: int) -> None:
        self.text.setText(text)
        self.start.blockSignals(True)  # noqa: FBT003 - Qt's signature
        self.start.setRange(0, last)
        self.start.setValue(start)
        self.start.blockSignals(False)  # noqa: FBT003
        for widget in (self._from, self.start):
            widget.setVisible(last > 0)
        self.setVisible(bool(text))
