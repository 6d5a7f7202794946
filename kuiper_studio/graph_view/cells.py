"""Colours of boxes at small zoom: by family, by a quantity, or by an important state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtGui import QColor

from kuiper_studio.graph_view.colors import level_colors, mixed
from kuiper_studio.item_models.statuses import QUIET, STATUS_LOOKS, DisplayStatus

if TYPE_CHECKING:
    import numpy.typing as npt

    from kuiper_studio.graph_view.scene import Scene
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.item_models.overlays import Overlay
    from kuiper_studio.theme import Theme

__all__ = ["CellColors"]

_PENDING: Final = 0.6
_DIMMED: Final = 0.22  # of the colour, beside what the user looks for
_OWN_COLOR: Final = (DisplayStatus.CURRENT, DisplayStatus.FAILED)


class CellColors:
    """Colours of a scene's cells; opaque, so that edges do not shine through.

    Parameters
    ----------
    theme : Theme
    scene : Scene
    base : str
        Token of the colour under the cells.
    """

    def __init__(self, theme: Theme, scene: Scene, base: str) -> None:
        self._theme, self._base = theme, base
        tokens = [box.family.token for box in scene.boxes]
        self._tokens = sorted(set(tokens))
        place = {token: number for number, token in enumerate(self._tokens)}
        self._families = np.array([place[token] for token in tokens], np.intp)
        self._table: tuple[object, npt.NDArray[np.uint32]] | None = None

    def of(
        self, state: SceneState, boxes: npt.NDArray[np.intp], *, current: bool = True
    ) -> npt.NDArray[np.uint32]:
        """Colours of boxes as ``0xAARRGGBB``.

        Parameters
        ----------
        state : SceneState
        boxes : ndarray of int
        current : bool
            Whether the operator that is next has a colour of its own.
        """
        shown = state.states[boxes].astype(np.intp)
        if current:
            shown[(boxes == state.current) & (shown != DisplayStatus.FAILED)] = (
                DisplayStatus.CURRENT
            )
        dimmed: npt.NDArray[np.intp] = np.zeros(len(boxes), np.intp)
        if state.found is not None:
            dimmed[~state.found[boxes]] = 1
        colors: npt.NDArray[np.uint32] = self._colors()[dimmed, self._families[boxes], shown]
        overlay = state.overlay
        if overlay is None:
            return colors
        own = np.isin(shown, _OWN_COLOR)
        return np.where(own, colors, self._of_levels(overlay)[dimmed, overlay.levels[boxes]])

    def _of_levels(self, overlay: Overlay) -> npt.NDArray[np.uint32]:
        """Colours of an overlay's levels, shape (2, 257): bright, and dimmed."""
        base = self._theme.color(self._base)
        bright = level_colors(self._theme, overlay, self._base)
        dim = [mixed(QColor.fromRgba(color), base, _DIMMED).rgba() for color in bright.tolist()]
        return np.array([bright, dim], np.uint32)

    def _colors(self) -> npt.NDArray[np.uint32]:
        if self._table is None or self._table[0] is not self._theme.tokens:
            base = self._theme.color(self._base)
            table = [
                [
                    [self._color(status, token, base, share) for status in DisplayStatus]
                    for token in self._tokens
                ]
                for share in (1.0, _DIMMED)
            ]
            self._table = (
                self._theme.tokens,
                np.array(table, np.uint32).reshape(2, -1, len(DisplayStatus)),
            )
        return self._table[1]

    def _color(self, status: DisplayStatus, family: str, base: QColor, share: float) -> int:
        token = STATUS_LOOKS[status].token if status in _OWN_COLOR else family
        if status in QUIET:
            share *= _PENDING
        return mixed(self._theme.color(token), base, share).rgba()
