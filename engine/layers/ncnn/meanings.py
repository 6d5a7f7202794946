"""The table of layers for a model in ncnn's format."""

from __future__ import annotations

from collections.abc import Mapping

from engine.layers.ncnn import (  # noqa: F401 - they register
    activations,
    arithmetic,
    convolution,
    normalization,
    pooling,
    products,
    recurrent,
    regions,
    resizing,
    sampling,
    shapes,
)
from engine.layers.ncnn.only_ncnn import OnlyNcnn
from engine.layers.ncnn.table import LAYERS
from engine.layers.registry import Registration
from engine.ncnn.types import PREFIX, TYPES

__all__ = ["ncnn_table"]


def ncnn_table(table: Mapping[str, Registration]) -> Mapping[str, Registration]:
    """Return the layers for a model in ncnn's format, from a table of all layers.

    PyTorch's types are omitted: an operator that pnnx could not convert has lost its
    parameters. Layers of the user's files stay.
    """
    names = [f"{PREFIX}{kind}" for kind in TYPES]
    return {
        **{name: Registration(name, OnlyNcnn) for name in names},
        **LAYERS,
        **{name: entry for name, entry in table.items() if entry.file is not None},
    }
