"""What the operators gave, measured by the engine while somebody asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from engine.search import ValueTable
from engine.states import OperatorStatus
from engine.values import value_nbytes
from kuiper_studio.engine_service.protocol import MeasureRequest
from kuiper_studio.engine_service.summary import MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from kuiper_studio.engine_service.protocol import Answer, Record
    from kuiper_studio.session.client import EngineClient

__all__ = ["Measuring"]

_AT_ONCE: Final = 256  # operators that are measured by one request
_BYTES_AT_ONCE: Final = 64 << 20  # of their values: the answers of others wait that long
_NONE: Final = -1


class Measuring(QObject):
    """Ranges, zeros, NaN and infinities of the outputs of all operators.

    Nothing is measured until somebody asks by `want`. A measured value stays known when it is
    evicted.

    Parameters
    ----------
    client : EngineClient

    Signals
    -------
    changed
        More is known, or less.
    """

    changed = Signal()

    def __init__(self, client: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._users: set[str] = set()
        self._asked: dict[int, tuple[tuple[int, int], ...]] = {}
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._ask)
        self._found: frozenset[int] | None = None  # with NaN or Inf, made when somebody asks
        self.reset(0)

    # What is known

    @property
    def table(self) -> ValueTable:
        """What is known of all operators."""
        count, low, high, zeros, nan, inf = self._columns.T
        known = (self._measured == self._present) & (self._present != _NONE)
        share = np.divide(zeros, count, out=np.zeros_like(zeros), where=count > 0)
        columns = (np.where(known, each, np.nan) for each in (low, high, share, nan, inf))
        return ValueTable(known, *columns)

    @property
    def nonfinite(self) -> frozenset[int]:
        """Indexes of the operators that are known to have given NaN or infinities."""
        if self._found is None:
            table = self.table
            found = np.flatnonzero((table.nan > 0) | (table.inf > 0))
            self._found = frozenset(found.tolist())
        return self._found

    # Asking

    def want(self, user: str, *, on: bool) -> None:
        """Say that somebody needs the measures, or needs them no longer."""
        if on:
            self._users.add(user)
            self._soon.start()
        else:
            self._users.discard(user)

    # Following the session

    def reset(self, count: int) -> None:
        """Forget everything, because a model of so many operators is shown."""
        self._present: npt.NDArray[np.int64] = np.full(count, _NONE, np.int64)
        self._tried = self._present.copy()
        self._measured = self._present.copy()
        self._nbytes = np.zeros(count, np.int64)
        self._columns = np.full((count, len(MEASURES)), np.nan)
        self._asked.clear()
        self._found = None
        self.changed.emit()

    def follow(self, records: Iterable[Record], *, anew: bool = False) -> None:
        """Note new executions; `anew` when they are all that there are."""
        self._found = None
        if anew:
            self._present[:] = _NONE
        for record in records:
            ran = record.status is OperatorStatus.EXECUTED and len(record.outputs)
            self._present[record.index] = record.outputs.serial if ran else _NONE
            self._nbytes[record.index] = sum(map(value_nbytes, record.metadata)) if ran else 0
        if self._users:
            self._soon.start()
            self.changed.emit()

    @Slot()
    def _ask(self) -> None:
        """Have the next operators measured."""
        if self._asked or not self._users:
            return
        lacking = np.flatnonzero((self._present != _NONE) & (self._tried != self._present))
        chosen = lacking[:_AT_ONCE]
        heavy = int(np.searchsorted(np.cumsum(self._nbytes[chosen]), _BYTES_AT_ONCE))
        chosen = chosen[: heavy + 1]
        if len(chosen):
            self._tried[chosen] = self._present[chosen]
            pairs = zip(chosen.tolist(), self._present[chosen].tolist(), strict=True)
            ticket = self._client.next_ticket()
            self._asked[ticket] = tuple(pairs)
            self._client.send(MeasureRequest(ticket, self._asked[ticket]))

    def take(self, answer: Answer) -> bool:
        """Store an answer; return whether it is one to a request of `Measuring`."""
        asked = self._asked.pop(answer.ticket, None)
        if asked is None:
            return False
        if isinstance(answer.result, np.ndarray):
            for (index, serial), row in zip(asked, answer.result, strict=True):
                if not np.isnan(row[0]):  # else it is evicted, or of an earlier execution
                    self._measured[index] = serial
                    self._columns[index] = row
            self._found = None
            self.changed.emit()
        self._ask()
        return True
