"""Attentions of the shown model, and their weights, computed when a view looks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.attention import Attention
    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.protocol import Answer, AttentionRequest
    from kuiper_studio.session.client import EngineClient

__all__ = ["Attentions"]

_WORDS: Final = ("attention", "softmax")  # in the types of operators
_MOST: Final = 8  # answers that are kept; each may take 32 MB


class Attentions(QObject):
    """Attentions of the shown model.

    Parameters
    ----------
    client : EngineClient
    graph : callable
        Returns the shown graph, or None.

    Signals
    -------
    arrived
        Something that was looked for has come, or the reason why it cannot.
    """

    arrived = Signal()

    def __init__(
        self,
        client: EngineClient,
        graph: Callable[[], RuntimeGraph | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client, self._get_graph = client, graph
        self._graph: RuntimeGraph | None = None
        self._found: tuple[Attention, ...] = ()
        self._known: dict[AttentionRequest, Answer | None] = {}  # by request without ticket
        self._asked: dict[int, AttentionRequest] = {}

    @property
    def found(self) -> tuple[Attention, ...]:
        """The attentions of the shown model, in execution order."""
        graph = self._get_graph()
        if graph is not self._graph:
            self._graph = graph
            self._found = _find(graph) if graph is not None else ()
            self._known.clear()
            self._asked.clear()
        return self._found

    @property
    def is_waiting(self) -> bool:
        """Whether the engine has something to answer."""
        return bool(self._asked)

    def look(self, wanted: AttentionRequest) -> Answer | None:
        """Return an answer of the engine; None until it is here, which `arrived` tells.

        Parameters
        ----------
        wanted : AttentionRequest
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
        elif key in self._known:  # the engine preferred another request
            del self._known[key]
            self.arrived.emit()
        return True

    def _ask(self, key: AttentionRequest) -> None:
        ticket = self._client.next_ticket()
        self._asked[ticket] = key
        self._client.send(replace(key, ticket=ticket))


def _find(graph: RuntimeGraph) -> tuple[Attention, ...]:
    types = {operator.type.lower() for operator in graph.operators}
    if not any(word in each for each in types for word in _WORDS):
        return ()  # most networks: the modules below need not be imported
    from engine.attention import find_attentions

    return find_attentions(graph)
