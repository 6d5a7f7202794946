"""How far the channels of operands are from the reference's, fetched when a view looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from kuiper_studio.engine_service.channels import ChannelDistances
from kuiper_studio.engine_service.protocol import FetchRequest

if TYPE_CHECKING:
    from kuiper_studio.engine_service.protocol import Answer, DistancesWanted
    from kuiper_studio.session.client import EngineClient

__all__ = ["Distances"]


class Distances(QObject):
    """Distances of channels in the shown comparison.

    Parameters
    ----------
    client : EngineClient

    Signals
    -------
    arrived
        Name of an operand whose distances have come.
    """

    arrived = Signal(object)

    def __init__(self, client: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._known: dict[tuple[object, ...], ChannelDistances | None] = {}
        self._asked: dict[int, FetchRequest] = {}

    def look(
        self, operand: str, serial: int, wanted: DistancesWanted
    ) -> ChannelDistances | None:
        """Return distances; None until they are here, which `arrived` tells.

        Parameters
        ----------
        operand : str
        serial : int
            Number of the execution that computed our value.
        wanted : DistancesWanted
        """
        key = operand, serial, wanted
        if key not in self._known:
            self._known[key] = None
            self._ask(operand, serial, wanted)
        return self._known[key]

    def take(self, answer: Answer) -> bool:
        """Store an answer; return whether it is one to `look`."""
        asked = self._asked.pop(answer.ticket, None)
        if asked is None or asked.distances is None:
            return False
        if isinstance(answer.result, ChannelDistances):
            self._known[asked.operand, asked.serial, asked.distances] = answer.result
            self.arrived.emit(asked.operand)
        elif not answer.reason:  # the engine preferred another request
            self._ask(asked.operand, asked.serial, asked.distances)
        return True

    def forget(self) -> None:
        """Forget everything, because another comparison is shown."""
        self._known.clear()
        self._asked.clear()

    def _ask(self, operand: str, serial: int, wanted: DistancesWanted) -> None:
        ticket = self._client.next_ticket()
        request = FetchRequest(ticket, operand, serial, "distances", wanted)
        self._asked[ticket] = request
        self._client.send(request)
