"""One weight of an operator: shape, statistics, histogram and a picture in pages."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QRect, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QFontMetrics, QGuiApplication, QPainter
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.statistics import TensorStatistics, histogram, sampling_step, statistics
from engine.text import format_brief, format_number, format_shape
from kuiper_studio.focus_ring import draw_focus_ring
from kuiper_studio.icons import icon, pixmap
from kuiper_studio.item_models.text import tip_text
from kuiper_studio.panels.filters import (
    ChannelScales,
    Filters,
    measure_filters,
    scales_of_channels,
)
from kuiper_studio.panels.weight_canvas import (
    ColorBar,
    FilterBars,
    Histogram,
    ValueStrip,
    WeightPicture,
)
from kuiper_studio.panels.weights import TilePages

if TYPE_CHECKING:
    from PySide6.QtGui import QEnterEvent, QMouseEvent, QPaintEvent

    from engine.runtime import RuntimeAttribute
    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["WeightSummary", "WeightView", "summarize"]

BINS: Final = 62
HEAD_HEIGHT: Final = 26


@dataclass(frozen=True, slots=True)
class WeightSummary:
    """Summary of a weight, computed once.

    Attributes
    ----------
    statistics : TensorStatistics
    counts : ndarray of int64
        Histogram from `low` to `high`.
    low, high : float
    step : int
        The histogram counts one element of `step`.
    filters : Filters or None
        Of its filters or rows; None if it has no two.
    """

    statistics: TensorStatistics
    counts: Array
    low: float
    high: float
    step: int = 1
    filters: Filters | None = None


def summarize(array: Array, axis: int = 0) -> WeightSummary:
    """Compute statistics, histogram and norms of a weight.

    Parameters
    ----------
    array : ndarray
    axis : int, optional
        Along which the filters are.

    Raises
    ------
    TypeError
        If the weight is complex.
    """
    if array.dtype.kind == "c":
        raise TypeError("complex numbers have no range")
    found = statistics(array)
    low, high = found.min, found.max
    if not math.isfinite(low):  # only NaN and Inf, or empty
        low = high = 0.0
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = sampling_step(array.size)
    counts = histogram(array, low, high, BINS, step)
    filters = measure_filters(array, axis) if array.ndim > axis else None
    return WeightSummary(found, counts, low, high, step, filters)


class _Head(QAbstractButton):
    """Header: name, shape, dtype and range; without room for all, the dtype is left out."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shape = self._facts = self._range = ""
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_weight(self, name: str, shape: str, dtype: str) -> None:
        """Name a weight, whose range is not known yet."""
        self._shape, self._facts = shape, f"{shape} {dtype}"
        self.setText(name)
        self.setAccessibleName(f"{name} {self._facts}")
        self.setToolTip(tip_text(f"{name} {self._facts}"))
        self.set_range("")

    def set_range(self, text: str) -> None:
        """Change the range."""
        self._range = text
        self.setAccessibleDescription(text)
        self.update()

    @override
    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.update()

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.toggle()  # as it was before the first of the two clicks
        event.ignore()

    @override
    def sizeHint(self) -> QSize:
        return QSize(120, HEAD_HEIGHT)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        theme, area = self._theme, self.rect()
        painter = QPainter(self)
        if self.underMouse():
            painter.fillRect(area, theme.color("hover"))
        name = "chevron-down" if self.isChecked() else "chevron-right"
        drawn = pixmap(name, theme, "text3", 10, self.devicePixelRatioF())
        painter.drawPixmap(6, (area.height() - 10) // 2, drawn)
        mono = theme.mono_font()
        metrics = QFontMetrics(mono)
        painter.setFont(mono)
        middle = Qt.AlignmentFlag.AlignVCenter
        right = 0 if self.isChecked() else metrics.horizontalAdvance(self._range) + 8
        painter.setPen(theme.color("text"))
        title = metrics.elidedText(
            self.text(), Qt.TextElideMode.ElideMiddle, max(40, area.width() - 32 - right)
        )
        painter.drawText(area.adjusted(20, 0, 0, 0), middle, title)
        left = 20 + max(metrics.horizontalAdvance(title) + 10, 54)
        painter.setPen(theme.color("text2"))
        room = area.width() - left - right - 10
        has_room = metrics.horizontalAdvance(self._facts) <= room
        facts = self._facts if has_room else self._shape
        facts = metrics.elidedText(facts, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRect(left, 0, room, area.height()), middle, facts)
        if not self.isChecked():
            painter.setPen(theme.color("text"))
            flags = middle | Qt.AlignmentFlag.AlignRight
            painter.drawText(area.adjusted(0, 0, -10, 0), flags, self._range)
        if self.hasFocus():
            draw_focus_ring(painter, theme, area)
        painter.end()


class WeightView(QWidget):
    """A weight; unfolded it shows statistics and picture.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    unfolded
        The user wants to see it.
    tensor_requested
        The user wants to see it in the tensor view.
    """

    unfolded = Signal()
    tensor_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.name = self._expression = ""
        self.attribute: RuntimeAttribute | None = None
        self._scales: ChannelScales | None = None
        self._found: WeightSummary | None = None
        self._array: Array = np.zeros(0)
        self._page = 0
        self._pages = TilePages(())
        self._filled = False
        self.head = _Head(theme)
        self.body = QWidget()
        self.body.hide()
        self._message = QLabel()
        self._message.setTextFormat(Qt.TextFormat.PlainText)
        self._message.setProperty("role", "caption")
        self._message.setWordWrap(True)
        self._message.setContentsMargins(20, 0, 10, 6)
        self._message.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in (self._make_head_row(), self._message, self.body):
            column.addWidget(widget)
        self.head.toggled.connect(self._on_toggled)
        self._make_menu()

    def show_weight(
        self,
        operator: str,
        name: str,
        attribute: RuntimeAttribute,
        *,
        unfolded: bool,
        transposed: bool = False,
        scales: Array | None = None,
    ) -> None:
        """Show another weight, whose summary or message comes next.

        Parameters
        ----------
        operator, name : str
        attribute : RuntimeAttribute
        unfolded : bool
        transposed : bool
            See `TilePages`.
        scales : ndarray, optional
            Of an int8 weight.
        """
        self.name, self.attribute = name, attribute
        self._scales = scales_of_channels(scales) if scales is not None else None
        self._found, self._page = None, 0
        pages = TilePages(attribute.shape, transposed)
        self._pages = replace(pages, rgb=True) if pages.can_be_rgb else pages
        self._expression = f"graph.operator({operator!r}).attributes[{name!r}]"
        self._copy_button.setToolTip(tip_text(f"Copy the Python expression {self._expression}"))
        self._copy_button.setAccessibleName(f"Copy the Python expression of {name}")
        self._show_action.setEnabled(attribute.is_stored)
        self.head.show_weight(name, format_shape(attribute.shape), attribute.stored_dtype)
        self._message.hide()
        with QSignalBlocker(self.head):  # the user did not ask
            self.head.setChecked(unfolded)
        self._copy_button.setVisible(unfolded)
        if not unfolded:
            self.body.hide()

    @property
    def axis(self) -> int:
        """Dimension along which the filters are."""
        return int(self._pages.transposed)

    def unfold(self) -> None:
        """Show the body."""
        self.head.setChecked(True)

    def show_summary(self, summary: WeightSummary, array: Array) -> None:
        """Show the summary."""
        found = summary.statistics
        self.head.set_range(f"{format_brief(found.min)} … {format_brief(found.max)}")
        self._found, self._array = summary, array
        self._message.hide()
        if not self.head.isChecked():
            return  # made on demand: most are never shown, and making them takes longest
        if not self._filled:
            self._fill_body()
            self._filled = True
        self._show_parts()
        special = found.nan + found.pinf + found.ninf
        share = 100 * found.zeros / found.count if found.count else 0.0
        texts = {
            "min": _number(found.min),
            "max": _number(found.max),
            "mean": _number(found.mean),
            "std": _number(found.std),
            "zeros": f"{share:.1f} %",
            "NaN / Inf": f"{found.nan} / {found.pinf + found.ninf}" if special else "",
        }
        for key, text in texts.items():
            self._numbers[key].setText(text)
        self._form.setRowVisible(self._numbers["NaN / Inf"], bool(special))
        self._histogram.show_counts(summary.counts, summary.low, summary.high, summary.step)
        self._show_filters(summary.filters)
        if self._pages.count:
            self._show_page(self._page)
        else:
            self._strip.show_values(array)
        self.body.show()

    def show_message(self, text: str) -> None:
        """Show why there is no summary, or not yet."""
        self._message.setText(text)
        self._message.setVisible(bool(text))
        self.body.hide()

    # Building

    def _make_menu(self) -> None:
        """Have a context menu on the head and on the body."""
        show = QAction("Show in tensor view", self)
        show.setObjectName("showWeight")
        self._show_action = show
        show.triggered.connect(self.tensor_requested)
        copy = QAction("Copy Python expression", self)
        copy.triggered.connect(self._copy)
        self.addActions([show, copy])
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def _make_head_row(self) -> QWidget:
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 4, 0)
        line.setSpacing(0)
        copy = QToolButton()
        copy.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        copy.setIcon(icon("copy", self._theme))
        copy.setIconSize(QSize(14, 14))
        copy.clicked.connect(self._copy)
        copy.setVisible(False)
        self._copy_button = copy
        line.addWidget(self.head, 1)
        line.addWidget(copy)
        return row

    def _fill_body(self) -> None:
        self._picture = WeightPicture(self._theme)
        self._picture.turned.connect(self._turn)
        self._strip = ValueStrip(self._theme)
        self._histogram = Histogram(self._theme)
        self._colors = ColorBar(self._theme)
        self._form, self._numbers = self._make_numbers()
        self._norms, self._bars = self._make_bars()
        self._scale_norms, self._scale_bars = self._make_bars()
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(4)
        right.addLayout(self._form)
        right.addWidget(self._histogram, 1)
        top = QHBoxLayout()
        top.setSpacing(12)
        for picture in (self._picture, self._strip):
            top.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(right, 1)
        column = QVBoxLayout(self.body)
        column.setContentsMargins(10, 0, 10, 4)
        column.setSpacing(4)
        column.addLayout(top)
        self._pager = self._make_pager()
        for widget in (
            self._pager, self._norms, self._bars, self._scale_norms, self._scale_bars,
        ):  # fmt: skip
            column.addWidget(widget)

    def _make_bars(self) -> tuple[QLabel, FilterBars]:
        caption, bars = QLabel(), FilterBars(self._theme)
        caption.setProperty("role", "caption")
        bars.chosen.connect(self._go_to_filter)
        return caption, bars

    def _show_parts(self) -> None:
        """Show the parts that a weight of this shape has."""
        has_pages, scales = self._pages.count > 0, self._scales
        self._picture.setVisible(has_pages)
        self._strip.setVisible(not has_pages)
        self._pager.setVisible(has_pages)
        self._rgb.setVisible(self._pages.can_be_rgb)
        with QSignalBlocker(self._rgb):
            self._rgb.setChecked(self._pages.rgb)
        several = scales is not None and len(scales.norms) > 1
        self._scale_norms.setVisible(scales is not None)
        self._scale_bars.setVisible(several)
        if scales is not None:
            by = f" by {self._word}" if several else ""
            self._scale_norms.setText(scales.summary() + by)
            self._scale_bars.show_filters(scales, self._word)

    def _make_numbers(self) -> tuple[QFormLayout, dict[str, QLabel]]:
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(1)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        numbers = {}
        for key in ("min", "max", "mean", "std", "zeros", "NaN / Inf"):
            caption, number = QLabel(key), QLabel()
            caption.setProperty("role", "secondary")
            number.setProperty("role", "mono")
            number.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            number.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            form.addRow(caption, number)
            numbers[key] = number
        return form, numbers

    def _make_pager(self) -> QWidget:
        # Of the body from the start: a widget that is shown without a parent is a window.
        pager = QWidget(self.body)
        row = QHBoxLayout(pager)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        self._caption = QLabel()
        self._caption.setProperty("role", "mono2")
        self._buttons = []
        for name, tip, step in (
            ("chevron-left", "Previous page (left arrow on the picture)", -1),
            ("chevron-right", "Next page (right arrow on the picture)", 1),
        ):
            button = QToolButton()
            button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
            button.setIcon(icon(name, self._theme))
            button.setIconSize(QSize(12, 12))
            button.setAutoRepeat(True)
            button.setToolTip(tip)
            button.setAccessibleName(tip)
            button.setProperty("step", step)
            button.clicked.connect(self._on_pager_clicked)
            self._buttons.append(button)
        row.addWidget(self._buttons[0])
        row.addWidget(self._caption)
        row.addWidget(self._buttons[1])
        row.addSpacing(8)
        row.addWidget(self._colors, 1)
        row.addWidget(self._make_rgb())
        return pager

    def _make_rgb(self) -> QCheckBox:
        self._rgb = QCheckBox("RGB", self.body)
        self._rgb.setToolTip("Show each filter as one picture in colour, grey at zero")
        self._rgb.toggled.connect(self._on_rgb_toggled)
        return self._rgb

    @property
    def _word(self) -> str:
        """What a filter is called."""
        if len(self._pages.shape) < 3:
            return "row"
        return "out"

    # Slots

    @Slot(bool)
    def _on_toggled(self, on: bool) -> None:  # noqa: FBT001 - a slot of toggled
        self._copy_button.setVisible(on)
        if on:
            if self._found is not None:
                self.show_summary(self._found, self._array)
            self.unfolded.emit()
        else:
            self.body.hide()

    @Slot()
    def _on_pager_clicked(self) -> None:
        self._turn(int(self.sender().property("step")))

    @Slot(int)
    def _turn(self, step: int) -> None:
        page = min(max(0, self._page + step), self._pages.count - 1)
        if page != self._page:
            self._show_page(page)

    @Slot(bool)
    def _on_rgb_toggled(self, on: bool) -> None:  # noqa: FBT001 - a slot of toggled
        self._pages = replace(self._pages, rgb=on)
        self._show_page(0)

    @Slot(int)
    def _go_to_filter(self, place: int) -> None:
        """Show a filter; of many in one picture, only mark its norm."""
        if not self._pages.transposed:
            self._show_page(self._pages.page_of(place))
        self._bars.mark(place)

    def _show_filters(self, filters: Filters | None) -> None:
        if filters is not None:
            self._norms.setText(f"{filters.summary()} by {self._word}")
            self._bars.show_filters(filters, self._word)
        self._norms.setVisible(filters is not None)
        self._bars.setVisible(filters is not None)

    def _show_page(self, page: int) -> None:
        self._page = page
        self._picture.show_page(self._pages, self._array, page)
        self._colors.set_limit(self._picture.limit)
        self._colors.setVisible(not self._pages.rgb)
        own_page = self._pages.count == self._pages.shape[0] and not self._pages.transposed
        self._bars.mark(page if own_page else -1)
        for button in self._buttons:
            button.setVisible(self._pages.count > 1)
        thinned = f"scale 1 : {self._picture.step}" if self._picture.step > 1 else ""
        self._caption.setText(", ".join(filter(None, (self._pages.caption(page), thinned))))
        self._caption.setVisible(bool(self._caption.text()))
        self._buttons[0].setEnabled(page > 0)
        self._buttons[1].setEnabled(page < self._pages.count - 1)

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._expression)

    # Overrides of Qt methods

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Go to the tensor view; the picture, the numbers and the head leave this to us."""
        self.tensor_requested.emit()


def _number(value: float) -> str:
    return format_number(float(value))
