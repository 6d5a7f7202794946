"""The fields for the options of a reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSlider,
    QWidget,
)

from kuiper_studio.spin_box import SpinBox

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.meanings import Option
    from engine.meanings.registry import OptionValue

__all__ = ["OptionFields"]

_STEPS: Final = 100  # of a slider


class OptionFields(QWidget):
    """A field for each option.

    Signals
    -------
    changed : (str, object)
        The user has set an option: its name and value.
    """

    changed = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._options: tuple[Option, ...] = ()
        self._fields: dict[str, QWidget] = {}
        self._values: dict[str, QLabel] = {}
        self._rows = QGridLayout(self)
        self._rows.setContentsMargins(12, 2, 12, 6)
        self._rows.setHorizontalSpacing(8)
        self._rows.setVerticalSpacing(4)
        self._rows.setColumnStretch(1, 1)

    def field(self, name: str) -> QWidget:
        """Return the field of an option."""
        return self._fields[name]

    def show_options(
        self, options: Sequence[Option], values: Mapping[str, OptionValue]
    ) -> None:
        """Show options and their values; those that are the same keep their fields."""
        if tuple(options) != self._options:
            self._options = tuple(options)
            self._make()
        for option in self._options:
            value = values.get(option.name, option.default)
            with QSignalBlocker(self._fields[option.name]):
                self._set(option, value)

    def _make(self) -> None:
        while (item := self._rows.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
        self._fields, self._values = {}, {}
        for row, option in enumerate(self._options):
            label, field = QLabel(option.title), self._make_field(option)
            label.setProperty("role", "secondary")
            label.setBuddy(field)
            field.setObjectName(f"option_{option.name}")
            field.setAccessibleName(option.title)
            field.setToolTip(option.tip or option.title)
            label.setToolTip(field.toolTip())
            self._fields[option.name] = field
            self._rows.addWidget(label, row, 0)
            is_slider = option.kind == "fraction"
            self._rows.addWidget(field, row, 1, 1, 1 if is_slider else 2)
            if is_slider:
                value = QLabel()
                value.setProperty("role", "mono")
                value.setMinimumWidth(34)
                value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self._values[option.name] = value
                self._rows.addWidget(value, row, 2)

    def _make_field(self, option: Option) -> QWidget:
        name = option.name
        if option.kind == "fraction":
            slider = QSlider(Qt.Orientation.Horizontal)
            slider.setRange(0, _STEPS)
            slider.setPageStep(10)
            slider.valueChanged.connect(lambda value: self._on_moved(name, value))
            return slider
        if option.kind == "count":
            count = SpinBox()
            count.setRange(option.low, option.high)
            count.setKeyboardTracking(False)
            count.valueChanged.connect(lambda value: self.changed.emit(name, value))
            return count
        if option.kind == "choice":
            combo = QComboBox()
            combo.addItems(option.choices)
            combo.activated.connect(
                lambda place: self.changed.emit(name, option.choices[place])
            )
            return combo
        return _FileField(option.title, lambda path: self.changed.emit(name, path))

    def _on_moved(self, name: str, value: int) -> None:
        self._values[name].setText(f"{value / _STEPS:.2f}")
        self.changed.emit(name, value / _STEPS)

    def _set(self, option: Option, value: OptionValue) -> None:
        field = self._fields[option.name]
        if isinstance(field, QSlider):
            if not field.isSliderDown():  # the engine may be behind
                field.setValue(round(float(value) * _STEPS))
            self._values[option.name].setText(f"{field.value() / _STEPS:.2f}")
        elif isinstance(field, SpinBox):
            field.setValue(int(value))
        elif isinstance(field, QComboBox):
            field.setCurrentText(str(value))
        elif isinstance(field, _FileField):
            field.set_path(str(value))


class _FileField(QWidget):
    """A button that asks for a file, and one that forgets it."""

    def __init__(self, title: str, on_chosen: object) -> None:
        super().__init__()
        self._title, self._path, self._on_chosen = title, "", on_chosen
        self.choose, self.clear = QPushButton("Choose…"), QPushButton("Remove")
        self.choose.setAccessibleName(f"Choose {title.lower()}")
        self.clear.setAccessibleName(f"Remove {title.lower()}")
        self.setFocusProxy(self.choose)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self.choose, 1)
        row.addWidget(self.clear)
        self.choose.clicked.connect(self._ask)
        self.clear.clicked.connect(lambda: self._use(""))
        self.set_path("")

    def set_path(self, path: str) -> None:
        self._path = path
        self.choose.setText(Path(path).name if path else "Choose…")
        self.choose.setToolTip(path or f"Choose a file: {self._title.lower()}")
        self.clear.setVisible(bool(path))

    def _ask(self) -> None:
        folder = str(Path(self._path).parent) if self._path else ""
        path, _ = QFileDialog.getOpenFileName(self, f"Choose {self._title.lower()}", folder)
        if path:
            self._use(path)

    def _use(self, path: str) -> None:
        self.set_path(path)
        self._on_chosen(path)  # type: ignore[operator]
