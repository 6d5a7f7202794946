"""Estimates the time of operators, by figures that were measured on two cores.

An estimate decides which kernels compute the first pass, before anything is measured. It may be
wrong by a factor of two or three; the autotuner measures afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.cost import cost, is_free
from engine.layers.convolution import Convolution
from engine.values import ArrayMetadata, metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.cost import Cost
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Held, Value, ValueMetadata

__all__ = [
    "Estimate",
    "estimate_cost",
    "estimate_fused_seconds",
    "estimate_making_seconds",
    "estimate_numpy_seconds",
    "estimate_stated",
]

# A library: multiply-accumulates and bytes per second, and seconds for each operator.
_FUSED_MACS: Final = 9e10
_FUSED_BYTES: Final = 1.5e10
_FUSED_EACH: Final = 10e-6
# NumPy. Its convolutions gather their windows, and its results are fresh memory.
_NUMPY_MACS: Final = 4e10
_NUMPY_BYTES: Final = 2.5e9
_NUMPY_GROUPED_MACS: Final = 1e9  # grouped convolutions multiply small matrices
_NUMPY_EACH: Final = 20e-6
# Making a subgraph: fixed seconds, seconds for each operator, and bytes of weights per second.
_MAKING: Final = 4e-3
_MAKING_EACH: Final = 0.3e-3
_MAKING_BYTES: Final = 4e8


def estimate_cost(
    operator: RuntimeOperator, inputs: Sequence[Value], output: Value | None
) -> Cost:
    """Return the cost of an operator; an unknown output has the shape that the file states."""
    return cost(operator, _Stated(operator, inputs, output))


def estimate_fused_seconds(found: Cost) -> float:
    """Estimate the seconds that an operator takes in a subgraph."""
    return found.macs / _FUSED_MACS + found.nbytes / _FUSED_BYTES + _FUSED_EACH


def estimate_numpy_seconds(operator: RuntimeOperator, found: Cost) -> float:
    """Estimate the seconds that NumPy takes for an operator the first time."""
    layer = operator.checked_layer
    grouped = isinstance(layer, Convolution) and layer.groups > 1
    macs = _NUMPY_GROUPED_MACS if grouped else _NUMPY_MACS
    return found.macs / macs + found.nbytes / _NUMPY_BYTES + _NUMPY_EACH


def estimate_making_seconds(operators: Iterable[RuntimeOperator], computed: int) -> float:
    """Estimate the seconds that making a subgraph takes.

    Parameters
    ----------
    operators : iterable of RuntimeOperator
    computed : int
        How many of them return results that the library computes.
    """
    weights = sum(each.nbytes for o in operators for each in o.attributes.values())
    return _MAKING + _MAKING_EACH * computed + weights / _MAKING_BYTES


class Estimate(NamedTuple):
    """What consecutive operators are likely to take.

    Attributes
    ----------
    length : int
        Number of operators.
    numpy_seconds : float
        Time of NumPy for them.
    making_seconds : float
        Time to make a subgraph of them.
    """

    length: int
    numpy_seconds: float
    making_seconds: float


def estimate_stated(
    row: Sequence[RuntimeOperator], values: Mapping[str, Held], limit: float
) -> Estimate | None:
    """Estimate a row of operators by the shapes that the file states, without lowering them.

    Parameters
    ----------
    row : sequence of RuntimeOperator
    values : mapping of str to Held
        The known operands.
    limit : float
        As for `infer_parts`, which ends at the same operator or before it.

    Returns
    -------
    Estimate or None
        None where the file states no shape, or another than a known operand has.
    """
    from engine.backends.operator_lowerings import LOWERINGS

    made: set[str] = set()
    computed = length = 0
    spent = numpy_seconds = 0.0
    for operator in row:
        is_computed = LOWERINGS.has(operator)
        if spent > limit or not (is_computed or is_free(operator.type) or not operator.inputs):
            break
        if not (
            all(o.name in made or _is_as_stated(o, values) for o in operator.inputs)
            and all(map(_is_stated, operator.outputs))
        ):
            return None
        if operator.inputs:
            found = cost(operator)
            spent += estimate_fused_seconds(found)
            numpy_seconds += estimate_numpy_seconds(operator, found)
        made |= {operand.name for operand in operator.outputs}
        computed += is_computed
        length += 1
    making = estimate_making_seconds(row[:length], computed)
    return Estimate(length, numpy_seconds, making)


def _is_stated(operand: RuntimeOperand) -> bool:
    shape = operand.shape
    return (
        shape is not None
        and operand.dtype is not None
        and all(isinstance(size, int) for size in shape)
    )


def _is_as_stated(operand: RuntimeOperand, values: Mapping[str, Held]) -> bool:
    if operand.name not in values or not _is_stated(operand):
        return False
    found = metadata_of(values[operand.name])
    return (
        isinstance(found, ArrayMetadata)
        and found.shape == operand.shape
        and found.dtype == operand.dtype
    )


class _Stated:
    """Metadata of an operator's operands, as `cost` reads them."""

    def __init__(
        self, operator: RuntimeOperator, inputs: Sequence[Value], output: Value | None
    ) -> None:
        names = [operand.name for operand in operator.inputs]
        self._known: dict[str, ValueMetadata] = {
            name: metadata_of(value) for name, value in zip(names, inputs, strict=True)
        }
        if output is not None:
            self._known[operator.outputs[0].name] = metadata_of(output)

    def has_value(self, operand: str, /) -> bool:
        return operand in self._known

    def metadata(self, operand: str, /) -> ValueMetadata:
        return self._known[operand]
