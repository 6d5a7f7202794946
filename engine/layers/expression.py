"""``pnnx.Expression``: arithmetic that pnnx folded into one operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from engine import expression
from engine.errors import ExpressionError, ParameterError
from engine.layers.layer import Layer, OperatorCall
from engine.layers.registry import register
from engine.promotion import is_numbers, is_scalar, result_dtype
from engine.values import Value

__all__ = ["Expression", "expression_text", "to_tensor"]


def expression_text(value: Any) -> str:
    """Format a parameter as the expression that it was parsed from.

    Parameters
    ----------
    value : str, number, None, or tuple of them
        ``expr=2``, ``expr=None`` and ``expr=[@0,@1]`` in a file parse as a number, None and a
        list.
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
        May also be a number, None or a list.

    Attributes
    ----------
    expression : Expression
        The parsed tree.
    functions : mapping of str to Function
        Functions by their name in an expression.
    gives_tensors : bool
        Whether numbers and lists of sizes become tensors.
    """

    functions: ClassVar[Mapping[str, expression.Function]] = expression.FUNCTIONS
    gives_tensors: ClassVar[bool] = False

    def __init__(self, operator: OperatorCall, expr: Any) -> None:
        try:
            self.expression = expression.parse(
                expression_text(expr),
                operand_count=len(operator.input_names),
                functions=self.functions,
            )
        except ExpressionError as exc:
            raise ParameterError("expr", str(exc)) from exc
        shape = operator.output_shape
        self._annotated = shape is not None
        # A constant that pnnx folded is a tensor if the file states its shape.
        self._is_tensor = self.gives_tensors or bool(shape)

    @override
    def forward(self, *operands: Value) -> Value:
        """Evaluate on the operands.

        Returns
        -------
        Value
            May be an operand itself, for example for ``@0``.
        """
        result = self.expression.evaluate(operands)
        return to_tensor(result, annotated=self._annotated) if self._is_tensor else result


def to_tensor(value: Value, *, annotated: bool) -> Value:
    """Convert a number or a list of sizes to a tensor; other values stay unchanged.

    A list of constants stays a list unless the file annotates it as a tensor. It is promoted to
    the dtype of the other operands.
    """
    if is_scalar(value):
        return np.array(value, result_dtype(value))
    if not isinstance(value, tuple) or not value or (is_numbers(value) and not annotated):
        return value
    items = [np.atleast_1d(np.asarray(item)) for item in value]
    if any(item.dtype.kind not in "iu" or item.ndim != 1 for item in items):
        return value
    return np.concatenate(items).astype(np.int64, copy=False)
