"""What lies around an operator in the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.ncnn.types import PREFIX, has_fused_activation, may_fuse_activation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["Surroundings"]

_MOST_VISITED: Final = 1024  # operators


@dataclass(frozen=True)
class Surroundings:
    """The operators around one.

    Parameters
    ----------
    operator : RuntimeOperator
    value : callable
        Returns the reference's value of an operand; None if it is unknown.
    lost : callable, optional
        Returns the tensors, by key, that only the reference computes an operand from.
    is_batched : bool, optional
        Whether results are given a batch axis in front, which layers of ncnn do not have.
    unread : sequence of RuntimeOperator, optional
        Those of the model whose results nobody reads: where a connection is lost, no edge leads
        to them.
    """

    operator: RuntimeOperator
    value: Callable[[RuntimeOperand], Value]
    lost: Callable[[RuntimeOperand], Mapping[str, Array]] = lambda _: {}
    is_batched: bool = False
    unread: Sequence[RuntimeOperator] = ()

    def with_batch(self) -> Surroundings:
        """Return these, with a batch axis in front of results."""
        return replace(self, is_batched=True)

    def operators(self) -> Iterator[RuntimeOperator]:
        """Iterate over the others: those that nobody reads, then the nearest by edges."""
        seen, level = {self.operator.index}, [self.operator]
        for each in self.unread:
            if each.index not in seen:
                seen.add(each.index)
                yield each
        while level and len(seen) < _MOST_VISITED:
            above = [operand.producer for each in level for operand in each.inputs]
            below = [c for each in level for operand in each.outputs for c in operand.consumers]
            found = {o.index: o for o in (*above, *below) if o and o.index not in seen}
            level = [found[index] for index in sorted(found, reverse=True)]
            seen.update(found)
            yield from level

    def operands(
        self, shape: tuple[int, ...], *, smaller: bool = False
    ) -> Iterator[tuple[RuntimeOperand, Array]]:
        """Iterate over results of a shape that do not depend on the operator.

        Parameters
        ----------
        shape : tuple of int
        smaller : bool, optional
            Those instead that are broadcast to it, such as a number for each channel.
        """
        fits = _is_broadcast if smaller else _is_same
        shape = shape[1:] if self.is_batched else shape
        for each in self.operators():
            if each.index < self.operator.index or each.index not in self._below:
                for operand in each.outputs:
                    if operand.shape is not None and not fits(operand.shape, shape):
                        continue
                    value = self.value(operand)
                    if isinstance(value, np.ndarray) and fits(value.shape, shape):
                        yield operand, value[np.newaxis] if self.is_batched else value

    @cached_property
    def _below(self) -> set[int]:
        """The operators that depend on this one."""
        seen, waiting = {self.operator.index}, [self.operator]
        while waiting:
            for operand in waiting.pop().outputs:
                below = [each for each in operand.consumers if each.index not in seen]
                seen.update(each.index for each in below)
                waiting += below
        return seen

    def fusing_above(self, place: int) -> RuntimeOperator | None:
        """Return the layer of ncnn that gives an input, if it could apply an activation to it.

        Only one that applies none, and whose result nothing else reads.
        """
        operand = self.operator.inputs[place]
        above = operand.producer
        if above is None or len(operand.consumers) != 1 or not above.type.startswith(PREFIX):
            return None
        fuses = may_fuse_activation(above.type.removeprefix(PREFIX))
        return above if fuses and not has_fused_activation(above.params) else None

    def lost_tensors(self) -> Mapping[str, Array]:
        """Return what only the reference computes the operator's result from, by key."""
        return self.lost(self.operator.outputs[0])

    def twins(self) -> Iterator[RuntimeOperator]:
        """Iterate over the layers of the same type whose weights have the same shapes."""
        operator = self.operator
        if operator.has_attributes:
            shapes = _shapes_of(operator)
            for each in self.operators():
                if each.type == operator.type and _shapes_of(each) == shapes:
                    yield each


def _shapes_of(operator: RuntimeOperator) -> dict[str, tuple[int, ...]]:
    return {name: tuple(each.shape) for name, each in operator.attributes.items()}


def _is_same(known: Sequence[object], shape: tuple[int, ...]) -> bool:
    return tuple(known) == shape


def _is_broadcast(known: Sequence[object], shape: tuple[int, ...]) -> bool:
    if tuple(known) == shape or not 0 < len(known) <= len(shape):
        return False
    last = shape[len(shape) - len(known) :]
    return all(size in {1, wanted} for size, wanted in zip(known, last, strict=True))
