"""The values of a batch of inputs, read one operand at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from typing_extensions import override

from engine.values import LazyArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.values import Array

    _HeldArray: TypeAlias = Array | LazyArray

__all__ = ["BatchValues"]


class BatchValues(Mapping[str, "Array"]):
    """Values by operand; the first axis of each are the inputs of the batch.

    A library has many of them in a layout of its own. They are converted each time they are
    read, into memory that is free again when they are no longer used. So that of one operand
    serves the next, and stays in the processor's cache.

    Parameters
    ----------
    held : mapping of str to ndarray or LazyArray
        As the session has them.
    batched : mapping of str to bool
        The wanted operands, and whether the first dimension of a value is the batch.
    count : int or None
        Inputs that ran together; None for one that ran by itself.
    """

    def __init__(
        self,
        held: Mapping[str, _HeldArray],
        batched: Mapping[str, bool],
        count: int | None = None,
    ) -> None:
        self._held, self._batched, self._count = held, batched, count

    @override
    def __getitem__(self, name: str) -> Array:
        held = self._held[name]
        value = held.read() if isinstance(held, LazyArray) else held
        if self._count is not None:
            return value[: self._count]
        return value if self._batched[name] else value[np.newaxis]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._batched)

    @override
    def __len__(self) -> int:
        return len(self._batched)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value, without reading it."""
        shape: tuple[int, ...] = self._held[name].shape
        if self._count is not None:
            return (self._count, *shape[1:])
        return shape if self._batched[name] else (1, *shape)
