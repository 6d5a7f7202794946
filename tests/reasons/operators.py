"""Makes a model of a single operator, through a file."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import engine
from engine.pnnx.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.runtime import RuntimeOperator

DTYPES = {"float32": "f32", "float64": "f64", "int64": "i64", "float16": "f16"}


def make_operator(
    type: str,  # noqa: A002 - pnnx's own word
    params: Mapping[str, Any],
    weights: Mapping[str, np.ndarray],
    inputs: Sequence[np.ndarray],
    names: Sequence[str] = (),
) -> RuntimeOperator:
    """Write a model of one operator, and open it."""
    operands = [f"x{place}" for place in range(len(inputs))]
    lines = [f"pnnx.Input in{place} 0 1 {name}" for place, name in enumerate(operands)]
    words = [f"{key}={Parameter.of(value).text}" for key, value in params.items()]
    words += [
        f"@{key}=({','.join(map(str, array.shape))}){DTYPES[str(array.dtype)]}"
        for key, array in weights.items()
    ]
    words += [f"${name}={operand}" for name, operand in zip(names, operands, strict=False)]
    lines.append(f"{type} op {len(operands)} 1 {' '.join((*operands, 'y', *words))}")
    lines.append("pnnx.Output out 1 0 y")
    text = "\n".join(["7767517", f"{len(lines)} {len(operands) + 1}", *lines])
    with tempfile.TemporaryDirectory() as folder:
        param = Path(folder, "m.pnnx.param")
        param.write_text(text + "\n", encoding="utf-8")
        with zipfile.ZipFile(Path(folder, "m.pnnx.bin"), "w") as archive:
            for key, array in weights.items():
                archive.writestr(f"op.{key}", np.ascontiguousarray(array).tobytes())
        operator = engine.load(param).operator("op")
        for attribute in operator.attributes.values():
            np.asarray(attribute.array)  # before the files go
    return operator
