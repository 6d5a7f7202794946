"""Questions that views ask when they look, answered by the engine and kept for a while."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from PySide6.QtCore import QObject, Signal

from kuiper_studio.engine_service.protocol import AttentionRequest, MeaningRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from kuiper_studio.engine_service.protocol import Answer
    from kuiper_studio.session.client import EngineClient

__all__ = ["Lookups"]

_MOST: Final = 8  # answers that are kept; each may take 32 MB

Wanted = TypeVar("Wanted", AttentionRequest, MeaningRequest)


class Lookups(QObject, Generic[Wanted]):
    """Answers of the engine by request.

    Parameters
    ----------
    client : EngineClient

    Signals
    -------
    arrived
        Something that was looked for has come, or the reason why it cannot.
    """

    arrived = Signal()

    def __init__(self, client: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._known: dict[Wanted, Answer | None] = {}  # by request without ticket
        self._asked: dict[int, Wanted] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether the engine has something to answer."""
        return bool(self._asked)

    def knows(self, wanted: Wanted) -> bool:
        """Return whether something was looked for already."""
        return replace(wanted, ticket=0) in self._known

    def look(self, wanted: Wanted) -> Answer | None:
        """Return an answer of the engine; None until it is here, which `arrived` tells.

        Parameters
        ----------
        wanted : request
            Any ticket.
        """
        key = replace(wanted, ticket=0)
        if key not in self._known:
            while len(self._known) >= _MOST:
                self._known.pop(next(iter(self._known)))
            self._known[key] = None
            self._ask(key)
        return self._known[key]

    def take(self, answer: Answer) -> bool:
        """Store an answer; return whether it is one to `look`."""
        key = self._asked.pop(answer.ticket, None)
        if key is None:
            return False
        if key in self._known and (answer.found or answer.reason):
            self._known[key] = answer
            self.arrived.emit()
        elif key in self._known:  # it was cancelled with others
            del self._known[key]
            self.arrived.emit()
        return True

    def latest(self, is_like: Callable[[Wanted], bool]) -> Answer | None:
        """Return the last answer to a request that is like the one wanted; None without one."""
        found = [each for key, each in self._known.items() if each is not None and is_like(key)]
        return found[-1] if found else None

    def forget(self) -> None:
        """Forget all answers, and those that are to come."""
        self._known.clear()
        self._asked.clear()

    def _ask(self, key: Wanted) -> None:
        ticket = self._client.next_ticket()
        self._asked[ticket] = key
        self._client.send(replace(key, ticket=ticket))
