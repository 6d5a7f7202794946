"""The menu with which the user sets the meaning of an operand's dimensions."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QMenu

from engine.axes import Axis, Kind, Layout
from engine.text import format_shape
from kuiper_studio.menus import add_menu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["fill_layout_menu", "grids_of"]

_OFFERED: Final = (
    Kind.BATCH, Kind.CHANNEL, Kind.FEATURE, Kind.ROW, Kind.COLUMN, Kind.DEPTH, Kind.TIME,
    Kind.FREQUENCY, Kind.TOKEN, Kind.HEAD, Kind.QUERY, Kind.KEY, Kind.BOX, Kind.COORDINATE,
    Kind.CLASS,
)  # fmt: skip
# Numbers of tokens beside a grid: a class token, and one for distillation or up to four
# registers.
_SPECIAL: Final = (0, 1, 2, 5)
_LEAST_SIDE: Final = 2


def fill_layout_menu(
    menu: QMenu,
    shape: tuple[int, ...],
    layout: Layout | None,
    choose: Callable[[Layout | None], object],
    *,
    is_chosen: bool,
) -> None:
    """Fill the menu of an operand.

    Parameters
    ----------
    menu : QMenu
        Emptied first.
    shape : tuple of int
        Of the shown array.
    layout : Layout or None
        Its layout, if known.
    choose : callable
        Called with the user's choice; None for the inferred layout.
    is_chosen : bool
        Whether `layout` is the user's choice.
    """
    menu.clear()
    for old in menu.findChildren(QMenu):  # which `clear` leaves to the menu as children
        old.setParent(None)
        old.deleteLater()
    inferred = menu.addAction("As &inferred")
    inferred.setCheckable(True)
    inferred.setChecked(not is_chosen)
    inferred.triggered.connect(lambda: choose(None))
    menu.addSeparator()
    fits = layout is not None and layout.shape == shape
    axes = layout.axes if fits and layout is not None else _unknown(shape)
    for place, axis in enumerate(axes):
        if axis.size == 1:
            continue
        submenu = add_menu(menu, f"Dimension {place}, {axis.size}: {axis.text()}")
        for other in _choices(axis):
            action = submenu.addAction(other.text())
            action.setCheckable(True)
            action.setChecked(other.text() == axis.text())
            changed = Layout((*axes[:place], other, *axes[place + 1 :]))
            action.triggered.connect(partial(_choose, choose, changed))
    menu.setToolTip(format_shape(shape))


def grids_of(size: int) -> Iterator[Axis]:
    """Yield the square grids that a number of tokens may fold to.

    Parameters
    ----------
    size : int
        Size of the dimension; a class token and a few others may precede the grid.

    Yields
    ------
    Axis
    """
    for special in _SPECIAL:
        side = math.isqrt(max(0, size - special))
        if side < _LEAST_SIDE or side * side != size - special:
            continue
        grid = Axis(Kind.TOKEN, side * side, (Axis(Kind.ROW, side), Axis(Kind.COLUMN, side)))
        if not special:
            yield grid
            continue
        first: tuple[Axis, ...] = (Axis(Kind.CLASS_TOKEN, 1),)
        if special > 1:
            first = (*first, Axis(Kind.REGISTER_TOKEN, special - 1))
        yield Axis(Kind.TOKEN, size, segments=(*first, grid))


def _unknown(shape: tuple[int, ...]) -> tuple[Axis, ...]:
    return tuple([Axis(Kind.UNKNOWN, size) for size in shape])


def _choices(axis: Axis) -> Iterator[Axis]:
    for kind in _OFFERED:
        yield axis if kind is axis.kind else Axis(kind, axis.size)
    if isinstance(axis.size, int):
        for grid in grids_of(axis.size):
            if grid.text() != axis.text():
                yield grid


def _choose(choose: Callable[[Layout | None], object], layout: Layout, *_: object) -> None:
    choose(layout)
