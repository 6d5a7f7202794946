"""The window's client of the engine: sends requests and emits replies as signals.

A reply belongs to the request that it answers. Replies to abandoned requests are dropped.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from itertools import count
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from engine.errors import EngineError, ModelFileError
from kuiper_studio.engine_service.protocol import (
    Answer,
    Compared,
    Done,
    Extracted,
    LayersLoaded,
    SelfChecked,
    Simulated,
    WeightRequest,
    WorkFailed,
)
from kuiper_studio.engine_service.transport import (
    EngineLost,
    ProcessTransport,
    ThreadTransport,
)
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from engine.activity import Activity
    from engine.runtime.description import ArchiveDescription
    from kuiper_studio.engine_service.protocol import Request
    from kuiper_studio.engine_service.transport import EngineKind, Transport

__all__ = ["EngineClient", "RemoteWeights"]

_SECONDS_FOR_A_WEIGHT: Final = 30.0
_SECONDS_OF_A_TURN: Final = 4e-3  # after which no further message is taken in,
_SECONDS_OF_WAITING: Final = 0.05  # unless it has waited for longer
_HAS_ENDED: Final = "the engine has ended; try again"
# Replies, after which none comes.
_LAST: Final = (
    Done, LayersLoaded, SelfChecked, Compared, Extracted, Simulated, WorkFailed
)  # fmt: skip


class EngineClient(QObject):
    """Sends requests to an engine, emits its replies, and can restart it.

    A second, spare engine can run beside it and replace it.

    Parameters
    ----------
    kind : {"process", "thread"}

    Signals
    -------
    received
        A reply of the engine or the spare engine, and its request; None for replies without
        one.
    lost
        An `EngineLost`: the process of the engine ended unexpectedly.
    spare_lost
        The same for the spare engine.
    """

    received = Signal(object, object)
    lost = Signal(object)
    spare_lost = Signal(object)
    _arrived = Signal(int, object)  # from threads of the transport

    def __init__(self, kind: EngineKind, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kind = kind
        self._numbers = count(1)
        self._number = 0  # of the current engine; messages of earlier ones are dropped
        self._spare: tuple[int, Transport] | None = None
        self._run_ids = count(1)
        self._pending: dict[int, tuple[int, Request]] = {}  # and the number of the engine
        self._tickets = count(1)
        self._futures: dict[int, Future[Answer]] = {}
        self._ended = 0  # number of the engine that was lost last
        self._lock = Lock()
        # Messages, of which engine they are, and when they arrived.
        self._waiting: deque[tuple[int, object, float]] = deque()
        self._has_turn = False
        self._arrived.connect(self._on_arrived)
        self._number, self._transport = self._make_transport()

    @property
    def pid(self) -> int | None:
        """Id of the engine's process; None if it is a thread."""
        return self._transport.pid

    @property
    def is_process(self) -> bool:
        """Whether the engine is a process, which can be killed and restarted."""
        return self._kind == "process"

    def activity(self) -> Activity | None:
        """Return the kernel that the engine is running."""
        return self._transport.activity()

    def ask(self, make_request: Callable[[int], Request]) -> int:
        """Send a request that expects a reply.

        Parameters
        ----------
        make_request : callable
            Called with the request's number.

        Returns
        -------
        int
            The number.
        """
        run_id = next(self._run_ids)
        request = make_request(run_id)
        self._pending[run_id] = self._number, request
        self._transport.send(request)
        return run_id

    def pending(self) -> Iterator[tuple[int, Request]]:
        """Yield requests without a reply yet, with their numbers, the earliest first."""
        return ((run_id, request) for run_id, (_, request) in self._pending.items())

    def abandon(self) -> None:
        """Drop the replies to all pending requests."""
        self._pending.clear()

    def send(self, request: Request) -> None:
        """Send a request without a reply, or whose reply has its ticket."""
        self._transport.send(request)

    def next_ticket(self) -> int:
        """Return a new ticket, for a request that is answered by an `Answer`."""
        return next(self._tickets)

    def call(self, make_request: Callable[[int], Request]) -> Future[Answer]:
        """Send a request with a ticket. Any thread may call this and wait for the result.

        Parameters
        ----------
        make_request : callable
            Called with the ticket.

        Returns
        -------
        Future of Answer
            Raises EngineError if the engine ends before it answers.
        """
        ticket = self.next_ticket()
        future: Future[Answer] = Future()
        with self._lock:
            if self._ended == self._number:  # nobody would answer
                future.set_exception(EngineError(_HAS_ENDED))
                return future
            self._futures[ticket] = future
        self._transport.send(make_request(ticket))
        return future

    def kill(self) -> bool:
        """Kill the engine, or the spare one; return False if it is a thread."""
        return (self._spare[1] if self._spare is not None else self._transport).kill()

    def restart(self) -> None:
        """End the engine and start another one without a model."""
        self._transport.close()
        self._fail_calls()
        self._number, self._transport = self._make_transport()
        self._pending.clear()

    def try_spare(self, make_request: Callable[[int], Request]) -> int:
        """Send a request to the spare engine, started if necessary; see `ask`."""
        if self._spare is None:
            self._spare = self._make_transport()
        run_id = next(self._run_ids)
        request = make_request(run_id)
        self._pending[run_id] = self._spare[0], request
        self._spare[1].send(request)
        return run_id

    def adopt_spare(self) -> bool:
        """Replace the engine by the spare one; return False if there is none."""
        if self._spare is None:
            return False
        self._transport.close()
        self._fail_calls()
        self._forget_those_of(self._number)
        (self._number, self._transport), self._spare = self._spare, None
        return True

    def drop_spare(self) -> None:
        """End the spare engine, if there is one."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare[1].close()
            self._forget_those_of(spare[0])

    @property
    def has_spare(self) -> bool:
        """Whether there is a spare engine."""
        return self._spare is not None

    def close(self) -> None:
        """End the engine for good."""
        self._number = 0
        self._pending.clear()
        self.drop_spare()
        self._transport.close(waits=True)
        self._fail_calls()

    def _make_transport(self) -> tuple[int, Transport]:
        number = next(self._numbers)

        def receive(message: object) -> None:
            if isinstance(message, Answer) and self._resolve(message):
                return
            if isinstance(message, EngineLost) and number == self._number:
                # At once: the GUI thread may be waiting for a weight, and handle no event.
                with self._lock:
                    self._ended = number
                self._fail_calls()
            self._arrived.emit(number, message)

        if self._kind == "process":
            return number, ProcessTransport(receive, receive)
        return number, ThreadTransport(receive)

    def _forget_those_of(self, number: int) -> None:
        self._pending = {r: each for r, each in self._pending.items() if each[0] != number}

    def _resolve(self, answer: Answer) -> bool:
        with self._lock:
            future = self._futures.pop(answer.ticket, None)
        if future is not None:
            future.set_result(answer)
        return future is not None

    def _fail_calls(self) -> None:
        with self._lock:
            futures, self._futures = list(self._futures.values()), {}
        for future in futures:
            future.set_exception(EngineError(_HAS_ENDED))

    @Slot(int, object)
    def _on_arrived(self, number: int, message: object) -> None:
        self._waiting.append((number, message, monotonic()))
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting and not self._has_turn:
            self._has_turn = True
            take_turn(self, self._take_in)

    def _take_in(self) -> None:
        """Take in what has arrived, in its order, but not for long in one turn.

        What has waited for long is taken in at once: the window would fall behind otherwise,
        for each turn ends in painting.
        """
        self._has_turn = False
        begun = monotonic()
        while self._waiting:
            number, message, arrived = self._waiting[0]
            is_late = begun - arrived > _SECONDS_OF_WAITING
            if not is_late and monotonic() - begun > _SECONDS_OF_A_TURN:
                break
            self._waiting.popleft()
            self._go_on()  # also while a dialog that this opens handles events
            self._take(number, message)
        self._go_on()

    def _take(self, number: int, message: object) -> None:
        spare = self._spare is not None and number == self._spare[0]
        if not spare and number != self._number:
            return
        if not isinstance(message, EngineLost):
            self._hand_on(message)
        elif spare:
            self.spare_lost.emit(message)
        else:
            self.lost.emit(message)

    def _hand_on(self, reply: object) -> None:
        run_id = getattr(reply, "run_id", None)
        if run_id is None:
            self.received.emit(reply, None)
        elif run_id in self._pending:
            request = self._pending[run_id][1]
            if isinstance(reply, _LAST):
                del self._pending[run_id]
            self.received.emit(reply, request)


class RemoteWeights:
    """The weights of the engine's open model, as a `WeightArchive`.

    Each weight is fetched on first use, on any thread.

    Parameters
    ----------
    client : EngineClient
    generation : int
        Generation of the model.
    archive : ArchiveDescription
    """

    def __init__(
        self, client: EngineClient, generation: int, archive: ArchiveDescription
    ) -> None:
        self._client, self._generation = client, generation
        self.path: Path = archive.path
        self.entries = archive.entries
        self.version = archive.version
        self.directory = archive.directory
        self.is_kept = False

    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of a weight.

        Raises
        ------
        ModelFileError
            If they cannot be fetched.
        """
        generation = self._generation
        call = self._client.call(
            lambda ticket: WeightRequest(ticket, generation, offset, nbytes)
        )
        try:
            answer = call.result(_SECONDS_FOR_A_WEIGHT)
        except TimeoutError:
            raise ModelFileError(self.path, "the engine does not answer; stop it") from None
        except EngineError as exc:
            raise ModelFileError(self.path, str(exc)) from None
        found: Any = answer.result
        if not isinstance(found, np.ndarray):
            raise ModelFileError(self.path, answer.reason or "the weight is not there")
        return found
