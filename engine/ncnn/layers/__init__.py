"""The layers of ncnn in NumPy, a second opinion beside ncnn's own numbers.

They translate parameters and delegate to the layers that PyTorch's operators have, where there
are any. Operands have no batch axis: (C, H, W), (H, W) or (W,). A type of ncnn that is missing
here, or one with parameters that raise `NotInNumpyError`, is left to ncnn alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from engine.layers.layer import LibraryLayer
from engine.layers.registry import Registration
from engine.ncnn.types import PREFIX, TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.values import Array, Value

__all__ = ["ncnn_table"]


class OnlyNcnn(LibraryLayer):
    """A layer that only ncnn computes."""

    def __init__(self, **given: Value | Array) -> None:  # noqa: ARG002 - ncnn checks it
        super().__init__("NumPy has no code for this type of ncnn; choose the backend ncnn")


def ncnn_table(table: Mapping[str, Registration]) -> Mapping[str, Registration]:
    """Return the layers of a model of ncnn, from a table of all layers.

    PyTorch's types are none of them: what pnnx could not convert has lost its parameters.
    """
    known = {f"{PREFIX}{kind}": kind for kind in TYPES}
    return {
        **{name: Registration(name, OnlyNcnn) for name in known},
        **{name: e for name, e in table.items() if name in known or e.file is not None},
    }


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
