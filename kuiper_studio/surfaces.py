"""Rows of commands, and the menus and bars where they appear.

The window and the tensor view have a table of such rows each.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kuiper_studio.conditions import Condition, always
from kuiper_studio.menus import add_menu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QMenu

__all__ = [
    "MENUS",
    "Command",
    "Place",
    "Submenu",
    "Surface",
    "commands_on",
    "entries",
    "fill_menu",
]

StateT = TypeVar("StateT")


class Surface(Enum):
    """Where commands appear: the menus of the menu bar by title, tool bars, context menus."""

    FILE = "&File"
    EDIT = "&Edit"
    VIEW = "&View"
    DEBUG = "&Debug"
    TENSOR = "&Tensor"
    ANALYSE = "&Analyse"
    HELP = "&Help"
    TOOL_BAR = "tool bar"
    TOOL_BAR_END = "right end of the tool bar"
    GRAPH = "context menu of the graph"
    GRAPH_OPERATOR = "context menu of an operator in the graph"
    OPERATORS = "context menu of the operators table"
    TIMELINE = "context menu of the timeline"
    COMPARISON = "context menu of the comparison's table"
    COLOR_BY = "menu of what operators are coloured by"
    GROUPS = "menu of the groups of the graph"
    BOOKMARKS = "menu of bookmarks"
    RECENT_MODELS = "menu of recent models"
    RECENT_LAYERS = "menu of recent layer files"
    TENSOR_VIEW = "context menu of the tensor view, and its part of the Tensor menu"
    TENSOR_AXES = "menu of the axes of a tensor"
    TENSOR_CHANNELS = "menu of more channels of a tensor"
    TENSOR_RANGE = "menu of the range of a tensor"
    TENSOR_ZOOM = "menu of the zoom of a tensor"
    TENSOR_COPY = "menu of what is copied of a tensor"
    RANGE_BAR = "buttons beside the range"


MENUS: Final = (
    Surface.FILE, Surface.EDIT, Surface.VIEW, Surface.DEBUG, Surface.TENSOR,
    Surface.ANALYSE, Surface.HELP,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place(Generic[StateT]):
    """A place on a surface.

    Attributes
    ----------
    surface : Surface
    section : int
        Sections are in order, with a separator between them.
    rank : int
        Order in the section; equal ranks keep the order of the table.
    with_text : bool
        Whether a button shows the text beside the icon.
    only_if : callable
        When a context menu shows the entry.
    """

    surface: Surface
    section: int = 1
    rank: int = 0
    with_text: bool = False
    only_if: Callable[[StateT], bool] = always


@dataclass(frozen=True, slots=True)
class Command(Generic[StateT]):
    """A user action.

    Attributes
    ----------
    id : str
        Its name everywhere, e.g. ``debug.step``.
    text : str
        Text in menus and the palette, with its mnemonic.
    tip : str
        Tool tip: what it does, in a few words.
    calls : str
        The method that carries it out, as a path from the window: ``session.step``. Those of
        the tensor view begin at the pane.
    places : tuple of Place
        Where it appears; all commands are in the command palette.
    keys : tuple of str
        Shortcuts in Qt's portable notation; the first is shown.
    icon : str
        Name of an icon, ``""`` for none.
    enabled : Condition
        When it is enabled, and what is missing otherwise; by `CommandState`, or by that of
        the tensor view.
    checkable : bool
    icon_color : str
        Colour of the icon.
    label : str
        Text of a button, where `text` is too long for one.
    key_elsewhere : bool
        Whether the key is only shown, because a view handles it.
    argument : int or None
        What the method takes; None for nothing.
    """

    id: str
    text: str
    tip: str
    calls: str
    places: tuple[Place[StateT], ...]
    keys: tuple[str, ...] = ()
    icon: str = ""
    enabled: Condition[StateT] = always
    checkable: bool = False
    icon_color: str = "text"
    label: str = ""
    key_elsewhere: bool = False
    argument: int | None = None


@dataclass(frozen=True, slots=True)
class Submenu:
    """Entries that the window creates inside a menu.

    Attributes
    ----------
    fills : str
        The method that fills them in, as a path from the window; it takes the menu.
    place : Place
    text : str
        Title of a submenu, filled again whenever it opens; ``""`` where the entries are in the
        menu itself.
    """

    fills: str
    place: Place[Any]
    text: str = ""


def commands_on(
    surface: Surface, commands: Iterable[Command[StateT]]
) -> list[tuple[Place[StateT], Command[StateT]]]:
    """Return the commands of a surface in order, with their places there.

    Parameters
    ----------
    surface : Surface
    commands : iterable of Command
        Rows of a table.
    """
    placed = ((place, command) for command in commands for place in command.places)
    return sorted((p for p in placed if p[0].surface is surface), key=_order)


def entries(
    surface: Surface, commands: Iterable[Command[StateT]], submenus: Iterable[Submenu]
) -> list[tuple[Place[StateT], Command[StateT] | Submenu]]:
    """Return the commands and submenus of a surface in order, with their places there.

    Parameters
    ----------
    surface : Surface
    commands : iterable of Command
        Rows of a table.
    submenus : iterable of Submenu
    """
    found = [(sub.place, sub) for sub in submenus if sub.place.surface is surface]
    return sorted([*commands_on(surface, commands), *found], key=_order)


def _order(entry: tuple[Place[Any], object]) -> tuple[int, int]:
    return entry[0].section, entry[0].rank


def fill_menu(
    menu: QMenu,
    shown: Iterable[tuple[Place[StateT], Command[StateT] | Submenu]],
    actions: Mapping[str, QAction],
    owner: object,
) -> None:
    """Add entries to a menu, with separators between sections.

    Parameters
    ----------
    menu : QMenu
    shown : iterable of (Place, Command or Submenu)
        From `entries`.
    actions : mapping of str to QAction
        By id.
    owner : object
        The paths of `Submenu.fills` begin at it.
    """
    section = None
    for place, entry in shown:
        if section not in (None, place.section):
            menu.addSeparator()
        section = place.section
        if isinstance(entry, Command):
            menu.addAction(actions[entry.id])
            continue
        fill: Callable[[QMenu], None] = operator.attrgetter(entry.fills)(owner)
        if not entry.text:
            fill(menu)
            continue
        added = add_menu(menu, entry.text)
        added.setObjectName(entry.fills)
        added.aboutToShow.connect(partial(fill, added))
