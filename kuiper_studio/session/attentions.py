"""Attentions of the shown model, and their weights, computed when a view looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kuiper_studio.engine_service.protocol import AttentionRequest
from kuiper_studio.session.lookups import Lookups

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QObject

    from engine.attention import Attention
    from engine.runtime import RuntimeGraph
    from kuiper_studio.session.client import EngineClient

__all__ = ["Attentions"]

_WORDS: Final = ("attention", "softmax")  # in the types of operators


class Attentions(Lookups[AttentionRequest]):
    """Attentions of the shown model.

    Parameters
    ----------
    client : EngineClient
    graph : callable
        Returns the shown graph, or None.
    """

    def __init__(
        self,
        client: EngineClient,
        graph: Callable[[], RuntimeGraph | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(client, parent)
        self._get_graph = graph
        self._graph: RuntimeGraph | None = None
        self._found: tuple[Attention, ...] = ()

    @property
    def found(self) -> tuple[Attention, ...]:
        """The attentions of the shown model, in execution order."""
        graph = self._get_graph()
        if graph is not self._graph:
            self._graph = graph
            self._found = _find(graph) if graph is not None else ()
            self.forget()
        return self._found


def _find(graph: RuntimeGraph) -> tuple[Attention, ...]:
    types = {operator.type.lower() for operator in graph.operators}
    if not any(word in each for each in types for word in _WORDS):
        return ()  # most networks: the modules below need not be imported
    from engine.attention import find_attentions

    return find_attentions(graph)
