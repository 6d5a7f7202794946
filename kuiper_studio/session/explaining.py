"""Where an element comes from: what the user asked for last, and the engine's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from typing_extensions import override

from engine.provenance.records import Provenance, ReceptiveField
from kuiper_studio.engine_service.protocol import ExplainRequest
from kuiper_studio.session.asking import PlaceQuestion

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from kuiper_studio.session.asking import Place
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.tensors import Tensors

__all__ = ["Explaining"]


class Explaining(PlaceQuestion):
    """The element that is explained.

    Attributes
    ----------
    provenance : Provenance or None
        None until it has come.
    field : ReceptiveField or None
        Likewise.
    """

    def __init__(
        self, client: EngineClient, tensors: Tensors, parent: QObject | None = None
    ) -> None:
        super().__init__(client, tensors, parent)
        self.provenance: Provenance | None = None
        self.field: ReceptiveField | None = None

    @override
    def send(self, place: Place, serial: int) -> None:
        questions: tuple[Literal["terms", "field"], ...] = ("terms", "field")
        for what in questions:
            ticket = self.next_ticket(place)
            self.client.send(ExplainRequest(ticket, place.operand, serial, place.index, what))

    @override
    def store(self, result: object) -> bool:
        if isinstance(result, Provenance):
            self.provenance = result
        elif isinstance(result, ReceptiveField):
            self.field = result
        else:
            return False
        return True

    @override
    def reset(self) -> None:
        self.provenance = self.field = None
