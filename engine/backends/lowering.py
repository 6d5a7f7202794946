"""The table of lowerings, by the code that is registered for an operator type.

The layers have read and checked every parameter already. Because the key is the code, ``nn.``,
``F.`` and ``torch.`` types share a lowering. A lowering gets the same arguments as the code: a
`Layer` object and its operands, or a function's arguments by name, including operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from engine.layers.binding import FunctionLayer, code_of

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
    """The library treats NaN or infinities in these operands differently from the reference."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of the operator to lower.

    Attributes
    ----------
    name : str
        Name in the subgraph.
    index : int
        Index among the operator's inputs.
    shape : tuple of int
    dtype : dtype
    """

    name: str
    index: int
    shape: tuple[int, ...]
    dtype: DType


class LoweringTable(Generic[Graph, Result]):
    """Lowerings by the code that is registered for an operator type."""

    def __init__(self) -> None:
        self._lowerings: dict[Callable[..., Any], Callable[..., Result]] = {}

    def register(self, *targets: Callable[..., Any]) -> Callable[[Function], Function]:
        """Register a lowering for functions or `Layer` classes.

        Parameters
        ----------
        *targets : callable
            The code that `engine.layers.register` has registered.

        Returns
        -------
        decorator
            For a function that takes the graph to write to. For a `Layer` class it also takes
            the layer and its operands, for a function that function's arguments by name. It
            raises `LoweringError` if the library cannot express the operator.
        """

        def decorate(lower: Function) -> Function:
            for target in targets:
                self._lowerings[target] = lower
            return lower

        return decorate

    def has(self, operator: RuntimeOperator) -> bool:
        """Return whether there is a lowering for some parameters and shapes."""
        layer = operator.checked_layer
        return layer is not None and code_of(layer) in self._lowerings

    def write(
        self, graph: Graph, operator: RuntimeOperator, operands: Sequence[Operand | Value]
    ) -> Result:
        """Add an operator to a graph.

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
        lower = None if checked is None else self._lowerings.get(code_of(checked))
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
            # Invalid operands, or weights that cannot be read; the reference reports the
            # error.
            raise LoweringError(f"{operator.type} on these operands: {exc}") from exc


def require_finite(array: Array) -> None:
    """Raise `SpecialNumbersError` where an array holds NaN or infinities."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()  # one pass first; the sum of large numbers may also be infinite
    if not (np.isfinite(total) or np.isfinite([array.min(), array.max()]).all()):
        raise SpecialNumbersError


def require_above_infinity(value: Value) -> None:
    """Raise `SpecialNumbersError` where an array holds NaN or -inf."""
    if not np.min(value) > -np.inf:  # type: ignore[arg-type]
        raise SpecialNumbersError
