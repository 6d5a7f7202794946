"""The status bar: run state at the left, hovered and picked element at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QColor, QGuiApplication, QHelpEvent, QPainter
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QStatusBar,
    QToolTip,
    QWidget,
)
from typing_extensions import override

from engine.text import format_count, format_exact_bytes
from kuiper_studio.icons import pixmap
from kuiper_studio.item_models.statuses import NONFINITE, run_look
from kuiper_studio.item_models.text import elided, tip_text
from kuiper_studio.session import Progress, RunState, dump_name
from kuiper_studio.theme import restyle

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QFontMetrics, QPaintEvent, QResizeEvent

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["StatusBar"]

_LONG_MS: Final = 200  # a run that takes longer shows its progress
_ANNOUNCED_MS: Final = 8000
_LONGEST_ANNOUNCEMENT: Final = 60
_LEAST_CELL: Final = 36  # pixels of a text that is elided
_BETWEEN: Final = 8  # pixels from a cell to the next, at most
_LONGEST_NAME: Final = 28  # characters of a dump's name


class StatusBar(QStatusBar):
    """Shows the run state, the element under the cursor, and settings of the session.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._theme = session, theme
        self.setSizeGripEnabled(False)
        self._icon = QLabel()
        self._state = _label("statusState", whole=True)
        self._detail = _label("statusDetail", mono=True, cut=_cut_name)
        self._nonfinite = _label("statusNonfinite")
        self._nonfinite.setToolTip(
            "Operators that gave NaN or Inf, as far as their outputs were measured;"
            " the list of operators and the timeline mark them"
        )
        self._progress_bar = QProgressBar()
        self._progress_bar.setFixedSize(140, 10)
        self._progress_bar.setTextVisible(False)
        self._cancel = QPushButton("Cancel")
        self._cancel.setObjectName("statusCancel")
        # A click leaves the keyboard where it is: the button hides soon, for the next field.
        self._cancel.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._cancel.clicked.connect(session.stop)
        # A short step must not make the bar flicker.
        self._patience = QTimer(self, singleShot=True, interval=_LONG_MS)
        self._patience.timeout.connect(self._on_run_is_long)
        self._long_run = False
        self._alarming = False  # shown if there are NaN or Inf
        self._backend = _label("statusBackend", mono=True, cell=True)
        self._memory = _label("statusMemory", mono=True, cell=True)
        self._announcement = _label("statusAnnouncement", mono=True, cell=True)
        self._silence = QTimer(self, singleShot=True, interval=_ANNOUNCED_MS)
        self._silence.timeout.connect(self._announcement.hide)
        self._left = QWidget()
        row = QHBoxLayout(self._left)
        row.setContentsMargins(10, 0, 0, 0)
        row.setSpacing(6)
        for widget in (  # the button before what changes while somebody aims at it
            self._icon, self._state, self._progress_bar, self._cancel, self._detail,
            self._nonfinite,
        ):  # fmt: skip
            row.addWidget(widget)
        # As wide as its text: spare room belongs after the backend.
        self._left.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self._cells: list[QWidget] = [
            self._left, self._backend, self._memory, self._announcement
        ]  # fmt: skip
        for cell in self._cells:
            self.addWidget(cell)
        self._announcement.hide()  # adding a widget shows it
        self._add_tensor_cells()
        for show in (
            self.show_hovered, self.show_picked, self.show_range, self.show_special,
            self.show_zoom,
        ):  # fmt: skip
            show("")
        self._connect()
        self._on_state_changed()

    def _add_tensor_cells(self) -> None:
        self._swatch = QLabel()
        self._swatch.setFixedSize(12, 12)
        self._swatch.setAccessibleName("Colour under the cursor")
        self._hovered = _label("statusHovered", mono=True, cut=_cut_words)
        self._picked = _label("statusPicked", mono=True, cell=True, cut=_cut_words)
        self._range = _label("statusRange", mono=True, cell=True, whole=True)
        self._special = _label("statusSpecial", mono=True, cell=True, whole=True)
        self._zoom = _label("statusZoom", mono=True, cell=True, whole=True)
        for widget in (
            self._swatch, self._hovered, self._picked, self._range, self._special, self._zoom,
        ):  # fmt: skip
            self.addPermanentWidget(widget)
            self._cells.append(widget)

    def _connect(self) -> None:
        session, theme = self._session, self._theme
        for changed in (
            session.settled, session.graph_changed, session.backend_changed,
            session.memory.changed, theme.changed,
        ):  # fmt: skip
            changed.connect(self._on_state_changed)
        self.messageChanged.connect(self._show_cells)
        session.progress_changed.connect(self._on_progress_changed)
        session.tuning.progressed.connect(self._on_tuning_changed)
        session.tensors.recalled.connect(self._show_nonfinite)
        session.values_reset.connect(self._show_nonfinite)
        session.measuring.changed.connect(self._show_nonfinite)
        session.workspace.announced.connect(self._on_announced)
        QGuiApplication.clipboard().dataChanged.connect(self._on_copied)
        theme.changed.connect(self._on_theme_changed)

    def show_hovered(self, text: str, color: str = "") -> None:
        """Show the element under the cursor, ``[0, 44, 30, 27] 0.9067``, and its colour."""
        self._hovered.setText(text)
        self._hovered.setVisible(bool(text))
        self._swatch.setVisible(bool(color))
        if color:
            name = QColor(color).name()
            restyle(self._swatch, f"background: {name}; border: 1px solid palette(mid);")

    def show_picked(self, text: str) -> None:
        """Show the picked element with its exact value."""
        self._picked.setText(f"picked {text}" if text else "")
        self._picked.setVisible(bool(text))

    def show_range(self, text: str) -> None:
        """Show the range that colours span."""
        self._range.setText(f"range {text}" if text else "")
        self._range.setVisible(bool(text))

    def show_special(self, text: str, alarming: bool = False) -> None:  # noqa: FBT001, FBT002
        """Show the counts of NaN and Inf."""
        self._special.setText(text)
        self._special.setVisible(bool(text))
        self._alarming = alarming
        self._on_theme_changed()

    def show_zoom(self, text: str) -> None:
        """Show the magnification of the tensor view."""
        self._zoom.setText(text)
        self._fit()

    def _fit(self) -> None:
        """Leave out cells of which other parts of the window tell, rather than cut numbers."""
        if self.currentMessage():
            return
        spare = self._zoom, self._backend, self._memory
        cells = [each for each in self._cells if each not in spare and not each.isHidden()]
        shown = [each for each in spare if each.text()]
        while shown:
            widths = (each.sizeHint().width() for each in (*cells, *shown))
            if sum(widths) + _BETWEEN * (len(cells) + len(shown)) <= self.width():
                break
            del shown[0]
        for each in spare:
            each.setVisible(each in shown)

    @Slot()
    def _on_theme_changed(self) -> None:
        # A bar that grows for the button is laid out anew, and Qt shows then what it hides for
        # the text of a menu entry.
        self._left.setMinimumHeight(self._cancel.sizeHint().height())
        token = "nan" if self._alarming else "text2"
        restyle(self._special, f"color: {self._theme.color(token).name()};")

    # Slots

    @Slot()
    def _on_state_changed(self) -> None:
        session = self._session
        look = run_look(session)
        color = self._theme.color(look.token)
        if look.icon:
            self._icon.setPixmap(pixmap(look.icon, self._theme, look.token, 12))
        self._state.setText(look.text)
        restyle(self._state, f"color: {color.name()}; font-weight: 600;")
        self._detail.setText(self._describe())
        if session.state is not RunState.RUNNING:
            self._patience.stop()
        elif not self._patience.isActive():
            self._patience.start()
        self._on_progress_changed(session.progress)
        self._show_nonfinite()
        self._show_memory_limit()
        dump, name = session.kernels_from, session.backend
        if dump is not None:
            self._backend.setText(f"kernels of {elided(dump_name(dump), _LONGEST_NAME)}")
            self._backend.setToolTip(tip_text(f"{dump}\n{session.kernels_text}"))
        else:
            self._backend.setText(f"backend {name}" if session.graph is not None else "")
            self._backend.setToolTip("")
        self._fit()

    @Slot(str)
    def _on_tuning_changed(self, text: str) -> None:
        # Only beside a run that has ended: the next change of state describes that again.
        if self._session.progress is None and not self._session.busy:
            self._detail.setText(f"{self._describe()} · {text}" if text else self._describe())

    @Slot()
    def _show_nonfinite(self) -> None:
        count = len(self._session.nonfinite)
        self._nonfinite.setVisible(bool(count))
        if count:
            self._nonfinite.setText(f"NaN or Inf in {format_count(count, 'operator')}")
            color = self._theme.color(NONFINITE.token)
            restyle(self._nonfinite, f"color: {color.name()};")

    def _show_memory_limit(self) -> None:
        limit = self._session.memory.limit if self._session.graph is not None else None
        self._memory.setText(
            "" if limit is None else f"memory limit {format_exact_bytes(limit)}"
        )
        if limit is not None:
            self._memory.setToolTip(
                "Old values are evicted, and recomputed when you look at them"
            )

    @Slot(str)
    def _on_announced(self, text: str) -> None:
        self._announcement.setText(elided(text, _LONGEST_ANNOUNCEMENT))
        self._announcement.setToolTip(tip_text(text))
        self._silence.start()
        self._show_cells()

    @Slot()
    def _on_copied(self) -> None:
        """Say what was copied: nothing else in the window shows that it worked."""
        clipboard = QGuiApplication.clipboard()
        if not clipboard.ownsClipboard():
            return  # another program has copied
        lines = clipboard.text().splitlines()
        if len(lines) > 1:
            self._on_announced(f"copied {format_count(len(lines), 'line')}")
        elif lines:
            self._on_announced(f"copied {lines[0]}")
        elif clipboard.mimeData().hasImage():
            self._on_announced("copied as a picture")

    @Slot()
    def _show_cells(self) -> None:
        """Show what Qt hides for the text of a menu entry, which would be drawn over it."""
        if not self.currentMessage():
            self._announcement.setVisible(self._silence.isActive())
            self._fit()

    def _describe(self) -> str:
        session = self._session
        if session.graph is None:
            return "no model open"
        operators = session.graph.operators
        total, position = len(operators), session.position
        skipped = session.skipped
        count = f"{position - skipped} of {total} run"
        if skipped:
            count += f", {skipped} cannot run"
        if session.state is RunState.FAILED and position < total:
            return f"at {operators[position].name} · {count}"
        if session.state is RunState.STOPPED and position:
            stop = session.snapshot.stop
            if stop is not None and stop.kind == "breakpoint":
                return f"at the breakpoint of {stop.operator} · {count}"
            return f"after {operators[position - 1].name} · {count}"
        return count

    @Slot()
    def _on_run_is_long(self) -> None:
        self._long_run = True
        self._on_progress_changed(self._session.progress)

    @Slot(object)
    def _on_progress_changed(self, progress: Progress | None) -> None:
        session = self._session
        self._long_run = self._long_run and session.state is RunState.RUNNING
        # Other work tells by itself what goes on: "Finished" beside it would be taken for it.
        self._state.setVisible(progress is None)
        self._icon.setVisible(progress is None and bool(run_look(session).icon))
        if progress is None and self._long_run and session.graph is not None:
            total = len(session.graph.operators)
            progress = Progress(f"{session.position} of {total}", session.position, total)
        self._progress_bar.setVisible(progress is not None)
        self._cancel.setVisible(progress is not None)
        if progress is None:
            self._detail.setText(self._describe())
            return
        self._progress_bar.setUpdatesEnabled(False)  # or it would paint the window at once
        self._progress_bar.setRange(0, progress.total)
        self._progress_bar.setValue(progress.done)
        self._progress_bar.setUpdatesEnabled(True)
        self._detail.setText(progress.label)

    # Overrides of Qt methods

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().event(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


def _cut_middle(metrics: QFontMetrics, text: str, room: int) -> str:
    return metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room)


def _cut_name(metrics: QFontMetrics, text: str, room: int) -> str:
    """Shorten what stands before the counts, which would be other numbers if they were cut."""
    name, dot, counts = text.partition(" · ")
    left = room - metrics.horizontalAdvance(dot + counts)
    if metrics.horizontalAdvance("…") < left:
        return _cut_middle(metrics, name, left) + dot + counts
    return _cut_words(metrics, counts or name, room)


def _cut_words(metrics: QFontMetrics, text: str, room: int) -> str:
    """Leave out last words: a number that lacks digits would be another one."""
    while " " in text and metrics.horizontalAdvance(f"{text} …") > room:
        text = text.rpartition(" ")[0]
    return metrics.elidedText(f"{text} …", Qt.TextElideMode.ElideRight, room)


def _label(
    name: str,
    *,
    mono: bool = False,
    cell: bool = False,
    whole: bool = False,
    cut: Callable[[QFontMetrics, str, int], str] = _cut_middle,
) -> QLabel:
    """Make the label of a text that can be selected; of a short one all is always shown."""
    label = QLabel() if whole else _Elided(cut)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setObjectName(name)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if mono:
        label.setProperty("role", "mono2")
    if cell:
        label.setProperty("cell", True)  # noqa: FBT003 - Qt's signature
    return label


class _Elided(QLabel):
    """A text that is shortened where the window is narrow.

    Parameters
    ----------
    cut : callable
        Returns what of a text fits into a width, with an ellipsis.
    """

    def __init__(self, cut: Callable[[QFontMetrics, str, int], str]) -> None:
        super().__init__()
        self._cut = cut

    @property
    def is_elided(self) -> bool:
        """Whether there is no room for all of the text."""
        needed = self.fontMetrics().horizontalAdvance(self.text())
        return needed > self.contentsRect().width()

    @property
    def shown_text(self) -> str:
        """What of the text there is room for."""
        if not self.is_elided:
            return self.text()
        return self._cut(self.fontMetrics(), self.text(), self.contentsRect().width())

    # Overrides of Qt methods

    @override
    def minimumSizeHint(self) -> QSize:
        size = super().minimumSizeHint()
        return QSize(min(size.width(), _LEAST_CELL), size.height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.is_elided:
            super().paintEvent(event)
            return
        painter = QPainter(self)
        self.drawFrame(painter)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.contentsRect(), self.alignment(), self.shown_text)
        painter.end()

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and self.is_elided:
            text = "\n".join(filter(None, (self.text(), self.toolTip())))
            QToolTip.showText(event.globalPos(), tip_text(text), self)
            return True
        return super().event(event)
