"""The axis strip: what each dimension is, where it goes, and a slider to step through one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QMimeData, QPoint, QRegularExpression, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QDrag, QKeyEvent, QRegularExpressionValidator
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QSlider,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.menus import make_menu
from kuiper_studio.tensor_view.axis_roles import AxisRole, ShownAxis
from kuiper_studio.tensor_view.tool_strip import Chooser

if TYPE_CHECKING:
    from PySide6.QtGui import QDragEnterEvent, QDropEvent, QMouseEvent, QResizeEvent

    from kuiper_studio.theme import Theme

__all__ = ["AxisChip", "AxisStrip"]

_HEIGHT: Final = 36
_CHIP: Final = 24
_SLIDER: Final = 140
_PLAY_MS: Final = 125
_MIME: Final = "application/x-kuiper-studio-axis"
_PATTERN: Final = QRegularExpression(r"\s*\d{1,6}\s*,\s*\d{1,6}\s*,\s*\d{1,6}\s*")
# How much of a chip is written, the most first: size, name and place; without the size; ...
_FULL, _NAMED, _BRIEF = range(3)
_TIPS: Final = {
    AxisRole.ROW: "Down the picture",
    AxisRole.COLUMN: "Across the picture",
    AxisRole.FACET: "A tile of the mosaic for each index",
    AxisRole.COLOR: "Three indexes as red, green and blue",
    AxisRole.SLIDER: "One index at a time",
}


class AxisChip(QToolButton):
    """One axis: what it is and where it goes; its menu changes that.

    Parameters
    ----------
    strip : AxisStrip
    """

    def __init__(self, strip: AxisStrip) -> None:
        super().__init__(strip)
        self.strip = strip
        self.axis = ShownAxis(0, "", 1, AxisRole.SLIDER, 0, ())
        self._pressed = QPoint()
        self.setProperty("chip", True)  # noqa: FBT003 - Qt's signature
        self.setFixedHeight(_CHIP)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAcceptDrops(True)
        menu = make_menu(self)
        menu.aboutToShow.connect(self._fill)
        self.setMenu(menu)

    def show_axis(self, axis: ShownAxis) -> None:
        """Show an axis."""
        self.axis = axis
        where = _where(axis)
        self.setAccessibleName(f"{axis.size} {axis.name}: {where}")
        self.setToolTip(
            f"{axis.size} {axis.name} → {where}. Drag it onto another to exchange them; "
            "Ctrl+Left and Ctrl+Right do that too"
        )

    def write(self, brevity: int) -> None:
        """Write as much as there is room for."""
        axis = self.axis
        name = axis.name.replace("&", "&&")
        if brevity == _BRIEF:
            self.setText(f"{name} → {_where(axis)}" if axis.is_stepped else name)
        elif brevity == _NAMED:
            self.setText(f"{name} → {_where(axis)}")
        else:
            self.setText(f"{axis.size} {name} → {_where(axis)}")

    @Slot()
    def _fill(self) -> None:
        menu, axis = self.menu(), self.axis
        menu.clear()
        for role in AxisRole:
            action = menu.addAction(role.value.capitalize())
            action.setToolTip(_TIPS[role])
            action.setCheckable(True)
            action.setChecked(role is axis.role)
            action.setEnabled(role in axis.offered)
            action.triggered.connect(partial(self._choose, role))
        menu.addSeparator()
        step = menu.addAction("Step through it by the slider")
        step.setEnabled(axis.is_stepped)
        step.triggered.connect(self._step)
        reset = menu.addAction("All axes as by default")
        reset.setEnabled(self.strip.is_own)
        reset.triggered.connect(self.strip.reset_chosen)

    def _choose(self, role: AxisRole, *_: object) -> None:
        self.strip.role_chosen.emit(self.axis.axis, role)

    @Slot()
    def _step(self) -> None:
        self.strip.set_active(self.axis.axis)

    # Overrides of Qt methods

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        move = {Qt.Key.Key_Left.value: -1, Qt.Key.Key_Right.value: 1}.get(event.key())
        if move is None:
            if event.key() == Qt.Key.Key_Down:
                self.showMenu()
            else:
                super().keyPressEvent(event)
        elif event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.strip.swap_with_next(self, move)
        else:
            self.strip.focus_next(self, move)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed = event.position().toPoint()
        event.accept()  # the menu opens on release, so that a chip can be dragged

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.rect().contains(event.position().toPoint()):
            self.showMenu()

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        moved = (event.position().toPoint() - self._pressed).manhattanLength()
        if event.buttons() & Qt.MouseButton.LeftButton and (
            moved >= QApplication.startDragDistance()
        ):
            drag = QDrag(self)
            data = QMimeData()
            data.setData(_MIME, str(self.axis.axis).encode())
            drag.setMimeData(data)
            drag.setPixmap(self.grab())
            drag.exec(Qt.DropAction.MoveAction)

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        source = event.source()
        if isinstance(source, AxisChip) and source.strip is self.strip and source is not self:
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        source = event.source()
        if isinstance(source, AxisChip):
            self.strip.swapped.emit(source.axis.axis, self.axis.axis)
            event.acceptProposedAction()


class AxisStrip(QFrame):
    """A chip for each axis longer than 1, and a slider for the one that is stepped through.

    Parameters
    ----------
    theme : Theme

    Attributes
    ----------
    chips : list of AxisChip
    slider : QSlider
    place : QSpinBox

    Signals
    -------
    role_chosen
        Axis, and its new role.
    swapped
        Two axes that exchange their roles.
    placed
        Axis, and its new index.
    part_chosen
        Which of the parts that one dimension joins is shown.
    colors_chosen
        Positions that are red, green and blue.
    reset_chosen
        All axes go where they go by default.
    """

    role_chosen = Signal(int, object)
    swapped = Signal(int, int)
    placed = Signal(int, int)
    part_chosen = Signal(int)
    colors_chosen = Signal(object)
    reset_chosen = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("axisStrip")
        self.setProperty("role", "panel")
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.is_own = False
        self.chips: list[AxisChip] = []
        self._spare: list[AxisChip] = []  # hidden, behind the others
        self._active: int | None = None  # the axis that the user steps through
        self._axes: tuple[ShownAxis, ...] = ()
        self._title = QLabel("Axes")
        self._title.setProperty("role", "secondary")
        self.part = self._make_part()
        self.colors = self._make_colors(theme)
        self._colors_title = QLabel("RGB")
        self._colors_title.setProperty("role", "secondary")
        self._colors_title.setBuddy(self.colors)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setFixedWidth(_SLIDER)
        self._chooser = Chooser("axisPlace", "", theme)
        self._chooser.label.hide()
        self.place, self.total = self._chooser.box, self._chooser.total
        # Chips are in no layout of their own, whose size would be known too late.
        self._line = line = QHBoxLayout(self)
        line.setContentsMargins(10, 0, 10, 0)
        line.setSpacing(6)
        line.addWidget(self._title)
        line.addWidget(self.part)
        self._first = line.count()
        line.addWidget(self._colors_title)
        line.addWidget(self.colors)
        line.addStretch(1)
        line.addWidget(self.slider)
        line.addWidget(self._chooser)
        self._timer = QTimer(self, interval=_PLAY_MS)
        self._timer.timeout.connect(self._on_played)
        self.slider.valueChanged.connect(self._on_moved)
        self._chooser.chosen.connect(self._on_moved)
        self.hide()

    def _make_part(self) -> QToolButton:
        part = QToolButton()
        part.setProperty("chip", True)  # noqa: FBT003 - Qt's signature
        part.setFixedHeight(_CHIP)
        part.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        part.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        part.setToolTip("Which of the tokens or scales are shown")
        part.setMenu(make_menu(part))
        return part

    def _make_colors(self, theme: Theme) -> QLineEdit:
        field = QLineEdit()
        field.setAccessibleName("Indexes that are red, green and blue")
        field.setToolTip("Indexes that are red, green and blue, such as 0, 1, 2")
        field.setValidator(QRegularExpressionValidator(_PATTERN, field))
        field.setFont(theme.mono_font())
        field.setFixedSize(92, _CHIP)
        field.returnPressed.connect(self._on_colors_entered)
        field.editingFinished.connect(self._on_colors_entered)
        return field

    def show_axes(
        self,
        axes: tuple[ShownAxis, ...],
        parts: tuple[tuple[str, ...], int],
        colors: tuple[int, int, int] | None,
        *,
        is_own: bool,
    ) -> None:
        """Show the axes.

        Parameters
        ----------
        axes : tuple of ShownAxis
            With fewer than two, and without parts, there is nothing to choose.
        parts : (tuple of str, int)
            Words of the parts that one dimension joins, and which of them is shown.
        colors : (int, int, int) or None
            Positions of the colour axis that are shown.
        is_own : bool
            Whether the user has chosen where axes go.
        """
        self.is_own = is_own
        self.setVisible(bool(axes) and (len(axes) > 1 or len(parts[0]) > 1))
        self._show_parts(*parts)
        for widget in (self._colors_title, self.colors):
            widget.setVisible(colors is not None)
        if colors is not None and not self.colors.hasFocus():
            self.colors.setText(", ".join(map(str, colors)))
        if axes != self._axes:
            self._axes = axes
            self._show_chips()
        self._show_slider()
        self._make_room()

    def _show_parts(self, parts: tuple[str, ...], chosen: int) -> None:
        self.part.setVisible(len(parts) > 1)
        if len(parts) < 2:
            return
        menu = self.part.menu()
        menu.clear()
        for number, text in enumerate(parts):
            action = menu.addAction(text)
            action.setCheckable(True)
            action.setChecked(number == chosen)
            action.triggered.connect(partial(self._choose_part, number))
        others = " + ".join([text for number, text in enumerate(parts) if number != chosen])
        self.part.setText(f"{parts[chosen]} ▾")
        self.part.setAccessibleName(f"Shown: {parts[chosen]}, not {others}")

    def _choose_part(self, part: int, *_: object) -> None:
        self.part_chosen.emit(part)

    def _show_chips(self) -> None:
        while len(self.chips) > len(self._axes):
            chip = self.chips.pop()
            chip.hide()
            self._spare.append(chip)  # making one takes long, and tensors alternate
        while len(self.chips) < len(self._axes):
            chip = self._spare.pop() if self._spare else self._make_chip()
            chip.show()
            self.chips.append(chip)
        for chip, axis in zip(self.chips, self._axes, strict=True):
            chip.show_axis(axis)

    def _make_chip(self) -> AxisChip:
        chip = AxisChip(self)
        self._line.insertWidget(self._first + len(self.chips), chip)
        return chip

    # The slider

    @property
    def active(self) -> ShownAxis | None:
        """The axis of the slider: the one that was chosen, or the first that is stepped."""
        stepped = [axis for axis in self._axes if axis.is_stepped]
        chosen = [axis for axis in stepped if axis.axis == self._active]
        sliders = [axis for axis in stepped if axis.role is AxisRole.SLIDER]
        return next(iter((*chosen, *sliders, *stepped)), None)

    def set_active(self, axis: int) -> None:
        """Step through an axis by the slider."""
        self._active = axis
        self._show_slider()
        self._make_room()

    def _show_slider(self) -> None:
        active = self.active
        self.slider.setVisible(active is not None)
        # The tool strip above has the number of the mosaic's tile.
        is_beside = active is not None and active.role is not AxisRole.FACET
        self._chooser.setVisible(is_beside)
        if active is None:
            self._timer.stop()
            return
        self.slider.blockSignals(True)  # noqa: FBT003 - Qt's signature
        self.slider.setRange(0, active.size - 1)
        self.slider.setValue(active.place)
        self.slider.blockSignals(False)  # noqa: FBT003
        self._chooser.show_choice(active.place, active.size)
        self.total.setText(f"of {active.size} {active.name}")
        for control in (self.slider, self.place):
            control.setAccessibleName(f"Index of {active.name}")
            control.setToolTip(f"Index of {active.name}: , and . step, Y plays")

    def step(self, move: int) -> None:
        """Step along the axis of the slider, from the last index to the first."""
        active = self.active
        if active is not None:
            self.placed.emit(active.axis, (active.place + move) % active.size)

    def play(self, *, on: bool) -> None:
        """Begin or end stepping by itself."""
        if on:
            self._timer.start()
        else:
            self._timer.stop()

    @property
    def is_playing(self) -> bool:
        """Whether it steps by itself."""
        return self._timer.isActive()

    @Slot()
    def _on_played(self) -> None:
        if self.window().isVisible():
            self.step(1)

    @Slot(int)
    def _on_moved(self, place: int) -> None:
        active = self.active
        if active is not None:
            self.placed.emit(active.axis, place)

    @Slot()
    def _on_colors_entered(self) -> None:
        if self.colors.hasAcceptableInput():
            red, green, blue = (int(part) for part in self.colors.text().split(","))
            self.colors_chosen.emit((red, green, blue))

    # Chips

    def swap_with_next(self, chip: AxisChip, move: int) -> None:
        """Exchange an axis with its neighbour, which then has the focus."""
        place = self.chips.index(chip) + move
        if 0 <= place < len(self.chips):
            self.swapped.emit(chip.axis.axis, self.chips[place].axis.axis)

    def focus_next(self, chip: AxisChip, move: int) -> None:
        """Go to the chip beside one."""
        place = min(max(self.chips.index(chip) + move, 0), len(self.chips) - 1)
        self.chips[place].setFocus(Qt.FocusReason.TabFocusReason)

    def _make_room(self) -> None:
        """Write less on the chips, and then leave the slider out, where they do not fit."""
        if not self.width():
            return
        has_slider = self.active is not None
        steps = ((_FULL, True, True), (_NAMED, True, True), (_NAMED, True, False),
                 (_BRIEF, True, False), (_BRIEF, False, False))  # fmt: skip
        for brevity, slider, title in steps:
            self._title.setVisible(title)
            self.total.setVisible(title and has_slider)
            self.slider.setVisible(slider and has_slider)
            for chip in self.chips:
                chip.write(brevity)
            self._line.invalidate()
            if self._line.sizeHint().width() <= self.width():
                break

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._make_room()


def _where(axis: ShownAxis) -> str:
    """Say where an axis goes: ``rows``, or ``at 3``."""
    return f"at {axis.place}" if axis.role is AxisRole.SLIDER else axis.role.value
