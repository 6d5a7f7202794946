"""The outputs of one step, and how to compute them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from engine.values import materialise, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.values import Held, Value, ValueMetadata

__all__ = ["Recipe", "Recomputer", "StepOutputs"]


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """How the outputs of a step are computed.

    Attributes
    ----------
    index : int
        Of the step.
    sources : tuple of (StepOutputs, str)
        The step that gives each argument, and the argument's name there.
    last_use : float
        Index of the last step that takes an output; infinite for what is always needed.
    compute : callable or None
        Takes the arguments and gives the outputs by name; None for outputs that would not come
        out the same, and so are never evicted.
    """

    index: int
    sources: tuple[tuple[StepOutputs, str], ...]
    last_use: float
    compute: Callable[[Sequence[Value]], dict[str, Value]] | None

    def is_start(self, spacing: int) -> bool:
        """Whether the outputs are alive where a multiple of `spacing` steps has run."""
        return self.last_use // spacing > self.index // spacing


class Recomputer(Protocol):
    """Recomputes outputs that were evicted."""

    def touch(self, outputs: StepOutputs) -> None:
        """Note that resident outputs are read; takes no lock."""
        ...

    def recompute(
        self, outputs: StepOutputs, check_cancelled: Callable[[], None] | None
    ) -> Mapping[str, Held]:
        """Compute outputs that were evicted, unless another thread just has."""
        ...


class StepOutputs(Mapping[str, "Value"]):
    """Outputs of a step by operand name; arrays are read-only.

    Values that a memory limit has evicted are recomputed when they are read. Names,
    `resident` and `metadata` compute nothing, materialise nothing and take no lock.

    Parameters
    ----------
    values : dict of str to Held
        By operand name.

    Attributes
    ----------
    resident : mapping of str to Held, or None
        The values, lazy arrays as they are; None while they are evicted.
    recipe : Recipe or None
        How to compute them again; None for what is never evicted.
    """

    __slots__ = ("__weakref__", "_metadata", "_recomputer", "recipe", "resident")

    def __init__(self, values: dict[str, Held]) -> None:
        self.resident: Mapping[str, Held] | None = values
        self.recipe: Recipe | None = None
        self._metadata: dict[str, ValueMetadata] = {}
        self._recomputer: Recomputer | None = None

    @override
    def __getitem__(self, name: str) -> Value:
        return self.fetch(name)

    @override
    def __iter__(self) -> Iterator[str]:
        resident = self.resident
        return iter(self._metadata if resident is None else resident)

    @override
    def __len__(self) -> int:
        resident = self.resident
        return len(self._metadata if resident is None else resident)

    @override
    def __contains__(self, name: object) -> bool:
        resident = self.resident
        return name in (self._metadata if resident is None else resident)

    # By identity: to compare values they might have to be recomputed.
    __hash__ = object.__hash__

    @override
    def __eq__(self, other: object) -> bool:
        return self is other

    def metadata(self, name: str) -> ValueMetadata:
        """Describe a value without its elements, resident or not."""
        resident = self.resident
        return self._metadata[name] if resident is None else metadata_of(resident[name])

    def fetch(self, name: str, check_cancelled: Callable[[], None] | None = None) -> Value:
        """Read one value; recompute the step if it was evicted.

        Parameters
        ----------
        name : str
        check_cancelled : callable, optional
            Called between the steps that are recomputed; what it raises ends that.

        Raises
        ------
        EngineError
            If it cannot be recomputed.
        """
        return materialise(self._fetch(check_cancelled)[name])

    def fetch_resident(self) -> Mapping[str, Value] | None:
        """Read all values; None where that would recompute them."""
        resident = self.resident
        return _materialise_each(resident) if resident is not None else None

    def touch(self) -> None:
        """Note that the values are looked at: those looked at last are evicted last."""
        if self._recomputer is not None:
            self._recomputer.touch(self)

    def _fetch(self, check_cancelled: Callable[[], None] | None) -> Mapping[str, Held]:
        values, recomputer = self.resident, self._recomputer
        if recomputer is None:
            assert values is not None  # noqa: S101 - nobody evicts without a recomputer
            return values
        if values is None:
            return recomputer.recompute(self, check_cancelled)
        recomputer.touch(self)
        return values

    # For the activation cache

    def attach(self, recomputer: Recomputer, recipe: Recipe | None) -> None:
        """Let values be evicted from now on, if there is a recipe."""
        self._recomputer, self.recipe = recomputer, recipe

    def evict(self) -> Mapping[str, Held]:
        """Keep metadata alone; returns the values."""
        values = self.resident or {}
        # Another thread sees the values or the metadata at any time.
        self._metadata = {name: metadata_of(value) for name, value in values.items()}
        self.resident = None
        return values


def _materialise_each(values: Mapping[str, Held]) -> dict[str, Value]:
    return {name: materialise(value) for name, value in values.items()}
