"""The table from operator type to rule.

A rule gets a `Call`, relates the factors of its inputs, and returns the dimensions of its
outputs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.axes.call import Call, Results

__all__ = ["Rule", "find_rule", "rule"]

Rule: TypeAlias = "Callable[[Call], Results]"
Target = TypeVar("Target", bound="Callable[[Call], Results]")

_RULES: Final[dict[str, Rule]] = {}
_NCNN: Final = "ncnn"
_PREFIXES: Final = frozenset({"nn", "F", "torch", "Tensor", "aten", "pnnx"})


def rule(*types: str) -> Callable[[Target], Target]:
    """Register a rule.

    Parameters
    ----------
    *types : str
        Types without prefix, capitals and underscores: ``conv2d`` stands for ``nn.Conv2d``
        and ``F.conv2d``. Types of ncnn are written as they are.
    """

    def register(target: Target) -> Target:
        for name in types:
            _RULES[name] = target
        return target

    return register


@lru_cache(maxsize=1024)
def find_rule(type: str) -> Rule | None:  # noqa: A002 - pnnx's own word
    """Return the rule of an operator type; None if there is none."""
    prefix, dot, name = type.replace("::", ".").partition(".")
    if not dot or prefix == _NCNN:
        return _RULES.get(name or prefix)
    if prefix not in _PREFIXES:
        return None
    return _RULES.get(name.replace("_", "").lower())
