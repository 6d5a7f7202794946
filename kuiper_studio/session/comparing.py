"""The comparison with a reference that the window shows, and the reference's tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.values import ArrayMetadata
from kuiper_studio.engine_service.channels import ChannelDistances
from kuiper_studio.engine_service.protocol import DistancesWanted
from kuiper_studio.session.channel_answers import ChannelAnswers
from kuiper_studio.session.tensors import Tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.comparison import Comparison, Origin, Row
    from kuiper_studio.engine_service.channels import ChannelView
    from kuiper_studio.engine_service.protocol import (
        Compared,
        CorrectRequest,
        Outputs,
        ReferenceEntry,
    )
    from kuiper_studio.session.client import EngineClient

__all__ = ["Comparing"]


class Comparing(QObject):
    """The last comparison of the current model and inputs.

    Parameters
    ----------
    client : EngineClient

    Attributes
    ----------
    tensors : Tensors
        The reference's tensors in our layout, by our operand.
    distances : ChannelAnswers of ChannelDistances
        How far the channels of our tensors are from them.
    entries : tuple of ReferenceEntry
        All tensors of the reference, in order.
    corrections : mapping of str to str or None
        Matches by hand: by operand, the key of the reference's tensor, or None for none.
    is_corrected : bool
        Whether the comparison is the one before, with another match by hand.

    Signals
    -------
    arriving
        A comparison has come: `changed` follows at once.
    changed
        The comparison was replaced or cleared.
    """

    arriving = Signal()
    changed = Signal()

    def __init__(self, client: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tensors = Tensors(client, self._outputs_with, self)
        self.distances = ChannelAnswers(client, "distances", ChannelDistances, self)
        self._comparison: Comparison | None = None
        self._outputs: Outputs | None = None
        self._rows: dict[str, Row] = {}
        self._lacking: tuple[str, ...] = ()
        self._origins: dict[str, Origin] = {}
        self.entries: tuple[ReferenceEntry, ...] = ()
        self.corrections: Mapping[str, str | None] = {}
        self.is_corrected = False
        self._undoable: list[Mapping[str, str | None]] = []

    @property
    def undone_corrections(self) -> Mapping[str, str | None] | None:
        """The matches by hand before the last correction; None where there was none."""
        return self._undoable[-1] if self._undoable else None

    @property
    def comparison(self) -> Comparison | None:
        """The comparison; None before the first, and after the inputs have changed."""
        return self._comparison

    @property
    def rows(self) -> Mapping[str, Row]:
        """Rows by operand, in execution order."""
        return self._rows

    @property
    def lacking(self) -> tuple[str, ...]:
        """Our operands without a tensor of the reference; first those that nothing confirms."""
        return self._lacking

    @property
    def origins(self) -> Mapping[str, Origin]:
        """Origins by operator, in execution order."""
        return self._origins

    def neighbour(self, index: int, step: int) -> str:
        """Return the origin before or after an operator, and wrap around.

        Parameters
        ----------
        index : int
            Index of the operator.
        step : {1, -1}

        Returns
        -------
        str
            Name of the operator; ``""`` if there is no other origin.
        """
        found = sorted(self._origins.values(), key=lambda origin: origin.operator.index)
        if step < 0:
            found.reverse()
        further = [o for o in found if (o.operator.index - index) * step > 0]
        others = [o for o in (*further, *found) if o.operator.index != index]
        return others[0].operator.name if others else ""

    def limit(self, operand: str) -> float:
        """Return the difference up to which elements of an operand count as equal."""
        row, tensor = self._rows.get(operand), self.tensors.metadata(operand)
        if row is None or row.reference_statistics is None or self._comparison is None:
            return 0.0
        if not isinstance(tensor, ArrayMetadata) or not row.reference_statistics.finite:
            return 0.0
        least, most = row.reference_statistics.min, row.reference_statistics.max
        return self._comparison.tolerances.of(tensor) * max(abs(least), abs(most))

    def channel_distances(
        self, operand: str, serial: int, view: ChannelView
    ) -> ChannelDistances | None:
        """Return how far the channels of an operand are from the reference's.

        Parameters
        ----------
        operand : str
        serial : int
            Number of the execution that computed our value.
        view : ChannelView

        Returns
        -------
        ChannelDistances or None
            None until they are fetched, which `distances` tells.
        """
        if self._outputs is None:
            return None
        wanted = DistancesWanted(self._outputs.serial, view, self.limit(operand))
        return self.distances.look(operand, serial, wanted)

    # For the session

    def show(
        self, answer: Compared, comparison: Comparison, correction: CorrectRequest | None
    ) -> None:
        """Take over a comparison.

        Parameters
        ----------
        answer : Compared
        comparison : Comparison
            Of the answer.
        correction : CorrectRequest or None
            What was corrected by hand; None for a comparison with another reference.
        """
        self.arriving.emit()
        if correction is None:
            self._undoable.clear()
        elif correction.undoes:
            self._undoable.pop()
        else:
            self._undoable.append(self.corrections)
        self.is_corrected = correction is not None
        self.entries, self.corrections = answer.entries, answer.corrections
        self.tensors.forget()
        self.distances.forget()
        self._comparison, self._outputs = comparison, answer.tensors
        self._rows = {row.operand: row for row in comparison.rows}
        self._origins = {origin.operator.name: origin for origin in comparison.origins}
        ours = sorted(comparison.unmatched.ours, key=lambda each: not each.is_open)
        self._lacking = tuple(each.operand for each in ours)
        self.changed.emit()

    def clear(self) -> None:
        """Forget the comparison; silent when there is none."""
        if self._comparison is not None:
            self.tensors.forget()
            self.distances.forget()
            self._comparison = self._outputs = None
            self._rows, self._origins, self._lacking = {}, {}, ()
            self.entries, self.corrections = (), {}
            self._undoable.clear()
            self.changed.emit()

    def _outputs_with(self, operand: str) -> Outputs | None:
        outputs = self._outputs
        return outputs if outputs is not None and operand in outputs.by_operand else None
