"""The values of a run by operand name, with or without a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.store.activation_cache import ActivationCache
from engine.store.memory_use import MemoryUse, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from engine.store.outputs import Recipe, StepOutputs
    from engine.values import Array, Held

__all__ = ["ValueStore"]


class ValueStore:
    """Values of a run by operand name: all of them, or as many as a limit allows.

    Parameters
    ----------
    recipe_of : callable
        Takes the index of a step that was put, and gives its recipe. Asked only where there is
        a limit.
    release : callable
        Told each array that is evicted.

    Attributes
    ----------
    resident : dict of str to Held
        Values that are there without recomputing them. For reading alone.
    evicts : bool
        Whether values may have been evicted: there is a limit, or has been one.
    """

    __slots__ = (
        "_cache",
        "_memory",
        "_outputs",
        "_recipe_of",
        "_release",
        "_steps",
        "evicts",
        "resident",
    )

    def __init__(
        self, recipe_of: Callable[[int], Recipe], release: Callable[[Array], None]
    ) -> None:
        self.resident: dict[str, Held] = {}
        self.evicts = False
        self._recipe_of, self._release = recipe_of, release
        self._memory = MemoryUse()
        self._outputs: dict[str, StepOutputs] = {}
        self._steps: dict[int, StepOutputs] = {}
        self._cache: ActivationCache | None = None

    # Reading

    def __contains__(self, name: object) -> bool:
        """Whether a value was computed, resident or not."""
        return name in self._outputs

    def outputs_with(self, name: str) -> StepOutputs | None:
        """The outputs of the step that gave a value; None where none did."""
        return self._outputs.get(name)

    def recompute(
        self, names: Iterable[str], check_cancelled: Callable[[], None] | None
    ) -> None:
        """Make values resident, those that no step has given aside."""
        for name in names:
            if name not in self.resident and name in self._outputs:
                self._outputs[name].fetch(name, check_cancelled)

    # Writing

    def put(self, index: int, outputs: StepOutputs, sizes: Mapping[int, int]) -> None:
        """Take in the outputs of a step; the steps behind it have not run.

        Parameters
        ----------
        index : int
            Of the step; larger than those that were put before.
        outputs : StepOutputs
        sizes : mapping of int to int
            What they count as: see `sizes_of`.
        """
        values = outputs.resident
        if values:
            self.resident.update(values)
            self._outputs.update(dict.fromkeys(values, outputs))
        self._memory.add(outputs, sizes)
        self._steps[index] = outputs
        if self._cache is not None:
            self._cache.put(outputs, self._recipe_of(index))

    def rewind(self, index: int) -> None:
        """Drop the outputs of a step and of all behind it."""
        steps = self._steps
        while steps and next(reversed(steps)) >= index:
            _, outputs = steps.popitem()
            self._memory.remove(outputs)
            for name in outputs:
                del self._outputs[name]
                self.resident.pop(name, None)
        if self._cache is not None:
            self._cache.rewind(index)

    def hold(self, holder: Hashable, values: Iterable[Held]) -> None:
        """Count values that are held beside those of the steps, instead of earlier ones."""
        self._memory.remove(holder)
        self._memory.add(holder, sizes_of(values))

    # Memory

    @property
    def nbytes(self) -> int:
        """Bytes of all values that are held."""
        return self._memory.nbytes

    def new_in(self, sizes: Mapping[int, int]) -> int:
        """Bytes that values would add."""
        return self._memory.new_in(sizes)

    @property
    def evictable_bytes(self) -> int | None:
        """Bytes of resident values that may be evicted; not counted without a limit."""
        return self._cache.nbytes if self._cache is not None else None

    @property
    def limit(self) -> int | None:
        """Most bytes of values to keep resident; None for no limit."""
        return self._cache.limit if self._cache is not None else None

    @limit.setter
    def limit(self, nbytes: int | None) -> None:
        if self._cache is not None:
            self._cache.set_limit(nbytes)
        elif nbytes is not None:
            self.evicts = True
            self._cache = ActivationCache(self.resident, self._memory, self._release, nbytes)
            for index, outputs in self._steps.items():
                self._cache.put(outputs, self._recipe_of(index))
