"""The two sides of a comparison, or two tabs, and their difference."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from kuiper_studio.tensor_view.element import Counterpart, subtract
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from engine.comparison import Row
    from engine.values import Array, Value
    from kuiper_studio.engine_service.channels import ChannelDistances, ChannelView
    from kuiper_studio.session import StudioSession
    from kuiper_studio.tensor_view.pairing import Pair

__all__ = ["Side", "SideBar", "Sides"]


# By the value of `engine.comparison.Status`, which the window's process does not import.
_DIFFERING: Final = frozenset({"origin", "inherited"})


class Side(Enum):
    """What is shown of an operand that was compared."""

    ALL = "Side by side"
    OURS = "Ours"
    REFERENCE = "Reference"
    DIFFERENCE = "Difference"


_TIPS = {
    Side.ALL: "Ours, the reference's tensor and the difference, with one zoom",
    Side.OURS: "What the model computed here",
    Side.REFERENCE: "The reference's tensor, with the same range of colours",
    Side.DIFFERENCE: "Ours minus the reference's",
}


_TIPS_OF_TABS = {
    Side.ALL: "This tab, the other one and the difference, with one zoom and one range",
    Side.OURS: "This tab alone",
    Side.REFERENCE: "The other tab, with the same range of colours",
    Side.DIFFERENCE: "This tab minus the other one",
}

# In full, and where there is little room.
_NAMES = {
    Side.ALL: ("Side by side", "All"),
    Side.OURS: ("Ours", "Ours"),
    Side.REFERENCE: ("Reference", "Ref"),
    Side.DIFFERENCE: ("Difference", "Diff"),
}
_OF_TABS = {
    **_NAMES,
    Side.OURS: ("This tab", "This"),
    Side.REFERENCE: ("Other tab", "Other"),
}


class SideBar(QWidget):
    """A button for each side; one is checked.

    Signals
    -------
    chosen : Side
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("tensorSides")
        self.setAccessibleName("Side of the comparison")
        self._are_tabs = False
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 6, 0)
        row.setSpacing(0)
        for place, side in enumerate(Side):
            button = QToolButton()
            button.setText(side.value)
            button.setToolTip(f"{_TIPS[side]} (V flickers)")
            button.setAccessibleName(side.value)
            button.setCheckable(True)
            button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
            self._group.addButton(button, place)
            row.addWidget(button)
        self._group.idClicked.connect(self._on_clicked)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def name_sides(self, *, briefly: bool) -> None:
        """Write whole names on the buttons, or short ones where there is little room."""
        names = _OF_TABS if self._are_tabs else _NAMES
        for side in Side:
            self.button(side).setText(names[side][briefly])
            self.button(side).setAccessibleName(names[side][0])
        self.updateGeometry()

    def name_for(self, *, tabs: bool) -> None:
        """Name the sides of two tabs, or those of a comparison with a reference."""
        if tabs is not self._are_tabs:
            self._are_tabs = tabs
            self.setAccessibleName("Side of two tabs" if tabs else "Side of the comparison")
            for side in Side:
                tip = _TIPS_OF_TABS[side] if tabs else f"{_TIPS[side]} (V flickers)"
                self.button(side).setToolTip(tip)
            self.name_sides(briefly=False)

    def show_side(self, side: Side) -> None:
        """Check the button of a side."""
        self.button(side).setChecked(True)

    def button(self, side: Side) -> QToolButton:
        """Return the button of a side."""
        found = self._group.button(list(Side).index(side))
        assert isinstance(found, QToolButton)  # noqa: S101 - for the type checker
        return found

    @Slot(int)
    def _on_clicked(self, place: int) -> None:
        self.chosen.emit(list(Side)[place])


class Sides(QObject):
    """Which side is shown, and its array.

    Parameters
    ----------
    session : StudioSession

    Signals
    -------
    changed
        Another side is to be shown, or the reference's tensor has arrived.
    """

    changed = Signal()

    def __init__(self, session: StudioSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._side = Side.ALL
        self._pair: Pair | None = None
        self._difference: tuple[Array, Array, Array] | None = None  # ours, the other, result
        session.comparing.changed.connect(self._on_compared)
        session.comparing.tensors.recalled.connect(self.changed)

    def set_pair(self, pair: Pair | None) -> None:
        """Show another tab beside one, instead of its reference; None for no tab."""
        self._pair = pair

    def pair(self, name: str) -> Pair | None:
        """Return what stands beside a tab; None where no other tab does."""
        pair = self._pair
        return pair if pair is not None and pair.name == name else None

    def has(self, operand: str) -> bool:
        """Whether another tab, or the reference, has a tensor of the same shape."""
        if self.pair(operand) is not None:
            return True
        row = self._session.comparing.rows.get(operand)
        return row is not None and row.measures is not None

    def side(self, operand: str) -> Side:
        """Return the side that is shown of an operand."""
        return self._side if self.has(operand) else Side.OURS

    def value(self, operand: str, ours: Value) -> Value:
        """Return what is shown of an operand; None while the reference's tensor is fetched.

        Parameters
        ----------
        operand : str
        ours : Value
            Our value of it.
        """
        side = self.side(operand)
        if side in {Side.ALL, Side.OURS} or not isinstance(ours, np.ndarray):
            return ours
        theirs = self._theirs(operand)
        if side is Side.REFERENCE or not isinstance(theirs, np.ndarray):
            return theirs
        return self._subtract(ours, theirs)

    def counterpart(self, operand: str) -> Counterpart | None:
        """Return what is shown beside an operand; None where nothing is."""
        pair = self.pair(operand)
        if pair is not None:
            return pair.counterpart if self._side is Side.ALL else None
        row = self._session.comparing.rows.get(operand)
        if row is None or row.measures is None or self.side(operand) is not Side.ALL:
            return None
        theirs = self._theirs(operand)
        array = theirs if isinstance(theirs, np.ndarray) else None
        worst = row.measures.worst_index if row.status.value in _DIFFERING else ()
        limit = self._session.comparing.limit(operand)
        return Counterpart(array, row.measures, worst, limit, row.measures.max_abs)

    def distances(self, operand: str, view: ChannelView) -> ChannelDistances | None:
        """Return how far channels of an operand are from the reference's; None until known."""
        serial = self._session.tensors.serial(operand)
        if serial is None or self.pair(operand) is not None:
            return None
        return self._session.comparing.channel_distances(operand, serial, view)

    def shared_range(self, operand: str) -> tuple[float, float] | None:
        """Return the least and greatest value of both sides; None for what is not compared."""
        pair = self.pair(operand)
        if pair is not None:
            return pair.shared_range if self._side is not Side.DIFFERENCE else None
        row: Row | None = self._session.comparing.rows.get(operand)
        if self.side(operand) is Side.DIFFERENCE or row is None:
            return None
        both = [each for each in (row.statistics, row.reference_statistics) if each is not None]
        lows, highs = [each.min for each in both], [each.max for each in both]
        if len(both) < 2 or not np.isfinite([*lows, *highs]).all():
            return None
        return min(lows), max(highs)

    @Slot()
    def _on_compared(self) -> None:
        """Tell of the other sides in a turn of their own: the rows of a comparison take one."""
        if self._session.comparing.comparison is None:
            self.changed.emit()
        else:
            take_turn(self, self.changed.emit)

    @Slot(object)
    def choose(self, side: Side) -> None:
        """Show another side, of all operands that were compared."""
        if side is not self._side:
            self._side = side
            self.changed.emit()

    def flicker(self) -> None:
        """Change between ours and the reference's."""
        self.choose(Side.OURS if self._side is Side.REFERENCE else Side.REFERENCE)

    def expression(self, operand: str) -> str:
        """Return what gives the other side in Python."""
        pair = self.pair(operand)
        if pair is not None:
            return pair.expression
        return f"session.comparing.tensors.fetch({operand!r})"

    def _theirs(self, operand: str) -> Value:
        """Return the other side's tensor, which is fetched if need be; None until then."""
        pair = self.pair(operand)
        if pair is not None:
            return pair.theirs
        tensors = self._session.comparing.tensors
        return tensors.value(operand) if tensors.look(operand) else None

    def _subtract(self, ours: Array, theirs: Array) -> Array:
        known = self._difference
        if known is None or known[0] is not ours or known[1] is not theirs:
            known = self._difference = ours, theirs, subtract(ours, theirs)
        return known[2]
