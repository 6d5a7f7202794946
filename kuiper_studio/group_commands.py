"""Carries out the commands that show, open and close the groups of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from kuiper_studio.remembered_models import settings_key
from kuiper_studio.surfaces import Surface

if TYPE_CHECKING:
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QMenu, QWidget

    from kuiper_studio.commands import Commands
    from kuiper_studio.graph_view import GraphView
    from kuiper_studio.layout.groups import Group
    from kuiper_studio.panels.operators_panel import OperatorsPanel
    from kuiper_studio.panels.properties_panel import PropertiesPanel
    from kuiper_studio.session import StudioSession

__all__ = ["GroupCommands"]


class GroupCommands(QObject):
    """Opens and closes groups, and remembers by model whether they are shown.

    The graph knows which are open and which one is selected; the list of operators follows it
    and asks for more, and the properties tell of the selected one.

    Parameters
    ----------
    session : StudioSession
    settings : QSettings
    commands : Commands
    graph_view : GraphView
    operators_panel : OperatorsPanel
    properties_panel : PropertiesPanel
    window : QWidget
    """

    def __init__(
        self,
        session: StudioSession,
        settings: QSettings,
        commands: Commands,
        graph_view: GraphView,
        operators_panel: OperatorsPanel,
        properties_panel: PropertiesPanel,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._settings = session, settings
        self._commands, self._canvas = commands, graph_view.canvas
        self._list, self._properties = operators_panel, properties_panel
        session.graph_changed.connect(self._restore)
        self._canvas.groups_changed.connect(self._show_choice)
        self._canvas.groups_changed.connect(self._show_in_panels)
        operators_panel.group_chosen.connect(self._choose)
        operators_panel.group_opened.connect(self._open)
        operators_panel.group_closed.connect(self._close)

    def fill_menu(self, menu: QMenu) -> None:
        """Fill the menu of groups."""
        menu.clear()
        self._commands.fill(menu, Surface.GROUPS)

    def toggle(self) -> None:
        """Show operators in groups, or all of them, by the state of the action."""
        graph = self._session.graph
        if graph is None:
            return
        shown = self._commands.actions["view.groups"].isChecked()
        key = settings_key("groups", graph.source_path)
        self._settings.setValue(key, str(shown).lower())
        self._canvas.set_grouping(shown)

    def open(self) -> None:
        """Show what is in the selected group."""
        self._canvas.open_group()

    def close(self) -> None:
        """Close the group around what is selected."""
        self._canvas.close_group()

    def open_all(self) -> None:
        """Show every operator, in the frames of its groups."""
        self._canvas.open_all_groups()

    def close_all(self) -> None:
        """Close every group."""
        self._canvas.close_all_groups()

    @Slot()
    def _restore(self) -> None:
        """Show groups of the model or not, as the last time."""
        graph = self._session.graph
        if graph is not None:
            known = self._settings.value(settings_key("groups", graph.source_path))
            choice = {"true": True, "false": False}.get(str(known))
            if choice is not None:
                self._canvas.set_grouping(choice)
        self._show_choice()

    @Slot()
    def _show_choice(self) -> None:
        self._commands.actions["view.groups"].setChecked(self._canvas.is_grouped)

    @Slot()
    def _show_in_panels(self) -> None:
        self._list.show_groups(self._canvas.outline, self._canvas.picked_group)
        self._properties.select_group(self._canvas.picked_group)

    @Slot(object)
    def _choose(self, group: Group | None) -> None:
        """Select a group that is chosen in the list; None for an operator."""
        if group is None:
            self._canvas.leave_group()
        else:
            self._canvas.pick_group(group)

    @Slot(object)
    def _open(self, group: Group) -> None:
        self._canvas.pick_group(group)
        self._canvas.open_group()

    @Slot(object)
    def _close(self, group: Group) -> None:
        self._canvas.pick_group(group)
        if self._canvas.can_close_group:
            self._canvas.close_group()
