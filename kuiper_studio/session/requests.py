"""What the engine has been asked and has not answered, and what of it is to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from kuiper_studio.engine_service.protocol import CancelRequest, CloseRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kuiper_studio.engine_service.protocol import Request
    from kuiper_studio.session.client import EngineClient

__all__ = ["Requests"]

_STOP_MS: Final = 1500  # for what is stopped to end by itself


class Requests(QObject):
    """Requests that the engine has not answered yet.

    A request that is cancelled stays pending until the engine has answered it: an operator
    that is running is not interrupted.

    Parameters
    ----------
    client : EngineClient

    Signals
    -------
    overdue
        Work that was to end did not, within a second and a half.
    """

    overdue = Signal()

    def __init__(self, client: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._cancelled = 0  # requests up to this number are
        self._awaited_end = 0  # requests up to this number are to end soon
        self._timer = QTimer(self, singleShot=True, interval=_STOP_MS)
        self._timer.timeout.connect(self._on_timeout)

    def pending(self) -> Iterator[tuple[int, Request]]:
        """Yield those that the user waits for, so not closing a model, the earliest first."""
        return (
            each for each in self._client.pending() if not isinstance(each[1], CloseRequest)
        )

    @property
    def are_pending(self) -> bool:
        """Whether the user waits for any."""
        return any(True for _ in self.pending())

    @property
    def first(self) -> Request | None:
        """The one that the engine is carrying out."""
        return next((request for _, request in self._client.pending()), None)

    def ask(self, make_request: Callable[[int], Request]) -> int:
        """Send a request that expects a reply, and return its number.

        Parameters
        ----------
        make_request : callable
            Called with the number.
        """
        return self._client.ask(make_request)

    def cancel(self) -> None:
        """Request that all pending work ends after the operator that is running."""
        last = max((run_id for run_id, _ in self._client.pending()), default=0)
        if last > self._cancelled:
            self._cancelled = last
            self._client.send(CancelRequest(last))

    def is_cancelled(self, run_id: int) -> bool:
        """Return whether a request was cancelled."""
        return run_id <= self._cancelled

    def stop(self) -> None:
        """Cancel all pending work, which is `overdue` unless it ends soon."""
        self.cancel()
        self._await_end(self._cancelled)

    def close_model(self) -> None:
        """Close the engine's model, and drop the replies to all that was asked before.

        That is `overdue` too, unless it is done soon.
        """
        self.cancel()
        self._client.abandon()
        self._await_end(self._client.ask(CloseRequest))

    def forget_overdue(self) -> None:
        """Await the end of nothing: the engine ends, or another one was started."""
        self._timer.stop()

    def _await_end(self, run_id: int) -> None:
        self._awaited_end = run_id
        self._timer.start()

    @Slot()
    def _on_timeout(self) -> None:
        if any(run_id <= self._awaited_end for run_id, _ in self._client.pending()):
            self.overdue.emit()
