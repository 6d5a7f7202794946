"""Where the axes of a value go: the strip of axes, its commands and the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kuiper_studio.tensor_view.axis_roles import AxisRole, Roles
    from kuiper_studio.tensor_view.pane_parts import PaneParts

__all__ = ["PaneAxes"]


class PaneAxes(QObject):
    """Connects the strip of axes of a pane with the model.

    Parameters
    ----------
    parts : PaneParts

    Signals
    -------
    reading_changed
        The value is to be shown in another way.
    sample_changed
        Another index of an axis is to be shown.
    channel_chosen : int
    roles_changed
        The user has chosen where an axis goes.
    """

    reading_changed = Signal()
    sample_changed = Signal()
    channel_chosen = Signal(int)
    roles_changed = Signal()

    def __init__(self, parts: PaneParts, parent: QObject) -> None:
        super().__init__(parent)
        self._model, self._actions, self._strip = parts.model, parts.actions, parts.axes
        self._has_room = True
        strip = self._strip
        strip.placed.connect(self._on_placed)
        strip.role_chosen.connect(self._on_role_chosen)
        strip.swapped.connect(self._on_swapped)
        strip.part_chosen.connect(self._on_part_chosen)
        strip.colors_chosen.connect(self._on_colors_chosen)
        strip.reset_chosen.connect(self.reset)

    def show(self) -> None:
        """Show the axes, where they go and what is chosen of them."""
        model = self._model
        is_shown = self._actions["tensor.axes"].isChecked() and self._has_room
        was_visible = self._strip.isVisible()
        self._strip.show_axes(
            model.axes() if is_shown else (),
            model.parts,
            model.choice.colors if model.is_colored else None,
            is_own=model.has_own_roles,
        )
        self._actions.show_checked("tensor.playAxis", checked=self._strip.is_playing)
        pane = self._strip.parentWidget()
        layout = pane.layout() if pane is not None else None
        if self._strip.isVisible() is not was_visible and layout is not None:
            layout.activate()  # the parts below share their room at once

    def set_room(self, *, has_room: bool) -> None:
        """Show the axes only where they leave the range and the picture their room."""
        if has_room is not self._has_room:
            self._has_room = has_room
            self.show()

    @Slot(int, int)
    def _on_placed(self, axis: int, place: int) -> None:
        reading = self._model.reading
        if axis == reading.channel_axis:
            self.channel_chosen.emit(place)
            return
        position = [each.axis for each in reading.fixed].index(axis)
        self._model.set_fixed(position, place)
        self.sample_changed.emit()

    @Slot(int, object)
    def _on_role_chosen(self, axis: int, role: AxisRole) -> None:
        self._model.set_role(axis, role)
        self._show_roles()

    @Slot(int, int)
    def _on_swapped(self, one: int, other: int) -> None:
        self._model.swap_axes(one, other)
        self._show_roles()

    @Slot()
    def reset(self) -> None:
        """Show the axes as they are by default."""
        self._model.reset_roles()
        self._show_roles()

    def _show_roles(self) -> None:
        self.reading_changed.emit()
        self.roles_changed.emit()

    def restore_roles(self, roles: Mapping[str, Roles]) -> None:
        """Restore where the user wants axes, by their meaning."""
        if self._model.restore_roles(roles):
            self.reading_changed.emit()

    @Slot(int)
    def _on_part_chosen(self, part: int) -> None:
        self._model.set_part(part)
        self.reading_changed.emit()

    @Slot(object)
    def _on_colors_chosen(self, colors: tuple[int, int, int]) -> None:
        self._model.set_colors(colors)
        self.sample_changed.emit()

    @Slot()
    def show_next_index(self) -> None:
        """Step on along the axis of the slider."""
        self._strip.step(1)

    @Slot()
    def show_previous_index(self) -> None:
        """Step back along the axis of the slider."""
        self._strip.step(-1)

    @Slot(bool)
    def play_axis(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Step through the axis of the slider, again and again."""
        self._strip.play(on=checked)

    @Slot(bool)
    def set_channels_last(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Switch between channels last and channels first."""
        self._model.set_channels_last(checked)
        self.reading_changed.emit()

    @Slot(bool)
    def set_folded(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Fold positions to pictures, or show the array as it is."""
        self._model.set_folded(checked)
        self.reading_changed.emit()
