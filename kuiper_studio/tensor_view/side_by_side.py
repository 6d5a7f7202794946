"""Ours, the reference's tensor and the difference side by side, as pictures or as numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from PySide6.QtCore import QRect, QSize, Slot
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from kuiper_studio.elided_label import ElidedLabel
from kuiper_studio.tensor_view.canvas import ElementCanvas
from kuiper_studio.tensor_view.number_table import NumberTable
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QResizeEvent

    from kuiper_studio.theme import Theme

__all__ = ["CanvasesBySide", "SideBySide", "TablesBySide"]

_CAPTION: Final = 22  # height
_INSET: Final = 12  # of a caption, as that of the pictures

PartT = TypeVar("PartT", bound="ElementCanvas | NumberTable")
CanvasT = TypeVar("CanvasT", bound=ElementCanvas)


class SideBySide(QWidget, Generic[PartT]):
    """One part, or three beside each other that zoom, scroll and point together.

    Parameters
    ----------
    make : callable
        Makes an `ElementCanvas` or `NumberTable` of a theme, a parent, and perhaps its name
        and title.
    theme : Theme

    Attributes
    ----------
    ours, theirs, difference : ElementCanvas or NumberTable
        The first one is always shown.
    canvases : tuple
        All three.
    """

    def __init__(
        self, make: Callable[..., PartT], theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.ours = make(theme, self)
        self.theirs = make(theme, self, "tensorReference", "The reference's tensor")
        self.difference = make(theme, self, "tensorDifference", "Ours minus the reference's")
        self.canvases = self.ours, self.theirs, self.difference
        self._captions = tuple(ElidedLabel("subtitle", self) for _ in self.canvases)
        self._is_split = False
        for canvas in self.canvases:
            canvas.view_changed.connect(self._on_view_changed)
            canvas.hovered.connect(self._on_hovered)
        self._following = self._shows_others = False
        self._behind: list[PartT] = []  # that have yet to show what ours shows
        self._show_parts()

    @property
    def is_split(self) -> bool:
        """Whether there are three parts."""
        return self._is_split

    def split(self, *, split: bool) -> None:
        """Show three parts, or only ours."""
        if split != self._is_split:
            self._is_split = split
            others = (self.theirs, self.difference) if split else ()
            self._behind = [canvas for canvas in others if not canvas.is_ready]
            self._show_parts()
            self._on_hovered(None)
            if split:
                self._follow(self.ours)
            for canvas in self._behind:
                take_turn(self, partial(self._catch_up, canvas))

    def show_others(
        self, *, shown: bool, names: tuple[str, str] = ("ours", "reference")
    ) -> None:
        """Show what the other side has, or that it is being fetched.

        Parameters
        ----------
        shown : bool
            Whether it is here.
        names : (str, str)
            Of both sides.
        """
        self._shows_others = shown
        self._show_caught_up()
        suffix = "" if shown else ", being fetched…"
        is_reference = names == ("ours", "reference")
        ours, theirs = map(str.capitalize, names) if is_reference else names
        titles = ours, f"{theirs}{suffix}", f"Difference: {names[0]} \u2212 {names[1]}"
        for caption, title in zip(self._captions, titles, strict=True):
            caption.setText(title)

    def arrange(self) -> None:
        """Give all contents the same size, whatever stands beside them."""
        if not self._is_split:
            self.ours.setGeometry(self.rect())
            return
        rooms = self._rooms()
        picture = max((self.width() - sum(rooms)) / len(rooms), 1.0)
        left = 0.0
        for canvas, caption, room in zip(self.canvases, self._captions, rooms, strict=True):
            width = picture + room
            x = round(left)
            caption.setGeometry(x + _INSET, 0, round(width) - _INSET, _CAPTION)
            area = QRect(x, _CAPTION, int(width), max(self.height() - _CAPTION, 1))
            canvas.setGeometry(area)
            left += width

    def _rooms(self) -> list[float]:
        """Return the width that each part needs beside its contents."""
        raise NotImplementedError

    def _show_parts(self) -> None:
        for caption in self._captions:
            caption.setVisible(self._is_split)
        self.show_others(shown=False)
        self.arrange()

    def _follow(self, leader: PartT) -> None:
        if self._following or not self._is_split:
            return
        self._following = True
        for canvas in self.canvases:
            if canvas is not leader and canvas not in self._behind:
                canvas.follow(leader)  # type: ignore[arg-type] # they are of one class
        self._following = False

    def _catch_up(self, canvas: PartT) -> None:
        """Have a part show what ours shows, in its turn."""
        if canvas not in self._behind:
            return
        self._behind.remove(canvas)
        self._following = True
        canvas.follow(self.ours)  # type: ignore[arg-type] # they are of one class
        self._following = False
        self._show_caught_up()

    def _show_caught_up(self) -> None:
        for canvas in (self.theirs, self.difference):
            seen = self._shows_others and self._is_split and canvas not in self._behind
            canvas.setVisible(seen)

    @Slot()
    def _on_view_changed(self) -> None:
        leader = self.sender()
        for canvas in self.canvases:
            if canvas is leader:
                self._follow(canvas)

    @Slot(object)
    def _on_hovered(self, place: tuple[int, int] | None) -> None:
        pointer = self.sender()
        for canvas in self.canvases:
            if canvas is not pointer:
                canvas.set_pointed(place if self._is_split else None)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return self.ours.sizeHint()

    @override
    def minimumSizeHint(self) -> QSize:
        return self.ours.minimumSizeHint()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self.arrange()


class CanvasesBySide(SideBySide[CanvasT]):
    """Canvases side by side; the colour bar of ours is that of the reference, too."""

    @override
    def _rooms(self) -> list[float]:
        return [canvas.bar_room for canvas in self.canvases]

    @override
    def _show_parts(self) -> None:
        self.ours.set_bar_shown(not self.is_split)
        self.theirs.set_bar_shown(False)
        super()._show_parts()


class TablesBySide(SideBySide[NumberTable]):
    """Tables of numbers side by side; the numbers of rows and the scroll bar are there once."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(NumberTable, theme, parent)

    @override
    def _rooms(self) -> list[float]:
        return [table.room for table in self.canvases]

    @override
    def _show_parts(self) -> None:
        self.ours.set_frame(scrolls=not self.is_split)
        self.theirs.set_frame(numbered=False, scrolls=False)
        self.difference.set_frame(numbered=False)
        super()._show_parts()
