"""The banner over the centre that offers what a killed process was about to replace."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Signal, Slot

from engine.leftovers import Leftover, find_leftovers
from engine.paths import exists
from kuiper_studio.background import Background
from kuiper_studio.item_models.text import tip_text
from kuiper_studio.panels.notice_strip import NoticeStrip

if TYPE_CHECKING:
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from kuiper_studio.background import Done
    from kuiper_studio.theme import Theme

__all__ = ["LeftoversBanner"]


class _Restored(NamedTuple):
    """What an answer is about: a folder that is to be back."""

    leftover: Leftover


class _Removed(NamedTuple):
    """What an answer is about: a folder that is to be gone."""

    leftover: Leftover


class LeftoversBanner(NoticeStrip):
    """Offers folders, one after the other, that were moved away to be replaced and never were.

    Each can be restored, removed for good, or kept where it is until the next start. The disk
    is read and written on another thread, for folders may be large.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    restored, removed : Path
        The folder that is back, or that was to be replaced and is gone for good.
    failed : (str, str)
        A folder cannot be restored: a title and the reason.
    """

    restored = Signal(object)
    removed = Signal(object)
    failed = Signal(str, str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("leftovers")
        self._found: list[Leftover] = []
        self._settled: set[Path] = set()  # holders that the user has decided on
        self._background = Background(self)
        self._background.finished.connect(self._on_answered)
        self._restore = self.add_button("Restore")
        self._restore.clicked.connect(self._on_restore)
        remove = self.add_button("Remove")
        remove.setToolTip("Remove what was there before for good")
        remove.clicked.connect(self._on_remove)
        keep = self.add_button("Keep")
        keep.setToolTip("Decide at the next start")
        keep.clicked.connect(self._on_keep)
        self.close_button.clicked.connect(self._on_keep)

    def look(self) -> None:
        """Look for what was left behind; the banner appears when something is found."""
        self._background.submit("found", find_leftovers)

    def close_down(self) -> None:
        """Look for nothing any more."""
        self._background.close()

    @Slot(object)
    def _on_answered(self, answer: Done) -> None:
        match answer.key:
            case _Restored(leftover) if answer.error:
                self._settled.discard(leftover.holder)
                self._found.insert(0, leftover)
                title = f"{leftover.destination.name} cannot be restored"
                self.failed.emit(title, answer.error)
            case _Restored(leftover):
                self.restored.emit(leftover.destination)
            case _Removed(leftover):
                self.removed.emit(leftover.destination)
            case _ if isinstance(answer.result, list):
                self._found = [f for f in answer.result if f.holder not in self._settled]
        self._refresh()

    @Slot()
    def _on_restore(self) -> None:
        leftover = self._settle()
        self._background.submit(_Restored(leftover), leftover.restore)

    @Slot()
    def _on_remove(self) -> None:
        leftover = self._settle()
        self._background.submit(_Removed(leftover), leftover.discard)

    @Slot()
    def _on_keep(self) -> None:
        self._settle()

    def _settle(self) -> Leftover:
        """Take the one that is shown out of the list."""
        leftover = self._found.pop(0)
        self._settled.add(leftover.holder)
        self._refresh()
        return leftover

    def _refresh(self) -> None:
        if not self._found:
            self.clear()
            return
        leftover = self._found[0]
        place = leftover.destination
        in_the_way = exists(place)
        count = f" (1 of {len(self._found)})" if len(self._found) > 1 else ""
        text = f"The earlier version of {place} is in {leftover.earlier}."
        if in_the_way:
            text += f" {place.name} exists again: move it away to restore the earlier version."
        title = f"A process was killed while it replaced {place.name}{count}"
        self.show_notice(title, text)
        self._restore.setEnabled(not in_the_way)
        self._restore.setToolTip("" if in_the_way else tip_text(f"Move it back to {place}"))
