"""Does what nobody waits for: copies weights, counts channels, tunes kernels."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.pnnx.archive import Archive
from engine.states import SessionState
from engine.values import LazyArray
from kuiper_studio.engine_service.protocol import Tuned, WeightsKept
from kuiper_studio.engine_service.served import CancelledError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.session import Session
    from kuiper_studio.engine_service.served import Served

__all__ = ["IdleWork"]

_log = logging.getLogger(__name__)

# Weights are copied ahead in pieces of 10 ms, for files that take up to a third of a second.
# Weights of larger files are read on use, because the copy needs as much disk space.
_PIECE: Final = 16 << 20
_LARGEST_AHEAD: Final = 512 << 20
_LARGEST_COUNTED: Final = 1 << 22  # elements of an operand that nobody looks at; some 20 ms
# Channels are counted when nothing has been asked for this long, then kernels are tuned.
_REST_BEFORE_COUNTING: Final = 0.4
# Kernels are tuned when nothing has been asked for this long: whoever steps is not disturbed.
_REST_BEFORE_TUNING: Final = 1.0
_SECONDS_BETWEEN_TUNED: Final = 0.25


class IdleWork:
    """Goes on with what nobody waits for, in short pieces.

    Parameters
    ----------
    served : Served
    send : callable
        Called with each message.
    is_wanted : callable
        Whether there is more urgent work.

    Attributes
    ----------
    tunes : bool
        Whether kernels are tuned.
    """

    def __init__(
        self,
        served: Served,
        send: Callable[[object], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self._served, self._send, self._is_wanted = served, send, is_wanted
        self.tunes = True
        self._untunable: Session | None = None  # that tuning has failed in
        self._kept_told = 0  # generation whose weights are known to be there

    @property
    def is_pressing(self) -> bool:
        """Whether weights are to be copied, for which no rest is waited for."""
        return self._archive_to_copy() is not None

    def rest_before(self) -> float | None:
        """Seconds without a request until there is something to do; None for nothing."""
        if self._served.uncounted:
            return _REST_BEFORE_COUNTING
        return _REST_BEFORE_TUNING if self._tunable_session() is not None else None

    def go_on(self) -> None:
        """Do the next piece."""
        archive = self._archive_to_copy()
        if archive is not None:
            archive.copy_ahead(_PIECE)
        elif self._served.uncounted:
            self._count_channels()
        else:
            self._tune()

    def tell_kept(self) -> None:
        """Report once that all weights are available, because they were copied or used."""
        archive, generation = self._served.archive, self._served.generation
        if archive is not None and archive.is_kept and self._kept_told != generation:
            self._kept_told = generation
            self._send(WeightsKept(generation))

    def _archive_to_copy(self) -> Archive | None:
        """Return the archive whose weights are copied while there is no other work."""
        archive = self._served.archive
        if not isinstance(archive, Archive) or archive.version.size > _LARGEST_AHEAD:
            return None
        return None if archive.is_kept else archive

    def _count_channels(self) -> None:
        """Add channels of this pass to the totals, until something is asked for."""

        def check() -> None:
            if self._is_wanted():
                raise CancelledError

        served = self._served
        while served.uncounted and not self._is_wanted():
            index = served.uncounted.pop()
            sent = served.executions.get(index)
            resident = sent.outputs.resident if sent is not None else None
            for operand, held in (resident or {}).items():
                # A lazy array is read without being kept in NumPy's order.
                value = held.read() if isinstance(held, LazyArray) else held
                if sent is None or not isinstance(value, np.ndarray):
                    continue
                if value.size > _LARGEST_COUNTED:
                    continue
                try:
                    served.totals.count(operand, value, sent.source, check_cancelled=check)
                except CancelledError:
                    served.uncounted.add(index)
                    return
                except Exception:  # noqa: BLE001 - nobody has asked for it
                    _log.exception("channels of operand %s were not counted", operand)

    def _tunable_session(self) -> Session | None:
        """The session, at the end of a pass whose kernels can be tuned."""
        session = self._served.session
        if (
            session is None
            or not self.tunes
            or session is self._untunable
            or session.state is not SessionState.FINISHED
            or session.tuned == len(session.graph.operators)
        ):
            return None
        return session

    def _tune(self) -> None:
        """Try kernels until something is asked for, which waits for one trial at most."""
        session = self._tunable_session()
        if session is None:
            return
        total, due = len(session.graph.operators), 0.0

        def report() -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + _SECONDS_BETWEEN_TUNED
                self._send(Tuned(self._served.generation, session.tuned, total))

        try:
            if session.tune(on_trial=report, cancelled=self._is_wanted):
                wrong = session.wrong_kernels
                self._send(Tuned(self._served.generation, total, total, wrong))
        except Exception:  # noqa: BLE001 - nobody has asked for it
            _log.exception("kernels were not tuned")
            self._untunable = session
