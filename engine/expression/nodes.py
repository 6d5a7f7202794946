"""The tree of an expression.

Nodes compare by identity: each is a position in one expression, at which a debugger can stop,
not a value. Nothing here recurses into children, so any depth is allowed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from engine.expression.lexer import ConstantValue

__all__ = ["Call", "Constant", "ListNode", "Node", "OperandRef"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node(ABC):
    """A node of an expression.

    Attributes
    ----------
    index : int
        Number of the node in post-order, the order of evaluation, from 0: its place in
        `Expression.nodes` and in `Expression.rpn`.
    start, end : int
        Half-open span in the expression's text. A call with wrong brackets, which pnnx writes,
        too, spans from its name to the end of its last argument.
    children : tuple of Node
        Arguments or items, in order; each has a smaller `index`.
    """

    index: int
    start: int
    end: int
    children: tuple[Node, ...]

    @property
    def position(self) -> int:
        """Index of the node's first character in the text; the same as `start`."""
        return self.start

    @property
    @abstractmethod
    def label(self) -> str:
        """The node in normal form without its children."""

    @property
    def rpn(self) -> str:
        """The node as a token of the reverse Polish form."""
        return self.label

    @override
    def __repr__(self) -> str:
        children = ", ".join(f"#{child.index}" for child in self.children)
        inside = f"({children})" if children else ""
        return f"<{type(self).__name__} #{self.index} {self.label}{inside}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Node):
    """A function applied to its arguments.

    Attributes
    ----------
    name : str
        Key of the function in `FUNCTIONS`.
    """

    name: str

    @property
    def args(self) -> tuple[Node, ...]:
        """The arguments, in order; the same as `children`."""
        return self.children

    @property
    @override
    def label(self) -> str:
        return self.name

    @property
    @override
    def rpn(self) -> str:
        # Only ``size`` takes one or two arguments, so only it needs the count.
        return f"size/{len(self.children)}" if self.name == "size" else self.name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OperandRef(Node):
    """An input of the operator: ``@0``.

    Attributes
    ----------
    operand : int
        Which input, from 0.
    """

    operand: int

    @property
    @override
    def label(self) -> str:
        return f"@{self.operand}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(Node):
    """A literal.

    Attributes
    ----------
    value : int, float, complex, bool, str or None
    """

    value: ConstantValue

    @property
    @override
    def label(self) -> str:
        if not isinstance(self.value, complex):
            return str(self.value)
        imaginary = repr(self.value.imag)
        sign = "" if imaginary.startswith("-") else "+"
        return f"{self.value.real!r}{sign}{imaginary}j"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListNode(Node):
    """A list: ``[2,@0]``; evaluates to a tuple."""

    @property
    def items(self) -> tuple[Node, ...]:
        """The items, in order; the same as `children`."""
        return self.children

    @property
    @override
    def label(self) -> str:
        return "[]"

    @property
    @override
    def rpn(self) -> str:
        return f"[]/{len(self.children)}"
