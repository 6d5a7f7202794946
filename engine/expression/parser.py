"""Parses an expression into a tree.

Correct brackets decide. pnnx also writes wrong ones: its own passes do not
know ``log1p`` and ``expm1`` and leave ``add(expm1,@0),3`` for ``add(expm1(@0),3)``, or an
empty argument as in ``add(@0,,mul(@1,2))``. Its reader (``expand_expression`` in
``tools/pnnx/src/ir.cpp`` of Tencent/ncnn) ignores brackets. It reads the words from right to
left as prefix notation, in which each function has a fixed number of arguments. The parser does
the same if the brackets are wrong, with two differences: square brackets, which pnnx writes
correctly, still bound their list, and brackets must be balanced.

Every loop is iterative: an expression may be nested to any depth.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from engine.errors import ExpressionError
from engine.expression.expression import Expression
from engine.expression.functions import FUNCTIONS, Function
from engine.expression.lexer import Token, TokenKind, tokenize
from engine.expression.nodes import Call, Constant, ListNode, Node, OperandRef

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["parse"]

_CLOSER: Final = {
    TokenKind.OPEN: TokenKind.CLOSE,
    TokenKind.OPEN_LIST: TokenKind.CLOSE_LIST,
}
_CLOSING: Final = frozenset(_CLOSER.values())


@dataclass(slots=True)
class _Head:
    """The first token of a node, with its span and arguments.

    Attributes
    ----------
    token : Token
    end : int
        End of the node's span.
    arguments : list of int
        Index of the start of each argument.
    """

    token: Token
    end: int
    arguments: list[int] = field(default_factory=list)


def parse(
    text: str,
    operand_count: int | None = None,
    functions: Mapping[str, Function] = FUNCTIONS,
) -> Expression:
    """Parse an expression.

    Parameters
    ----------
    text : str
        As in the parameter ``expr`` of a ``pnnx.Expression``.
    operand_count : int, optional
        Number of the operator's operands; not checked by default.
    functions : mapping of str to Function
        Functions by name; default `FUNCTIONS`.

    Returns
    -------
    Expression

    Raises
    ------
    ExpressionError
        With the position of the error: an unknown function, a missing or surplus argument, a
        missing operand, unbalanced brackets, an invalid character or number, or an empty text.
    """
    tokens = tokenize(text)
    if not tokens:
        raise ExpressionError(text, 0, "the expression is empty")
    _check_brackets(text, tokens)
    _check_names(text, tokens)
    expression = Expression(text, _build(_heads(text, tokens)), functions)
    if operand_count is not None:
        expression.check_operands(operand_count)
    return expression


def _check_brackets(text: str, tokens: list[Token]) -> None:
    opened: list[Token] = []
    for token in tokens:
        if token.kind in _CLOSER:
            opened.append(token)
        elif token.kind in _CLOSING:
            if not opened:
                raise ExpressionError(text, token.start, f"{token.text!r} was never opened")
            last = opened.pop()
            if _CLOSER[last.kind] is not token.kind:
                reason = f"{token.text!r} cannot close {last.text!r}"
                raise ExpressionError(text, token.start, reason)
    if opened:
        reason = f"{opened[-1].text!r} is never closed"
        raise ExpressionError(text, opened[-1].start, reason)


def _check_names(text: str, tokens: list[Token]) -> None:
    """Refuse a bracket after an unknown name, which is a bare string elsewhere."""
    for token, after in pairwise(tokens):
        if after.kind is TokenKind.OPEN and _is_bare(token):
            raise _unknown_function(text, token)


def _heads(text: str, tokens: list[Token]) -> list[_Head]:
    """Find the arguments of every node, by the brackets if they are correct."""
    try:
        return _BracketReader(text).read(tokens)
    except ExpressionError as fault:
        try:
            return _read_by_arity(text, tokens)
        except ExpressionError:
            # With wrong brackets, only prefix notation can find the error. If every function
            # has brackets, they show best what the writer meant.
            if any(map(_lacks_brackets, tokens, [*tokens[1:], None])):
                raise
            raise fault from None


def _is_function(token: Token) -> bool:
    return token.kind is TokenKind.NAME and token.text in FUNCTIONS


def _is_bare(token: Token) -> bool:
    return token.kind is TokenKind.NAME and token.text not in FUNCTIONS


def _lacks_brackets(token: Token, after: Token | None) -> bool:
    return _is_function(token) and (after is None or after.kind is not TokenKind.OPEN)


class _BracketReader:
    """Finds the arguments of each node by the brackets.

    Attributes
    ----------
    heads : list of _Head
        In the order of the text.
    opened : list of _Head
        The nodes whose arguments are being read, innermost last; the first stands for the
        whole expression.
    value_due : bool
        Whether a value, rather than a comma or a closing bracket, must come.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.heads: list[_Head] = []
        self.opened = [_Head(Token(TokenKind.COMMA, "", 0, 0, ""), 0)]
        self.value_due = True

    def read(self, tokens: list[Token]) -> list[_Head]:
        """Process the tokens; raises ExpressionError if the brackets are wrong."""
        previous: Token | None = None
        for token in tokens:
            if token.kind is TokenKind.OPEN:
                self._open(token, previous)
            elif token.kind is TokenKind.COMMA:
                self._separate(token)
            elif token.kind in _CLOSING:
                self._close(token, previous)
            else:
                self._begin(token)
            previous = token
        if self.value_due:
            raise ExpressionError(self.text, len(self.text), "a value is missing")
        self._check_counts()
        return self.heads

    def _open(self, token: Token, previous: Token | None) -> None:
        if previous is None or not _is_function(previous):
            raise ExpressionError(self.text, token.start, "there is no function before '('")
        self.opened.append(self.heads[-1])
        self.value_due = True

    def _separate(self, token: Token) -> None:
        if self.value_due:
            raise ExpressionError(self.text, token.start, "a value is missing before ','")
        self.value_due = True

    def _close(self, token: Token, previous: Token | None) -> None:
        if self.value_due and previous is not None and previous.kind is TokenKind.COMMA:
            reason = f"a value is missing before {token.text!r}"
            raise ExpressionError(self.text, token.start, reason)
        self.opened.pop().end = token.end
        self.value_due = False

    def _begin(self, token: Token) -> None:
        if not self.value_due:
            raise ExpressionError(self.text, token.start, "a ',' is missing")
        head = _Head(token, token.end)
        self.heads.append(head)
        self.opened[-1].arguments.append(token.start)
        self.value_due = token.kind is TokenKind.OPEN_LIST
        if self.value_due:
            self.opened.append(head)

    def _check_counts(self) -> None:
        values = self.opened[0].arguments
        if len(values) > 1:
            raise _surplus(self.text, self.heads[0].token, values[1])
        for head in self.heads:
            if not _is_function(head.token):
                continue
            function, given = FUNCTIONS[head.token.text], len(head.arguments)
            if given > function.most:
                raise _wrong_count(self.text, head.arguments[function.most], function, given)
            if given < function.least:
                raise _wrong_count(self.text, head.end - 1, function, given)


def _read_by_arity(text: str, tokens: list[Token]) -> list[_Head]:
    """Find the arguments as pnnx does: right to left, round brackets and commas ignored."""
    heads: list[_Head] = []
    stacks: list[list[_Head]] = [[]]  # values not yet taken, per open list
    ends: list[int] = []  # of the open lists
    for token in reversed(tokens):
        if token.kind in {TokenKind.OPEN, TokenKind.CLOSE, TokenKind.COMMA}:
            continue
        if token.kind is TokenKind.CLOSE_LIST:
            stacks.append([])
            ends.append(token.end)
            continue
        if token.kind is TokenKind.OPEN_LIST:
            taken = stacks.pop()
            head = _Head(token, ends.pop())
        else:
            taken = _take(text, token, stacks[-1])
            head = _Head(token, max([token.end, *(value.end for value in taken)]))
        head.arguments.extend(value.token.start for value in reversed(taken))
        stacks[-1].append(head)
        heads.append(head)
    values = stacks[0]
    if len(values) != 1:
        if not values:
            raise ExpressionError(text, 0, "the expression has no value")
        raise _surplus(text, values[-1].token, values[-2].token.start)
    heads.reverse()
    return heads


def _take(text: str, token: Token, stack: list[_Head]) -> list[_Head]:
    """Pop a function's arguments off the stack; none for any other token."""
    if not _is_function(token):
        return []
    function = FUNCTIONS[token.text]
    if len(stack) < function.least:
        raise _wrong_count(text, token.start, function, len(stack))
    count = min(function.most, len(stack))
    taken = stack[-count:]
    del stack[-count:]
    return taken


def _surplus(text: str, first: Token, position: int) -> ExpressionError:
    if _is_bare(first):  # a word before other values was probably meant as a function
        return _unknown_function(text, first)
    return ExpressionError(text, position, "a second value; an expression has only one")


def _unknown_function(text: str, token: Token) -> ExpressionError:
    near = difflib.get_close_matches(token.text, FUNCTIONS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ExpressionError(text, token.start, f"there is no function {token.text!r}{hint}")


def _wrong_count(text: str, position: int, function: Function, given: int) -> ExpressionError:
    needed = " or ".join(map(str, range(function.least, function.most + 1)))
    plural = "" if needed == "1" else "s"
    reason = f"{function.name!r} takes {needed} argument{plural}, not {given}"
    return ExpressionError(text, position, reason)


def _build(heads: list[_Head]) -> tuple[Node, ...]:
    """Make the nodes, in post-order, of heads in prefix order."""
    nodes: list[Node] = []
    pending: list[tuple[_Head, list[Node]]] = []
    for head in heads:
        pending.append((head, []))
        while pending and len(pending[-1][1]) == len(pending[-1][0].arguments):
            complete, children = pending.pop()
            node = _node(len(nodes), complete, tuple(children))
            nodes.append(node)
            if pending:
                pending[-1][1].append(node)
    return tuple(nodes)


def _node(index: int, head: _Head, children: tuple[Node, ...]) -> Node:
    token = head.token
    if _is_function(token):
        return Call(index, token.start, head.end, children, token.text)
    if token.kind is TokenKind.OPEN_LIST:
        return ListNode(index, token.start, head.end, children)
    if token.kind is TokenKind.OPERAND and isinstance(token.value, int):
        return OperandRef(index, token.start, head.end, children, token.value)
    return Constant(index, token.start, head.end, children, token.value)
