"""The expression language of ``pnnx.Expression``: ``add(mul(@0,2.5),@1)``.

`parse` reads an expression into a tree of nodes that know their place in the text; an
`Expression` evaluates it, whole or node by node, and writes it in normal and in reverse
Polish form. Nothing is ever passed to Python's own evaluation.

>>> from engine.expression import parse
>>> expression = parse("add(mul(@0,2.5),1)")
>>> expression.rpn
('@0', '2.5', 'mul', '1', 'add')
>>> expression.evaluate([4])
11.0
"""

from __future__ import annotations

from engine.expression.expression import Expression
from engine.expression.functions import FUNCTIONS, Function
from engine.expression.nodes import Call, Constant, ListNode, Node, OperandRef
from engine.expression.parser import parse

__all__ = [
    "FUNCTIONS",
    "Call",
    "Constant",
    "Expression",
    "Function",
    "ListNode",
    "Node",
    "OperandRef",
    "parse",
]
