"""Runs the script that pnnx writes beside its graph, statement by statement.

The script is the graph in terms of PyTorch: operand ``12`` is the variable ``v_12``. A
statement that fails (pnnx writes some that Python does not know) costs only the operands
that depend on it.
"""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["operand_values", "variable"]

_KEEP, _FORGET = "_keep_value", "_forget_value"


def variable(operand: str) -> str:
    """Name that the script gives to an operand."""
    return "v_" + re.sub(r"\W", "_", operand)


def operand_values(path: Path, inputs: Sequence[torch.Tensor]) -> dict[str, Any]:
    """Run a script.

    Parameters
    ----------
    path : Path
        Of ``X_pnnx.py``.
    inputs : sequence of Tensor

    Returns
    -------
    dict of str to object
        Values by variable, as they were when they were made: a later statement may write
        into a tensor.
    """
    values: dict[str, Any] = {}

    def keep(name: str, value: Any) -> None:
        if not callable(value):  # a word, which Python takes for one of its own functions
            values[name] = _copied(value)

    def forget(*names: str) -> None:
        for name in names:
            values.pop(name, None)

    namespace: dict[str, Any] = {_KEEP: keep, _FORGET: forget, "__name__": "exported"}
    code = compile(_prepared(path.read_text(encoding="utf-8")), str(path), "exec")
    with contextlib.chdir(path.parent), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        exec(code, namespace)
        model = namespace["Model"]()
        model.eval()
        model(*(x.clone() for x in inputs))
    return values


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (tuple, list)):
        return tuple(_copied(item) for item in value)
    return value


def _prepared(text: str) -> ast.Module:
    tree = _parsed(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in {"forward", "__init__"}:
            node.body = [new for old in node.body if (new := _guarded(old)) is not None]
    return ast.fix_missing_locations(tree)


def _parsed(text: str) -> ast.Module:
    """Parse what can be parsed: a line that is not Python becomes ``pass``.

    A raw operator is written by its name, ``aten::add(...)``, which Python spells otherwise.
    """
    text = re.sub(r"\b(aten|prims|torchvision)::(\w+)\(", r"torch.ops.\1.\2(", text)
    lines = text.splitlines()
    while True:
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError as exc:
            place = (exc.lineno or 0) - 1
            line = lines[place]
            if line.strip() == "pass":
                raise
            lines[place] = line[: len(line) - len(line.lstrip())] + "pass"


def _guarded(statement: ast.stmt) -> ast.stmt | None:
    """The statement in a ``try`` that keeps what it assigned; nothing for ``return``."""
    if isinstance(statement, ast.Return) or "super" in ast.unparse(statement):
        return None if isinstance(statement, ast.Return) else statement
    names = [name for target in getattr(statement, "targets", ()) for name in _names(target)]
    keeping = "\n".join(f" {_KEEP}({name!r}, {name})" for name in names)
    frame = ast.parse(
        f"try:\n pass\n{keeping}\nexcept Exception:\n {_FORGET}(*{names!r})\n"
    ).body[0]
    frame.body[0] = statement
    return frame


def _names(target: ast.expr) -> list[str]:
    """Local variables that an assignment changes."""
    match target:
        case ast.Name():
            return [target.id]
        case ast.Tuple():
            return [name for item in target.elts for name in _names(item)]
        case ast.Subscript():
            return _names(target.value)
        case _:
            return []
