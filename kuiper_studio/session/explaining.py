"""Where an element comes from: what the user asked for last, and the engine's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.provenance.records import Provenance, ReceptiveField
from kuiper_studio.engine_service.protocol import ExplainRequest

if TYPE_CHECKING:
    from typing import Literal

    from kuiper_studio.engine_service.protocol import Answer
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.tensors import Tensors

__all__ = ["Explaining", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """An element of an operand.

    Attributes
    ----------
    operand : str
    index : tuple of int
    """

    operand: str
    index: tuple[int, ...]


class Explaining(QObject):
    """The element that is explained.

    Parameters
    ----------
    client : EngineClient
    tensors : Tensors

    Attributes
    ----------
    place : Place or None
        None before the user asks.
    provenance : Provenance or None
        None until it has come.
    field : ReceptiveField or None
        Likewise.
    reason : str
        Why there is no answer; ``""`` if there is, or will be.

    Signals
    -------
    changed
        The place, or what is known about it, has changed.
    moved
        A `Place`: the user asks for it, or goes back to it.
    """

    changed = Signal()
    moved = Signal(object)

    def __init__(
        self, client: EngineClient, tensors: Tensors, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._client, self._tensors = client, tensors
        self.place: Place | None = None
        self.provenance: Provenance | None = None
        self.field: ReceptiveField | None = None
        self.reason = ""
        self._serial: int | None = None
        self._asked: dict[int, Place] = {}

    def show(self, operand: str, index: tuple[int, ...]) -> None:
        """Ask where an element comes from."""
        self.place = Place(operand, index)
        self._ask()
        self.moved.emit(self.place)

    def clear(self) -> None:
        """Forget the element; silent when there is none."""
        if self.place is not None:
            self.place = None
            self._forget()
            self.changed.emit()

    @Slot()
    def refresh(self) -> None:
        """Ask again if the operand has another value."""
        if self.place is not None and self._tensors.serial(self.place.operand) != self._serial:
            self._ask()

    def take(self, answer: Answer) -> bool:
        """Store an answer; return whether it is one to a question of this class."""
        asked = self._asked.pop(answer.ticket, None)
        if asked is None:
            return False
        if asked != self.place:
            return True
        if isinstance(answer.result, Provenance):
            self.provenance = answer.result
        elif isinstance(answer.result, ReceptiveField):
            self.field = answer.result
        else:
            self.reason = answer.reason
        self.changed.emit()
        return True

    def _forget(self) -> None:
        self.provenance = self.field = None
        self.reason = ""
        self._serial = None
        self._asked.clear()

    def _ask(self) -> None:
        self._forget()
        if self.place is not None:
            self._serial = self._tensors.serial(self.place.operand)
            if self._serial is None:
                self.reason = f"operand {self.place.operand} has not been computed"
            else:
                self._send(self._serial, self.place, "terms")
                self._send(self._serial, self.place, "field")
        self.changed.emit()

    def _send(self, serial: int, place: Place, what: Literal["terms", "field"]) -> None:
        ticket = self._client.next_ticket()
        self._asked[ticket] = place
        self._client.send(ExplainRequest(ticket, place.operand, serial, place.index, what))
