"""Groups consecutive operators by the module of the network that their names tell.

pnnx keeps the path of a module, such as ``layer1.0.relu``, where an operator corresponds to
exactly one. Operators that it fused or created have names of their own; they belong to a module
if they are between two of its operators.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.runtime import RuntimeOperator

__all__ = ["ModuleRun", "module_path", "module_runs"]

Path = tuple[str, ...]

# "torch.cat_0" and "Tensor.reshape_332" are functions with a number, not paths. An operator
# that pnnx has replaced keeps the old name with its number.
_NO_PATH: Final = re.compile(r"(torch|Tensor|F)\.[\w.]*_\d+(_ncnnclone)?$")


@dataclass(frozen=True, slots=True)
class ModuleRun:
    """Consecutive operators of one module.

    Attributes
    ----------
    name : str
        Path of the module, such as ``layer1`` or ``features.3``.
    first, last : int
        Indexes of the operators, both included.
    """

    name: str
    first: int
    last: int


def module_path(operator: RuntimeOperator) -> Path:
    """Return the modules of an operator, outermost first; empty if its name has none."""
    name = operator.name
    if "." not in name or name.startswith(("pnnx_", operator.type)) or _NO_PATH.match(name):
        return ()
    return tuple(name.split(".")[:-1])


def module_runs(operators: Sequence[RuntimeOperator]) -> tuple[ModuleRun, ...]:
    """Group operators in execution order by module.

    Parameters
    ----------
    operators : sequence of RuntimeOperator

    Returns
    -------
    tuple of ModuleRun
        In order, without overlap: the outermost modules. A module with more than half of the
        operators is replaced by its submodules.
    """
    paths = [module_path(operator) for operator in operators]
    names = _open_large(paths)
    runs: list[ModuleRun] = []
    for place, name in enumerate(names):
        if not name:
            continue
        if runs and runs[-1].name == name:
            runs[-1] = ModuleRun(name, runs[-1].first, place)
        else:
            runs.append(ModuleRun(name, place, place))
    return tuple(runs)


def _open_large(paths: Sequence[Path]) -> list[str]:
    """Return the name of the module of each path; ``""`` for an empty path."""
    depths = [1] * len(paths)
    limit = sum(map(bool, paths)) / 2
    while True:
        shown = [path[:depth] for path, depth in zip(paths, depths, strict=True)]
        large = {
            module for module, count in Counter(filter(None, shown)).items() if count > limit
        }
        grown = [
            depth + (module in large and len(path) > depth)
            for path, module, depth in zip(paths, shown, depths, strict=True)
        ]
        if grown == depths:
            return [".".join(module) for module in shown]
        depths = grown
