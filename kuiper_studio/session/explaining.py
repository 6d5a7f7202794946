"""Where an element comes from: what the user asked for last, and the engine's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from PySide6.QtCore import QTimer, Signal, Slot
from typing_extensions import override

from kuiper_studio.engine_service.protocol import ExplainRequest
from kuiper_studio.session.asking import CANCELLED, Place, PlaceQuestion

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from engine.provenance.records import (
        EffectiveWeight,
        FieldCheck,
        Provenance,
        ReceptiveField,
    )
    from kuiper_studio.engine_service.protocol import Answer
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.tensors import Tensors

__all__ = ["Explaining", "Further"]

Further = Literal["weight", "check"]
"""What takes about as long as a pass, and is asked for on its own."""

_LATE_MS: Final = 100  # an operator is selected at the latest
_PAINTED_MS: Final = 20  # by then the answer is on the screen


class Explaining(PlaceQuestion):
    """The element that is explained.

    Attributes
    ----------
    provenance : Provenance or None
        None until it has come.
    field : ReceptiveField or None
        Likewise.
    weight : EffectiveWeight or None
        None until it has been asked for and has come.
    check : FieldCheck or None
        Likewise.
    reasons : dict of str to str
        Why ``weight`` or ``check`` cannot be computed.

    Signals
    -------
    followed
        A `Place` that was asked for ahead: its answer is shown, or takes long.
    """

    followed = Signal(object)

    def __init__(
        self, client: EngineClient, tensors: Tensors, parent: QObject | None = None
    ) -> None:
        super().__init__(client, tensors, parent)
        self.provenance: Provenance | None = None
        self.field: ReceptiveField | None = None
        self.weight: EffectiveWeight | None = None
        self.check: FieldCheck | None = None
        self.reasons: dict[Further, str] = {}
        self._further: dict[int, Further] = {}
        self._ahead = QTimer(self, singleShot=True)
        self._ahead.timeout.connect(self._follow)

    @property
    def is_ahead(self) -> bool:
        """Whether an element was asked for whose operator is not selected yet."""
        return self._ahead.isActive()

    def show_ahead(self, operand: str, index: tuple[int, ...]) -> None:
        """Ask about an element of another operator than the selected one.

        All panels show the selected operator. They would take the time in which this answer is
        computed and shown, so they wait for it: see `followed`.
        """
        self.place = Place(operand, index)
        self._ahead.start(_LATE_MS)
        self._ask()

    def stay(self) -> None:
        """Do not follow an element: the user has selected something else."""
        self._ahead.stop()

    def catch_up(self) -> None:
        """Follow the element at once, so that a quick next step leaves it in the history."""
        if self.is_ahead:
            self._ahead.stop()
            self._follow()

    @Slot()
    def _follow(self) -> None:
        if self.place is not None:
            self.followed.emit(self.place)

    @override
    def send(self, place: Place, serial: int) -> None:
        questions: tuple[Literal["terms", "field"], ...] = ("terms", "field")
        for what in questions:
            ticket = self.next_ticket(place)
            self.client.send(ExplainRequest(ticket, place.operand, serial, place.index, what))

    def ask(self, what: Further, source: str = "") -> None:
        """Ask for more about the element.

        Parameters
        ----------
        what : {"weight", "check"}
        source : str, optional
            The input whose weight is asked for.
        """
        place = self.place
        serial = self.tensors.serial(place.operand) if place is not None else None
        if place is None or serial is None or what in self._further.values():
            return
        self.reasons.pop(what, None)
        ticket = self.next_ticket(place)
        self._further[ticket] = what
        self.client.send(
            ExplainRequest(ticket, place.operand, serial, place.index, what, source)
        )
        self.changed.emit()

    def is_asked(self, what: Further) -> bool:
        """Whether the engine has yet to answer."""
        return what in self._further.values()

    @override
    def take(self, answer: Answer) -> bool:
        what = self._further.pop(answer.ticket, None)
        if what is None or answer.result is not None:
            is_own = super().take(answer)
            complete = self.provenance is not None and self.field is not None
            if self.is_ahead and (complete or self.reason):
                self._ahead.start(_PAINTED_MS)
            return is_own
        self.forget_ticket(answer.ticket)
        self.reasons[what] = answer.reason or CANCELLED
        self.changed.emit()
        return True

    @override
    def store(self, result: object) -> bool:
        from engine.provenance import records

        if isinstance(result, records.Provenance):
            self.provenance = result
        elif isinstance(result, records.ReceptiveField):
            self.field = result
        elif isinstance(result, records.EffectiveWeight):
            self.weight = result
        elif isinstance(result, records.FieldCheck):
            self.check = result
        else:
            return False
        return True

    @override
    def reset(self) -> None:
        self.provenance = self.field = self.weight = self.check = None
        self.reasons.clear()
        self._further.clear()
