"""The head of the properties: what an operator or a group is, and how it is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout
from typing_extensions import override

from engine.cost import Cost, cost
from engine.errors import UnsupportedOperatorError
from engine.text import format_amount
from kuiper_studio.elided_label import ElidedLabel, WrappedLabel
from kuiper_studio.families import family_of
from kuiper_studio.icons import pixmap
from kuiper_studio.item_models.statuses import STATUS_LOOKS, DisplayStatus
from kuiper_studio.item_models.text import tip_text
from kuiper_studio.panels.random_row import RandomRow
from kuiper_studio.theme import restyle

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from engine.runtime import RuntimeOperator
    from kuiper_studio.layout.groups import Group
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["OperatorHeader"]


class OperatorHeader(QFrame):
    """Type, family, state, name, index and cost of the operator, and why it cannot run.

    Signals
    -------
    layers_requested
        The user wants to load a layer for an operator that has none.
    seed_requested
        The user wants to choose the seed that an operator draws by.
    """

    layers_requested = Signal()
    seed_requested = Signal()

    def __init__(self, session: StudioSession, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._theme = theme
        self._family = "other"
        self.setProperty("role", "panel")
        self._type = ElidedLabel("title")
        self._chip = QLabel()
        self._chip.setTextFormat(Qt.TextFormat.PlainText)
        self._glyph, self._status = QLabel(), QLabel()
        self._name = ElidedLabel("mono2")
        self._index = QLabel()
        self._index.setProperty("role", "mono2")
        self._cost = QLabel()
        self._cost.setProperty("role", "mono2")
        self._reason = WrappedLabel("secondary")
        self._kernel = ElidedLabel("mono2")
        self._kernel.setObjectName("propertiesKernel")
        self._file = ElidedLabel("secondary")
        self._random = RandomRow(theme)
        self._random.seed_requested.connect(self.seed_requested)
        self._load = QPushButton("Load layers…")
        self._load.setProperty("role", "link")
        self._load.setToolTip("Run a Python file with your own layers")
        self._load.clicked.connect(self.layers_requested)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 10, 8)
        column.setSpacing(2)
        self._first_row = self._row(self._type, self._chip, self._glyph, self._status)
        column.addLayout(self._first_row)
        self._second_row = self._row(self._name, self._index, None, self._cost)
        column.addLayout(self._second_row)
        column.addWidget(self._kernel)
        column.addWidget(self._file)
        column.addWidget(self._random)
        column.addWidget(self._reason)
        column.addWidget(self._load, 0, Qt.AlignmentFlag.AlignLeft)

    @staticmethod
    def _row(
        first: ElidedLabel, second: QLabel, glyph: QLabel | None, last: QLabel
    ) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(first)
        row.addWidget(second)
        row.addStretch(1)
        if glyph is not None:
            row.addWidget(glyph)
        row.addWidget(last)
        return row

    def show_operator(
        self, operator: RuntimeOperator, status: DisplayStatus, note: str, reason: str
    ) -> None:
        """Describe an operator; `note` comes before its cost."""
        theme = self._theme
        family = family_of(operator.type)
        self._family = family.token
        color = theme.color(family.token).name()
        self._type.setText(operator.type)
        self._chip.setText(family.label)
        self._chip.setFont(theme.ui_font(9, 700))
        restyle(self._chip, _chip_style(color))
        look = STATUS_LOOKS[status]
        ink, scale = look.text_token, self.devicePixelRatioF()
        self._glyph.setPixmap(pixmap(look.icon, theme, ink, 13, scale))
        self._glyph.setToolTip(look.text)
        self._status.setText(look.text)
        restyle(self._status, f"color: {theme.color(ink).name()}; font-weight: 600;")
        self._name.setText(operator.name)
        self._index.setText(f"#{operator.index}")
        found = _cost_text(cost(operator, self._session.tensors))
        self._cost.setText(" · ".join(part for part in (note, found) if part))
        self._cost.setToolTip(
            "Measured time, and multiply-accumulates or operations of one run"
        )
        record = self._session.record(operator.name)
        kernel = (
            record.kernel if status is DisplayStatus.EXECUTED and record is not None else ""
        )
        pinned = self._session.pinned_kernel(operator.name)
        self._kernel.setText(f"by {kernel}" if kernel else f"pinned to {pinned}")
        kernel = kernel or pinned
        self._kernel.setToolTip(self._session.describe_kernel(kernel))
        self._kernel.setVisible(bool(kernel))
        self._reason.setText(reason)
        self._reason.setVisible(bool(reason))
        file = operator.layer_file
        self._file.setText(f"layer from {file.name}" if file is not None else "")
        self._file.setToolTip(tip_text(str(file or "")))
        self._file.setVisible(file is not None)
        self._load.setVisible(isinstance(operator.error, UnsupportedOperatorError))
        self._random.show_text(self._session.random_text(operator.name))
        self._make_room()
        self.update()

    def show_group(self, group: Group) -> None:
        """Name a group."""
        color = self._theme.color("text2").name()
        self._family = "ctl"
        self._type.setText(group.name)
        self._chip.setText(f"×{len(group.children)}" if group.is_stack else "GROUP")
        self._chip.setFont(self._theme.ui_font(9, 700))
        restyle(self._chip, _chip_style(color))
        self._name.setText("equal blocks" if group.is_stack else "of operators")
        for label in (self._glyph, self._status, self._index, self._cost):
            label.clear()
        for widget in (self._kernel, self._reason, self._file, self._load):
            widget.hide()
        self._random.show_text("")
        self._make_room()
        self.update()

    def _make_room(self) -> None:
        """Leave out what the colour and the glyph say as well, where the type is long."""
        margins = self._column.contentsMargins()
        room = self.width() - margins.left() - margins.right()
        shown = (self._type, self._chip, self._glyph, self._status)
        gaps = self._first_row.spacing() * len(shown)
        missing = sum(label.sizeHint().width() for label in shown) + gaps - room
        for label in (self._chip, self._status):
            label.setVisible(missing <= 0)
            if missing > 0:
                missing -= label.sizeHint().width() + self._first_row.spacing()
        labels = (self._name, self._index, self._cost)
        gaps = self._second_row.spacing() * len(labels)
        is_full = sum(label.sizeHint().width() for label in labels) + gaps > room
        self._put_cost_below(is_below=is_full and bool(self._cost.text()))

    def _put_cost_below(self, *, is_below: bool) -> None:
        """Give the cost a line of its own, or the end of the name's."""
        column, row = self._column, self._second_row
        if is_below is (column.indexOf(self._cost) >= 0):
            return
        if is_below:
            row.removeWidget(self._cost)
            column.insertWidget(column.indexOf(row) + 1, self._cost)
        else:
            column.removeWidget(self._cost)
            row.addWidget(self._cost)

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.fillRect(0, 0, 3, self.height(), self._theme.color(self._family))
        painter.end()


def _chip_style(color: str) -> str:
    return (
        f"color: {color}; border: 1px solid {color}; border-radius: 3px;"
        "padding: 0 4px; min-height: 13px; max-height: 13px;"
        "font-size: 9px; font-weight: 700;"
    )


def _cost_text(found: Cost) -> str:
    count, unit = (found.macs, "MAC") if found.macs else (found.flops, "FLOP")
    return format_amount(count, unit) if count else ""
