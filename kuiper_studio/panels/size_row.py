"""Fields for the sizes of one input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSpinBox,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from engine.errors import FeedError
from engine.shapes import LARGEST_SIZE, parse_shapes
from engine.text import format_shape
from kuiper_studio.icons import icon
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.runtime import RuntimeOperand
    from kuiper_studio.panels.input_sizes import Dimension
    from kuiper_studio.theme import Theme

__all__ = ["SizeRow"]

_PER_LINE: Final = 4
_HEIGHT: Final = 26
_AXES: Final = {3: "CHW", 4: "NCHW", 5: "NCDHW"}
_AXIS_NAMES: Final = {
    "N": "batch", "C": "channels", "D": "depth", "H": "height", "W": "width",
}  # fmt: skip


class SizeRow(QWidget):
    """Fields for the dimensions of one input.

    Enter applies all fields; a known size is also applied when its field loses the focus. A
    symbol has a field at its first dimension only. An input of unknown rank has one field for
    all sizes.

    Parameters
    ----------
    operand : RuntimeOperand
    theme : Theme

    Signals
    -------
    chosen : tuple of (int or None)
        The sizes in the fields; None for a size whose field is elsewhere.
    reset_requested
        The user wants the exported size.
    error_changed : str
        The error in the field for all sizes; ``""`` for none.
    """

    chosen = Signal(object)
    reset_requested = Signal()
    error_changed = Signal(str)

    def __init__(
        self, operand: RuntimeOperand, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.operand = operand
        self._font = theme.mono_font()
        self._dims: tuple[Dimension, ...] | None = None
        self.fields: list[QSpinBox] = []
        self.whole = QLineEdit()
        self.whole.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        self.whole.setPlaceholderText("1,3,224,224")
        self.whole.setAccessibleName(f"Shape of input {operand.name}")
        self.whole.returnPressed.connect(self._take)
        self.reset = self._make_reset_button(theme)
        caption = QLabel("Size")
        caption.setProperty("role", "secondary")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(4)
        self._grid.setVerticalSpacing(4)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(caption, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(self._grid)
        row.addWidget(self.whole, 1)
        row.addStretch(1)
        row.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignTop)
        caption.setFixedHeight(_HEIGHT)

    def show_dimensions(
        self, dims: tuple[Dimension, ...] | None, *, editable: bool, resettable: bool
    ) -> None:
        """Show sizes.

        Parameters
        ----------
        dims : tuple of Dimension, or None
            None where the rank is not known.
        editable : bool
            False for an array, which has its own size.
        resettable : bool
            Whether the sizes differ from the exported ones.
        """
        shown = [self._outline(dim) for dim in self._dims or ()]
        if shown != [self._outline(dim) for dim in dims or ()] or not self.fields:
            self._build(dims or ())
        self._dims = dims
        for field, dim in zip(self.fields, self._asked(), strict=True):
            self._show_size(field, dim, editable=editable)
        self.whole.setVisible(self.operand.shape is None)
        if dims is not None and self.operand.shape is None:
            self.whole.setText(format_shape(dim.size for dim in dims))
        self.whole.setEnabled(editable)
        self.reset.setEnabled(resettable)

    def sizes(self) -> tuple[int | None, ...]:
        """The sizes in the fields; None for a size whose field is elsewhere."""
        by_place = iter(self.fields)
        return tuple(
            None if dim.is_repeated else next(by_place).value() for dim in self._dims or ()
        )

    def ask(self) -> bool:
        """Focus the first open size; return False if there is none."""
        if self._dims is None:
            self.whole.setFocus(Qt.FocusReason.OtherFocusReason)
            return True
        for field, dim in zip(self.fields, self._asked(), strict=True):
            if dim.is_open:
                field.setFocus(Qt.FocusReason.OtherFocusReason)
                field.selectAll()
                return True
        return False

    def _asked(self) -> list[Dimension]:
        """Return the dimensions that have a field."""
        if self.operand.shape is None:
            return []
        return [dim for dim in self._dims or () if not dim.is_repeated]

    # Building

    def _make_reset_button(self, theme: Theme) -> QToolButton:
        button = QToolButton()
        button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        button.setIcon(icon("reset", theme))
        button.setIconSize(QSize(15, 15))
        button.setFixedHeight(_HEIGHT)
        exported = self.operand.shape
        text = format_shape(exported) if exported is not None else "?"
        tip = f"Back to the exported size, {text}"
        button.setToolTip(tip_text(tip))
        button.setAccessibleName(tip)
        button.clicked.connect(self.reset_requested)
        return button

    @staticmethod
    def _outline(dim: Dimension) -> tuple[object, bool]:
        return dim.exported, dim.is_repeated

    def _build(self, dims: Sequence[Dimension]) -> None:
        while self._grid.count():
            item = self._grid.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.fields = []
        if self.operand.shape is None:
            return
        for place, dim in enumerate(dims):
            line, column = divmod(place, _PER_LINE)
            if place:
                times = QLabel("×")
                times.setProperty("role", "tertiary")
                self._grid.addWidget(times, line, 2 * column)
            self._grid.addWidget(self._make_cell(place, dim, len(dims)), line, 2 * column + 1)

    def _make_cell(self, place: int, dim: Dimension, rank: int) -> QWidget:
        if dim.is_repeated:
            label = QLabel(str(dim.exported))
            label.setProperty("role", "mono2")
            label.setToolTip(f"{dim.exported} is set at its first dimension")
            return label
        field = QSpinBox()
        field.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        field.setProperty("plain", True)  # noqa: FBT003 - Qt's signature
        field.setFixedHeight(_HEIGHT)
        field.setFont(self._font)
        field.lineEdit().setTextMargins(5, 0, 5, 0)
        field.setRange(1, LARGEST_SIZE)
        field.setKeyboardTracking(False)
        field.setAlignment(Qt.AlignmentFlag.AlignRight)
        axis = _AXIS_NAMES[_AXES[rank][place]] if rank in _AXES else ""
        shown = "?" if dim.exported is None else str(dim.exported)
        words = [
            f"Dimension {place} of input {self.operand.name}",
            axis,
            f"exported as {shown}",
        ]
        field.setAccessibleName(", ".join(filter(None, words)))
        field.setToolTip(tip_text(field.accessibleName()))
        if isinstance(dim.exported, str):
            field.setPrefix(f"{dim.exported} ")
        field.installEventFilter(self)
        field.valueChanged.connect(self._on_changed)
        self.fields.append(field)
        return field

    @staticmethod
    def _show_size(field: QSpinBox, dim: Dimension, *, editable: bool) -> None:
        field.blockSignals(True)  # noqa: FBT003 - Qt's signature
        field.setValue(dim.size)
        field.blockSignals(False)  # noqa: FBT003 - Qt's signature
        field.setEnabled(editable)
        field.setProperty("open", dim.is_open)
        field.style().unpolish(field)
        field.style().polish(field)
        metrics = field.fontMetrics()
        digits = max(3, len(str(dim.size)))
        text = metrics.horizontalAdvance(field.prefix() + "0" * digits)
        field.setFixedWidth(text + 18)

    # Slots

    @Slot()
    def _on_changed(self) -> None:
        # While sizes are open, nothing is applied until all are given.
        if self._dims is not None and not any(dim.is_open for dim in self._dims):
            self._take()

    @Slot()
    def _take(self) -> None:
        if self.operand.shape is not None:
            self.chosen.emit(self.sizes())
            return
        name = self.operand.name
        try:
            shapes = parse_shapes([f"{name}={self.whole.text()}"], [self.operand]).shapes
        except FeedError as exc:
            self.error_changed.emit(f"{exc}.")
            return
        self.error_changed.emit("")
        self.chosen.emit(shapes[name])

    # Override of a Qt method

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        enter = isinstance(event, QKeyEvent) and event.key() in {
            Qt.Key.Key_Return,
            Qt.Key.Key_Enter,
        }
        if enter and event.type() == QEvent.Type.KeyPress and isinstance(watched, QSpinBox):
            watched.interpretText()
            if self._dims is not None and any(dim.is_open for dim in self._dims):
                self._take()
            return True
        return super().eventFilter(watched, event)
