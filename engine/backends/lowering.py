"""What a library's lowering of an operator is made from: the layer's code and its arguments.

The layers have read and checked every parameter already. A lowering is looked up by the code
that is registered for an operator type, so that ``nn.``, ``F.`` and ``torch.`` types share
one, and receives what that code would: a `Layer` object and its operands, or a function's
arguments by name, operands among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from engine.layers.binding import FunctionLayer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.promotion import DType
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = [
    "LoweringError",
    "LoweringTable",
    "Operand",
    "SpecialNumbersError",
    "require_above_infinity",
    "require_finite",
]

Graph = TypeVar("Graph")
Result = TypeVar("Result")
Function = TypeVar("Function", bound="Callable[..., Any]")


class LoweringError(Exception):
    """A library cannot express an operator with these parameters and shapes."""


class SpecialNumbersError(Exception):
    """A library would treat NaN or infinities in these operands as the reference does not."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of the operator that is lowered.

    Attributes
    ----------
    name : str
        In the subgraph.
    index : int
        Which input of the operator.
    shape : tuple of int
    dtype : dtype
    """

    name: str
    index: int
    shape: tuple[int, ...]
    dtype: DType


class LoweringTable(Generic[Graph, Result]):
    """Forms by the code that is registered for an operator type."""

    def __init__(self) -> None:
        self._lowerings: dict[Callable[..., Any], Callable[..., Result]] = {}

    def register(self, *targets: Callable[..., Any]) -> Callable[[Function], Function]:
        """Register a lowering for functions or `Layer` classes.

        Parameters
        ----------
        *targets : callable
            What `engine.layers.register` was given.

        Returns
        -------
        decorator
            For a function that takes the graph to write into, then for a `Layer` class the
            layer and its operands, for a function that function's arguments by name. It
            raises `LoweringError` for what the library lacks.
        """

        def decorate(lower: Function) -> Function:
            for target in targets:
                self._lowerings[target] = lower
            return lower

        return decorate

    def has(self, operator: RuntimeOperator) -> bool:
        """Whether there is a lowering, whatever the parameters and shapes."""
        layer = operator.checked_layer
        return layer is not None and _target_of(layer) in self._lowerings

    def write(
        self, graph: Graph, operator: RuntimeOperator, operands: Sequence[Operand | Value]
    ) -> Result:
        """Write an operator into a graph.

        Parameters
        ----------
        graph : Graph
        operator : RuntimeOperator
        operands : sequence of Operand or Value
            Arrays as `Operand`, other values as they are.

        Returns
        -------
        Result
            What the lowering returns.

        Raises
        ------
        LoweringError
            If there is none.
        """
        checked = operator.checked_layer
        lower = None if checked is None else self._lowerings.get(_target_of(checked))
        if lower is None:
            raise LoweringError(f"{operator.type} has no lowering")
        try:
            layer = operator.layer
            if not isinstance(layer, FunctionLayer):
                return lower(graph, layer, *operands)
            positional, named = layer.arguments(operands)
            owner = layer.owner
            own = () if owner is None else (owner,)
            return lower(graph, *own, *positional, **layer.static, **named)
        except LoweringError:
            raise
        except Exception as exc:
            # Operands that the operator cannot take, or weights that cannot be read; the
            # reference says what is wrong.
            raise LoweringError(f"{operator.type} on these operands: {exc}") from exc


def _target_of(layer: object) -> Callable[..., Any]:
    if not isinstance(layer, FunctionLayer):
        return type(layer)
    owner = layer.owner
    return layer.target if owner is None else type(owner)


def require_finite(array: Array) -> None:
    """Raise `SpecialNumbersError` where an array holds NaN or infinities."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()  # one pass; large numbers may add up to infinity
    if not (np.isfinite(total) or np.isfinite([array.min(), array.max()]).all()):
        raise SpecialNumbersError


def require_above_infinity(value: Value) -> None:
    """Raise `SpecialNumbersError` where an array holds NaN or -inf."""
    if not np.min(value) > -np.inf:  # type: ignore[arg-type]
        raise SpecialNumbersError
