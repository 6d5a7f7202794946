"""``pnnx.Expression``: arithmetic that pnnx folded into one operator."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from engine import expression
from engine.errors import ExpressionError, ParameterError
from engine.layers.layer import Layer, OperatorCall
from engine.layers.registry import register
from engine.values import Value

__all__ = ["Expression", "expression_text"]


def expression_text(value: Any) -> str:
    """Write a parameter as the expression that it was read from.

    Parameters
    ----------
    value : str, number, None, or tuple of them
        A file may hold ``expr=2``, ``expr=None`` or ``expr=[@0,@1]``, which read as a
        number, None and a list.
    """
    if isinstance(value, tuple):
        return f"[{','.join(map(expression_text, value))}]"
    # Python puts brackets around a complex number
    return str(value).strip("()") if isinstance(value, complex) else str(value)


@register("pnnx.Expression")
class Expression(Layer):
    """Compute an expression of the operands: ``@0`` is the first, ``@1`` the second.

    ``expr`` nests calls such as ``add(@0,mul(@1,2.5))``; ``[a,b]`` is a list, ``size`` a
    dimension of a tensor. Dtypes follow PyTorch's promotion: a number beside a tensor only
    raises its kind, never its width.

    Parameters
    ----------
    expr : str
        Numbers, None and lists stand for themselves.

    Attributes
    ----------
    expression : Expression
        The parsed tree.
    """

    def __init__(self, operator: OperatorCall, expr: Any) -> None:
        try:
            self.expression = expression.parse(
                expression_text(expr),
                operand_count=len(operator.input_names),
                functions=expression.FUNCTIONS_OF_ONNX
                if operator.from_onnx
                else expression.FUNCTIONS,
            )
        except ExpressionError as exc:
            raise ParameterError("expr", str(exc)) from exc

    @override
    def forward(self, *operands: Value) -> Value:
        """Evaluate on the operands.

        Returns
        -------
        Value
            May be an operand itself, as for ``@0``.
        """
        return self.expression.evaluate(operands)
