"""Colours of boxes at small zoom: by family, or by an important state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtGui import QColor

from kuiper_studio.item_models.statuses import QUIET, STATUS_LOOKS, DisplayStatus

if TYPE_CHECKING:
    import numpy.typing as npt

    from kuiper_studio.graph_view.scene import Scene
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.theme import Theme

__all__ = ["CellColors", "mixed"]

_PENDING: Final = 0.6
_OWN_COLOR: Final = frozenset({DisplayStatus.CURRENT, DisplayStatus.FAILED})


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
        colors: npt.NDArray[np.uint32] = self._colors()[self._families[boxes], shown]
        return colors

    def _colors(self) -> npt.NDArray[np.uint32]:
        if self._table is None or self._table[0] is not self._theme.tokens:
            base = self._theme.color(self._base)
            rows = [
                [self._color(status, token, base) for status in DisplayStatus]
                for token in self._tokens
            ]
            self._table = (
                self._theme.tokens,
                np.array(rows, np.uint32).reshape(-1, len(DisplayStatus)),
            )
        return self._table[1]

    def _color(self, status: DisplayStatus, family: str, base: QColor) -> int:
        token = STATUS_LOOKS[status].token if status in _OWN_COLOR else family
        return mixed(
            self._theme.color(token), base, _PENDING if status in QUIET else 1.0
        ).rgba()


def mixed(color: QColor, base: QColor, share: float) -> QColor:
    """`share` of one colour over another one."""
    parts = (
        (color.red(), base.red()),
        (color.green(), base.green()),
        (color.blue(), base.blue()),
    )
    return QColor(*(round(part * share + under * (1 - share)) for part, under in parts))
