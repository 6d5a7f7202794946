"""Estimates what operators take, by rules that were measured on two cores.

An estimate decides what computes a first pass, before anything was tried. It may be wrong by a
factor of two or three; the autotuner measures afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.cost import cost
from engine.layers.convolution import Convolution
from engine.values import metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.backends.fusion import Part
    from engine.cost import Cost
    from engine.runtime import RuntimeOperator
    from engine.values import Value, ValueMetadata

__all__ = [
    "estimate_cost",
    "estimate_fused_seconds",
    "estimate_making_seconds",
    "estimate_numpy_seconds",
]

# Of a library: multiply-accumulates and bytes per second, and seconds for each operator.
_FUSED_MACS: Final = 9e10
_FUSED_BYTES: Final = 1.5e10
_FUSED_EACH: Final = 10e-6
# Of NumPy, whose convolutions gather their windows and whose results are fresh memory.
_NUMPY_MACS: Final = 4e10
_NUMPY_BYTES: Final = 2.5e9
_NUMPY_GROUPED_MACS: Final = 1e9  # which are no product of large matrices
_NUMPY_EACH: Final = 20e-6
# To make a subgraph: seconds of it, of each operator, and bytes of weights per second.
_MAKING: Final = 4e-3
_MAKING_EACH: Final = 0.3e-3
_MAKING_BYTES: Final = 4e8


def estimate_cost(
    operator: RuntimeOperator, inputs: Sequence[Value], output: Value | None
) -> Cost:
    """Return the cost of an operator, with the file's shape of an output that is not known."""
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


def estimate_making_seconds(parts: Iterable[Part]) -> float:
    """Estimate the seconds that making a subgraph takes."""
    weights = count = 0
    for part in parts:
        weights += sum(each.nbytes for each in part.operator.attributes.values())
        count += part.given
    return _MAKING + _MAKING_EACH * count + weights / _MAKING_BYTES


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
