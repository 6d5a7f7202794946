"""Item model of a picture's numbers, which formats only visible cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from typing_extensions import override

from engine.text import MINUS, format_brief, format_complex

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["MOST_SECTIONS", "PlaneTableModel", "cell_text"]

# Maximum rows or columns; a view needs some bytes for each.
MOST_SECTIONS: Final = 1_000_000

_Index = QModelIndex | QPersistentModelIndex


def cell_text(value: np.generic) -> str:
    """Format an element with six significant digits, integers and bools exactly."""
    kind = value.dtype.kind
    if kind == "f":
        return format_brief(float(value), 6)
    if kind == "c":
        return format_complex(complex(value), 4)
    return str(value).replace("-", MINUS)


class PlaneTableModel(QAbstractTableModel):
    """Rows and columns of one channel; a vector is a single column.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._plane: Array = np.zeros((0, 0), np.float32)
        self._limit = math.inf
        self._pointed: tuple[int, int] | None = None

    @property
    def plane(self) -> Array:
        """The shown array, shape (H, W)."""
        return self._plane

    def set_plane(self, plane: Array, limit: float = math.inf) -> None:
        """Show an array of shape (H, W), in its own dtype; aliased.

        Elements beyond the limit, of either sign, have the colour of differences.
        """
        same_shape = plane.shape == self._plane.shape
        self._limit = limit
        if same_shape and plane.size:
            self._plane = plane
            last = self.index(self.rowCount() - 1, self.columnCount() - 1)
            self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self._plane = plane
        self.endResetModel()

    def set_pointed(self, place: tuple[int, int] | None) -> None:
        """Give an element the background of what is under the mouse."""
        before, self._pointed = self._pointed, place
        for each in {before, place}:
            index = self.index(*each) if each is not None else QModelIndex()
            if index.isValid():
                self.dataChanged.emit(index, index, [Qt.ItemDataRole.BackgroundRole])

    def _color(self, value: np.generic) -> Any:  # noqa: ANN401 - a colour, or None
        if value.dtype.kind != "f" or np.isfinite(value):
            is_beyond = self._limit < math.inf and np.abs(value) > self._limit
            return self._theme.color("div") if is_beyond else None
        token = "nan" if np.isnan(value) else "pinf" if float(value) > 0 else "ninf"
        return self._theme.color(token)

    # Overrides of Qt methods

    @override
    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else min(self._plane.shape[0], MOST_SECTIONS)

    @override
    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else min(self._plane.shape[1], MOST_SECTIONS)

    @override
    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        value = self._plane[index.row(), index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return cell_text(value)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"[{index.row()}, {index.column()}] {value}"
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._color(value)
        is_pointed = self._pointed == (index.row(), index.column())
        if role == Qt.ItemDataRole.BackgroundRole and is_pointed:
            return self._theme.color("hover")
        return None

    @override
    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        return str(section) if role == Qt.ItemDataRole.DisplayRole else None
