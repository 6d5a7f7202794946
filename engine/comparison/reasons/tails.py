"""The operators between one of ours and the next tensor that a reference shows."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.inverses import Inverse, invert_elements
from engine.comparison.reasons.ncnn_twins import add_batch
from engine.cost import cost
from engine.errors import EngineError
from engine.layers.exactness import is_elementwise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["Tail", "forward_all"]

_MOST_INDEXES: Final = 1 << 24  # elements whose indexes every dtype here can hold


def forward_all(
    operators: Sequence[RuntimeOperator], known: dict[str, Value], end: RuntimeOperand
) -> Value:
    """Compute operators one after another.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        In execution order.
    known : dict of str to Value
        Values by operand. It is used up: those that no operator reads any more are removed.
    end : RuntimeOperand

    Returns
    -------
    Value
        Of `end`; None if an operator refuses, or reads what is unknown.
    """
    last = {o.name: each.index for each in operators for o in each.inputs}
    for operator in operators:
        inputs = [known.get(operand.name) for operand in operator.inputs]
        if any(each is None for each in inputs):
            return None
        try:
            results = operator.forward(inputs)
        except EngineError:
            return None
        known |= {o.name: each for o, each in zip(operator.outputs, results, strict=True)}
        for name in {o.name for o in operator.inputs} - {end.name}:
            if last[name] == operator.index:
                del known[name]
    return known.get(end.name)


class Tail:
    """The operators from one of ours to the next tensor that the reference shows.

    Parameters
    ----------
    starts : sequence of RuntimeOperand
        Outputs of our operator.
    operators : sequence of RuntimeOperator
        Those that depend on `starts`, in execution order; empty if `end` is one of these.
    end : RuntimeOperand
        The operand that is shown; an output of one of `operators`.
    values : mapping of str to Value
        The other operands that they read.
    shown_as : tuple of int, optional
        Shape of what is shown. A result of as many elements takes it: the shape at the end
        may be the fault's, and the reference may show a tensor that is reshaped further on.
    is_batched : bool, optional
        Whether it takes and gives tensors with a batch axis in front that its operators, of
        ncnn, do not have.
    """

    def __init__(
        self,
        starts: Sequence[RuntimeOperand],
        operators: Sequence[RuntimeOperator],
        end: RuntimeOperand,
        values: Mapping[str, Value],
        shown_as: tuple[int, ...] | None = None,
        *,
        is_batched: bool = False,
    ) -> None:
        self._starts, self._operators = tuple(starts), tuple(operators)
        self._end, self._values, self._shown_as = end, values, shown_as
        self._is_batched = is_batched

    def with_batch(self) -> Tail:
        """Return the same, with a batch axis in front of what it takes and gives."""
        return Tail(
            self._starts, self._operators, self._end, self._values, self._shown_as,
            is_batched=True,
        )  # fmt: skip

    @cached_property
    def macs(self) -> int:
        """Multiply-accumulates of its operators, at the size of the file."""
        return sum(cost(operator).macs for operator in self._operators)

    @property
    def takes_several(self) -> bool:
        """Whether it starts from several outputs of our operator."""
        return len(self._starts) > 1

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of our operator's only output in the file; None if it is open."""
        shape = None if self.takes_several else self._starts[0].shape
        if shape is None or not all(type(size) is int for size in shape):
            return None
        sizes = tuple(size for size in shape if isinstance(size, int))
        return (1, *sizes) if self._is_batched else sizes

    @cached_property
    def is_local(self) -> bool:
        """Whether each operator is element-wise and reads nothing else."""
        return all(
            len(operator.inputs) == 1 and is_elementwise(operator.checked_layer)
            for operator in self._operators
        )

    def split(self) -> tuple[Tail, RuntimeOperator] | None:
        """Return what comes before the last operator, and that one.

        None if the last operator reads more than one operand, or gives more than what is shown,
        and for layers of ncnn without a batch axis.
        """
        if self._is_batched:
            return None
        last = self._operators[-1] if self._operators else None
        if last is None or len(last.inputs) != 1 or list(last.outputs) != [self._end]:
            return None
        before = Tail(self._starts, self._operators[:-1], last.inputs[0], self._values)
        return before, last

    def __call__(self, value: Value) -> Value:
        """Return what is shown for a result of our operator; None if an operator refuses.

        Parameters
        ----------
        value : Value
            The output, or a tuple of several.
        """
        if self._is_batched:
            own = value[0] if isinstance(value, np.ndarray) else value
            return add_batch(self._shown(own))
        return self._shown(value)

    def _shown(self, value: Value) -> Value:
        """Return what is shown, without a batch axis."""
        given = value if self.takes_several else (value,)
        if not isinstance(given, tuple) or len(given) != len(self._starts):
            return None
        known: dict[str, Value] = dict(self._values)
        known |= {o.name: each for o, each in zip(self._starts, given, strict=True)}
        found = forward_all(self._operators, known, self._end)
        shape = self._shown_as
        if shape is None or not isinstance(found, np.ndarray) or found.size != math.prod(shape):
            return found
        return found.reshape(shape)

    def invert(self, ours: Value, expected: Value) -> Inverse | None:
        """Find what our operator should give; None if the operators do not tell.

        Parameters
        ----------
        ours : Value
            What it gives. Where the operators lose a number, as a ReLU does, the nearest
            possible one is taken.
        expected : Value
            What is shown.

        Returns
        -------
        Inverse or None
        """
        if self.takes_several or not isinstance(expected, np.ndarray):
            return None
        if expected.dtype.kind == "f":
            found = self._solve_broadcast(ours, expected) or invert_elements(
                self, ours, expected
            )
            if found is not None:
                return found
        return self._put_back(ours, expected)

    def _solve_broadcast(self, ours: Value, expected: Array) -> Inverse | None:
        """Solve for a smaller tensor, as a constant that a sum broadcasts.

        Each of its elements follows from several that are shown: the median is taken.
        """
        if not isinstance(ours, np.ndarray) or not 0 < ours.size < expected.size:
            return None
        missing = expected.ndim - ours.ndim
        if ours.dtype.kind != "f" or missing < 0:
            return None
        sizes = (1,) * missing + ours.shape
        pairs = list(zip(sizes, expected.shape, strict=True))
        if any(one not in {1, other} for one, other in pairs):
            return None
        found = invert_elements(self, np.broadcast_to(ours, expected.shape), expected)
        if found is None:
            return None
        axes = tuple(axis for axis, (one, other) in enumerate(pairs) if one != other)
        known = np.asarray(found.told.any(axes))
        seen = np.where(found.told | ~found.told.any(axes, keepdims=True), found.wanted, np.nan)
        wanted = np.nanmedian(seen, axes).astype(ours.dtype)
        return Inverse(wanted.reshape(ours.shape), known.reshape(ours.shape))

    def _put_back(self, ours: Value, expected: Array) -> Inverse | None:
        """Undo operators that only move elements; None if they do more."""
        shape = ours.shape if isinstance(ours, np.ndarray) else self.shape
        if shape is None or math.prod(shape) != expected.size or expected.size > _MOST_INDEXES:
            return None
        indexes = np.arange(expected.size, dtype=expected.dtype if expected.dtype.kind == "i"
                            else np.float64)  # fmt: skip
        moved = self(indexes.reshape(shape))
        if not isinstance(moved, np.ndarray) or moved.shape != expected.shape:
            return None
        order = moved.reshape(-1)
        if not np.array_equal(np.sort(order), indexes):
            return None
        result = np.empty_like(expected.reshape(-1))
        result[order.astype(np.int64)] = expected.reshape(-1)
        return Inverse(result.reshape(shape), np.ones(shape, bool))
