"""The history of a place: what the user asked for last, and the engine's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from kuiper_studio.engine_service.protocol import TraceRequest
from kuiper_studio.session.asking import PlaceQuestion

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from engine.provenance.records import PlaceHistory
    from kuiper_studio.session.asking import Place
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.layouts import Layouts
    from kuiper_studio.session.tensors import Tensors

__all__ = ["Tracing"]


class Tracing(PlaceQuestion):
    """The place that is followed through all operands.

    Parameters
    ----------
    client : EngineClient
    tensors : Tensors
    layouts : Layouts
        The user's layouts say what the axes of an operand are.

    Attributes
    ----------
    found : PlaceHistory or None
        None until it has come.
    """

    def __init__(
        self,
        client: EngineClient,
        tensors: Tensors,
        layouts: Layouts,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(client, tensors, parent)
        self._layouts = layouts
        self.found: PlaceHistory | None = None

    @override
    def send(self, place: Place, serial: int) -> None:
        chosen = dict(self._layouts.chosen)
        ticket = self.next_ticket(place)
        self.client.send(TraceRequest(ticket, place.operand, serial, place.index, chosen))

    @override
    def store(self, result: object) -> bool:
        from engine.provenance.records import PlaceHistory

        if isinstance(result, PlaceHistory):
            self.found = result
        return isinstance(result, PlaceHistory)

    @override
    def reset(self) -> None:
        self.found = None
