"""Reads matched tensors as the reference has them, where what follows needs that.

By its elements a tensor is found in any layout. So an operator that permutes or joins along
other axes than the reference's, or keeps axes of size 1, seems to agree; its readers do not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.comparison.aligning.calls import is_layer
from engine.comparison.aligning.limits import ROUNDED
from engine.comparison.aligning.state import Reading
from engine.comparison.aligning.values import shape_in_file
from engine.comparison.matching import ALIGNMENT, HAND
from engine.comparison.measures import relative_distance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.comparison.aligning.tools import Tools
    from engine.comparison.aligning.walk import Walk
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array

__all__ = ["LayoutRepairs"]


class _Read(NamedTuple):
    """A tensor, read in some way."""

    reading: Reading
    value: Array


class LayoutRepairs:
    """Finds operators whose result has the right elements at the wrong places.

    Parameters
    ----------
    tools : Tools
    walk : Walk
    """

    def __init__(self, tools: Tools, walk: Walk) -> None:
        self._sides, self._state, self._values = tools.sides, tools.state, tools.values
        self._trials, self._walk = tools.trials, walk

    def repair_inputs(self, operator: RuntimeOperator) -> bool:
        """Match an input as the reference has it, if only then an operator agrees.

        Return whether there is one.
        """
        return any(self._read_in_own_layout(operator, o) for o in operator.inputs) or any(
            self._read_in_own_shape(operator, o) for o in operator.inputs
        )

    # Axes in another order

    def _read_in_own_layout(self, operator: RuntimeOperator, source: RuntimeOperand) -> bool:
        readings = self._in_own_layout(source)
        if readings and self._agrees_already(operator, source):
            return False
        for read in readings:
            if self._is_unmoved(source, read):
                continue
            if self._agrees(operator, source, read):
                first, (reading, _) = self._first(source, read, self._in_own_layout)
                if self._may_give(first, reading):
                    self._walk.shift(first, reading.match(ALIGNMENT, 0.8), reading.shape)
                    return True
        return False

    def _agrees_already(self, operator: RuntimeOperator, source: RuntimeOperand) -> bool:
        """Whether an input in the order of the reference's elements needs no other shape."""
        now = self._now(source)
        if now is None or now.layout.axes:
            return False
        ours = self._read(source, [now])
        return bool(ours) and self._agrees(operator, source, ours[0])

    def _is_unmoved(self, source: RuntimeOperand, read: _Read) -> bool:
        """Whether a tensor that is read with its axes in another order has the same elements.

        As the weights of an attention that attends to all alike: no layout of them is wrong.
        """
        now = self._now(source)
        if now is None or not now.layout.axes:
            return False
        ours = self._values.read(source.name, now)
        return ours is not None and np.array_equal(ours.reshape(-1), read.value.reshape(-1))

    def _may_give(self, operand: RuntimeOperand, reading: Reading) -> bool:
        """Whether an operator can be so wrong: a reshape keeps the order of its input."""
        producer, now = operand.producer, self._state.reading_of(operand.name)
        if producer is None or now is None:
            return True
        ours = self._values.read(operand.name, now)
        return self._values.may_move(producer, operand, reading, ours)

    def _in_own_layout(self, operand: RuntimeOperand) -> Sequence[_Read]:
        """Return the tensor as the reference has it; empty if that is how ours is.

        In the shape of our file first, where our run has another one.
        """
        match = self._state.result.matches.get(operand.name)
        if operand.producer is None or operand.producer.is_input:
            return ()
        if match is not None and match.matched_by == HAND:
            return ()
        now = self._now(operand)
        if now is None or self._sides.is_plain(now):
            return ()
        theirs = self._sides.index.shapes[now.key]
        shapes = [(1,) * (len(now.shape) - len(theirs)) + theirs]
        in_file = shape_in_file(operand)
        if in_file not in {None, now.shape} and math.prod(in_file) == math.prod(theirs):
            shapes.insert(0, in_file)
        return self._read(operand, [Reading(now.key, shape) for shape in shapes])

    # Axes of size 1

    def _read_in_own_shape(self, operator: RuntimeOperator, source: RuntimeOperand) -> bool:
        """Match an operand with the reference's axes of size 1, if what follows needs them."""
        now, shaped = self._now(source), self._in_own_shape(source)
        if now is None or not shaped:
            return False
        # A reference without a batch has another shape than our file.
        theirs = self._sides.index.shapes[now.key]
        if shape_in_file(source) != theirs and self._lacks_batch_only(operator, now):
            return False
        if self._agrees_already(operator, source):
            return False
        for read in shaped:
            if self._agrees(operator, source, read):
                first, (reading, _) = self._first(source, read, self._in_own_shape)
                if first.producer is not None and is_layer(first.producer.type):
                    continue  # which keeps the axes of its input, whatever is wrong with it
                known = self._state.result.matches.get(first.name)
                match = reading.match(ALIGNMENT, known.confidence if known else 0.8)
                self._walk.shift(first, match, reading.shape)
                return True
        return False

    def _lacks_batch_only(self, operator: RuntimeOperator, reading: Reading) -> bool:
        """Whether a reference without a batch has the same axes, at other places."""
        shape, theirs = reading.shape, self._sides.index.shapes[reading.key]
        if shape == (1, *theirs):
            return True
        fails = any(operand.name in self._state.failures for operand in operator.outputs)
        return _without_batch(shape) == _without_batch(theirs) and not fails

    def _in_own_shape(self, operand: RuntimeOperand) -> Sequence[_Read]:
        """Return the tensor with the reference's axes of size 1; empty if ours are the same."""
        match, producer = self._state.result.matches.get(operand.name), operand.producer
        now = self._now(operand)
        if now is None or (match is not None and match.matched_by == HAND) or now.layout.axes:
            return ()
        if producer is None or producer.is_input or producer.is_constant:
            return ()
        theirs = self._sides.index.shapes[now.key]
        if now.shape == theirs:
            return ()
        shapes = [shape for shape in (theirs, (1, *theirs)) if shape != now.shape]
        return self._read(operand, [now._replace(shape=shape) for shape in shapes])

    # Both

    def _now(self, operand: RuntimeOperand) -> Reading | None:
        """Return how the tensor is read that an operand is matched with, or repeats."""
        return self._state.reading_of(operand.name) or self._state.repeated.get(operand.name)

    def _read(self, operand: RuntimeOperand, readings: Sequence[Reading]) -> list[_Read]:
        values = [(each, self._values.read(operand.name, each)) for each in readings]
        return [_Read(each, value) for each, value in values if value is not None]

    def _agrees(self, operator: RuntimeOperator, source: RuntimeOperand, read: _Read) -> bool:
        """Whether an operator leads on to the reference's tensors from an input so read."""
        given = {source.name: read.value}
        return self._trials.leads_on(given, source, read.reading.key, reader=operator)

    def _first(
        self,
        operand: RuntimeOperand,
        read: _Read,
        readings: Callable[[RuntimeOperand], Sequence[_Read]],
    ) -> tuple[RuntimeOperand, _Read]:
        """Return the operand upstream from which on a tensor is to be read so."""
        while operand.producer is not None and len(operand.producer.inputs) == 1:
            producer, (source,) = operand.producer, operand.producer.inputs
            for before in readings(source):
                result = self._values.compute_one(producer, operand, [before.value])
                if not isinstance(result, np.ndarray) or result.shape != read.value.shape:
                    continue
                if relative_distance(result, read.value) <= ROUNDED:
                    operand, read = source, before
                    break
            else:
                break
        return operand, read


def _without_batch(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without leading axes of size 1, which references add and drop."""
    return shape[next((n for n, size in enumerate(shape) if size != 1), len(shape)) :]
