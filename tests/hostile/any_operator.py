"""Draws an operator of any registered type, with arguments that the annotations allow."""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.layers import registered_types, registration

if TYPE_CHECKING:
    from hostile.models import Maker

__all__ = ["any_operator"]

_OURS = frozenset({"self", "call", "operator", "rng", "attributes", "weights", "operands"})


@cache
def _arguments(operator_type: str) -> tuple[tuple[str, str, bool], ...]:
    """Return name, annotation and whether it is optional, of each argument of a type's code."""
    entry = registration(operator_type)
    assert entry is not None
    target: Any = entry.target
    functions = [target.__init__, target.forward] if inspect.isclass(target) else [target]
    found: dict[str, tuple[str, str, bool]] = {}
    for function in functions:
        for name, argument in inspect.signature(function).parameters.items():
            if name in _OURS or argument.kind is inspect.Parameter.VAR_KEYWORD:
                continue
            word = str(argument.annotation)
            if argument.kind is inspect.Parameter.VAR_POSITIONAL:
                word = "Operands"
            optional = argument.default is not inspect.Parameter.empty
            found.setdefault(name, (name, word, optional))
    return tuple(found.values())


def any_operator(maker: Maker) -> None:
    """Add an operator of a random registered type."""
    kind = maker.choice(*_types())
    params: list[str] = []
    names: list[str] = []
    count = 0
    for name, annotation, optional in _arguments(kind):
        if optional and maker.chance(0.5):
            continue
        if annotation == "Operands":
            count += maker.one_of((1, 2, 3))
        elif _is_operand(name, annotation) and maker.chance(0.9):
            names.append(name)
        else:
            params.append(f"{name}={_drawn(maker, annotation)}")
    if maker.chance(0.7):  # operands by position
        count, names = count + len(names), []
    outputs = maker.one_of((1, 1, 1, 2))
    maker.add(kind, " ".join(params), count + len(names), outputs, names=" ".join(names))


@cache
def _types() -> tuple[str, ...]:
    return tuple(t for t in registered_types() if not t.startswith("pnnx.Expression"))


def _is_operand(name: str, annotation: str) -> bool:
    return annotation.startswith(("Array", "Operand")) or name in {
        "input",
        "x",
        "data",
        "tensor",
    }


def _drawn(maker: Maker, annotation: str) -> str:
    """Return a parameter that the annotation allows, mostly."""
    if maker.chance(0.05):
        return maker.one_of(("None", "True", "()", "word", "1", "(1,2)"))
    if "Ints" in annotation or "tuple[int" in annotation:
        return maker.numbers(maker.one_of((1, 2, 2, 3, 4)), 0, 1, 2)
    if "Floats" in annotation:
        return f"({maker.real()},{maker.real()})"
    if annotation.startswith("bool"):
        return maker.one_of(("True", "False"))
    if annotation.startswith("int"):
        return str(maker.number(0, 1, 2))
    if annotation.startswith(("float", "Number", "Scalar")):
        return maker.real()
    if annotation.startswith("str"):
        words = ("none", "mean", "sum", "nearest", "bilinear", "reflect", "zeros", "constant")
        return maker.one_of(words)
    if "Value" in annotation:
        return maker.one_of((str(maker.number(1, 2)), "None", "torch.float", maker.real()))
    return maker.one_of((str(maker.number(0, 1)), maker.numbers(2, 1, 2), maker.real()))
