"""What files do that are dropped on the window: said while they are dragged, then done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kuiper_studio.panels.dropping import name_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QAction

    from kuiper_studio.analyse_commands import AnalyseCommands
    from kuiper_studio.debug_commands import DebugCommands
    from kuiper_studio.open_commands import OpenCommands

__all__ = ["Drop", "DropCommands"]


@dataclass(frozen=True, slots=True)
class Drop:
    """What dropping files does, in words and as a call."""

    words: str
    carry_out: Callable[[], None]


class DropCommands:
    """Finds out what dropped files are for.

    Parameters
    ----------
    opening : OpenCommands
    debugging : DebugCommands
    analysing : AnalyseCommands
    compare : QAction
        Disabled while nothing can be compared.
    """

    def __init__(
        self,
        opening: OpenCommands,
        debugging: DebugCommands,
        analysing: AnalyseCommands,
        compare: QAction,
    ) -> None:
        self._opening, self._debugging, self._analysing = opening, debugging, analysing
        self._compare = compare

    def find(self, paths: Sequence[str], lacking: str) -> Drop:
        """Return what files do.

        Parameters
        ----------
        paths : sequence of str
        lacking : str
            The operator under the mouse, if it cannot run; ``""`` otherwise.
        """
        first = Path(paths[0])
        if lacking and first.suffix.lower() in {".npy", ".npz"}:
            return Drop(
                f"Use {name_files(paths[:1])} as the output of {lacking}",
                lambda: self._debugging.supply_output(lacking, paths[0]),
            )
        may_compare = len(paths) == 1 and self._compare.isEnabled()
        if may_compare and self._analysing.is_reference(first):
            return Drop(
                f"Compare with {name_files(paths)}…",
                lambda: self._analysing.offer_to_compare(paths[0]),
            )
        return Drop(self._opening.say_dropped(paths), lambda: self._opening.open_dropped(paths))
