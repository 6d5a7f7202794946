"""``pnnx.Attribute``: a constant of the model."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from engine.errors import ParameterError
from engine.layers.layer import Layer, OperatorCall
from engine.layers.registry import register
from engine.values import Value

__all__ = ["Attribute"]


@register("prim::Constant")
def constant(value: Any = None) -> Any:
    """Return a number, string or list: ``prim::Constant`` of an unoptimised graph.

    Parameters
    ----------
    value : Value
        The constant.
    """
    return value


@register("pnnx.Attribute")
class Attribute(Layer):
    """Return the constant of the operator.

    It is the operator's first attribute, as in pnnx; files name it ``@data``. The output is the
    weight itself. If the weight is not aligned in memory, the output is an aligned copy, made
    once.
    """

    def __init__(self, operator: OperatorCall, **attributes: object) -> None:
        constant = next(iter(operator.attributes.values()), None)
        if constant is None:
            raise ParameterError("data", "it has no attribute")
        self._constant = constant

    @override
    def forward(self) -> Value:
        """Return the constant."""
        if not self._constant.flags.aligned:
            # The file has no padding between weights, so half of them are not aligned. Without
            # this copy every computation would copy them.
            self._constant = self._constant.copy()
        return self._constant
