"""What the operators of a model cost, at the sizes that they ran with."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from engine.cost import cost
from engine.states import OperatorStatus
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.cost import ValueSource
    from engine.runtime import RuntimeOperator
    from engine.values import ValueMetadata
    from kuiper_studio.engine_service.protocol import Outputs, Record

__all__ = ["CostTable"]

Floats: TypeAlias = npt.NDArray[np.float64]


class CostTable:
    """Costs by operator; those of the exported sizes until an operator runs with others.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        In execution order.

    Attributes
    ----------
    macs : ndarray of shape (N,), float64
        Multiply-accumulates; 0 where a shape is not known.
    nbytes, output_nbytes, weight_nbytes : ndarray of shape (N,), float64
        Bytes of inputs, outputs and weights together, of the outputs, and of the weights.
    """

    def __init__(self, operators: Sequence[RuntimeOperator]) -> None:
        self._operators = operators
        self.macs: Floats = np.zeros(len(operators))
        self.nbytes, self.output_nbytes = self.macs.copy(), self.macs.copy()
        self.weight_nbytes = self.macs.copy()
        for place in range(len(operators)):
            self._set(place)
        # Where the cost is not that of the exported sizes: what it is of.
        self._costed: dict[int, tuple[ValueMetadata | None, ...]] = {}
        self._resized: set[str] = set()  # operands that are not as they were exported

    def note(self, record: Record, values: ValueSource) -> None:
        """Note a step; what was executed has its actual shapes."""
        if record.status is not OperatorStatus.EXECUTED:
            return
        place = record.index
        operator = self._operators[place]
        if not self._note_sizes(operator, record.outputs):
            if self._costed.pop(place, None) is not None:
                self._set(place)
            return
        operands = (*operator.inputs, *operator.outputs)
        metadata = tuple(values.metadata(operand.name) for operand in operands)
        if metadata != self._costed.get(place):  # most passes have the shapes of the one before
            self._costed[place] = metadata
            self._set(place, values)

    def _note_sizes(self, operator: RuntimeOperator, outputs: Outputs) -> bool:
        """Note sizes that came out; whether an operand of the operator is not as exported."""
        for name, operand in zip(outputs, operator.outputs, strict=False):
            found = outputs.metadata(name)
            as_exported = (
                isinstance(found, ArrayMetadata)
                and found.shape == operand.shape
                and found.dtype == operand.dtype
            )
            change = self._resized.discard if as_exported else self._resized.add
            change(name)
        if not self._resized:
            return False
        return any(o.name in self._resized for o in (*operator.inputs, *operator.outputs))

    def _set(self, place: int, values: ValueSource | None = None) -> None:
        found = cost(self._operators[place], values)
        self.macs[place], self.nbytes[place] = found.macs, found.nbytes
        self.output_nbytes[place] = found.output_nbytes
        self.weight_nbytes[place] = found.weight_nbytes
