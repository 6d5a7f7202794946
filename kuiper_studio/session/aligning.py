"""Where pictures of operands lie on an input of the model; computed when a view looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QObject, Signal

from kuiper_studio.engine_service.protocol import AlignRequest

if TYPE_CHECKING:
    from engine.provenance.records import GridAlignment, GridCell
    from kuiper_studio.engine_service.protocol import Answer
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.tensors import Tensors

__all__ = ["Aligning", "Found"]

_MOST: Final = 256  # answers that are kept


class Found(NamedTuple):
    """An answer of the engine.

    Attributes
    ----------
    alignment : GridAlignment or None
        None if the picture is none of the input, or `reason` says why it is not known.
    reason : str
    """

    alignment: GridAlignment | None
    reason: str = ""


class _Key(NamedTuple):
    """What an answer depends on: the channel makes no difference."""

    operand: str
    serial: int
    source: str
    places: tuple[tuple[int, int], ...]


class Aligning(QObject):
    """Where pictures of operands lie on an input.

    Parameters
    ----------
    client : EngineClient
    tensors : Tensors

    Signals
    -------
    arrived
        Something that was looked for has come.
    """

    arrived = Signal()

    def __init__(
        self, client: EngineClient, tensors: Tensors, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._client, self._tensors = client, tensors
        self._known: dict[_Key, Found | None] = {}
        self._asked: dict[int, _Key] = {}

    def look(
        self, operand: str, source: str, axes: tuple[int, int], cells: tuple[GridCell, ...]
    ) -> Found | None:
        """Return where a picture lies; None until it is known, which `arrived` tells.

        Parameters
        ----------
        operand, source : str
            The operand and the input.
        axes : (int, int)
            Rows and columns of the input.
        cells : tuple of GridCell
            See `engine.provenance.alignment.align_grid`.
        """
        serial = self._tensors.serial(operand)
        if serial is None:
            return Found(None, f"operand {operand} has not been computed")
        places = tuple([(cell.row, cell.column) for cell in cells])
        key = _Key(operand, serial, source, places)
        if key not in self._known:
            while len(self._known) >= _MOST:
                self._known.pop(next(iter(self._known)))
            self._known[key] = None
            ticket = self._client.next_ticket()
            self._asked[ticket] = key
            self._client.send(AlignRequest(ticket, operand, serial, source, axes, cells))
        return self._known[key]

    def take(self, answer: Answer) -> bool:
        """Store an answer; return whether it is one to `look`."""
        key = self._asked.pop(answer.ticket, None)
        if key is None:
            return False
        from engine.provenance.records import GridAlignment

        found = answer.result
        alignment = found if isinstance(found, GridAlignment) else None
        self._known[key] = Found(alignment, answer.reason)
        self.arrived.emit()
        return True

    def clear(self) -> None:
        """Forget all answers."""
        self._known.clear()
        self._asked.clear()
