"""The values of a batch of inputs, read one operand at a time."""

from __future__ import annotations

import math
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

    def blocks(self, name: str) -> Array | None:
        """Return the channels of images as a library has them, without converting them.

        Returns
        -------
        ndarray of shape (inputs, groups, pixels, b), or None
            Groups of b channels, which are the axis behind the inputs. Read-only, C-contiguous.
            None where elements lie otherwise.
        """
        held = self._held[name]
        blocks = held.blocks() if isinstance(held, LazyArray) else None
        if blocks is None or not blocks.flags.c_contiguous:
            return None
        blocks = blocks[: self._count]
        inputs, groups, height, width, size = blocks.shape
        shape = self.shape(name)
        if shape[:2] != (inputs, groups * size) or math.prod(shape[2:]) != height * width:
            return None  # of padding, or channels that have become something else
        return blocks.reshape(inputs, groups, height * width, size)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value, without reading it."""
        shape: tuple[int, ...] = self._held[name].shape
        if self._count is not None:
            return (self._count, *shape[1:])
        return shape if self._batched[name] else (1, *shape)
