"""A parsed expression: its tree, its other forms, and its evaluation."""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING

from typing_extensions import override

from engine.errors import ExpressionError
from engine.expression.functions import FUNCTIONS
from engine.expression.nodes import Call, Constant, ListNode, Node, OperandRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.expression.functions import Function
    from engine.values import Value

__all__ = ["Expression"]


class Expression:
    """An expression as a tree; made by `parse`.

    Two expressions are equal if their normal forms are. Nothing here recurses: a tree may be as
    deep as its text is long.

    Attributes
    ----------
    text : str
        The source text; positions of nodes refer to it.
    nodes : tuple of Node
        All nodes in post-order, which is the order of evaluation.
    functions : mapping of str to Function
        The functions by name.
    """

    def __init__(
        self,
        text: str,
        nodes: tuple[Node, ...],
        functions: Mapping[str, Function] = FUNCTIONS,
    ) -> None:
        self.text, self.nodes, self.functions = text, nodes, functions

    @property
    def root(self) -> Node:
        """The node whose value is the expression's."""
        return self.nodes[-1]

    @cached_property
    def operand_count(self) -> int:
        """Number of operands that the expression needs: its highest index plus one."""
        used = [node.operand for node in self.nodes if isinstance(node, OperandRef)]
        return max(used, default=-1) + 1

    @property
    def rpn(self) -> tuple[str, ...]:
        """Reverse Polish form: arguments first, then the function.

        ``add(@0,mul(@1,2))`` is ``@0 @1 2 mul add``. Functions of a variable number of
        arguments have a count: a list of two is ``[]/2``, and there are ``size/1`` and
        ``size/2``.
        """
        return tuple(node.rpn for node in self.nodes)

    @cached_property
    def normal(self) -> str:
        """Normal form: correct brackets, no blanks, numbers in Python's notation.

        Parsing it gives an equal expression.
        """
        parts: list[str] = []
        waiting: list[Node | str] = [self.root]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                parts.append(item)
                continue
            opening, closing = _brackets(item)
            parts.append(opening)
            waiting.append(closing)
            for child in reversed(item.children):
                waiting += (child, ",")
            if item.children:
                waiting.pop()  # no comma before the first
        return "".join(parts)

    def evaluate(self, operands: Sequence[Value]) -> Value:
        """Compute the expression's value.

        Parameters
        ----------
        operands : sequence of Value
            ``@0``, ``@1``, …: whole batches, broadcast against each other as in PyTorch.
            They are not written to.

        Returns
        -------
        Value
            If the expression only passes an operand on, it is that operand or contains it;
            otherwise a new array.

        Raises
        ------
        ExpressionError
            At a function with wrong arguments, or a missing operand.
        """
        last = deque(self.evaluate_steps(operands), maxlen=1)
        return last[0][1]

    def evaluate_steps(self, operands: Sequence[Value]) -> Iterator[tuple[Node, Value]]:
        """Compute node by node.

        Parameters
        ----------
        operands : sequence of Value
            As in `evaluate`.

        Yields
        ------
        (Node, Value)
            In post-order, each as soon as it is computed; the last is the root. Values that
            no later node needs are dropped.

        Raises
        ------
        ExpressionError
            As in `evaluate`; the nodes before were yielded.
        """
        stack: list[Value] = []
        for node in self.nodes:
            first = len(stack) - len(node.children)
            args = stack[first:]
            del stack[first:]
            value = self._value(node, args, operands)
            stack.append(value)
            yield node, value

    def check_operands(self, count: int) -> None:
        """Check that no operand beyond `count` is referred to.

        Raises
        ------
        ExpressionError
            At the first that is.
        """
        for node in self.nodes:
            if isinstance(node, OperandRef) and node.operand >= count:
                raise self._no_operand(node, count)

    def _no_operand(self, node: OperandRef, count: int) -> ExpressionError:
        reason = f"there is no operand {node.label}; the operator has {count}"
        return ExpressionError(self.text, node.start, reason)

    def _value(self, node: Node, args: list[Value], operands: Sequence[Value]) -> Value:
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, OperandRef):
            if node.operand >= len(operands):
                raise self._no_operand(node, len(operands))
            return operands[node.operand]
        if not isinstance(node, Call):
            return tuple(args)
        try:
            return self.functions[node.name].apply(*args)
        except (ArithmeticError, IndexError, TypeError, ValueError) as exc:
            raise ExpressionError(self.text, node.start, f"{node.name}: {exc}") from exc

    @override
    def __str__(self) -> str:
        return self.normal

    @override
    def __repr__(self) -> str:
        return f"parse({self.text!r})"

    @override
    def __eq__(self, other: object) -> bool:
        return self.normal == other.normal if isinstance(other, Expression) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self.normal)


def _brackets(node: Node) -> tuple[str, str]:
    """Return the texts before and after a node's children."""
    if isinstance(node, ListNode):
        return "[", "]"
    return (f"{node.label}(", ")") if isinstance(node, Call) else (node.label, "")
