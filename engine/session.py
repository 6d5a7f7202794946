"""Stepping through a graph: position, values, states and records.

A session never changes the graph; many sessions may share one. Arrays that it hands out are
read-only. After an operator fails the session is in the explicit state FAILED, and every
value computed before stays there to look at.

An operator that is random draws by the session's seed and its own place in the order, anew
each time it runs: stepping back and forth, or through another part of the graph first, never
changes its numbers. They are NumPy's; PyTorch would draw others from the same seed.

Every value is kept, unless the session has a memory limit: see `engine.keeping`. What values
may take at all is bounded: see `engine.memory_bound`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.backends import REFERENCE, SUPPLIED, backend_of, make_kernels
from engine.backends.activity import announce
from engine.errors import (
    EngineError,
    InferenceError,
    LayerError,
    MemoryBoundError,
    SessionStateError,
    ValueNotComputedError,
)
from engine.keeping import WEIGHT, HeldMemory, Keeper, StepOutputs, sizes_of
from engine.memory_bound import (
    Room,
    bounded,
    default_bound,
    format_memory_error,
    format_refusal,
)
from engine.runtime.circumstances import circumstances
from engine.values import (
    ArrayMetadata,
    describe_value,
    flatten_value,
    materialise,
    materialise_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import numpy.typing as npt
    from numpy.random import Generator

    from engine.backends import Kernel
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.values import Array, Held, Value, ValueMetadata

__all__ = ["OperatorStatus", "Session", "SessionState", "StepRecord", "Supplied"]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class SessionState(Enum):
    """Where a session stands."""

    NEED_INPUT = "need input"
    READY = "ready"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


class OperatorStatus(Enum):
    """What became of an operator.

    BLOCKED: an input is missing, because an operator before could not run.
    """

    PENDING = "pending"
    EXECUTED = "executed"
    FAILED = "failed"
    BLOCKED = "blocked"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One executed step.

    Attributes
    ----------
    index : int
        Position in execution order.
    operator : RuntimeOperator
    outputs : StepOutputs
        A mapping of operand names to values; arrays are read-only. With a memory limit values
        may have been dropped, and are computed again when they are asked for.
    seconds : float
        Time in the kernel.
    status : OperatorStatus
    backend : str
        Who computed it: ``numpy``, ``onnxruntime``, ``ncnn``; ``supplied`` for the user;
        ``""`` where nothing was computed.
    reason : str
        Why it did not run; ``""`` when it did.
    supplied : mapping of str to str
        The outputs that the user supplied, by operand name, and where each comes from.
    seed : int or None
        The seed that it drew random numbers by; None where it drew none.
    kernel : str
        The backend and, behind a slash, which of its ways, e.g. ``onnxruntime/all-2``.
    """

    index: int
    operator: RuntimeOperator
    outputs: StepOutputs = field(repr=False)
    seconds: float
    status: OperatorStatus
    backend: str = ""
    reason: str = ""
    supplied: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    kernel: str = ""

    @property
    def random(self) -> bool:
        """Whether another seed would have given other numbers."""
        return self.seed is not None

    @property
    def metadata(self) -> tuple[ValueMetadata, ...]:
        """What is known of the outputs without their elements, in order."""
        return tuple([self.outputs.metadata(name) for name in self.outputs])


@dataclass(frozen=True, slots=True)
class Supplied:
    """A value that the user supplied in the place of a computed one.

    Attributes
    ----------
    value : Value
        Read-only.
    source : str
        Where it comes from, e.g. the name of a file; ``""`` where nobody said.
    """

    value: Value = field(repr=False)
    source: str = ""


class Session:
    """Runs a graph operator by operator.

    Parameters
    ----------
    graph : RuntimeGraph
        Built.
    backend : str, or mapping of str to str
        ``auto``, the fastest for each operator, or ``numpy``, ``onnxruntime`` or ``ncnn``,
        where NumPy computes what they cannot. A mapping has the kernel of each operator, as
        `engine.kernels_of` reads them from a dump: the same numbers come out again on the
        same machine.
    seed : int
        What operators that are random draw by.
    memory_limit : int, optional
        See the property; no limit by default.
    memory_bound : int, optional
        See the property; half of the machine's memory by default.
    excluded : mapping of str to collection of str, optional
        By operator, the libraries that never compute it; see `engine.backends.make_kernels`.

    Attributes
    ----------
    graph : RuntimeGraph
    backend : str
        As it was asked for; ``recorded`` for a mapping.
    excluded : mapping of str to frozenset of str
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
        If there is no such backend, what is excluded is NumPy or no library, or the seed, the
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
    ) -> None:
        self._seed = _checked_seed(seed)
        self._room = Room(0)
        self.memory_bound = default_bound() if memory_bound is None else memory_bound
        self.graph = graph
        self.backend = backend if isinstance(backend, str) else "recorded"
        self.state = SessionState.NEED_INPUT
        self.position = 0
        self.error: EngineError | None = None
        self.breakpoints: set[str] = set()
        self._inputs: dict[str, Array] = {}
        self._supplied: dict[str, Supplied] = {}
        self._values: dict[str, Held] = {}
        self._records: dict[str, StepRecord] = {}
        self.excluded: Mapping[str, frozenset[str]] = MappingProxyType(
            {name: frozenset(libraries) for name, libraries in (excluded or {}).items()}
        )
        self._kernels = make_kernels(backend, graph.operators, self.excluded)
        self._plans = _Plans(graph.operators)
        self._held = HeldMemory()
        self._keeper: Keeper | None = None
        self.memory_limit = memory_limit
        if not graph.input_operands:
            self.restart()

    def twin(self, backend: str | Mapping[str, str]) -> Session:
        """Another session of the same graph, at the start.

        Parameters
        ----------
        backend : str, or mapping of str to str
            As for a new session.

        Returns
        -------
        Session
            With the same inputs, supplied outputs, seed, memory limit and bound, and the same
            libraries excluded.

        Raises
        ------
        SessionStateError
            If there is no such backend.
        """
        twin = Session(
            self.graph,
            backend,
            self._seed,
            self.memory_limit,
            self.memory_bound,
            excluded=self.excluded,
        )
        twin._inputs, twin._supplied = dict(self._inputs), dict(self._supplied)
        twin.restart()
        return twin

    # Feeding and going

    def feed(self, inputs: Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]) -> None:
        """Give the inputs and go to the start.

        Supplied outputs are dropped: they belong to the inputs before.

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
        self._inputs = checked
        self._kernels.fed(self._inputs.values())
        self._supplied.clear()
        self.restart()

    def clear_inputs(self) -> None:
        """Take the inputs back, and what was supplied to go with them."""
        self._inputs = {}
        self._supplied.clear()
        self.restart()

    def reseed(self, seed: int) -> None:
        """Take another seed, and go back to the first operator that draws by it.

        Raises
        ------
        SessionStateError
            If the seed is negative; the session stays as it was.
        """
        self._seed = _checked_seed(seed)
        random = (operator.index for operator in self.graph.operators if operator.random)
        self._go_back_to(next(random, len(self.graph.operators)))

    def restart(self) -> None:
        """Go to the first operator and drop what was computed.

        Inputs and supplied outputs stay.
        """
        self._values.clear()
        self._records.clear()
        self._held.clear()
        self._count_given()
        self.position = 0
        self._let_keeper_go_back()
        self._settle()

    def step(self, go_on: Callable[[], None] | None = None) -> StepRecord:
        """Run one operator.

        Parameters
        ----------
        go_on : callable, optional
            Called between operators when inputs must be computed again, which a memory limit
            has dropped; what it raises ends that, and the session stays as it was.

        Returns
        -------
        StepRecord
            Also for an operator that has no layer, or whose inputs are missing because of
            one: its status says so, and the session goes on behind it.

        Raises
        ------
        InferenceError
            If the operator fails; the session is FAILED then.
        SessionStateError
            If there is nothing to run.
        """
        self._require_runnable()
        operators = self.graph.operators
        operator = operators[self.position]
        if self._keeper is not None:
            self._look_at_inputs(operator, go_on)
        try:
            with self.within_bound():
                record = self._execute(operator)
            sizes = self._sizes_of(record)
        except EngineError as exc:
            self.error = exc
            self.state = SessionState.FAILED
            kernel = self._kernels[operator.index].name
            self._records[operator.name] = self._record(
                operator, {}, OperatorStatus.FAILED, kernel, reason=str(exc)
            )
            raise
        self._records[operator.name] = record
        self._values.update(record.outputs.held or {})
        self._held.add(record.outputs, sizes)
        self.position += 1
        if self._keeper is not None:
            self._keeper.take(record, self._seed)
        self.state = SessionState.STOPPED
        if self.position == len(operators):
            self.state = SessionState.FINISHED
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
            Asked between operators; True stops.

        Returns
        -------
        tuple of StepRecord
            What this call executed. At the end of the graph there is nothing to run, and
            the tuple is empty.

        Raises
        ------
        UnknownNameError
            If `until` is no operator.
        InferenceError
            If an operator fails; what ran before stays.
        """
        stop = self.graph.operator(until).index if until is not None else -1
        records: list[StepRecord] = []
        operators = self.graph.operators
        count = len(operators)
        if self.position == count:
            return ()
        self._require_runnable()

        def go_on() -> None:
            if cancelled is not None and cancelled():
                raise _CancelledError

        with self.within_bound():  # once for all of them
            while self.position < count:
                if cancelled is not None and cancelled():
                    break
                # A breakpoint that the session stands on does not stop it from leaving.
                if self.position == stop or (
                    self.breakpoints
                    and records
                    and operators[self.position].name in self.breakpoints
                ):
                    break
                try:
                    record = self.step(go_on)
                except _CancelledError:
                    break
                records.append(record)
                if on_step is not None:
                    on_step(record)
        return tuple(records)

    def step_back(self) -> None:
        """Undo the last step; a failed operator counts as one.

        What the operator gave is dropped. At the start there is nothing to undo.
        """
        if self.state is SessionState.FAILED:
            self._forget(self.graph.operators[self.position])
        elif self.position:
            self.position -= 1
            self._forget(self.graph.operators[self.position])
        self._let_keeper_go_back()
        self._settle()

    def supply(
        self, operand: str, value: npt.ArrayLike | tuple[npt.ArrayLike, ...], source: str = ""
    ) -> None:
        """Give the value of an operand instead of its producer, and go back to it.

        Meant for operators that cannot run; those that can are overridden. Stays until
        `withdraw` or `feed`.

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
        """
        self.supply_all({operand: value}, source)

    def supply_all(
        self,
        values: Mapping[str, npt.ArrayLike | tuple[npt.ArrayLike, ...]],
        source: str = "",
    ) -> None:
        """Supply several operands, all or none of them; see `supply`."""
        with self.within_bound():
            checked = {
                name: Supplied(self.graph.check_output(name, value, self._inputs), source)
                for name, value in values.items()
            }
        self._supplied.update(checked)
        self._count_given()
        self._go_back_behind(checked)

    def withdraw(self, *operands: str) -> None:
        """Take supplied values back, and go back to the first of their producers.

        Those that were not supplied are passed over.

        Raises
        ------
        UnknownNameError
            If there is no such operand.
        """
        known = [name for name in operands if self.graph.operand(name).name in self._supplied]
        for name in known:
            del self._supplied[name]
        self._count_given()
        self._go_back_behind(known)

    # Looking

    @property
    def supplied(self) -> Mapping[str, Supplied]:
        """What the user supplied, by operand name."""
        return MappingProxyType(self._supplied)

    @property
    def seed(self) -> int:
        """What operators that are random draw by."""
        return self._seed

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """Records of the present pass, in execution order."""
        return tuple(self._records.values())

    @property
    def failed_operator(self) -> RuntimeOperator | None:
        """The operator that failed, if one did."""
        if self.state is not SessionState.FAILED:
            return None
        return self.graph.operators[self.position]

    def record(self, operator: str) -> StepRecord | None:
        """Record of an operator in the present pass; None if it is still pending."""
        return self._records.get(self.graph.operator(operator).name)

    def status(self, operator: str) -> OperatorStatus:
        """Tell what became of an operator in the present pass."""
        record = self.record(operator)
        return record.status if record is not None else OperatorStatus.PENDING

    @property
    def memory_limit(self) -> int | None:
        """Most bytes of computed values to keep; None for no limit.

        Old values are dropped then, and computed again when somebody looks at them: the same
        numbers, and nothing else changes. What was fed or supplied does not count and is never
        dropped; nor is what the operators to come need, and what the model gives, even where
        that takes more. May be changed at any time; what is too much is dropped at once.
        """
        return self._keeper.limit if self._keeper is not None else None

    @memory_limit.setter
    def memory_limit(self, nbytes: int | None) -> None:
        if nbytes is not None and nbytes < 0:
            raise SessionStateError(f"a memory limit is a number of bytes, not {nbytes}")
        self._kernels.allow_fusion(allowed=nbytes is None)
        if self._keeper is not None:
            self._keeper.set_limit(nbytes)
        elif nbytes is not None:
            self._keeper = Keeper(
                len(self.graph.operators), self._kernels, self._values, self._held, nbytes
            )
            for record in self._records.values():
                if record.status is not OperatorStatus.FAILED:
                    self._keeper.take(record, self._seed)
            self._let_keeper_go_back()

    @property
    def kept_bytes(self) -> int | None:
        """Bytes of computed values that are kept now; not counted without a memory limit."""
        return self._keeper.nbytes if self._keeper is not None else None

    @property
    def memory_bound(self) -> int:
        """Most bytes that one operand, and all values that the session holds, may take.

        What was fed and supplied counts as well as what was computed. An operator that needs
        more fails, before memory is taken. (A memory limit never makes anything fail: it drops
        values and computes them again.) May be changed at any time.
        """
        return self._room.bound

    @memory_bound.setter
    def memory_bound(self, nbytes: int) -> None:
        if nbytes < 0:
            raise SessionStateError(f"a memory bound is a number of bytes, not {nbytes}")
        self._room.bound = nbytes

    @property
    def held_bytes(self) -> int:
        """Bytes that all values take which the session holds, fed and supplied ones too."""
        return self._held.nbytes

    def within_bound(self) -> bounded:
        """Hold what is done inside to the memory bound, beside what the session holds.

        Returns
        -------
        context manager
            See `engine.memory_bound.bounded`.
        """
        self._room.held = self._held.nbytes
        return bounded(self._room)

    def has_value(self, operand: str) -> bool:
        """Whether an operand has a value, kept or dropped."""
        return operand in self._values or self._outputs_with(operand) is not None

    def is_kept(self, operand: str) -> bool:
        """Whether an operand's value is there without computing it again."""
        return operand in self._values

    def metadata(self, operand: str) -> ValueMetadata:
        """What is known of an operand's value without its elements; never computes anything.

        Raises
        ------
        UnknownNameError, ValueNotComputedError
            As for `value`.
        """
        return self._outputs_of(operand).metadata(operand)

    def value(self, operand: str, go_on: Callable[[], None] | None = None) -> Value:
        """Value of an operand.

        Parameters
        ----------
        operand : str
        go_on : callable, optional
            Called between operators when the value must be computed again, because a memory
            limit has dropped it; what it raises ends that.

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
        if self._keeper is None and operand in self._values:
            return materialise(self._values[operand])
        return self._outputs_of(operand).look(go_on)[operand]

    def _outputs_with(self, operand: str) -> StepOutputs | None:
        """What was computed together with an operand; None where it has no value."""
        known = self.graph.operands.get(operand)
        producer = known.producer if known is not None else None
        record = self._records.get(producer.name) if producer is not None else None
        return record.outputs if record is not None and operand in record.outputs else None

    def _outputs_of(self, operand: str) -> StepOutputs:
        outputs = self._outputs_with(operand)
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
        """Values of the model's outputs.

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

    # Inside

    def _let_keeper_go_back(self) -> None:
        if self._keeper is not None:
            self._keeper.go_back(self.position)

    def _look_at_inputs(
        self, operator: RuntimeOperator, go_on: Callable[[], None] | None
    ) -> None:
        """Have the inputs of the next operator computed again, if they were dropped."""
        for name in self._plans[operator.index].inputs:
            if name not in self._values and (outputs := self._outputs_with(name)) is not None:
                outputs.look(go_on)

    def _count_given(self) -> None:
        """Count what was fed and supplied among the values that are held."""
        supplied = (each.value for each in self._supplied.values())
        self._held.remove(self)
        self._held.add(self, sizes_of([*self._inputs.values(), *supplied]))

    def _sizes_of(self, record: StepRecord) -> dict[int, int]:
        """What the outputs of a step lie in; weights are the model's.

        Raises
        ------
        InferenceError
            If there is no room for all of them beside what is held. Each by itself was asked
            about before memory was taken.
        """
        outputs, operator = record.outputs.held or {}, record.operator
        sizes = sizes_of(outputs.values())
        if operator.type == WEIGHT:
            return dict.fromkeys(sizes, 0)
        room = self._room
        if sum(sizes.values()) > room.bound - self._held.nbytes:
            nbytes = self._held.new_in(sizes)
            if nbytes > room.bound - self._held.nbytes:
                what = f"what it gives to {', '.join(outputs)}"
                raise InferenceError(
                    operator.name,
                    operator.type,
                    [describe_value(self._values[o.name]) for o in operator.inputs],
                    format_refusal(what, nbytes, room),
                )
        return sizes

    def _require_room_for(self, inputs: Mapping[str, Array]) -> None:
        nbytes, room = sum(sizes_of(inputs.values()).values()), Room(self.memory_bound)
        if nbytes > room.left:
            names = ", ".join(inputs)
            raise MemoryBoundError(format_refusal(f"what is fed to {names}", nbytes, room))

    def _forget(self, operator: RuntimeOperator) -> None:
        record = self._records.pop(operator.name, None)
        if record is not None:
            self._held.remove(record.outputs)
        for operand in operator.outputs:
            self._values.pop(operand.name, None)

    def _go_back_behind(self, operands: Iterable[str]) -> None:
        """Undo what depends on operands: go back to the first of their producers."""
        producers = (self.graph.operand(name).producer for name in operands)
        indexes = (p.index for p in producers if p is not None)
        self._go_back_to(min(indexes, default=len(self.graph.operators)))

    def _go_back_to(self, first: int) -> None:
        """Make an operator the next one, unless the session stands before it."""
        if first > self.position or first == len(self.graph.operators):
            return
        for operator in self.graph.operators[first:]:
            self._forget(operator)
        self.position = first
        self._let_keeper_go_back()
        self._settle()

    def _settle(self) -> None:
        """Set the state that belongs to the position, nothing having failed."""
        self.error = None
        if self.position:
            self.state = SessionState.STOPPED
        elif all(o.name in self._inputs for o in self.graph.input_operands):
            self.state = SessionState.READY
        else:
            self.state = SessionState.NEED_INPUT
        if self.position == len(self.graph.operators):
            self.state = SessionState.FINISHED

    def _require_runnable(self) -> None:
        if self.state is SessionState.NEED_INPUT:
            raise SessionStateError("the session has no input yet: feed() it first")
        if self.state is SessionState.FAILED:
            raise SessionStateError(f"the session has failed, restart it: {self.error}")
        if self.state is SessionState.FINISHED:
            raise SessionStateError("the session is at the end: restart it to run again")

    def _execute(self, operator: RuntimeOperator) -> StepRecord:
        inputs, outputs, computes = self._plans[operator.index]
        if not computes and operator.is_input:
            fed: dict[str, Held] = {name: self._inputs[name] for name in outputs}
            return self._record(operator, fed, OperatorStatus.EXECUTED)
        given: dict[str, Held] = {}
        if self._supplied:
            given = {n: self._supplied[n].value for n in outputs if n in self._supplied}
        if given and len(given) == len(outputs):
            return self._record(operator, given, OperatorStatus.EXECUTED, SUPPLIED)
        try:
            arguments = [self._values[name] for name in inputs]
        except KeyError:
            missing = dict.fromkeys(name for name in inputs if name not in self._values)
            were = "inputs {} were" if len(missing) > 1 else "input {} was"
            why = f"its {were.format(', '.join(missing))} not computed"
            return self._record(operator, given, OperatorStatus.BLOCKED, reason=why)
        if not computes:
            if operator.is_output:
                return self._record(operator, {}, OperatorStatus.EXECUTED)
            return self._record(
                operator, given, OperatorStatus.UNSUPPORTED, reason=operator.reason
            )
        self._kernels.approach(operator.index, self._values)
        kernel = self._kernels[operator.index]
        generator = operator.generator(self._seed) if operator.random else None
        fresh = None if generator is None else generator.bit_generator.state
        results, seconds = self._compute(operator, kernel, arguments, generator)
        named = dict(zip(outputs, results, strict=True))
        if given:
            named |= given
        drawn = generator is not None and generator.bit_generator.state != fresh
        return self._record(
            operator,
            named,
            OperatorStatus.EXECUTED,
            kernel.name,
            seconds,
            seed=self._seed if drawn else None,
        )

    def _compute(
        self,
        operator: RuntimeOperator,
        kernel: Kernel,
        arguments: list[Held],
        generator: Generator | None,
    ) -> tuple[tuple[Held, ...], float]:
        compute: Callable[[], tuple[Held, ...]] = partial(kernel, arguments)
        if generator is not None:
            compute = partial(operator.forward, materialise_all(arguments), generator)
        try:
            kernel.prepare(arguments)
            if generator is not None:
                announce(operator.name, REFERENCE)
            started = time.perf_counter()
            results = compute()
            seconds = kernel.spent(time.perf_counter() - started)
        except (LayerError, MemoryError) as exc:  # outside of the frame around a layer
            reason = format_memory_error(exc) if isinstance(exc, MemoryError) else str(exc)
            shapes = [describe_value(value) for value in arguments]
            raise InferenceError(operator.name, operator.type, shapes, reason) from exc
        except InferenceError as exc:
            found = circumstances(operator, self.graph.input_operands, self._shape_of)
            if found is None:
                raise
            raise exc.under(found.text, found.suspect) from exc
        return results, seconds

    def _shape_of(self, operand: str) -> tuple[int, ...] | None:
        metadata = self.metadata(operand) if self.has_value(operand) else None
        return metadata.shape if isinstance(metadata, ArrayMetadata) else None

    def _record(
        self,
        operator: RuntimeOperator,
        outputs: dict[str, Held],
        status: OperatorStatus,
        kernel: str = "",
        seconds: float = 0.0,
        reason: str = "",
        seed: int | None = None,
    ) -> StepRecord:
        supplied = _NOTHING
        if self._supplied:
            supplied = MappingProxyType(
                {n: self._supplied[n].source for n in outputs if n in self._supplied}
            )
        return StepRecord(
            operator.index,
            operator,
            StepOutputs(outputs),
            seconds,
            status,
            backend_of(kernel),
            reason,
            supplied,
            seed,
            kernel,
        )


class _CancelledError(Exception):
    """Whoever asked for a run has cancelled it."""


class _Plan(NamedTuple):
    """What a step needs to know of an operator.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Names of the operands.
    computes : bool
        Whether there is something to be computed: it is no input or output and can run.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    computes: bool


class _Plans(dict[int, _Plan]):
    """Plans of operators by index, made when they first run.

    Asking the operators at every step would cost it more than everything else in a session.
    """

    def __init__(self, operators: Sequence[RuntimeOperator]) -> None:
        super().__init__()
        self._operators = operators

    def __missing__(self, index: int) -> _Plan:
        operator = self._operators[index]
        at_end = operator.is_input or operator.is_output
        plan = self[index] = _Plan(
            tuple([operand.name for operand in operator.inputs]),
            tuple([operand.name for operand in operator.outputs]),
            computes=not at_end and operator.error is None,
        )
        return plan


def _checked_seed(seed: int) -> int:
    if seed < 0:
        raise SessionStateError(f"a seed is a whole number from 0 up, not {seed}")
    return seed
