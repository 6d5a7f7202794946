"""How much memory the engine may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.text import format_exact_bytes
from kuiper_studio.engine_service.protocol import MemoryRequest

if TYPE_CHECKING:
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.workspace import Workspace

__all__ = ["Memory"]


class Memory(QObject):
    """The memory limit and the memory bound of the engine.

    Parameters
    ----------
    client : EngineClient
        Tells the engine.
    workspace : Workspace
        Its log says what was set.

    Signals
    -------
    changed
        The memory limit or the memory bound changed.
    """

    changed = Signal()

    def __init__(
        self, client: EngineClient, workspace: Workspace, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._client, self._workspace = client, workspace
        self._request = MemoryRequest(limit=None, bound=None)

    @property
    def request(self) -> MemoryRequest:
        """What tells an engine of both."""
        return self._request

    @property
    def limit(self) -> int | None:
        """The memory limit in bytes for computed values; None for no limit."""
        return self._request.limit

    @property
    def bound(self) -> int | None:
        """The memory bound in bytes; None for half of the machine's memory."""
        return self._request.bound

    def set_limit(self, limit: int | None) -> None:
        """Set the memory limit in bytes for computed values; silent when nothing changes.

        Values beyond it are evicted, and recomputed when they are shown.
        """
        shown = format_exact_bytes(limit) if limit is not None else "none"
        self._set(self._request._replace(limit=limit), f"memory limit {shown}")

    def set_bound(self, bound: int | None) -> None:
        """Set the memory bound in bytes; None for half of the machine's memory.

        Silent when nothing changes. An operator that needs more fails.
        """
        shown = (
            format_exact_bytes(bound) if bound is not None else "half of the machine's memory"
        )
        self._set(self._request._replace(bound=bound), f"memory bound {shown}")

    def _set(self, request: MemoryRequest, text: str) -> None:
        if request != self._request:
            self._request = request
            self._workspace.log("info", text)
            self.changed.emit()
            self._client.send(request)
