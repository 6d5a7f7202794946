"""Session: steps through a graph and holds position, values, states and records.

A session never changes the graph; many sessions may share one. Its arrays are read-only. After
an operator fails the session is in the state FAILED, and all values computed before stay.

A random operator draws from the session's seed and its index, afresh each time it runs. So
stepping back and forth, or another order of steps, never changes its numbers. They are
NumPy's; PyTorch draws others from the same seed.

Every value stays resident, unless the session has a memory limit: see `engine.store`. The
memory of all values has a bound: see `engine.memory_bound`. `engine.runtime.executor` executes
operators.
"""

from __future__ import annotations

import math
import time
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from engine.backends import detach_buffer, make_kernels
from engine.errors import (
    EngineError,
    InferenceError,
    MemoryBoundError,
    SessionStateError,
    ValueNotComputedError,
)
from engine.memory_bound import Room, bounded, default_bound, format_refusal
from engine.ncnn.options import EXACT, NcnnOptions
from engine.recipes import WEIGHT, make_recipe
from engine.runtime.executor import Executor, Override, RunInputs, StepRecord
from engine.states import OperatorStatus, SessionState
from engine.store import StepOutputs, ValueStore, sizes_of
from engine.values import ArrayMetadata, describe_value, flatten_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.values import Array, Value, ValueMetadata

__all__ = ["OperatorStatus", "Override", "Session", "SessionState", "StepRecord"]


_GIVEN: Final = "inputs and overrides"  # what the store counts beside the steps


class Session:
    """Runs a graph operator by operator.

    Parameters
    ----------
    graph : RuntimeGraph
        Built.
    backend : str, or mapping of str to str
        ``auto``, the fastest kernel of each operator, or ``numpy``, ``onnxruntime`` or
        ``ncnn``; NumPy computes what these cannot. A mapping has the kernel of each operator,
        as `engine.kernels_of` reads them from a dump, to reproduce the numbers on the same
        machine.
    seed : int
        Random seed.
    memory_limit : int, optional
        See the property; no limit by default.
    memory_bound : int, optional
        See the property; half of the machine's memory by default.
    excluded : mapping of str to collection of str, optional
        By operator, the libraries that never compute it; see `engine.backends.make_kernels`.
    ncnn_options : str
        For a model of ncnn's own format: ``exact``, ``deployed``, or names such as
        ``bf16,packing``; see `engine.ncnn.options`.

    Attributes
    ----------
    graph : RuntimeGraph
    backend : str
        The chosen backend; ``recorded`` for a mapping.
    excluded : mapping of str to frozenset of str
    ncnn_options : str
    state : SessionState
    position : int
        Index of the operator that runs next; the number of operators at the end.
    error : EngineError or None
        Why the session failed.
    breakpoints : set of str
        Names of operators that `run` stops before.

    Raises
    ------
    SessionStateError
        If there is no such backend, an excluded name is NumPy or no library, or the seed, the
        limit or the bound is negative.
    """

    def __init__(
        self,
        graph: RuntimeGraph,
        backend: str | Mapping[str, str] = "auto",
        seed: int = 0,
        memory_limit: int | None = None,
        memory_bound: int | None = None,
        *,
        excluded: Mapping[str, Collection[str]] | None = None,
        ncnn_options: str = EXACT.text,
    ) -> None:
        self._inputs = RunInputs(seed=_checked_seed(seed))
        self._room = Room(0)
        self.memory_bound = default_bound() if memory_bound is None else memory_bound
        self.graph = graph
        self.backend = backend if isinstance(backend, str) else "recorded"
        self.state = SessionState.NEED_INPUT
        self.position = 0
        self.error: EngineError | None = None
        self.breakpoints: set[str] = set()
        self._operators = graph.operators
        self.excluded: Mapping[str, frozenset[str]] = MappingProxyType(
            {name: frozenset(libraries) for name, libraries in (excluded or {}).items()}
        )
        self.ncnn_options = ncnn_options
        self._kernels = make_kernels(
            backend, self._operators, self.excluded, NcnnOptions.parse(ncnn_options)
        )
        self._executor = Executor(
            self._operators, graph.input_operands, self._inputs, self._kernels
        )
        self._records: dict[str, StepRecord] = {}
        recipe_of = partial(
            make_recipe, self._operators, self._records, self._kernels, self._inputs
        )
        self._store = ValueStore(recipe_of, detach_buffer)
        self.memory_limit = memory_limit
        if not graph.input_operands:
            self.restart()

    def fork(self, backend: str | Mapping[str, str]) -> Session:
        """Make another session of the same graph, at the start.

        Parameters
        ----------
        backend : str, or mapping of str to str
            As for a new session.

        Returns
        -------
        Session
            With the same inputs, overrides, seed, memory limit and bound, and the same
            libraries excluded.

        Raises
        ------
        SessionStateError
            If there is no such backend.
        """
        fork = Session(
            self.graph,
            backend,
            self.seed,
            self.memory_limit,
            self.memory_bound,
            excluded=self.excluded,
            ncnn_options=self.ncnn_options,
        )
        fork._inputs.fed = dict(self._inputs.fed)
        fork._inputs.overrides = dict(self._inputs.overrides)
        fork.restart()
        return fork

    # Feeding and stepping

    def feed(self, inputs: Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]) -> None:
        """Set the inputs and go to the start.

        Overrides are cleared, because they belong to the previous inputs.

        Parameters
        ----------
        inputs : sequence of array_like, or mapping of str to array_like
            In the order of the ``pnnx.Input`` operators, or by operand name. Copied.

        Raises
        ------
        FeedError
            If they do not fit; the session stays as it was.
        MemoryBoundError
            If there is no room for them; likewise.
        """
        with bounded(Room(self.memory_bound)):
            checked = self.graph.check_inputs(inputs)
        self._require_room_for(checked)
        self._kernels.fed(checked.values())
        self._inputs.fed = checked
        self._inputs.overrides.clear()
        self.restart()

    def clear_inputs(self) -> None:
        """Clear the inputs and the overrides."""
        self._inputs.fed = {}
        self._inputs.overrides.clear()
        self.restart()

    def reseed(self, seed: int) -> None:
        """Set the random seed, and go back to the first random operator.

        Parameters
        ----------
        seed : int
            0 or more.

        Raises
        ------
        SessionStateError
            If the seed is negative; the session stays as it was.
        """
        self._inputs.seed = _checked_seed(seed)
        random = (operator.index for operator in self._operators if operator.random)
        self._go_back_to(next(random, len(self._operators)))

    def restart(self) -> None:
        """Go to the first operator and drop all computed values.

        Inputs and overrides stay.
        """
        self._records.clear()
        self._store.rewind(0)
        self._count_given()
        self.position = 0
        self._update_state()

    def step(self, check_cancelled: Callable[[], None] | None = None) -> StepRecord:
        """Run one operator.

        Parameters
        ----------
        check_cancelled : callable, optional
            Called between operators while evicted inputs are recomputed. If it raises, the
            session stays unchanged.

        Returns
        -------
        StepRecord
            Also for an operator without a layer or with missing inputs: its status says so, and
            the session continues after it.

        Raises
        ------
        InferenceError
            If the operator fails; the state is then FAILED.
        SessionStateError
            If there is nothing to run.
        """
        self._require_runnable()
        with self.within_bound():
            return self._step(check_cancelled)

    def _step(self, check_cancelled: Callable[[], None] | None) -> StepRecord:
        operator = self._operators[self.position]
        store = self._store
        if store.evicts:
            store.recompute([operand.name for operand in operator.inputs], check_cancelled)
        try:
            self._room.held = store.nbytes
            record = self._executor.execute(operator, store.resident, self._shape_of)
            sizes = self._sizes_of(record)
        except EngineError as exc:
            self.error = exc
            self.state = SessionState.FAILED
            kernel = self._kernels[operator.index].name
            self._records[operator.name] = self._executor.record(
                operator, {}, OperatorStatus.FAILED, kernel, reason=str(exc)
            )
            raise
        self._records[operator.name] = record
        store.put(operator.index, record.outputs, sizes)
        self.position += 1
        at_end = self.position == len(self._operators)
        self.state = SessionState.FINISHED if at_end else SessionState.STOPPED
        return record

    def run(
        self,
        until: str | None = None,
        on_step: Callable[[StepRecord], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> tuple[StepRecord, ...]:
        """Run to the end, or to the next stop.

        Parameters
        ----------
        until : str, optional
            Name of the operator to stop before. One that has run already is no stop.
        on_step : callable, optional
            Called with each record.
        cancelled : callable, optional
            Called between operators; True stops.

        Returns
        -------
        tuple of StepRecord
            Records of this call; empty at the end of the graph.

        Raises
        ------
        UnknownNameError
            If `until` is no operator.
        InferenceError
            If an operator fails; what ran before stays.
        """
        stop = self.graph.operator(until).index if until is not None else -1
        records: list[StepRecord] = []
        operators = self._operators
        count = len(operators)
        if self.position == count:
            return ()
        self._require_runnable()

        def check_cancelled() -> None:
            if cancelled is not None and cancelled():
                raise _CancelledError

        with self.within_bound():  # once for all of them
            while self.position < count:
                if cancelled is not None and cancelled():
                    break
                # A breakpoint at the current position does not stop the run.
                if self.position == stop or (
                    self.breakpoints
                    and records
                    and operators[self.position].name in self.breakpoints
                ):
                    break
                try:
                    record = self._step(check_cancelled)
                except _CancelledError:
                    break
                records.append(record)
                if on_step is not None:
                    on_step(record)
        return tuple(records)

    @property
    def tuned(self) -> int:
        """Number of operators, from the first on, whose kernels need no trial any more.

        That is for inputs of the present sizes; with a pinned backend none does.
        """
        return self._kernels.tuned

    @property
    def wrong_kernels(self) -> tuple[str, ...]:
        """Names of kernels that tuning found to differ from NumPy, and that had computed."""
        return tuple(self._kernels.wrong)

    def tune(
        self,
        seconds: float = math.inf,
        on_trial: Callable[[], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> bool:
        """Try which kernels are fastest for inputs of the present sizes.

        The values of the session stay as they are. When all is tried, the next inputs are
        computed by what was fastest. The tuning cache remembers it for other sessions. A call
        continues where the last one ended.

        Parameters
        ----------
        seconds : float, optional
            After which no trial begins.
        on_trial : callable, optional
            Called after each trial.
        cancelled : callable, optional
            Called after each trial; True stops.

        Returns
        -------
        bool
            Whether all is tried.

        Raises
        ------
        SessionStateError
            If the session is not at the end of a pass.
        """
        if self.state is not SessionState.FINISHED:
            raise SessionStateError("the session tunes on the values of a pass: run it first")
        ended = time.monotonic() + seconds
        with self.within_bound():
            trials = self._kernels.tune(self._store.resident)
            while time.monotonic() < ended and not (cancelled is not None and cancelled()):
                try:
                    next(trials)
                except StopIteration:
                    return True
                if on_trial is not None:
                    on_trial()
        return False

    def step_back(self) -> None:
        """Undo the last step; a failed operator counts as one.

        Its outputs are dropped. At the start there is nothing to undo.
        """
        if self.state is SessionState.FAILED:
            del self._records[self._operators[self.position].name]
        elif self.position:
            self.position -= 1
            del self._records[self._operators[self.position].name]
        self._store.rewind(self.position)
        self._update_state()

    def override(
        self, operand: str, value: npt.ArrayLike | tuple[npt.ArrayLike, ...], source: str = ""
    ) -> None:
        """Override an operand's value, and go back to its producer.

        Also for operators that cannot run. It stays until `clear_override` or `feed`.

        Parameters
        ----------
        operand : str
        value : array_like, or tuple of array_like for a list-valued operand
            Copied, and converted to the dtype that the file states.
        source : str, optional
            Where it comes from, for records and dumps.

        Raises
        ------
        UnknownNameError
            If there is no such operand.
        FeedError
            If it is an input, or its shape or dtype is another one than the file states.
        MemoryBoundError
            If there is no room for it.
        """
        self.override_all({operand: value}, source)

    def override_all(
        self,
        values: Mapping[str, npt.ArrayLike | tuple[npt.ArrayLike, ...]],
        source: str = "",
    ) -> None:
        """Override several operands, all or none of them.

        Parameters
        ----------
        values : mapping of str to array_like, or to tuple of array_like
            By operand; see `override`.
        source : str, optional
            Where all of them come from.

        Raises
        ------
        UnknownNameError, FeedError, MemoryBoundError
            As for `override`; nothing is overridden then.
        """
        with self.within_bound():
            checked = {
                name: Override(self.graph.check_output(name, value, self._inputs.fed), source)
                for name, value in values.items()
            }
        self._inputs.overrides.update(checked)
        self._count_given()
        self._go_back_above(checked)

    def clear_override(self, *operands: str) -> None:
        """Compute overridden operands again, and go back to the first of their producers.

        Parameters
        ----------
        *operands : str
            Those that are not overridden are ignored.

        Raises
        ------
        UnknownNameError
            If there is no such operand.
        """
        overrides = self._inputs.overrides
        known = [name for name in operands if self.graph.operand(name).name in overrides]
        for name in known:
            del overrides[name]
        self._count_given()
        self._go_back_above(known)

    # Queries

    @property
    def overrides(self) -> Mapping[str, Override]:
        """Overrides by operand name."""
        return MappingProxyType(self._inputs.overrides)

    @property
    def seed(self) -> int:
        """Seed of the random numbers."""
        return self._inputs.seed

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """Records of the current pass, in execution order."""
        return tuple(self._records.values())

    @property
    def failed_operator(self) -> RuntimeOperator | None:
        """The failed operator, if there is one."""
        if self.state is not SessionState.FAILED:
            return None
        return self._operators[self.position]

    def record(self, operator: str) -> StepRecord | None:
        """Return the record of an operator in the current pass; None if it is pending.

        Parameters
        ----------
        operator : str

        Raises
        ------
        UnknownNameError
            If there is no such operator.
        """
        return self._records.get(self.graph.operator(operator).name)

    def status(self, operator: str) -> OperatorStatus:
        """Return the status of an operator in the current pass.

        Parameters
        ----------
        operator : str

        Raises
        ------
        UnknownNameError
            If there is no such operator.
        """
        record = self.record(operator)
        return record.status if record is not None else OperatorStatus.PENDING

    @property
    def memory_limit(self) -> int | None:
        """Maximum bytes of resident computed values; None for no limit.

        Old values are evicted, and recomputed with the same numbers when they are read. Inputs
        and overrides do not count and are never evicted. Values that further operators need,
        and outputs of the model, are never evicted even beyond the limit. It may be changed at
        any time, with immediate effect.
        """
        return self._store.limit

    @memory_limit.setter
    def memory_limit(self, nbytes: int | None) -> None:
        if nbytes is not None and nbytes < 0:
            raise SessionStateError(f"a memory limit is a number of bytes, not {nbytes}")
        self._kernels.allow_fusion(allowed=nbytes is None)
        self._store.limit = nbytes

    @property
    def resident_bytes(self) -> int | None:
        """Bytes of resident computed values; not counted without a memory limit."""
        return self._store.evictable_bytes

    @property
    def memory_bound(self) -> int:
        """Maximum bytes of one operand, and of all values of the session.

        Inputs and overrides count, too. An operator that needs more fails before it allocates.
        (A memory limit never makes anything fail: it evicts values and recomputes them.) It may
        be changed at any time.
        """
        return self._room.bound

    @memory_bound.setter
    def memory_bound(self, nbytes: int) -> None:
        if nbytes < 0:
            raise SessionStateError(f"a memory bound is a number of bytes, not {nbytes}")
        self._room.bound = nbytes

    @property
    def held_bytes(self) -> int:
        """Bytes of all values of the session, including inputs and overrides."""
        return self._store.nbytes

    def within_bound(self) -> bounded:
        """Apply the memory bound to a block, together with the session's values.

        Returns
        -------
        context manager
            See `engine.memory_bound.bounded`.
        """
        self._room.held = self._store.nbytes
        return bounded(self._room)

    def has_value(self, operand: str) -> bool:
        """Return whether an operand has a value, resident or evicted; False if unknown."""
        return operand in self._store

    def is_resident(self, operand: str) -> bool:
        """Return whether an operand has a resident value; False if it is unknown."""
        return operand in self._store.resident

    def metadata(self, operand: str) -> ValueMetadata:
        """Describe an operand's value without its elements; computes nothing, takes no lock.

        Parameters
        ----------
        operand : str

        Returns
        -------
        ValueMetadata
            Shape, dtype and bytes, also of an evicted value.

        Raises
        ------
        UnknownNameError, ValueNotComputedError
            As for `value`.
        """
        return self._outputs_of(operand).metadata(operand)

    def value(self, operand: str, check_cancelled: Callable[[], None] | None = None) -> Value:
        """Return the value of an operand.

        Parameters
        ----------
        operand : str
        check_cancelled : callable, optional
            Called between operators while an evicted value is recomputed; its exception cancels
            that.

        Returns
        -------
        Value
            A read-only array that aliases the session's own; a tuple for a list-valued
            operand; an int for an integer.

        Raises
        ------
        UnknownNameError
            If there is no such operand.
        ValueNotComputedError
            If it has no value yet, with the reason.
        """
        return self._outputs_of(operand).fetch(operand, check_cancelled)

    def _outputs_of(self, operand: str) -> StepOutputs:
        outputs = self._store.outputs_with(operand)
        if outputs is not None:
            return outputs
        producer = self.graph.operand(operand).producer
        if producer is None:
            raise ValueNotComputedError(operand, "nothing produces it")
        record = self._records.get(producer.name)
        if record is not None:
            raise ValueNotComputedError(operand, record.reason)
        raise ValueNotComputedError(
            operand,
            f"operator {producer.index}, {producer.type} {producer.name!r}, has not run",
        )

    def outputs(self) -> tuple[Value, ...]:
        """Return the values of the model's outputs.

        Returns
        -------
        tuple of Value
            In the order of the ``pnnx.Output`` operators, tuples flattened.

        Raises
        ------
        ValueNotComputedError
            If one has no value yet.
        """
        values = tuple(self.value(operand.name) for operand in self.graph.output_operands)
        return tuple(flatten_value(values))

    # Helpers

    def _count_given(self) -> None:
        """Count inputs and overrides among the session's values."""
        given = self._inputs
        overrides = [each.value for each in given.overrides.values()]
        self._store.hold(_GIVEN, [*given.fed.values(), *overrides])

    def _sizes_of(self, record: StepRecord) -> dict[int, int]:
        """What the outputs of a step lie in; weights are the model's.

        Raises
        ------
        InferenceError
            If there is no room for all of them beside what is held. Each by itself was asked
            about before memory was taken.
        """
        outputs, operator, store = record.outputs.resident or {}, record.operator, self._store
        sizes = sizes_of(outputs.values())
        if operator.type == WEIGHT:
            return dict.fromkeys(sizes, 0)
        room = self._room
        if sum(sizes.values()) > room.bound - store.nbytes:
            nbytes = store.new_in(sizes)
            if nbytes > room.bound - store.nbytes:
                what = f"what it gives to {', '.join(outputs)}"
                raise InferenceError(
                    operator.name,
                    operator.type,
                    [describe_value(store.resident[o.name]) for o in operator.inputs],
                    format_refusal(what, nbytes, room),
                )
        return sizes

    def _require_room_for(self, inputs: Mapping[str, Array]) -> None:
        nbytes, room = sum(sizes_of(inputs.values()).values()), Room(self.memory_bound)
        if nbytes > room.left:
            names = ", ".join(inputs)
            raise MemoryBoundError(format_refusal(f"what is fed to {names}", nbytes, room))

    def _go_back_above(self, operands: Iterable[str]) -> None:
        """Go back to the first producer of some operands."""
        producers = (self.graph.operand(name).producer for name in operands)
        indexes = (p.index for p in producers if p is not None)
        self._go_back_to(min(indexes, default=len(self._operators)))

    def _go_back_to(self, first: int) -> None:
        """Make an operator the next one, unless the position is before it."""
        if first > self.position or first == len(self._operators):
            return
        for operator in self._operators[first:]:
            self._records.pop(operator.name, None)
        self._store.rewind(first)
        self.position = first
        self._update_state()

    def _update_state(self) -> None:
        """Set the state for the position, without a failure."""
        self.error = None
        if self.position:
            self.state = SessionState.STOPPED
        elif all(o.name in self._inputs.fed for o in self.graph.input_operands):
            self.state = SessionState.READY
        else:
            self.state = SessionState.NEED_INPUT
        if self.position == len(self._operators):
            self.state = SessionState.FINISHED

    def _require_runnable(self) -> None:
        if self.state is SessionState.NEED_INPUT:
            raise SessionStateError("the session has no input yet: feed() it first")
        if self.state is SessionState.FAILED:
            raise SessionStateError(f"the session has failed, restart it: {self.error}")
        if self.state is SessionState.FINISHED:
            raise SessionStateError("the session is at the end: restart it to run again")

    def _shape_of(self, operand: str) -> tuple[int, ...] | None:
        outputs = self._store.outputs_with(operand)
        metadata = outputs.metadata(operand) if outputs is not None else None
        return metadata.shape if isinstance(metadata, ArrayMetadata) else None


class _CancelledError(Exception):
    """The caller has cancelled a run."""


def _checked_seed(seed: int) -> int:
    if seed < 0:
        raise SessionStateError(f"a seed is a whole number of at least 0, not {seed}")
    return seed
