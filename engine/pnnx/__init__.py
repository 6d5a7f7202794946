"""The PNNX file format: reads and writes ``.param`` and ``.bin`` pairs.

The specification is pnnx's own reader and writer,
``tools/pnnx/src/ir.cpp`` and ``storezip.cpp`` in Tencent/ncnn at a4d2ea1 (July 2026). Each
module lists its deviations: `reader` and `writer` (the text), `parameter` (its values),
`archive` (the weights), `graph` (the services).

>>> from engine.pnnx import load
>>> graph = load("model.pnnx.param")  # doctest: +SKIP
>>> graph.get_operator("conv1").attrs["weight"].array.shape  # doctest: +SKIP
(64, 3, 7, 7)
"""

from __future__ import annotations

from engine.pnnx.attribute import DTYPES, Attribute
from engine.pnnx.graph import Graph, Operand, Operator, Shape
from engine.pnnx.pairing import find_param, find_weights, load, load_copy, pair
from engine.pnnx.parameter import Parameter, ParameterType, ParameterValue
from engine.pnnx.writer import save

__all__ = [
    "DTYPES",
    "Attribute",
    "Graph",
    "Operand",
    "Operator",
    "Parameter",
    "ParameterType",
    "ParameterValue",
    "Shape",
    "find_param",
    "find_weights",
    "load",
    "load_copy",
    "pair",
    "save",
]
