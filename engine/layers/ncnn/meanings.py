"""The table of the layers of a model of ncnn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.layers.layer import LibraryLayer
from engine.layers.ncnn import (  # noqa: F401 - they register
    activations,
    arithmetic,
    convolution,
    normalization,
    pooling,
    products,
    recurrent,
    resizing,
    shapes,
)
from engine.layers.ncnn.table import LAYERS
from engine.layers.registry import Registration
from engine.ncnn.types import PREFIX, TYPES

__all__ = ["ncnn_table"]


class OnlyNcnn(LibraryLayer):
    """A layer that only ncnn computes."""

    def __init__(self, **given: Any) -> None:
        super().__init__("NumPy has no code for this type of ncnn; choose the backend ncnn")


def ncnn_table(table: Mapping[str, Registration]) -> Mapping[str, Registration]:
    """Return the layers of a model of ncnn, from a table of all layers.

    PyTorch's types are none of them: what pnnx could not convert has lost its parameters. What
    a user's file registers stays.
    """
    names = [f"{PREFIX}{kind}" for kind in TYPES]
    return {
        **{name: Registration(name, OnlyNcnn) for name in names},
        **LAYERS,
        **{name: entry for name, entry in table.items() if entry.file is not None},
    }
