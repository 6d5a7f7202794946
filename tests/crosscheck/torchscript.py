"""Writes a traced module as a PNNX pair as it stands, without pnnx.

pnnx turns most of PyTorch's operators into others. What it does not know it leaves raw, as
``aten::`` operators whose arguments are all operands; written here, every operator is raw.
"""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from crosscheck.compare import array_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["frozen", "write", "writes_into_operands"]

_DTYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64",
    "complex128": "c128",
}  # fmt: skip


def frozen(traced: torch.jit.ScriptModule) -> torch.Graph:
    """One flat graph, weights being constants."""
    return torch.jit.freeze(traced.eval(), optimize_numerics=False).graph


def writes_into_operands(graph: torch.Graph) -> bool:
    """Whether an operator changes its operand, which a PNNX graph cannot say."""
    kinds = [node.kind() for node in graph.nodes()]
    return any(kind.endswith("_") and not kind.endswith("__") for kind in kinds)


def write(graph: torch.Graph, param: Path) -> None:
    """Write a graph and its constants.

    Parameters
    ----------
    graph : Graph
        See `frozen`.
    param : Path
        The ``.param`` file; the ``.bin`` lies beside it.
    """
    lines: list[str] = []
    operands: set[str] = set()
    weights: dict[str, np.ndarray] = {}

    def line(kind: str, inputs: list[str], outputs: list[str], *rest: str) -> str:
        name = f"op_{len(lines)}"
        counts = f"{len(inputs)} {len(outputs)}"
        lines.append(" ".join([kind, name, counts, *inputs, *outputs, *rest]))
        operands.update(outputs)
        return name

    def constant(value: Any, operand: str) -> None:
        if isinstance(value, torch.Tensor):
            array = array_of(value)
            shape = ",".join(map(str, array.shape))
            note = f"@data=({shape}){_DTYPES[array.dtype.name]}"
            weights[line("pnnx.Attribute", [], [operand], note) + ".data"] = array
        elif isinstance(value, list) and any(isinstance(v, torch.Tensor) for v in value):
            members = [f"{operand}.{i}" for i in range(len(value))]
            for member, item in zip(members, value, strict=True):
                constant(item, member)
            line("prim::ListConstruct", members, [operand])
        else:
            line("prim::Constant", [], [operand], f"value={_spelled(value)}")

    for i, value in enumerate(list(graph.inputs())[1:]):
        line("pnnx.Input", [], [value.debugName()], f"input={i}")
    for node in graph.nodes():
        outputs = [value.debugName() for value in node.outputs()]
        if node.kind() == "prim::Constant":
            constant(node.output().toIValue(), outputs[0])
        else:
            line(node.kind(), [value.debugName() for value in node.inputs()], outputs)
    for value in graph.outputs():
        line("pnnx.Output", [value.debugName()], [])
    head = ["7767517", f"{len(lines)} {len(operands)}"]
    param.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    with zipfile.ZipFile(param.with_suffix(".bin"), "w") as archive:
        for name, array in weights.items():
            archive.writestr(name, np.ascontiguousarray(array).tobytes())


def _spelled(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + ",".join(map(_spelled, value)) + ")"
    if isinstance(value, complex):
        return f"{value.real!r}{value.imag:+}j"
    return str(value)
