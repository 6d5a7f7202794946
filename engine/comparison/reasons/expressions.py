"""Alternatives of arithmetic: other operators, operands and constants."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.fitting import plain_numbers
from engine.comparison.reasons.reason import Change
from engine.errors import ExpressionError
from engine.expression import parse
from engine.expression.nodes import Call, Constant, ListNode, OperandRef
from engine.layers.expression import expression_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.comparison.reasons.case import Case
    from engine.expression import Expression
    from engine.expression.nodes import Node
    from engine.values import Value

__all__ = ["other_arithmetic", "other_expressions"]

_BINARY: Final = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "floor_divide",
                  "remainder", "atan2", "fmod")  # fmt: skip
_ARITHMETIC: Final = tuple(name for name in _BINARY if name not in {"maximum", "minimum"})
_UNARY: Final = ("sqrt", "square", "exp", "log", "abs", "neg", "reciprocal", "rsqrt", "tanh",
                 "sin", "cos", "floor", "ceil", "round", "sign", "erf", "trunc",
                 "expm1", "log1p")  # fmt: skip
_MOST: Final = 160  # alternatives of one expression
_MOST_NODES: Final = 64
_MOST_LOST: Final = 4  # operands beside which a number may be lost
_ROUNDS: Final = 12  # of Newton's method
_CONSTANTS: Final = (0, 1, 2, 0.5, -1, 3, 4, 10)
_TYPES: Final = ("add", "sub", "mul", "div", "pow", "maximum", "minimum")


def other_expressions(case: Case) -> Iterator[Alternative]:
    """Return expressions with one function, operand order or constant changed."""
    if case.type != "pnnx.Expression" or not isinstance(case.expected, np.ndarray):
        return
    text = expression_text(case.params.get("expr"))
    try:
        tree = parse(text, operand_count=len(case.inputs))
    except ExpressionError:
        return
    if len(tree.nodes) > _MOST_NODES:
        return
    seen = {tree.normal}
    # The larger or smaller of a result and one number is an activation.
    places = [n for n, value in enumerate(case.inputs) if _is_constant(value)]
    plain = frozenset([f"@{place}" for place in places])
    for other in itertools.islice(_variants(tree, len(case.inputs), plain), _MOST):
        if other not in seen:
            seen.add(other)
            yield _with_expression(case, tree, other)
    for node in tree.nodes:
        if isinstance(node, Constant) and isinstance(node.value, (int, float)):
            yield from _fitted(case, tree, node)
    yield from _with_lost_number(case, tree)


def _with_lost_number(case: Case, tree: Expression) -> Iterator[Alternative]:
    """Return expressions with a number added to an operand, or times a number.

    Of the whole expression these are a bias and a scale.
    """
    refs = [node for node in tree.nodes if isinstance(node, OperandRef)]
    for node in refs[:_MOST_LOST] if len(tree.nodes) > 1 else ():
        for wrong in (f"add(@{node.operand},0.0)", f"mul(@{node.operand},1.0)"):
            text = _text(tree, tree.root, {node.index: wrong})
            other = parse(text, operand_count=len(case.inputs))
            yield from _fitted(case, other, other.nodes[node.index + 1], own=tree)


def _is_constant(value: Value) -> bool:
    """Whether all elements of a tensor are equal."""
    if not isinstance(value, np.ndarray) or not value.size:
        return False
    return bool((value == value.flat[0]).all())


def other_arithmetic(case: Case) -> Iterator[Alternative]:
    """Return other functions of two operands instead of the operator's."""
    prefix, _, name = case.type.rpartition(".")
    if prefix not in {"torch", "Tensor"} or len(case.inputs) < 1:
        return
    binary = name in {"matmul", "mm", "bmm", *_TYPES}
    if binary and len(case.inputs) == 2:
        yield Alternative(
            "expression",
            f"The reference has the operands of {name} exchanged. Exchange them.",
            inputs=case.inputs[::-1],
        )
    if name in _TYPES:
        for other in _TYPES:
            if other != name:
                text = f"The reference computes {other}, the file {name}. Use torch.{other}."
                yield Alternative("expression", text, type=f"torch.{other}")
    elif name in _UNARY and len(case.inputs) == 1:
        for other in _UNARY:
            if other != name:
                text = f"The reference computes {other}, the file {name}. Use torch.{other}."
                yield Alternative("expression", text, type=f"torch.{other}")


def _with_expression(case: Case, tree: Expression, other: str, **more: Any) -> Alternative:  # noqa: ANN401
    # A layer of ncnn has no such parameter; its op_type follows from the name.
    advice = f"Set expr={other}." if case.twin is None else "Let the layer compute that."
    return Alternative(
        "expression",
        f"The reference computes {other}, the file {tree.normal}. {advice}",
        (Change("expr", other),),
        {"expr": other},
        **more,
    )


def _variants(tree: Expression, operands: int, plain: frozenset[str]) -> Iterator[str]:
    """Return the texts of expressions with one node changed.

    None takes the larger or smaller of two where one is among `plain`.
    """
    for node in tree.nodes:
        texts = [_text(tree, child) for child in node.children]
        if isinstance(node, Call) and len(texts) == 2:
            yield _text(tree, tree.root, {node.index: f"{node.name}({texts[1]},{texts[0]})"})
        for replacement in _other_nodes(node, texts, operands, plain):
            yield _text(tree, tree.root, {node.index: replacement})
    root = _text(tree, tree.root)
    for name in ("neg", "sqrt", "square", "exp", "abs", "reciprocal"):
        yield f"{name}({root})"


def _other_nodes(
    node: Node, texts: list[str], operands: int, plain: frozenset[str]
) -> Iterator[str]:
    if isinstance(node, Call) and len(texts) == 2 and node.name in _BINARY:
        for name in _BINARY if plain.isdisjoint(texts) else _ARITHMETIC:
            yield f"{name}({texts[0]},{texts[1]})"
            if name in {"sub", "div", "pow"}:
                yield f"{name}({texts[1]},{texts[0]})"
        yield from texts
    elif isinstance(node, Call) and len(texts) == 1 and node.name in _UNARY:
        yield from texts
        for name in _UNARY:
            yield f"{name}({texts[0]})"
    elif isinstance(node, OperandRef):
        for other in range(operands):
            yield f"@{other}"
    elif isinstance(node, Constant) and isinstance(node.value, (int, float)):
        inverse = 1 / node.value if node.value else 0
        yield from map(repr, (-node.value, inverse, *_CONSTANTS))


def _text(tree: Expression, root: Node, replaced: Mapping[int, str] | None = None) -> str:
    """Return a subtree in normal form, with some nodes replaced by texts."""
    first = root.index
    texts: list[str] = []
    for node in tree.nodes[: first + 1]:
        count = len(node.children)
        parts = texts[len(texts) - count :]
        del texts[len(texts) - count :]
        inner = ",".join(parts)
        if replaced is not None and node.index in replaced:
            texts.append(replaced[node.index])
        elif isinstance(node, ListNode):
            texts.append(f"[{inner}]")
        else:
            texts.append(f"{node.label}({inner})" if isinstance(node, Call) else node.label)
    return texts[-1]


def _fitted(
    case: Case, tree: Expression, node: Node, own: Expression | None = None
) -> Iterator[Alternative]:
    """Return the constant that fits best, by Newton's method on the squared difference.

    Parameters
    ----------
    case : Case
    tree : Expression
    node : Node
        The constant in it.
    own : Expression, optional
        That of the file, if the tree is another one.
    """
    expected = case.expected
    if not isinstance(expected, np.ndarray) or expected.dtype.kind != "f":
        return
    number = float(node.label)

    def result(value: float) -> Any:  # noqa: ANN401 - an array of floats, or None
        text = _text(tree, tree.root, {node.index: repr(value)})
        found = case.result_of(Alternative("expression", "", params={"expr": text}))
        fits = isinstance(found, np.ndarray) and found.shape == expected.shape
        return found.astype(np.float64) if fits else None  # type: ignore[union-attr]

    for _ in range(_ROUNDS):
        case.check_cancelled()
        step = 1e-3 * max(abs(number), 1e-2)
        ends = result(number), result(number + step), result(number - step)
        if any(end is None for end in ends):
            return
        slope = (ends[1] - ends[2]) / (2 * step)
        use = np.isfinite(slope) & np.isfinite(ends[0]) & np.isfinite(expected)
        square = float(np.square(slope[use]).sum())
        if not square:
            return
        move = float((slope[use] * (expected[use] - ends[0][use])).sum()) / square
        number += move
        if abs(move) <= 1e-7 * abs(number):
            break
    near = [n for n in plain_numbers(number) if abs(n - number) <= 2e-5 * abs(number)]
    for plain in (*near, number):
        text = _text(tree, tree.root, {node.index: repr(float(plain))})
        yield _with_expression(case, own or tree, text, fitted=1, least=0.99)
