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
    """Give a number, word or list: ``prim::Constant`` of a graph that is not optimised.

    Parameters
    ----------
    value : Value
        The constant.
    """
    return value


@register("pnnx.Attribute")
class Attribute(Layer):
    """Return the constant of the operator.

    The file calls it ``@data``; whatever its name, the operator's first attribute is meant,
    as in pnnx. The output is the weight itself, or, where that does not begin at a
    multiple of its elements' size, a copy that does: the same one each time.
    """

    def __init__(self, operator: OperatorCall, **attributes: object) -> None:
        constant = next(iter(operator.attributes.values()), None)
        if constant is None:
            raise ParameterError("data", "it has no attribute to give")
        self._constant = constant

    @override
    def forward(self) -> Value:
        """Give the constant."""
        if not self._constant.flags.aligned:
            # As half of the file's weights are: nothing stands between them. Whoever computes
            # would have to copy it every time.
            self._constant = self._constant.copy()
        return self._constant
