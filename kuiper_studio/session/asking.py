"""A question about one element: asked, asked again when values change, answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot

if TYPE_CHECKING:
    from kuiper_studio.engine_service.protocol import Answer
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.tensors import Tensors

__all__ = ["CANCELLED", "Place", "PlaceQuestion"]

CANCELLED: Final = "it was cancelled"


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


class PlaceQuestion(QObject):
    """The element that the user asked about last; subclasses ask the engine.

    Parameters
    ----------
    client : EngineClient
    tensors : Tensors

    Attributes
    ----------
    place : Place or None
        None before the user asks.
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
        self.client, self.tensors = client, tensors
        self.place: Place | None = None
        self.reason = ""
        self._serial: int | None = None
        self._asked: dict[int, Place] = {}

    def send(self, place: Place, serial: int) -> None:
        """Ask the engine about an element; every ticket is noted by `next_ticket`."""
        raise NotImplementedError

    def store(self, result: object) -> bool:
        """Keep a result; return whether it is one."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget all results."""
        raise NotImplementedError

    def next_ticket(self, place: Place) -> int:
        """Return the ticket of a request about an element."""
        ticket = self.client.next_ticket()
        self._asked[ticket] = place
        return ticket

    def forget_ticket(self, ticket: int) -> None:
        """Expect no answer to a request any more."""
        self._asked.pop(ticket, None)

    def show(self, operand: str, index: tuple[int, ...]) -> None:
        """Ask about an element."""
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
        if self.place is not None and self.tensors.serial(self.place.operand) != self._serial:
            self._ask()

    def take(self, answer: Answer) -> bool:
        """Store an answer; return whether it is one to a question of this object."""
        asked = self._asked.pop(answer.ticket, None)
        if asked is None:
            return False
        if asked == self.place:
            if not self.store(answer.result):
                self.reason = answer.reason or CANCELLED
            self.changed.emit()
        return True

    def _forget(self) -> None:
        self.reset()
        self.reason = ""
        self._serial = None
        self._asked.clear()

    def _ask(self) -> None:
        self._forget()
        if self.place is not None:
            self._serial = self.tensors.serial(self.place.operand)
            if self._serial is None:
                self.reason = f"operand {self.place.operand} has not been computed"
            else:
                self.send(self.place, self._serial)
        self.changed.emit()
