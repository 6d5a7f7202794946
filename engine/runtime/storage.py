"""Finds the storage and strides of operands in PyTorch, for operators that read them.

``torch.as_strided`` does not read its input but the storage of the tensor of which its input is
a view, in PyTorch's layout. Arrays here may have another layout. So such an operator gets that
other tensor as a further input, `BASE`, and its layer gets the layout of the first input in it.

Running the layers on empty arrays of the file's sizes shows which operators return views, and
of what: NumPy's views have the strides of PyTorch's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from engine.errors import EngineError, LayerError
from engine.layers import Storage, layer_table
from engine.values import address_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.runtime.operator import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["VIEWS", "find_storage"]

_READ_BY_STEPS: Final = frozenset(
    f"{prefix}{name}"
    for prefix in ("torch.", "Tensor.", "aten::")
    for name in ("as_strided", "as_strided_scatter")
)

VIEWS: Final = frozenset(
    f"{prefix}{name}"
    for prefix in ("torch.", "Tensor.", "aten::")
    for name in (
        "adjoint", "alias", "as_strided", "broadcast_to", "chunk", "contiguous", "detach",
        "diagonal", "dropout", "dsplit", "expand", "expand_as", "flatten", "hsplit",
        "lift_fresh", "linalg_diagonal", "mH", "mT", "matrix_H", "moveaxis", "movedim",
        "narrow", "numpy_T", "permute", "ravel", "reshape", "reshape_as", "resolve_conj",
        "resolve_neg", "select", "slice", "split", "split_with_sizes", "squeeze", "swapaxes",
        "swapdims", "t", "tensor_split", "transpose", "unbind", "unflatten", "unfold",
        "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "view",
        "view_as", "vsplit",
    )
) | {"nn.Flatten", "nn.Unflatten", "nn.Identity", "nn.Dropout", "F.dropout"}  # fmt: skip
"""Operators whose result is a view of their first input, always or wherever one is possible."""

# Files of layers whose types write their results in row-major order if their inputs are in that
# order, and those that always do.
_ORDERED: Final = frozenset(
    {
        "activations", "adaptive_pooling", "arithmetic", "choosing", "comparing",
        "concatenate", "convolution", "copying", "elementwise", "expression", "extremes",
        "flip", "grid_sampling", "indexing", "normalization", "padding", "pooling",
        "reduction", "repeat", "resampling", "scan", "shuffle", "slicing",
        "transposed_convolution",
    }
)  # fmt: skip
_ALWAYS_ORDERED: Final = frozenset(
    {
        "attribute", "embedding", "linear", "matmul", "random_tensors", "softmax",
    }
)  # fmt: skip

_MOST: Final = 1 << 28  # elements of an empty array, each a byte of memory that is not touched


class _Place(NamedTuple):
    """Where an operand lies.

    Attributes
    ----------
    base : RuntimeOperand
        Lies in memory of its own, in row-major order.
    part : ndarray or None
        The operand as a view of an empty array in the place of `base`; None where it is `base`.
    """

    base: RuntimeOperand
    part: Array | None = None


# A place, or why none is known.
_Found: TypeAlias = "_Place | str"


def find_storage(operators: Sequence[RuntimeOperator]) -> None:
    """Give operators that read memory by steps what their input is a view of.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        All of a graph, in order of execution, connected.
    """
    reading = [op.index for op in operators if op.type in _READ_BY_STEPS]
    if reading:
        _Finder(operators[: reading[-1] + 1]).go()


class _Finder:
    """Goes through operators and finds where their outputs lie.

    Parameters
    ----------
    operators : sequence of RuntimeOperator

    Attributes
    ----------
    found : dict of RuntimeOperand to _Found
    memory : ndarray
        Where all the empty arrays begin.
    """

    def __init__(self, operators: Sequence[RuntimeOperator]) -> None:
        self.operators = operators
        self.found: dict[RuntimeOperand, _Found] = {}
        counts = [_count(o) for operator in operators for o in operator.outputs]
        self.memory = np.zeros(max(counts, default=0) + 1, np.int8)

    def go(self) -> None:
        """Look at all of them, in order."""
        for operator in self.operators:
            if operator.type in _READ_BY_STEPS and operator.inputs:
                self._attach(operator)
            places = self._places(operator)
            self.found.update(zip(operator.outputs, places, strict=True))

    def _place(self, operand: RuntimeOperand) -> _Found:
        return self.found.get(operand, f"no operator gives {operand.name}")

    def _attach(self, operator: RuntimeOperator) -> None:
        place = self._place(operator.inputs[0])
        if isinstance(place, str):
            operator.lies_in(None, Storage(unknown=place))
        elif place.part is not None:
            offset = address_of(place.part) - address_of(self.memory) if place.part.size else 0
            operator.lies_in(place.base, Storage(offset, place.part.strides))

    def _places(self, operator: RuntimeOperator) -> Sequence[_Found]:
        """Places of an operator's outputs."""
        if operator.type in VIEWS and operator.inputs:
            return self._of_views(operator)
        entry = layer_table().get(operator.type)
        kind = entry.target.__module__.rpartition(".")[2] if entry and not entry.file else ""
        ordered = kind in _ALWAYS_ORDERED or not operator.inputs
        if not ordered and kind in _ORDERED:
            ordered = all(_is_ordered(self._place(operand)) for operand in operator.inputs)
        if ordered:
            return [_Place(operand) for operand in operator.outputs]
        reason = (
            f"how PyTorch lays out what {operator.type} {operator.name!r} gives is not known"
        )
        return [reason] * len(operator.outputs)

    def _of_views(self, operator: RuntimeOperator) -> Sequence[_Found]:
        place = self._place(operator.inputs[0])
        try:
            if isinstance(place, str):
                raise LayerError(place)
            part = self._empty(place)
            views = operator.forward([part, *self._others(operator)])
        except EngineError as exc:
            return [str(exc)] * len(operator.outputs)
        copied = operator.type.endswith("contiguous") and not part.flags.c_contiguous
        return [
            _Place(place.base, view)
            if isinstance(view, np.ndarray)
            and np.may_share_memory(view, self.memory)
            and not copied
            else _Place(operand)
            for operand, view in zip(operator.outputs, views, strict=True)
        ]

    def _others(self, operator: RuntimeOperator) -> list[Value]:
        """What to run an operator on besides its first input: constants, and empty arrays."""
        constants = operator.constants()
        values: list[Value] = []
        for number, operand in enumerate(operator.inputs[1:], 1):
            place = self._place(operand)
            if number in constants:
                values.append(constants[number])
            else:
                values.append(None if isinstance(place, str) else self._empty(place))
        return values

    def _empty(self, place: _Place) -> Array:
        """An empty array for an operand, in memory that is shared and that nobody touches."""
        if place.part is not None:
            return place.part
        shape, count = place.base.shape, _count(place.base)
        if shape is None or count < 0:
            raise LayerError(f"the file does not tell the size of {place.base.name}")
        return self.memory[:count].reshape(shape)  # type: ignore[arg-type]


def _is_ordered(place: _Found) -> bool:
    """Whether an operand lies in row-major order, without gaps."""
    if isinstance(place, str):
        return False
    return place.part is None or bool(place.part.flags.c_contiguous)


def _count(operand: RuntimeOperand) -> int:
    """Number of an operand's elements; -1 where the file does not say, or says too many."""
    count = 1
    for size in operand.shape or (None,):
        if not isinstance(size, int):
            return -1
        count *= size
    return count if count <= _MOST else -1
