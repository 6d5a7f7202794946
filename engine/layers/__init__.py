"""The operators in NumPy, one operator or close family per file, and their registry.

The registry imports every module of this package on first use, so adding an operator touches
exactly one source file. A process that needs no layers, such as the window's, does not import
them.
"""

from __future__ import annotations

from engine.layers.annotations import OperandOf, WeightOf
from engine.layers.layer import Floats, Ints, Layer, Number, OperatorCall, Outputs, Storage
from engine.layers.places import reason_of
from engine.layers.registry import (
    Registration,
    build_layer,
    layer_table,
    register,
    registered_types,
    registration,
)
from engine.layers.user_layers import (
    LayerFile,
    layer_files,
    layer_files_of,
    load_layers,
    unload_layers,
)

__all__ = [
    "Floats",
    "Ints",
    "Layer",
    "LayerFile",
    "Number",
    "OperandOf",
    "OperatorCall",
    "Outputs",
    "Registration",
    "Storage",
    "WeightOf",
    "build_layer",
    "layer_files",
    "layer_files_of",
    "layer_table",
    "load_layers",
    "reason_of",
    "register",
    "registered_types",
    "registration",
    "unload_layers",
]
