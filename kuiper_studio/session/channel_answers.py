"""What the engine says of the channels of operands, fetched when a view looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from PySide6.QtCore import QObject, Signal

from kuiper_studio.engine_service.protocol import FetchRequest

if TYPE_CHECKING:
    from kuiper_studio.engine_service.channels import ChannelView
    from kuiper_studio.engine_service.protocol import Answer, DistancesWanted
    from kuiper_studio.session.client import EngineClient

__all__ = ["ChannelAnswers"]

T = TypeVar("T")

_MOST: Final = 256  # answers that are kept


class ChannelAnswers(QObject, Generic[T]):
    """Facts about the channels of operands.

    Parameters
    ----------
    client : EngineClient
    what : str
        As in `FetchRequest`.
    kind : type
        Of the facts.

    Signals
    -------
    arrived
        Name of an operand whose facts have come.
    """

    arrived = Signal(object)

    def __init__(
        self,
        client: EngineClient,
        what: Literal["distances", "totals"],
        kind: type[T],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client, self._what, self._kind = client, what, kind
        self._known: dict[tuple[object, ...], T | None] = {}
        self._asked: dict[int, FetchRequest] = {}

    def look(
        self, operand: str, serial: int, wanted: DistancesWanted | ChannelView
    ) -> T | None:
        """Return facts; None until they are here, which `arrived` tells.

        Parameters
        ----------
        operand : str
        serial : int
            Number of the execution that computed our value.
        wanted : DistancesWanted or ChannelView
        """
        key = operand, serial, wanted
        if key not in self._known:
            while len(self._known) >= _MOST:
                self._known.pop(next(iter(self._known)))
            self._known[key] = None
            self._ask(operand, serial, wanted)
        return self._known[key]

    def take(self, answer: Answer) -> bool:
        """Store an answer; return whether it is one to `look`."""
        asked = self._asked.pop(answer.ticket, None)
        if asked is None or asked.wanted is None:
            return False
        if isinstance(answer.result, self._kind):
            self._known[asked.operand, asked.serial, asked.wanted] = answer.result
            self.arrived.emit(asked.operand)
        elif not answer.reason:  # it was cancelled with others
            self._ask(asked.operand, asked.serial, asked.wanted)
        return True

    def forget(self) -> None:
        """Forget everything, because it is of something else than what is shown."""
        self._known.clear()
        self._asked.clear()

    def _ask(self, operand: str, serial: int, wanted: DistancesWanted | ChannelView) -> None:
        ticket = self._client.next_ticket()
        request = FetchRequest(ticket, operand, serial, self._what, wanted)
        self._asked[ticket] = request
        self._client.send(request)
