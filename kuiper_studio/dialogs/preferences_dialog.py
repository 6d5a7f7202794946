"""Asks for the settings of every model: looks, keys, computing, memory and exports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine.backend_names import BACKEND_NAMES, missing_packages
from engine.errors import capitalized
from engine.inputs import parse_seed
from engine.memory_bound import default_bound
from engine.ncnn.options import DEPLOYED, EXACT
from engine.paths import is_folder
from engine.text import (
    NumberStyle,
    format_bytes,
    format_exact_bytes,
    format_number,
    number_style,
    parse_bytes,
    set_number_style,
)
from kuiper_studio.dialogs.export_dialog import FORMAT_TITLES
from kuiper_studio.dialogs.fuzzy import has_words
from kuiper_studio.dialogs.keys_page import KeysPage
from kuiper_studio.dialogs.question import Question
from kuiper_studio.dialogs.screen_room import room_on_screen
from kuiper_studio.keymap import Keyed, Keymap
from kuiper_studio.spin_box import SpinBox
from kuiper_studio.theme import Scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.dump import Format

__all__ = ["Preferences", "PreferencesDialog"]

_WIDTH: Final = 720
_PAGE_ROW: Final = 26
_HEIGHT: Final = 440  # of the pages
_SIZES: Final = (80, 90, 100, 110, 125, 150, 175, 200)
_EXAMPLES: Final = (0.00012345, 0.5, 1234.5678, 9.87654e6)
_SCHEME_TITLES: Final = {
    Scheme.SYSTEM: "As the desktop's",
    Scheme.LIGHT: "Light",
    Scheme.DARK: "Dark",
}
_NCNN_TITLES: Final = {
    EXACT.text: "Exact, float32 throughout",
    DEPLOYED.text: "As deployed, ncnn's defaults",
}


@dataclass(frozen=True, slots=True)
class Preferences:
    """Settings for every model.

    Attributes
    ----------
    scheme : Scheme
    backend : str
    limit, bound : int or None
        Memory limit and memory bound in bytes; None for no limit, and for half of the machine's
        memory.
    seed : int
    folder : str
        Initial folder of exports; ``""`` for the home folder.
    format : Format
        Of dumps at first.
    ncnn_options : str
        For models of ncnn's own format; see `engine.ncnn.options`.
    keymap : Keymap
    numbers : NumberStyle
    interface_size : int
        In per cent; from the next start.
    mono_family : str
        Font of numbers and names; ``""`` for the usual one; from the next start.
    still : bool
        Whether nothing is animated.
    tuning : bool
        Whether the engine looks for the fastest kernels while it rests.
    """

    scheme: Scheme
    backend: str
    limit: int | None
    bound: int | None
    seed: int
    folder: str
    format: Format
    ncnn_options: str = EXACT.text
    keymap: Keymap = field(default_factory=Keymap)
    numbers: NumberStyle = field(default_factory=NumberStyle)
    interface_size: int = 100
    mono_family: str = ""
    still: bool = False
    tuning: bool = True


class PreferencesDialog(Question):
    """Asks for preferences.

    Parameters
    ----------
    preferences : Preferences
        The current preferences.
    commands : sequence of Command, optional
        Those that may get other keys.

    Attributes
    ----------
    preferences : Preferences
        The chosen preferences; valid once the dialog is accepted.
    """

    def __init__(
        self,
        preferences: Preferences,
        parent: QWidget | None = None,
        *,
        commands: Sequence[Keyed] = (),
    ) -> None:
        super().__init__("preferences", "Preferences", _WIDTH, parent)
        self.preferences = preferences
        self.scheme, self.backend, self.format = QComboBox(), QComboBox(), QComboBox()
        self.ncnn_options, self.interface_size, self.mono_family = (
            QComboBox() for _ in range(3)
        )
        self.decimals, self.exponent = SpinBox(), SpinBox()
        self.still = QCheckBox("The graph moves at once")
        self.still.setToolTip(
            "Shows the next operator without gliding there. Nothing glides either where the\n"
            "desktop asks for reduced motion."
        )
        self.tuning = QCheckBox("Look for the fastest kernels after a run")
        self.tuning.setToolTip(
            "Tries other kernels a second after a run, with its values; later runs use the\n"
            "fastest. Off, a laptop stays cool and times do not change."
        )
        self.limit, self.bound, self.seed, self.folder = (QLineEdit() for _ in range(4))
        self.browse = QPushButton("Browse…")
        self.browse.clicked.connect(self._browse)
        self.keys = KeysPage(commands, preferences.keymap) if commands else None
        self._numbers = QLabel()
        self._numbers.setProperty("role", "mono2")
        self._numbers.setObjectName("preferencesNumbers")
        self._fill_looks(preferences)
        self._fill(preferences)
        self.ok.setText("Use these")
        self.search = self._make_search()
        self.page_list, self.stack = QListWidget(), QStackedWidget()
        self._nothing = QLabel()
        self._nothing.setTextFormat(Qt.TextFormat.PlainText)
        self._nothing.setWordWrap(True)
        self._nothing.setProperty("role", "tertiary")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._forms: list[QFormLayout | None] = []
        self._arrange()
        for box in (self.limit, self.bound, self.seed, self.folder):
            box.textChanged.connect(self._check)
        for combo in (
            self.scheme, self.backend, self.format, self.ncnn_options, self.interface_size,
            self.mono_family,
        ):  # fmt: skip
            combo.currentIndexChanged.connect(self._check)
        self.tuning.setChecked(preferences.tuning)
        self.still.toggled.connect(self._check)
        self.tuning.toggled.connect(self._check)
        for spin in (self.decimals, self.exponent):
            spin.valueChanged.connect(self._check)
        if self.keys is not None:
            self.keys.changed.connect(self._check)
        self._show_numbers()

    def _make_search(self) -> QLineEdit:
        search = QLineEdit()
        search.setObjectName("preferencesSearch")
        search.setPlaceholderText("Find a setting, a command or a key")
        search.setAccessibleName("Find a setting")
        search.setClearButtonEnabled(True)
        search.textChanged.connect(self._on_sought)
        return search

    def _fill(self, preferences: Preferences) -> None:
        for scheme, title in _SCHEME_TITLES.items():
            self.scheme.addItem(title, scheme.value)
        for backend in BACKEND_NAMES:
            if not missing_packages(backend):
                self.backend.addItem(backend, backend)
        if preferences.backend not in BACKEND_NAMES:
            self.backend.addItem("kernels of a dump", preferences.backend)
        for name, title in FORMAT_TITLES.items():
            self.format.addItem(title, name)
        for options, title in _NCNN_TITLES.items():
            self.ncnn_options.addItem(title, options)
        if preferences.ncnn_options not in _NCNN_TITLES:
            self.ncnn_options.addItem(preferences.ncnn_options, preferences.ncnn_options)
        for combo, value in (
            (self.ncnn_options, preferences.ncnn_options),
            (self.scheme, preferences.scheme.value),
            (self.backend, preferences.backend),
            (self.format, preferences.format),
            (self.interface_size, preferences.interface_size),
            (self.mono_family, preferences.mono_family),
        ):
            combo.setCurrentIndex(combo.findData(value))
        for box, nbytes in (
            (self.limit, preferences.limit), (self.bound, preferences.bound),
        ):  # fmt: skip
            box.setText("" if nbytes is None else format_exact_bytes(nbytes))
        self.limit.setPlaceholderText("every value")
        self.bound.setPlaceholderText(
            f"{format_bytes(default_bound())}, half of this machine's memory"
        )
        self.seed.setText(str(preferences.seed))
        self.folder.setText(preferences.folder)
        self.folder.setPlaceholderText("your home folder")

    def _fill_looks(self, preferences: Preferences) -> None:
        for percent in sorted({*_SIZES, preferences.interface_size}):
            self.interface_size.addItem(f"{percent} %", percent)
        for spin, least, most, value in (
            (self.decimals, 0, 12, preferences.numbers.decimals),
            (self.exponent, 1, 15, preferences.numbers.exponent),
        ):
            spin.setRange(least, most)
            spin.setValue(value)
        self.still.setChecked(preferences.still)
        present = preferences.mono_family
        self.mono_family.addItem("JetBrains Mono", "")
        found = {f for f in QFontDatabase.families() if QFontDatabase.isFixedPitch(f)}
        for family in sorted({*found, present} - {"", "JetBrains Mono"}):
            self.mono_family.addItem(family, family)

    def _arrange(self) -> None:
        folder = QHBoxLayout()
        folder.setSpacing(6)
        folder.addWidget(self.folder, 1)
        folder.addWidget(self.browse)
        of_folder = QLabel("&Folder of exports")
        of_folder.setBuddy(self.folder)
        self.folder.setAccessibleName("Folder of exports")
        self._add_form("Appearance", (
            ("&Theme", self.scheme), ("&Interface size, from the next start",
            self.interface_size), ("Font of nu&mbers, from the next start", self.mono_family),
            ("&Decimals", self.decimals), ("E&xponent from ten to the", self.exponent),
            ("Numbers look like", self._numbers), ("No animation", self.still),
        ))  # fmt: skip
        if self.keys is not None:
            self._add_page("Keys", self.keys, None)
        self._add_form("Computing", (
            ("&Backend", self.backend), ("Models of &ncnn", self.ncnn_options),
            ("Random &seed", self.seed), ("Tuning", self.tuning),
        ))  # fmt: skip
        self._add_form(
            "Memory", (("&Keep at most", self.limit), ("&Refuse more than", self.bound))
        )
        self._add_form("Exports", (("Format of &dumps", self.format), (of_folder, folder)))
        self.page_list.setObjectName("preferencesPages")
        self.page_list.setAccessibleName("Pages of preferences")
        self.page_list.setFixedWidth(132)
        self.stack.addWidget(self._nothing)
        self.page_list.currentRowChanged.connect(self.stack.setCurrentIndex)
        self.page_list.setCurrentRow(0)
        pages = QHBoxLayout()
        pages.setSpacing(16)
        pages.addWidget(self.page_list)
        pages.addWidget(self.stack, 1)
        self.stack.setFixedHeight(_HEIGHT)
        self.build((self.search, pages))
        beyond = self.sizeHint().height() - room_on_screen(self).height()
        if beyond > 0:
            self.stack.setFixedHeight(_HEIGHT - beyond)

    def _add_form(
        self, title: str, rows: Sequence[tuple[str | QLabel, QWidget | QHBoxLayout]]
    ) -> None:
        page = QWidget()
        form = QFormLayout()
        form.setVerticalSpacing(8)
        for label, part in rows:
            form.addRow(label, part)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(form)
        column.addStretch(1)
        self._add_page(title, page, form)

    def _add_page(self, title: str, page: QWidget, form: QFormLayout | None) -> None:
        item = QListWidgetItem(title, self.page_list)
        item.setSizeHint(QSize(0, _PAGE_ROW))
        self.stack.addWidget(page)
        self._forms.append(form)

    @Slot(str)
    def _on_sought(self, text: str) -> None:
        """Show the settings that match, and the page of that name or the first that has one.

        Of a page that is named itself all settings are shown.
        """
        fitting: list[int] = []
        for place, form in enumerate(self._forms):
            item = self.page_list.item(place)
            is_named = has_words(text, item.text())
            pattern = "" if is_named else text
            count = (
                _show_rows(form, pattern) if form is not None else self._show_commands(pattern)
            )
            item.setHidden(not count)
            if count:
                fitting.insert(0 if is_named and text else len(fitting), place)
        if fitting and (text or self.page_list.currentRow() not in fitting):
            self.page_list.setCurrentRow(fitting[0])
        self._nothing.setText(f"No setting, command or key matches “{text.strip()}”.")
        self.stack.setCurrentIndex(
            self.page_list.currentRow() if fitting else self.stack.indexOf(self._nothing)
        )

    def _show_commands(self, pattern: str) -> int:
        return self.keys.show_fitting(pattern) if self.keys is not None else 0

    def _show_numbers(self) -> None:
        """Show numbers as they would be written."""
        present = number_style()
        set_number_style(NumberStyle(self.decimals.value(), self.exponent.value()))
        self._numbers.setText("   ".join(format_number(number) for number in _EXAMPLES))
        set_number_style(present)

    @Slot()
    def _browse(self) -> None:
        path = QFileDialog.getExistingDirectory(self, "Folder of exports", self.folder.text())
        if path:
            self.folder.setText(path)

    @Slot()
    def _check(self) -> None:
        sentence = ""
        try:
            self.preferences = Preferences(
                Scheme(self.scheme.currentData()),
                self.backend.currentData(),
                _bytes_of(self.limit),
                _bytes_of(self.bound),
                parse_seed(self.seed.text().strip()),
                _folder_of(self.folder),
                self.format.currentData(),
                self.ncnn_options.currentData(),
                self.keys.keymap if self.keys is not None else self.preferences.keymap,
                NumberStyle(self.decimals.value(), self.exponent.value()),
                self.interface_size.currentData(),
                self.mono_family.currentData(),
                self.still.isChecked(),
                self.tuning.isChecked(),
            )
        except ValueError as exc:
            sentence = f"{capitalized(str(exc))}."
        self._show_numbers()
        if not sentence and self.keys is not None:
            sentence = self.keys.problem
        self.show_error(sentence)


def _show_rows(form: QFormLayout, pattern: str) -> int:
    """Show the rows of a form whose label matches; return how many do."""
    fitting = 0
    for row in range(form.rowCount()):
        item = form.itemAt(row, QFormLayout.ItemRole.LabelRole)
        label = item.widget() if item is not None else None
        text = label.text().replace("&", "") if isinstance(label, QLabel) else ""
        fits = has_words(pattern, text)
        form.setRowVisible(row, fits)
        fitting += fits
    return fitting


def _bytes_of(field: QLineEdit) -> int | None:
    return parse_bytes(field.text()) if field.text().strip() else None


def _folder_of(field: QLineEdit) -> str:
    text = field.text().strip()
    if text and not is_folder(text):
        raise ValueError(f"{text} is not a folder")
    return text
