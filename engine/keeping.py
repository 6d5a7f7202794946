"""What a session keeps of what it has computed: everything, or as much as a limit allows.

With a limit old values are dropped, and computed again when somebody looks at them: from the
nearest ones that are kept, by the kernel that computed them, and with the same random numbers.

What the operators to come need is always kept. Of the rest, half of the room is for what was
computed or looked at last. The other half is for values that computing again can begin with:
those that are alive where a multiple of so many operators has run, as many as may be. From
there it is never far to any other value, so that looking through all of them, in whatever
order, does not begin with the model's input each time.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.backends import SUPPLIED, is_fused, let_go, make_kernels
from engine.values import (
    LazyArray,
    flatten_value,
    materialise,
    materialise_all,
    metadata_of,
    value_nbytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from engine.backends import Kernel
    from engine.runtime import RuntimeOperator
    from engine.session import StepRecord
    from engine.values import Array, Held, Value, ValueMetadata

__all__ = ["WEIGHT", "HeldMemory", "Keeper", "StepOutputs", "sizes_of"]

# Choosing among many takes longer than an operator: then some more are dropped at once.
_MANY: Final = 64
_SHED_TO: Final = 7 / 8  # of the limit
WEIGHT: Final = "pnnx.Attribute"
"""Type whose value is the model's, and takes nothing."""


class StepOutputs(Mapping[str, "Value"]):
    """Outputs of a step by operand name; arrays are read-only.

    Those that were dropped to stay within a memory limit are computed again when they are
    asked for. Asking for the names or `metadata` never computes anything.

    Parameters
    ----------
    values : dict of str to Held
        By operand name.

    Attributes
    ----------
    held : mapping of str to Held, or None
        The values, in their own order or not; None while they are dropped.
    origin : _Origin or None
        For the keeper: how to compute them again; None for what is never dropped.
    """

    __slots__ = ("_keeper", "_metadata", "held", "origin")

    def __init__(self, values: dict[str, Held]) -> None:
        self.held: Mapping[str, Held] | None = values
        self._metadata: dict[str, ValueMetadata] = {}
        self._keeper: Keeper | None = None
        self.origin: _Origin | None = None

    @override
    def __getitem__(self, name: str) -> Value:
        return self.look()[name]

    @override
    def __iter__(self) -> Iterator[str]:
        held = self.held
        return iter(self._metadata if held is None else held)

    @override
    def __len__(self) -> int:
        held = self.held
        return len(self._metadata if held is None else held)

    @override
    def __contains__(self, name: object) -> bool:
        held = self.held
        return name in (self._metadata if held is None else held)

    @property
    def kept(self) -> Mapping[str, Value] | None:
        """The values; None while they are dropped."""
        held = self.held
        if held is None:
            return None
        return {name: materialise(value) for name, value in held.items()}

    # By identity: to compare values they might have to be computed.
    __hash__ = object.__hash__

    @override
    def __eq__(self, other: object) -> bool:
        return self is other

    def look(self, go_on: Callable[[], None] | None = None) -> Mapping[str, Value]:
        """All values, which are computed again where they were dropped.

        Parameters
        ----------
        go_on : callable, optional
            Called between operators; what it raises ends that.

        Raises
        ------
        EngineError
            If they cannot be computed again.
        """
        if self._keeper is not None:
            return self._keeper.look(self, go_on)
        kept = self.kept
        assert kept is not None  # noqa: S101 - only a keeper drops
        return kept

    def metadata(self, name: str) -> ValueMetadata:
        """What is known of a value without its elements, dropped or not."""
        held = self.held
        return self._metadata[name] if held is None else metadata_of(held[name])

    # For the keeper

    def attach(self, keeper: Keeper, origin: _Origin | None) -> None:
        """Let a keeper decide from now on whether the values are kept."""
        self._keeper, self.origin = keeper, origin

    def drop(self) -> Mapping[str, Value]:
        """Keep metadata alone; returns the values."""
        values = self.kept or {}
        # Another thread sees the values or the metadata at any time.
        self._metadata = {name: metadata_of(value) for name, value in values.items()}
        self.held = None
        return values


@dataclass(frozen=True, slots=True, eq=False)
class _Origin:
    """How outputs were computed.

    Attributes
    ----------
    operator : RuntimeOperator
    sources : tuple of (StepOutputs, str)
        Where each input comes from, and its name there.
    kernel : str
    seed : int
    given : mapping of str to Value
        Supplied outputs beside the computed ones.
    last_use : float
        Index of the last operator that takes an output; infinite for what the model gives.
    """

    operator: RuntimeOperator
    sources: tuple[tuple[StepOutputs, str], ...]
    kernel: str
    seed: int
    given: Mapping[str, Value]
    last_use: float

    def is_start(self, spacing: int) -> bool:
        """Whether the values are alive where a multiple of `spacing` operators has run."""
        return self.last_use // spacing > self.operator.index // spacing


class Keeper:
    """Keeps a session's values within a limit.

    The limit is soft: what the operators to come need is kept in any case, and a limit below
    what an operator has needed at once counts as that much. Values that were computed together
    with others, before there was a limit, are not dropped either: by themselves they would not
    come out the same.

    Parameters
    ----------
    count : int
        Of operators.
    kernels : mapping of int to Kernel
        Of each operator, by index.
    values : dict of str to Held
        What is kept, by operand name; what is dropped is taken out of it, and what is
        computed again comes back.
    held : HeldMemory
        All that the session holds; what is dropped is taken out of it.
    limit : int or None
        Bytes of computed arrays. What was fed or supplied does not count.

    Attributes
    ----------
    limit : int or None
        None for no limit any more.
    """

    def __init__(
        self,
        count: int,
        kernels: Mapping[int, Kernel],
        values: dict[str, Held],
        held: HeldMemory,
        limit: int | None,
    ) -> None:
        self.limit, self._held = limit, held
        self._kernels, self._values = kernels, values
        self._count = count
        self._position = 0
        self._most_needed = 0
        self._memory = HeldMemory()
        self._steps: dict[int, StepOutputs] = {}
        # What the operators to come need, and the rest: what was looked at last comes last.
        self._busy = HeldMemory()
        self._idle: OrderedDict[StepOutputs, _Origin] = OrderedDict()
        self._lock = RLock()  # views on another thread may look while a dump goes on

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return self._memory.nbytes

    def set_limit(self, limit: int | None) -> None:
        """Change the limit; what is too much is dropped at once."""
        with self._lock:
            self.limit = limit
            self._shed()

    def take(self, record: StepRecord, seed: int) -> None:
        """Take in a step that has just been executed; the operator behind it is next."""
        with self._lock:
            operator, outputs, kernel = record.operator, record.outputs, record.kernel
            self._position = operator.index + 1
            sources = self._sources(operator)
            values = outputs.kept
            if values:
                origin = None
                again = kernel not in {"", SUPPLIED} and not is_fused(kernel)
                if again and operator.type != WEIGHT:
                    given = {name: values[name] for name in record.supplied}
                    last_use = _last_use(operator)
                    origin = _Origin(operator, sources, kernel, seed, given, last_use)
                outputs.attach(self, origin)
                self._steps[operator.index] = outputs
                self._hold(outputs, values)
            self._most_needed = max(self._most_needed, self._busy.nbytes)
            for source, _ in sources:
                origin = source.origin
                if origin and source in self._busy and origin.last_use < self._position:
                    self._busy.remove(source)
                    self._idle[source] = origin
            self._shed()

    def go_back(self, position: int) -> None:
        """Make an operator the next one: it and those behind it have not run."""
        with self._lock:
            undone = [index for index in self._steps if index >= position]
            for outputs in map(self._steps.pop, undone):
                self._busy.remove(outputs)
                self._idle.pop(outputs, None)
                self._memory.remove(outputs)
                # Whoever has the record computes them again; they belong to no pass now.
                if outputs.origin is not None and outputs.held is not None:
                    _release(outputs.drop())
            self._position = position
            if not position:
                self._most_needed = 0
            for outputs, origin in tuple(self._idle.items()):
                if origin.last_use >= position:
                    del self._idle[outputs]
                    self._busy.add(outputs, self._memory.sizes_of(outputs))

    def look(
        self, outputs: StepOutputs, go_on: Callable[[], None] | None = None
    ) -> Mapping[str, Value]:
        """Values of a step, computed again where they were dropped.

        Raises
        ------
        EngineError
            If they cannot be computed again.
        """
        with self._lock:
            values = outputs.kept
            if values is None:
                values = self._compute(outputs, go_on)
            if outputs in self._idle:
                self._idle.move_to_end(outputs)
            return values

    # Keeping and dropping

    def _sources(self, operator: RuntimeOperator) -> tuple[tuple[StepOutputs, str], ...]:
        """Where the inputs of an operator come from, but for those that were not computed."""
        producers = [(o.producer, o.name) for o in operator.inputs]
        return tuple(
            (self._steps[producer.index], name)
            for producer, name in producers
            if producer is not None and producer.index in self._steps
        )

    def _hold(self, outputs: StepOutputs, values: Mapping[str, Value]) -> None:
        origin, sizes = outputs.origin, sizes_of(values.values())
        # What is never dropped is not ours, nor are views of it.
        self._memory.add(outputs, sizes if origin is not None else dict.fromkeys(sizes, 0))
        if origin is None or not any(map(value_nbytes, values.values())):
            return  # nothing would be won by dropping it
        if origin.last_use >= self._position:
            self._busy.add(outputs, self._memory.sizes_of(outputs))
        else:
            self._idle[outputs] = origin

    def _shed(self) -> None:
        """Drop what is too much, the oldest first."""
        if self.limit is None:
            return
        limit = max(self.limit, self._most_needed)
        if self._memory.nbytes <= limit:
            return
        spacing = self._spacing(limit)
        enough = limit if len(self._idle) < _MANY else _SHED_TO * limit
        for sparing in (True, False):
            for outputs, origin in tuple(self._idle.items()):
                if self._memory.nbytes <= enough:
                    return
                if not (sparing and origin.is_start(spacing)):
                    self._drop(outputs)

    def _spacing(self, limit: int) -> int:
        """Least power of two that, as distance between starts, leaves half of the room."""
        sizes = [
            (origin, sum(self._memory.sizes_of(outputs).values()))
            for outputs, origin in self._idle.items()
        ]
        room = limit - self._busy.nbytes
        spacing = 1
        while spacing < self._count:
            if sum([size for origin, size in sizes if origin.is_start(spacing)]) <= room / 2:
                break
            spacing *= 2
        return spacing

    def _drop(self, outputs: StepOutputs) -> None:
        del self._idle[outputs]
        self._memory.remove(outputs)
        self._held.remove(outputs)
        values = outputs.drop()
        for name in values:
            self._values.pop(name, None)
        _release(values)

    # Computing again

    def _compute(
        self, wanted: StepOutputs, go_on: Callable[[], None] | None
    ) -> dict[str, Value]:
        steps = _dropped_before(wanted)
        uses = Counter(source for step in steps for source in _distinct_sources(step))
        # What the steps to come need is held on to here, whatever is dropped meanwhile.
        held = {source: kept for source in uses if (kept := source.kept) is not None}
        values: dict[str, Value] = {}
        for step in steps:
            if go_on is not None:
                go_on()
            origin = step.origin
            assert origin is not None  # noqa: S101 - what has none is never dropped
            values = self._run(origin, [held[source][name] for source, name in origin.sources])
            if uses[step]:
                held[step] = values
            for source in _distinct_sources(step):
                uses[source] -= 1
                if not uses[source]:
                    del held[source]
            if self._steps.get(origin.operator.index) is step:
                step.held = values
                self._values.update(values)
                self._held.add(step, sizes_of(values.values()))
                self._hold(step, values)
                self._shed()
        return values

    def _run(self, origin: _Origin, arguments: list[Value]) -> dict[str, Value]:
        operator = origin.operator
        if operator.random:
            results: Iterable[Held] = operator.forward(
                arguments, operator.generator(origin.seed)
            )
        else:
            kernel = self._kernels[operator.index]
            kernel.prepare(arguments)
            results = kernel(arguments)
            if kernel.name != origin.kernel:  # another one, which may round otherwise
                kernel = make_kernels({operator.name: origin.kernel}, (operator,))[0]
                kernel.prepare(arguments)
                results = kernel(arguments)
        names = (operand.name for operand in operator.outputs)
        return dict(zip(names, materialise_all(results), strict=True)) | dict(origin.given)


class HeldMemory:
    """Bytes that arrays lie in, once however many views of them there are."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._sizes: dict[int, int] = {}
        self._users: Counter[int] = Counter()
        self._taken: dict[Hashable, tuple[int, ...]] = {}

    def __contains__(self, holder: Hashable) -> bool:
        return holder in self._taken

    def add(self, holder: Hashable, sizes: Mapping[int, int]) -> None:
        """Count what values lie in: bytes by identity, which count as they did at first."""
        for key, nbytes in sizes.items():
            if key not in self._sizes:
                self._sizes[key] = nbytes
                self.nbytes += nbytes
            self._users[key] += 1
        self._taken[holder] = tuple(sizes)

    def remove(self, holder: Hashable) -> None:
        """Count them no more; values that were not counted are passed over."""
        for key in self._taken.pop(holder, ()):
            self._users[key] -= 1
            if not self._users[key]:
                self.nbytes -= self._sizes.pop(key)
                del self._users[key]

    def clear(self) -> None:
        """Count nothing any more."""
        self.nbytes = 0
        self._sizes.clear()
        self._users.clear()
        self._taken.clear()

    def sizes_of(self, holder: Hashable) -> dict[int, int]:
        """Bytes of what values lie in, by identity, also where others share it."""
        return {key: self._sizes[key] for key in self._taken[holder]}

    def new_in(self, sizes: Mapping[int, int]) -> int:
        """Bytes that values would add."""
        return sum(nbytes for key, nbytes in sizes.items() if key not in self._sizes)


def sizes_of(values: Iterable[Held]) -> dict[int, int]:
    """Bytes of what values lie in, by identity; those of one that is in another order too."""
    sizes = {}
    for value in values:
        if isinstance(value, LazyArray):
            sizes[id(value)] = math.prod(value.shape) * value.dtype.itemsize
        elif isinstance(value, np.ndarray):
            owner = _owner(value)
            sizes[id(owner)] = owner.nbytes
        elif isinstance(value, tuple):
            sizes |= sizes_of(value)
    return sizes


def _arrays(values: Iterable[Value]) -> Iterator[Array]:
    for value in values:
        for member in flatten_value(value):
            if isinstance(member, np.ndarray):
                yield member


def _owner(array: Array) -> Array:
    """The array whose memory an array lies in."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _release(values: Mapping[str, Value]) -> None:
    for array in _arrays(values.values()):
        let_go(array)


def _last_use(operator: RuntimeOperator) -> float:
    """Index of the last operator that takes an output; what the model gives has no last one."""
    consumers = [each for operand in operator.outputs for each in operand.consumers]
    if any(consumer.is_output for consumer in consumers):
        return math.inf
    return max((consumer.index for consumer in consumers), default=operator.index)


def _distinct_sources(outputs: StepOutputs) -> Iterable[StepOutputs]:
    return (
        dict.fromkeys(source for source, _ in outputs.origin.sources) if outputs.origin else ()
    )


def _dropped_before(wanted: StepOutputs) -> list[StepOutputs]:
    """Steps to compute again for the outputs of one, in order, it being the last."""
    found = {wanted: None}
    remaining = [wanted]
    while remaining:
        for source in _distinct_sources(remaining.pop()):
            if source.held is None and source not in found:
                found[source] = None
                remaining.append(source)
    return sorted(
        found, key=lambda step: step.origin.operator.index if step.origin is not None else -1
    )
