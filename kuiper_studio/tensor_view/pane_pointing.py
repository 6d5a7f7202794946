"""Elements of a pane under the mouse, picked, and gone to by their index."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot

from engine.errors import capitalized
from engine.text import format_count, format_shape
from kuiper_studio.tensor_view.places import find_label, parse_place
from kuiper_studio.tensor_view.reading import Kind

if TYPE_CHECKING:
    from kuiper_studio.tensor_view.element import Element
    from kuiper_studio.tensor_view.pane_colors import PaneColors
    from kuiper_studio.tensor_view.pane_parts import PaneParts
    from kuiper_studio.tensor_view.places import Place

__all__ = ["PanePointing"]


class PanePointing(QObject):
    """Follows the mouse over a pane, picks elements and goes to indexes.

    Parameters
    ----------
    parts : PaneParts
    colors : PaneColors

    Attributes
    ----------
    hovered : Element or None
        The one under the mouse.
    hovered_cell : (int, int) or None
        Its row and column.

    Signals
    -------
    hovered_changed : str, str
        Text and colour of the element under the mouse, or the text of the channel there;
        ``""`` for none.
    picked_changed : str
        Text of the picked element, ``""`` for none.
    place_chosen : bool
        Another place of the value is to be shown; whether in another part of a dimension.
    """

    hovered_changed = Signal(str, str)
    picked_changed = Signal(str)
    place_chosen = Signal(bool)

    def __init__(self, parts: PaneParts, colors: PaneColors, parent: QObject) -> None:
        super().__init__(parent)
        self._parts, self._colors = parts, colors
        self._model, self._index_bar = parts.model, parts.index_bar
        self.hovered: Element | None = None
        self.hovered_cell: tuple[int, int] | None = None
        self._told_hovered = False
        for canvas in parts.all_canvases:
            canvas.hovered.connect(self._on_hovered)
            canvas.picked.connect(self._on_picked)
        parts.body.tables_made.connect(self._connect_tables)
        parts.body.mosaic.channel_hovered.connect(self._on_channel_hovered)
        parts.body.top.chosen.connect(self._on_score_chosen)
        parts.tools.errors.channel_hovered.connect(self._tell_hovered)
        parts.index_bar.edited.connect(self._on_index_edited)
        parts.index_bar.entered.connect(self._on_index_entered)
        parts.index_bar.dismissed.connect(self._close_index_bar)

    @Slot()
    def _connect_tables(self) -> None:
        for table in self._parts.body.tables.canvases:
            table.picked.connect(self._on_cell_picked)
            table.hovered.connect(self._on_cell_hovered)

    # Picking

    def show_pick(self) -> None:
        """Mark the picked element everywhere, and tell of it."""
        pick = self._model.choice.pick
        for canvas in self._parts.all_canvases:
            canvas.set_pick(pick)
        self._parts.body.top.set_pick(pick[1] if pick is not None else None)
        if self._parts.body.shows_table:
            self.pick_in_tables()
        element = self._model.picked()
        self.picked_changed.emit(str(element) if element is not None else "")

    def pick_in_tables(self) -> None:
        """Mark the picked element in the tables."""
        pick = self._model.choice.pick
        for table in self._parts.body.tables.canvases:
            table.set_pick(self._table_place(pick) if pick is not None else None)

    def reveal_pick(self) -> None:
        """Scroll to the picked element."""
        pick = self._model.choice.pick
        if pick is not None and self._parts.body.shown is self._parts.zoomable:
            self._parts.zoomable.reveal(*pick)

    def _table_place(self, place: tuple[int, int]) -> tuple[int, int]:
        """Return the table's cell of an element, or back: a vector's entries go down."""
        return place if self._model.reading.kind is Kind.PLANES else (place[1], place[0])

    @Slot(int, int)
    def _on_picked(self, row: int, column: int) -> None:
        self._model.set_pick((row, column))
        self.show_pick()

    @Slot(int, int)
    def _on_cell_picked(self, row: int, column: int) -> None:
        self._on_picked(*self._table_place((row, column)))

    @Slot(int)
    def _on_score_chosen(self, entry: int) -> None:
        self._on_picked(0, entry)

    # Under the mouse

    @Slot(object)
    def _on_cell_hovered(self, cell: tuple[int, int] | None) -> None:
        self._on_hovered(self._table_place(cell) if cell is not None else None)

    @Slot(object)
    def _on_hovered(self, place: tuple[int, int] | None) -> None:
        element = self._model.element(*place) if place is not None else None
        if element is None or place is None:
            self.forget_hovered()
            return
        self.hovered_cell = place
        value = float(self._model.plane[place])
        self._colors.stretch_about(value)
        color = self._colors.coloring().color_of(value)
        self.hovered = replace(element, color=color.name())
        self._told_hovered = True
        self.hovered_changed.emit(str(element), color.name() if color.alpha() else "")

    @Slot(object)
    def _on_channel_hovered(self, channel: int | None) -> None:
        text = self._parts.body.mosaic.describe(channel) if channel is not None else ""
        self._tell_hovered(text)

    @Slot(str)
    def _tell_hovered(self, text: str) -> None:
        """Say what is known of the channel under the mouse; ``""`` for none."""
        if not text:
            self.forget_hovered()
            return
        self._told_hovered = True
        self.hovered_changed.emit(text, "")

    def forget_hovered(self) -> None:
        """Say nothing more of what was under the mouse."""
        self.hovered = self.hovered_cell = None
        self._colors.stretch_about(None)
        if self._told_hovered:
            self._told_hovered = False
            self.hovered_changed.emit("", "")

    # Going to an index

    @Slot()
    def ask_for_index(self) -> None:
        """Show the field for an index, with that of the picked element."""
        picked = self._model.picked()
        self._index_bar.begin(", ".join(map(str, picked.index)) if picked is not None else "")

    @Slot(str)
    def _on_index_edited(self, text: str) -> None:
        array = self._model.array
        if array is None or not text.strip():
            shape = format_shape(array.shape) if array is not None else ""
            self._index_bar.show_answer(f"into {shape}" if shape else "")
            return
        try:
            places = self._parse_place(text, array.shape)
            first = self._model.check_places(places)
        except ValueError as exc:
            self._index_bar.show_answer(capitalized(str(exc)), is_error=True)
            return
        counts = [each.stop - each.start for each in places if isinstance(each, slice)]
        self._index_bar.show_answer(
            f"{format_count(math.prod(counts), 'element')}" if counts else f"= {array[first]}"
        )

    @Slot(str)
    def _on_index_entered(self, text: str) -> None:
        array = self._model.array
        if array is None:
            return
        try:
            is_other = self._model.set_places(self._parse_place(text, array.shape))
        except ValueError:
            return  # the bar says what is wrong
        self.place_chosen.emit(is_other)
        self._close_index_bar()
        self.reveal_pick()

    def _parse_place(self, text: str, shape: tuple[int, ...]) -> tuple[Place, ...]:
        """Read an index, or the label of a row."""
        model = self._model
        found = find_label(text, model.labels, shape, model.label_axis)
        return found or parse_place(text, shape)

    @Slot()
    def _close_index_bar(self) -> None:
        self._index_bar.hide()
        self._parts.body.shown.setFocus(Qt.FocusReason.OtherFocusReason)
