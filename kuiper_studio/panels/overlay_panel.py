"""The overlay panel: the shown channel over the picture that the model was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSlider, QVBoxLayout, QWidget
from typing_extensions import override

from engine.text import format_brief
from kuiper_studio.panels.input_picture import InputPicture
from kuiper_studio.panels.overlay_canvas import Overlay, OverlayCanvas
from kuiper_studio.panels.panel import Panel, plain_label
from kuiper_studio.panels.result_dock import TITLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QShowEvent

    from engine.provenance.records import GridAlignment
    from kuiper_studio.panels.input_picture import PictureSource
    from kuiper_studio.session import StudioSession
    from kuiper_studio.shown_plane import ShownPlane
    from kuiper_studio.theme import Theme

__all__ = ["OverlayPanel"]

_OPACITY: Final = 70
_LINES: Final = 3  # of the text below the picture, so that it does not move
_NO_CHANNEL: Final = (
    "The tensor view shows no channel with rows and columns. "
    "Select an operator whose output has them."
)


class OverlayPanel(Panel):
    """The channel of the tensor view over the input picture.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    plane : callable
        Returns the shown channel, or its difference from the reference; None if there is none.

    Signals
    -------
    element_chosen : (str, tuple)
        Operand and index of a cell that was clicked.
    """

    element_chosen = Signal(object, object)

    def __init__(
        self,
        session: StudioSession,
        theme: Theme,
        plane: Callable[[bool], ShownPlane | None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("overlay", TITLES["overlay"], session, theme, parent)
        self._get_plane = plane
        self._picture = InputPicture(session)
        self.canvas = OverlayCanvas(theme)
        self.title = plain_label("overlayTitle", "subtitle")
        self.value = plain_label("overlayValue", "mono2")
        self.caption = plain_label("overlayCaption", "caption")
        self.message = plain_label("overlayMessage", "secondary")
        for label in (self.title, self.caption, self.message):
            label.setWordWrap(True)
        self.what = QComboBox()
        self.what.addItems(["Values", "Error"])
        self.what.setAccessibleName("What lies over the input")
        self.what.setToolTip("The channel, or how far it is from the reference")
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(0, 100)
        self.opacity.setValue(_OPACITY)
        self.opacity.setAccessibleName("Opacity over the picture")
        self.opacity.setToolTip("How much of the picture the largest values hide")
        self.opacity.setMaximumWidth(140)
        self.canvas.set_opacity(_OPACITY / 100)
        self._build()
        session.graph_changed.connect(self.refresh)
        session.aligning.arrived.connect(self.refresh)
        session.tensors.recalled.connect(self._on_recalled)
        session.inputs_changed.connect(self.refresh)
        self.what.activated.connect(self.refresh)
        self.opacity.valueChanged.connect(lambda value: self.canvas.set_opacity(value / 100))
        self.canvas.hovered.connect(self._on_hovered)
        self.canvas.chosen.connect(self._on_chosen)

    def _build(self) -> None:
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(self.what)
        foot.addStretch(1)
        foot.addWidget(QLabel("Overlay"))
        foot.addWidget(self.opacity)
        self._content = QWidget()
        inner = QVBoxLayout(self._content)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(6)
        inner.addWidget(self.canvas, 1)
        inner.addWidget(self.value)
        inner.addLayout(foot)
        inner.addWidget(self.caption)
        metrics = self.caption.fontMetrics()
        self.caption.setMinimumHeight(_LINES * metrics.lineSpacing())
        self.caption.setAlignment(Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(6)
        column.addWidget(self.title)
        column.addWidget(self.message)
        column.addWidget(self._content, 1)
        self._rest = QWidget()  # keeps the message at the top
        column.addWidget(self._rest, 1)

    @override
    def keyboard_target(self) -> QWidget:
        return self.canvas

    # Showing

    @Slot()
    def refresh(self, *_: object) -> None:
        """Show the channel of the tensor view, if this panel is seen."""
        if not self.isVisible():
            return
        error = self._get_plane(True)  # noqa: FBT003
        with QSignalBlocker(self.what):
            self.what.setVisible(error is not None)
            if error is None:
                self.what.setCurrentIndex(0)
        plane = error if self.what.currentIndex() else self._get_plane(False)  # noqa: FBT003
        self.set_suffix(f"{plane.operand} {plane.title}".strip() if plane is not None else "")
        text = self._show_plane(plane) if plane is not None else _NO_CHANNEL
        if text is None:
            return  # the engine answers soon: what is shown stays
        self.message.setText(text)
        self.message.setVisible(bool(text))
        self._content.setVisible(not text)
        self._rest.setVisible(bool(text))
        self.title.setVisible(plane is not None)
        if text:
            self.canvas.show_overlay(None)

    def _show_plane(self, plane: ShownPlane) -> str | None:
        """Show a channel; return why it cannot be shown, or None while that is not known."""
        source = self._picture.find()
        name = " · ".join([part for part in (plane.operand, plane.title) if part])
        rows, columns = plane.values.shape
        self.title.setText(f"{name} · {rows}×{columns}")
        if source is None:
            return "This model has no input that is a picture."
        if plane.operand == source.operand:
            return "This is the input itself. Select an operator after it."
        none = (
            f"The rows and columns of operand {plane.operand} are not places of input "
            f"{source.operand}. Select an operator whose output is a picture or a "
            "grid of tokens."
        )
        if plane.is_image is False:
            return none
        found = self.session.aligning.look(
            plane.operand, source.operand, source.axes, plane.cells
        )
        if found is None:
            return None
        alignment = found.alignment
        if alignment is None or not (alignment.is_known or plane.is_image):
            return found.reason or none
        self._show_overlay(plane, source, alignment)
        return ""

    def _show_overlay(
        self, plane: ShownPlane, source: PictureSource, alignment: GridAlignment
    ) -> None:
        rows, columns = plane.values.shape
        height, width = source.sizes
        sample = plane.cells[0].index[0] if len(source.shape) == 4 else 0
        self.canvas.show_overlay(
            Overlay(
                plane,
                self._picture.image(source, sample),
                source.sizes,
                alignment.rows or (0.0, height / rows),
                alignment.columns or (0.0, width / columns),
            )
        )
        self.canvas.setAccessibleDescription(f"{self.title.text()} over {source.operand}")
        self.caption.setText(_describe(alignment, plane.span))
        self._on_hovered(None)

    def mark(self, cell: tuple[int, int] | None) -> None:
        """Mark the cell that is under the mouse in the tensor view."""
        self.canvas.mark(cell)
        self._tell(cell)

    def _tell(self, cell: tuple[int, int] | None) -> None:
        shown = self.canvas.shown
        if shown is None:
            return
        at = cell or shown.plane.pick
        if at is None or not all(map(int.__lt__, at, shown.plane.values.shape)):
            self.value.setText("Point at a cell for its value")
            return
        value = format_brief(float(np.asarray(shown.plane.values[at], np.float64)))
        self.value.setText(f"({at[0]}, {at[1]})  {value}")

    # Slots

    @Slot(object)
    def _on_recalled(self, operand: str) -> None:
        source = self._picture.find() if self.isVisible() else None
        if source is not None and operand == source.operand:
            self.refresh()

    @Slot(object)
    def _on_hovered(self, cell: tuple[int, int] | None) -> None:
        self.canvas.mark(cell)
        self._tell(cell)

    @Slot(int, int)
    def _on_chosen(self, row: int, column: int) -> None:
        shown = self.canvas.shown
        if shown is not None:
            self.element_chosen.emit(shown.plane.operand, shown.plane.index(row, column))

    # Overrides of Qt methods

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()


def _describe(alignment: GridAlignment, span: str) -> str:
    """Say how cells lie on the input."""
    colors = f"Colours {span}." if span else ""
    if alignment.rows is None or alignment.columns is None:
        return (
            "Spread evenly: every cell depends on the whole input, so no receptive field says "
            f"where it is. {colors}"
        ).strip()
    (top, down), (left, right) = alignment.rows, alignment.columns
    high, wide = alignment.extent
    return (
        f"By receptive fields: a cell is {down:g}×{right:g} of the input, the first at "
        f"({top:g}, {left:g}); it depends on {high}×{wide}. {colors}"
    ).strip()
