"""Fetched tensors and pending fetches."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from engine.values import value_nbytes
from kuiper_studio.engine_service.protocol import CancelRequest, FetchRequest
from kuiper_studio.engine_service.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from engine.values import Value
    from kuiper_studio.engine_service.protocol import Answer, Outputs
    from kuiper_studio.session.client import EngineClient

__all__ = ["Key", "Values"]

_MOST_BYTES: Final = 256 << 20  # of values that are no longer shown
_AT_ONCE: Final = 4  # summaries that are requested at a time
_CANCELLED: Final = "Computing it again was cancelled; select it anew to see it."


class Key(NamedTuple):
    """A value of one execution."""

    outputs: Outputs
    operand: str


class Values:
    """Values and summaries by operand and execution, fetched on demand.

    Values that the user looks at are fetched at once. Summaries, which may be many, are fetched
    a few at a time, the last requested first.

    Parameters
    ----------
    client : EngineClient
    """

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._values: OrderedDict[Key, Value] = OrderedDict()  # oldest first
        self._nbytes = 0
        self._summaries: dict[Key, Summary] = {}
        self._nonfinite: set[Key] = set()
        self._wanted: dict[Key, None] = {}  # summaries to request
        self._asked: dict[int, tuple[Key, Literal["value", "summary"]]] = {}
        self._evicted: set[Key] = set()  # being recomputed
        self._refused: dict[Key, str] = {}

    def value(self, key: Key) -> Value:
        """Return a fetched value; None if it is not fetched."""
        return self._values.get(key)

    def has(self, key: Key) -> bool:
        """Return whether a value is fetched."""
        return key in self._values

    def summary(self, key: Key) -> Summary | None:
        """Return a fetched summary, or None."""
        return self._summaries.get(key)

    @property
    def nonfinite(self) -> AbstractSet[Key]:
        """Values that are known to have NaN or Inf, including earlier executions."""
        return self._nonfinite

    def put(self, key: Key, value: Value) -> None:
        """Store a value that was sent without a request."""
        self._keep(key, value)

    def look(self, key: Key) -> bool:
        """Fetch a value now; return whether it is present."""
        if key in self._values:
            self._values.move_to_end(key)
            return True
        if key not in self._refused and not self._is_asked(key, "value"):
            self._ask(key, "value")
        return False

    def want(self, key: Key) -> None:
        """Fetch a summary in the background."""
        if key in self._summaries or key in self._refused:
            return
        if not self._is_asked(key, "summary"):
            self._wanted[key] = None
            self._ask_next()

    def is_coming(self, key: Key) -> bool:
        """Return whether a value is being sent, without a recomputation."""
        return self._is_asked(key, "value") and key not in self._evicted

    def is_evicted(self, key: Key) -> bool:
        """Return whether a value was evicted and is being recomputed."""
        return key in self._evicted

    def why_not(self, key: Key) -> str:
        """Reason why a value is not fetched; ``""`` if it is or will be."""
        return self._refused.get(key, "")

    @property
    def recomputing(self) -> str:
        """Name of an operand that is being recomputed; ``""`` for none."""
        return next((key.operand for key in self._evicted), "")

    def note_evicted(self, ticket: int) -> str:
        """Note that a value is being recomputed; return its operand."""
        asked = self._asked.get(ticket)
        if asked is None:
            return ""
        self._evicted.add(asked[0])
        return asked[0].operand

    def take(self, answer: Answer) -> str:
        """Store an answer; return its operand, ``""`` if it is obsolete."""
        asked = self._asked.pop(answer.ticket, None)
        if asked is None:
            return ""
        key, what = asked
        self._evicted.discard(key)
        if answer.found and what == "value":
            self._keep(key, answer.result)  # type: ignore[arg-type]
        elif answer.found and isinstance(answer.result, Summary):
            self._summaries[key] = answer.result
            if not answer.result.is_finite:
                self._nonfinite.add(key)
        elif answer.reason:
            self._refused[key] = answer.reason
        elif key not in self._refused:  # it was cancelled with others
            if what == "value":
                self._ask(key, "value")
            else:
                self._wanted[key] = None
        self._ask_next()
        return key.operand

    def cancel(self) -> tuple[str, ...]:
        """Cancel recomputations of evicted values; return the operands."""
        keys = list(dict.fromkeys((*self._evicted, *self._wanted)))
        self._refused.update(dict.fromkeys(keys, _CANCELLED))
        self._wanted.clear()
        self._cancel_tickets()
        return tuple(key.operand for key in keys)

    def try_again(self, key: Key) -> None:
        """Clear the reason why a value was not fetched, and cancellations."""
        self._refused.pop(key, None)
        for each in [k for k, reason in self._refused.items() if reason == _CANCELLED]:
            del self._refused[each]

    def forget(self) -> None:
        """Drop everything, because the values of the pass were dropped."""
        if self._asked:
            self._cancel_tickets()
        for each in (self._values, self._summaries, self._wanted, self._asked, self._refused):
            each.clear()
        self._nonfinite.clear()
        self._evicted.clear()
        self._nbytes = 0

    def _cancel_tickets(self) -> None:
        if self._asked:
            self._client.send(CancelRequest(ticket=max(self._asked)))

    def _is_asked(self, key: Key, what: str) -> bool:
        return (key, what) in self._asked.values()

    def _ask_next(self) -> None:
        while self._wanted and len(self._asked) < _AT_ONCE:
            key, _ = self._wanted.popitem()
            self._ask(key, "summary")

    def _ask(self, key: Key, what: Literal["value", "summary"]) -> None:
        ticket = self._client.next_ticket()
        self._asked[ticket] = key, what
        self._client.send(FetchRequest(ticket, key.operand, key.outputs.serial, what))

    def _keep(self, key: Key, value: Value) -> None:
        self._nbytes += value_nbytes(value) - value_nbytes(self._values.get(key))
        self._values[key] = value
        self._values.move_to_end(key)
        while self._nbytes > _MOST_BYTES and len(self._values) > 1:
            _, oldest = self._values.popitem(last=False)
            self._nbytes -= value_nbytes(oldest)
