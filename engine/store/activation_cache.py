"""The activation cache: evicts values beyond a memory limit and recomputes them.

Old values are evicted and recomputed when they are read: from the nearest resident ones, by
the recipe of each step between.

Values that further steps need are never evicted. Of the rest, half of the limit is for the most
recently computed or read values. The other half is for checkpoints, from which recomputing can
start: values that are alive at every s-th step, as many as fit. So no value is far from a
checkpoint, and reading all values in any order does not restart at the model's input each time.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from threading import RLock
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.store.memory_use import MemoryUse, sizes_of
from engine.values import LazyArray, flatten_value, materialise, metadata_of, value_nbytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.store.outputs import Recipe, StepOutputs
    from engine.values import Array, Held, Value

__all__ = ["ActivationCache"]

# Choosing among many values takes longer than an operator, so several are evicted at once.
_MANY: Final = 64
_EVICT_TO: Final = 7 / 8  # of the limit
_MOST_TOUCHES: Final = 1 << 12  # that are remembered between two evictions


class ActivationCache:
    """Evicts a store's values to stay within a limit, and recomputes them.

    The limit is soft: values that further steps need always stay, and a limit below the largest
    need of a step counts as that need. Values without a recipe stay, too.

    Parameters
    ----------
    resident : dict of str to Held
        The store's values by name: evicted ones are taken out, recomputed ones come back.
    memory : MemoryUse
        Of all that the store holds.
    release : callable
        Called with each evicted array.
    limit : int or None
        Bytes of the values that have a recipe.

    Attributes
    ----------
    limit : int or None
        None for no limit any more.
    """

    def __init__(
        self,
        resident: dict[str, Held],
        memory: MemoryUse,
        release: Callable[[Array], None],
        limit: int | None,
    ) -> None:
        self.limit = limit
        self._resident, self._memory, self._release = resident, memory, release
        self._position = 0
        self._most_needed = 0
        self._steps: dict[int, StepOutputs] = {}
        self._evictable = MemoryUse()
        # What the steps to come need, and the rest: what was read last comes last.
        self._needed = MemoryUse()
        self._idle: OrderedDict[StepOutputs, Recipe] = OrderedDict()
        self._touched: deque[StepOutputs] = deque(maxlen=_MOST_TOUCHES)
        self._lock = RLock()  # views on another thread may read while a dump goes on

    @property
    def nbytes(self) -> int:
        """Bytes of resident values that may be evicted."""
        return self._evictable.nbytes

    def set_limit(self, limit: int | None) -> None:
        """Change the limit, with immediate effect."""
        with self._lock:
            self.limit = limit
            self._order_touched()
            self._shrink()

    def put(self, outputs: StepOutputs, recipe: Recipe) -> None:
        """Add the outputs of a step that has just run."""
        with self._lock:
            self._order_touched()
            self._position = recipe.index + 1
            if outputs.resident:
                outputs.attach(self, recipe if recipe.compute is not None else None)
                self._steps[recipe.index] = outputs
                self._hold(outputs, outputs.resident)
            self._most_needed = max(self._most_needed, self._needed.nbytes)
            for source, _ in recipe.sources:
                used = source.recipe
                if used and source in self._needed and used.last_use < self._position:
                    self._needed.remove(source)
                    self._idle[source] = used
            self._shrink()

    def rewind(self, position: int) -> None:
        """Make a step the next one, and drop it and all later steps."""
        with self._lock:
            undone = [index for index in self._steps if index >= position]
            for outputs in map(self._steps.pop, undone):
                self._needed.remove(outputs)
                self._idle.pop(outputs, None)
                self._evictable.remove(outputs)
                # Whoever has the record recomputes them; they belong to no pass now.
                if outputs.recipe is not None and outputs.resident is not None:
                    self._release_all(outputs.evict())
            self._position = position
            if not position:
                self._most_needed = 0
            for outputs, recipe in tuple(self._idle.items()):
                if recipe.last_use >= position:
                    del self._idle[outputs]
                    self._needed.add(outputs, self._evictable.sizes_of(outputs))

    def touch(self, outputs: StepOutputs) -> None:
        """Note that resident outputs are read; takes no lock."""
        self._touched.append(outputs)

    def recompute(
        self, outputs: StepOutputs, check_cancelled: Callable[[], None] | None
    ) -> Mapping[str, Held]:
        """Compute outputs that were evicted, unless another thread just has.

        Raises
        ------
        EngineError
            If they cannot be computed.
        """
        with self._lock:
            self._order_touched()
            if outputs.resident is None:
                return self._compute(outputs, check_cancelled)
            self.touch(outputs)
            return outputs.resident

    # Evicting

    def _hold(self, outputs: StepOutputs, values: Mapping[str, Held]) -> None:
        recipe, sizes = outputs.recipe, sizes_of(values.values())
        # Values that are never evicted do not count, nor do views of them.
        self._evictable.add(outputs, sizes if recipe is not None else dict.fromkeys(sizes, 0))
        nbytes = sum(value_nbytes(metadata_of(value)) for value in values.values())
        if recipe is None or not nbytes:
            return  # nothing would be won by evicting it
        if recipe.last_use >= self._position:
            self._needed.add(outputs, self._evictable.sizes_of(outputs))
        else:
            self._idle[outputs] = recipe

    def _shrink(self) -> None:
        """Evict the oldest values beyond the limit."""
        if self.limit is None:
            return
        limit = max(self.limit, self._most_needed)
        if self._evictable.nbytes <= limit:
            return
        spacing = self._spacing(limit)
        enough = limit if len(self._idle) < _MANY else _EVICT_TO * limit
        for sparing in (True, False):
            for outputs, recipe in tuple(self._idle.items()):
                if self._evictable.nbytes <= enough:
                    return
                if not (sparing and recipe.is_start(spacing)):
                    self._evict(outputs)

    def _order_touched(self) -> None:
        """Move recently read values to the end."""
        touched = self._touched
        while touched:
            outputs = touched.popleft()
            if outputs in self._idle:
                self._idle.move_to_end(outputs)

    def _spacing(self, limit: int) -> int:
        """Return the distance of checkpoints, a power of two, that uses half of the limit."""
        sizes = [
            (recipe, sum(self._evictable.sizes_of(outputs).values()))
            for outputs, recipe in self._idle.items()
        ]
        room = limit - self._needed.nbytes
        spacing = 1
        while spacing < self._position:
            if sum([size for recipe, size in sizes if recipe.is_start(spacing)]) <= room / 2:
                break
            spacing *= 2
        return spacing

    def _evict(self, outputs: StepOutputs) -> None:
        del self._idle[outputs]
        self._evictable.remove(outputs)
        self._memory.remove(outputs)
        values = outputs.evict()
        for name in values:
            self._resident.pop(name, None)
        self._release_all(values)

    def _release_all(self, values: Mapping[str, Held]) -> None:
        for value in values.values():
            if not isinstance(value, LazyArray):
                for member in flatten_value(value):
                    if isinstance(member, np.ndarray):
                        self._release(member)

    # Recomputing

    def _compute(
        self, wanted: StepOutputs, check_cancelled: Callable[[], None] | None
    ) -> Mapping[str, Value]:
        steps = _evicted_before(wanted)
        uses = Counter(source for step in steps for source in _distinct_sources(step))
        # What the steps to come need is held on to here, whatever is evicted meanwhile.
        held: dict[StepOutputs, Mapping[str, Held]] = {
            source: source.resident for source in uses if source.resident is not None
        }
        values: dict[str, Value] = {}
        for step in steps:
            if check_cancelled is not None:
                check_cancelled()
            recipe = step.recipe
            assert recipe is not None  # noqa: S101 - what has none is never evicted
            assert recipe.compute is not None  # noqa: S101 - likewise
            values = recipe.compute(
                [materialise(held[source][name]) for source, name in recipe.sources]
            )
            if uses[step]:
                held[step] = values
            for source in _distinct_sources(step):
                uses[source] -= 1
                if not uses[source]:
                    del held[source]
            if self._steps.get(recipe.index) is step:
                step.resident = values
                self._resident.update(values)
                self._memory.add(step, sizes_of(values.values()))
                self._hold(step, values)
                self._shrink()
        return values


def _distinct_sources(outputs: StepOutputs) -> Iterable[StepOutputs]:
    recipe = outputs.recipe
    return dict.fromkeys(source for source, _ in recipe.sources) if recipe else ()


def _evicted_before(wanted: StepOutputs) -> list[StepOutputs]:
    """Steps to recompute for the outputs of one, in order, it being the last."""
    found = {wanted: None}
    remaining = [wanted]
    while remaining:
        for source in _distinct_sources(remaining.pop()):
            if source.resident is None and source not in found:
                found[source] = None
                remaining.append(source)
    return sorted(found, key=lambda step: step.recipe.index if step.recipe is not None else -1)
