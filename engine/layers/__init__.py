"""The operators: small files, one operator or close family each, and their registry.

Importing this package imports every module in it, so that adding an operator touches
exactly one source file.
"""

from __future__ import annotations

import importlib
import pkgutil

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

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
