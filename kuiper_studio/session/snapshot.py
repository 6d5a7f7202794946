"""The immutable state of a run that the window shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final, overload

from typing_extensions import override

from engine.states import OperatorStatus, SessionState
from kuiper_studio.engine_service.protocol import (
    Compared,
    Done,
    Extracted,
    LayersLoaded,
    Opened,
    SelfChecked,
    Simulated,
    Stepped,
    WorkFailed,
)
from kuiper_studio.session.events import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self, TypeAlias

    from engine.states import StopReason
    from kuiper_studio.engine_service.protocol import Record, Status, Supply

    Reply: TypeAlias = (
        Opened
        | Stepped
        | Done
        | WorkFailed
        | SelfChecked
        | Compared
        | Extracted
        | Simulated
        | LayersLoaded
    )

__all__ = ["Records", "Snapshot", "advance"]

_SHOWN: Final = {
    SessionState.NEED_INPUT: RunState.NEED_INPUT,
    SessionState.READY: RunState.READY,
    SessionState.STOPPED: RunState.STOPPED,
    SessionState.FINISHED: RunState.FINISHED,
    SessionState.FAILED: RunState.FAILED,
}
_LEFT_OUT: Final = frozenset({OperatorStatus.UNSUPPORTED, OperatorStatus.BLOCKED})


class Records(Sequence["Record"]):
    """Records of a pass in execution order, from the first operator on.

    Immutable. `then` shares the common records, so a step takes the same time at the end of a
    large model as at its start.

    Parameters
    ----------
    records : iterable of Record
    """

    __slots__ = ("_count", "_shared", "_skipped")

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._shared = list(records)  # append only
        self._count = len(self._shared)
        self._skipped = _count_left_out(self._shared)  # among the first one, two, ... records

    @property
    def skipped(self) -> int:
        """Number of operators that were skipped: without a layer, or blocked."""
        return self._skipped[self._count - 1] if self._count else 0

    @override
    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...
    @override
    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        if isinstance(index, slice):
            places = range(*index.indices(self._count))
            return tuple(map(self._shared.__getitem__, places))
        if not -self._count <= index < self._count:
            raise IndexError(f"there are {self._count} records, and none at {index}")
        return self._shared[index if index >= 0 else index + self._count]

    @override
    def __iter__(self) -> Iterator[Record]:
        return islice(self._shared, self._count)

    def until(self, count: int) -> Self:
        """Return the first `count` records."""
        if count >= self._count:
            return self
        return self._of(self._shared, self._skipped, count)

    def then(self, records: Sequence[Record]) -> Self:
        """Append records and return the result."""
        shared, skipped = self._shared, self._skipped
        if len(shared) != self._count:  # another one has already appended
            shared, skipped = shared[: self._count], skipped[: self._count]
        shared.extend(records)
        skipped.extend(_count_left_out(records, self.skipped))
        return self._of(shared, skipped, len(shared))

    @classmethod
    def _of(cls, shared: list[Record], skipped: list[int], count: int) -> Self:
        made = cls()
        made._shared, made._skipped, made._count = shared, skipped, count
        return made


def _count_left_out(records: Iterable[Record], before: int = 0) -> list[int]:
    """Count the operators that did not run, up to each record."""
    flags = (record.status in _LEFT_OUT for record in records)
    return list(accumulate(flags, initial=before))[1:]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Position and results of a run.

    Attributes
    ----------
    generation : int
        Number of the open model; every opening has a new one. 0 for none.
    state : RunState
    position : int
        Index of the next operator, or of the failed one; the number of operators at the end.
    stop : StopReason or None
        Why the run stopped there; None if it has not run.
    records : Records
        Executed steps; last the record of a failed operator, if any.
    fed : mapping of str to tuple of int
        Shapes of the inputs, by operand name; empty while nothing is fed.
    supplied : mapping of str to str
        Sources of overridden operands, by name.
    supplies : tuple of Supply
        The overrides, to repeat them.
    seed : int
        The random seed.
    evicted : frozenset of str
        Operands whose values were evicted when the run stopped.
    breakpoints : frozenset of str
        Names of operators before which a run stops.
    """

    generation: int = 0
    state: RunState = RunState.EMPTY
    position: int = 0
    stop: StopReason | None = None
    records: Records = field(default_factory=Records, repr=False)
    fed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    supplied: Mapping[str, str] = field(default_factory=dict)
    supplies: tuple[Supply, ...] = field(default=(), repr=False)
    seed: int = 0
    evicted: frozenset[str] = frozenset()
    breakpoints: frozenset[str] = frozenset()


def advance(snapshot: Snapshot, reply: Reply) -> Snapshot:
    """Return the next snapshot after a reply of the engine.

    Parameters
    ----------
    snapshot : Snapshot
        The current one.
    reply : Opened, Stepped, or the reply that ends a request
        From the engine of the snapshot.

    Returns
    -------
    Snapshot
    """
    if isinstance(reply, Opened):
        return Snapshot(reply.run_id, _SHOWN[reply.state], seed=reply.seed)
    if isinstance(reply, Stepped):
        records = snapshot.records.until(reply.records[0].index).then(reply.records)
        return replace(snapshot, records=records, position=reply.position, stop=None)
    if isinstance(reply, LayersLoaded):
        return snapshot
    status = reply.status
    record = reply.record if isinstance(reply, WorkFailed) else None
    return _settled(snapshot, status, record)


def _settled(snapshot: Snapshot, status: Status, failed: Record | None) -> Snapshot:
    """Return the next snapshot at the end of a request."""
    if not status.generation:
        return Snapshot(state=RunState.EMPTY, seed=snapshot.seed)
    is_failed = status.state is SessionState.FAILED
    records = snapshot.records.until(status.position + is_failed)
    if failed is not None:
        records = records.until(failed.index).then((failed,))
    return replace(
        snapshot,
        state=_SHOWN[status.state],
        position=status.position,
        stop=status.stop,
        records=records,
        fed=status.fed,
        supplied=status.supplied,
        supplies=status.supplies,
        seed=status.seed,
        evicted=status.evicted,
    )
