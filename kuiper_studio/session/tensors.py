"""The values of operands, for views: what is here, what is on its way, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QObject, Signal

from engine.errors import EngineError
from engine.statistics import TensorStatistics, statistics
from kuiper_studio.engine_service.protocol import FetchRequest
from kuiper_studio.session.values import Key, Values

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.values import Value, ValueMetadata
    from kuiper_studio.engine_service.protocol import Answer, Evicted, Outputs
    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.session.client import EngineClient

__all__ = ["Tensors"]


class Tensors(QObject):
    """What operands hold in the present pass.

    Parameters
    ----------
    client : EngineClient
    outputs_with : callable
        Gives the outputs of the present pass that an operand is among, None for none.

    Signals
    -------
    recalled
        Name of an operand whose value or summary has come, or cannot be had.
    """

    recalled = Signal(object)

    def __init__(
        self,
        client: EngineClient,
        outputs_with: Callable[[str], Outputs | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._outputs_with = outputs_with
        self._values = Values(client)
        self._statistics: dict[Key, TensorStatistics] = {}

    # What is known

    def has_value(self, operand: str) -> bool:
        """Whether an operand has been computed."""
        return self._outputs_with(operand) is not None

    def metadata(self, operand: str) -> ValueMetadata:
        """What is known of an operand's value, dropped or not; None when it has none yet."""
        outputs = self._outputs_with(operand)
        return outputs.metadata(operand) if outputs is not None else None

    def at_hand(self, operand: str) -> bool:
        """Whether an operand has been computed, and `value` gives what came out."""
        key = self._key(operand)
        return key is not None and self._values.has(key)

    def value(self, operand: str) -> Value:
        """Value of an operand, read-only.

        None when it has none yet (see `has_value`), and while it is not here (see `look`).
        """
        key = self._key(operand)
        return self._values.value(key) if key is not None else None

    def summary(self, operand: str) -> Summary | None:
        """Range, special values and picture of an operand's value; None until `want` got it."""
        key = self._key(operand)
        return self._values.summary(key) if key is not None else None

    def is_nonfinite(self, operand: str) -> bool:
        """Whether an operand is known to hold NaN or Inf, from the summary of its value."""
        nonfinite = self._values.nonfinite
        return bool(nonfinite) and self._key(operand) in nonfinite

    @property
    def nonfinite(self) -> tuple[str, ...]:
        """The operands that are known to hold NaN or Inf."""
        return tuple(k.operand for k in self._values.nonfinite if self._key(k.operand) == k)

    def statistics(self, operand: str) -> TensorStatistics | None:
        """Statistics of an operand's value, cached; None where it is no array that is here."""
        key = self._key(operand)
        if key is None:
            return None
        known = self._statistics.get(key)
        if known is None:
            value = self._values.value(key)
            if not isinstance(value, np.ndarray):
                return None
            known = self._statistics[key] = statistics(value)
        return known

    # What is fetched

    def fetch(self, operand: str) -> Value:
        """Value of an operand, waited for: read-only, or None where there is none.

        Raises
        ------
        EngineError
            If it cannot be computed again, or the engine ends meanwhile.
        """
        key = self._key(operand)
        if key is None:
            return None
        if not self._values.has(key):
            serial = key.outputs.serial
            call = self._client.call(
                lambda ticket: FetchRequest(ticket, operand, serial, "value")
            )
            answer = call.result()
            if not answer.found:
                raise EngineError(answer.reason)
            fetched: Any = answer.result
            self._values.put(key, fetched)
        return self._values.value(key)

    def look(self, operand: str) -> bool:
        """Have the value of an operand here that the user looks at.

        Returns
        -------
        bool
            Whether it is. Otherwise it comes, and `recalled` tells; see `is_coming` and
            `is_recomputed`.
        """
        key = self._key(operand)
        return key is not None and self._values.look(key)

    def want(self, operand: str) -> None:
        """Have the summary of an operand's value made when there is time; `recalled` tells."""
        key = self._key(operand)
        if key is not None:
            self._values.want(key)

    def is_coming(self, operand: str) -> bool:
        """Whether the value of an operand is on its way and will be here in a moment."""
        key = self._key(operand)
        return key is not None and self._values.is_coming(key)

    def is_recomputed(self, operand: str) -> bool:
        """Whether a value that a memory limit has dropped is being computed again."""
        key = self._key(operand)
        return key is not None and self._values.is_evicted(key)

    @property
    def recalling(self) -> str:
        """The operand that is being computed again; ``""`` for none."""
        return self._values.recomputing

    def why_not(self, operand: str) -> str:
        """Why the value of an operand is not fetched; ``""`` where it is or will be."""
        key = self._key(operand)
        return self._values.why_not(key) if key is not None else ""

    def is_given_up(self, operand: str) -> bool:
        """Whether the value of an operand was dropped and is not computed again."""
        return bool(self.why_not(operand))

    def try_again(self, operand: str) -> bool:
        """Forget why a value was not computed again; False where nothing was in the way."""
        key = self._key(operand)
        if key is None or not self._values.why_not(key):
            return False
        self._values.try_again(key)
        return True

    def cancel(self) -> None:
        """Have nothing computed again."""
        for operand in self._values.cancel():
            self.recalled.emit(operand)

    # What the session tells

    def put(self, operand: str, value: Value) -> None:
        """Take a value that came unasked."""
        key = self._key(operand)
        if key is not None:
            self._values.put(key, value)

    def take(self, answer: Answer) -> str:
        """Take in an answer of the engine; returns its operand, ``""`` if nobody waits."""
        return self._values.take(answer)

    def note_evicted(self, reply: Evicted) -> str:
        """Take note that a value is computed again; returns its operand."""
        return self._values.note_evicted(reply.ticket)

    def forget(self) -> None:
        """Let go of everything."""
        self._values.forget()
        self._statistics.clear()

    def _key(self, operand: str) -> Key | None:
        outputs = self._outputs_with(operand)
        return Key(outputs, operand) if outputs is not None else None
