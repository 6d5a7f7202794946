"""Replaces nodes that ONNX Runtime computes inaccurately.

Its Sigmoid is a quotient of polynomials with an error of about 1e-7 for any result: 3 % at -11,
six times the result at -17.7. Its Exp and divisions are accurate to a unit in the last place,
so models for it use those instead. ncnn, whose Sigmoid is accurate, gets the nodes of the
subgraph unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.backends.subgraph import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Constant = Callable[[float], str]

__all__ = ["expand_inexact"]


def expand_inexact(nodes: Iterable[Node], constant: Constant) -> list[Node]:
    """Replace each inaccurate node by several accurate ones.

    Parameters
    ----------
    nodes : iterable of Node
    constant : callable
        Adds a number to the model and returns its name.

    Returns
    -------
    list of NodeProto
        Results keep their names; intermediate values have their shapes.
    """
    written: list[Node] = []
    for node in nodes:
        expand = _EXPANSIONS.get(node.kind)
        written += [node] if expand is None else expand(node, constant)
    return written


def _sigmoid(node: Node, constant: Constant) -> list[Node]:
    """Expand to ``1 / (1 + exp(-x))``."""
    nodes, divisor = _divisor(node, constant)
    return [*nodes, Node("Reciprocal", (divisor,), node.output)]


def _swish(node: Node, constant: Constant) -> list[Node]:
    """Expand to ``x / (1 + exp(-x))``, a node of ONNX from its version 24 on."""
    nodes, divisor = _divisor(node, constant)
    return [*nodes, Node("Div", (node.inputs[0], divisor), node.output)]


def _divisor(node: Node, constant: Constant) -> tuple[list[Node], str]:
    """Compute ``1 + exp(-x)``; return the nodes and the name of the result."""
    (source,), result = node.inputs, node.output
    negative, power, divisor = (f"{result}.{part}" for part in ("negative", "power", "divisor"))
    nodes = [
        Node("Neg", (source,), negative),
        Node("Exp", (negative,), power),
        Node("Add", (power, constant(1.0)), divisor),
    ]
    return nodes, divisor


_EXPANSIONS: Final = {"Sigmoid": _sigmoid, "Swish": _swish}
