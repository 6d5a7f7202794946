"""The values of operands for views: present, being fetched, or the reason why not."""

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
    """Values of operands in the current pass.

    Parameters
    ----------
    client : EngineClient
    outputs_with : callable
        Returns the outputs of the current pass that contain an operand, or None.

    Signals
    -------
    recalled
        Name of an operand whose value or summary has arrived or cannot be fetched.
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

    # Present values

    def has_value(self, operand: str) -> bool:
        """Return whether an operand has been computed."""
        return self._outputs_with(operand) is not None

    def serial(self, operand: str) -> int | None:
        """Return the number of the execution that computed an operand; None for no value."""
        outputs = self._outputs_with(operand)
        return outputs.serial if outputs is not None else None

    def metadata(self, operand: str) -> ValueMetadata:
        """Metadata of an operand's value, evicted or not; None if it has no value yet."""
        outputs = self._outputs_with(operand)
        return outputs.metadata(operand) if outputs is not None else None

    def at_hand(self, operand: str) -> bool:
        """Return whether an operand has been computed and `value` returns its value."""
        key = self._key(operand)
        return key is not None and self._values.has(key)

    def value(self, operand: str) -> Value:
        """Value of an operand, read-only.

        None if it has no value yet (see `has_value`) or it is not fetched (see `look`).
        """
        key = self._key(operand)
        return self._values.value(key) if key is not None else None

    def summary(self, operand: str) -> Summary | None:
        """Range, special values and picture of an operand's value; None until fetched."""
        key = self._key(operand)
        return self._values.summary(key) if key is not None else None

    def is_nonfinite(self, operand: str) -> bool:
        """Return whether an operand has NaN or Inf according to its summary."""
        nonfinite = self._values.nonfinite
        return bool(nonfinite) and self._key(operand) in nonfinite

    @property
    def nonfinite(self) -> tuple[str, ...]:
        """Operands that are known to have NaN or Inf."""
        return tuple(k.operand for k in self._values.nonfinite if self._key(k.operand) == k)

    def statistics(self, operand: str) -> TensorStatistics | None:
        """Statistics of an operand's value, cached; None if it is not a fetched array."""
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

    # Fetching

    def fetch(self, operand: str) -> Value:
        """Wait for the value of an operand; read-only, None if there is none.

        Raises
        ------
        EngineError
            If it cannot be recomputed, or the engine ends meanwhile.
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
        """Fetch the value of an operand that the user looks at.

        Returns
        -------
        bool
            Whether the value is present. If not, `recalled` is emitted when it arrives; see
            `is_coming` and `is_recomputed`.
        """
        key = self._key(operand)
        return key is not None and self._values.look(key)

    def want(self, operand: str) -> None:
        """Fetch the summary of an operand's value in the background; emits `recalled`."""
        key = self._key(operand)
        if key is not None:
            self._values.want(key)

    def is_coming(self, operand: str) -> bool:
        """Return whether the value of an operand is being sent."""
        key = self._key(operand)
        return key is not None and self._values.is_coming(key)

    def is_recomputed(self, operand: str) -> bool:
        """Return whether an evicted value is being recomputed."""
        key = self._key(operand)
        return key is not None and self._values.is_evicted(key)

    @property
    def recalling(self) -> str:
        """Name of the operand that is being recomputed; ``""`` for none."""
        return self._values.recomputing

    def why_not(self, operand: str) -> str:
        """Reason why the value of an operand is not fetched; ``""`` if it is or will be."""
        key = self._key(operand)
        return self._values.why_not(key) if key is not None else ""

    def is_given_up(self, operand: str) -> bool:
        """Return whether the value of an operand was evicted and is not recomputed."""
        return bool(self.why_not(operand))

    def try_again(self, operand: str) -> bool:
        """Clear the reason why a value was not recomputed; False if there was none."""
        key = self._key(operand)
        if key is None or not self._values.why_not(key):
            return False
        self._values.try_again(key)
        return True

    def cancel(self) -> None:
        """Cancel all recomputations."""
        for operand in self._values.cancel():
            self.recalled.emit(operand)

    # Updates by the session

    def put(self, operand: str, value: Value) -> None:
        """Store a value that was sent without a request."""
        key = self._key(operand)
        if key is not None:
            self._values.put(key, value)

    def take(self, answer: Answer) -> str:
        """Store an answer of the engine; return its operand, ``""`` if it is obsolete."""
        return self._values.take(answer)

    def note_evicted(self, reply: Evicted) -> str:
        """Note that a value is being recomputed; return its operand."""
        return self._values.note_evicted(reply.ticket)

    def forget(self) -> None:
        """Drop all values."""
        self._values.forget()
        self._statistics.clear()

    def _key(self, operand: str) -> Key | None:
        outputs = self._outputs_with(operand)
        return Key(outputs, operand) if outputs is not None else None
