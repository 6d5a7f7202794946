"""The executable graph: KuiperInfer's RuntimeGraph over the file's graph.

`engine.pnnx` has the contents of the file. Here every operator has typed parameters, a layer
and an index in one execution order, and operands are *shared*: a consumer's input is the same
object as the producer's output.
"""

from __future__ import annotations

from engine.runtime.graph import GraphState, RuntimeGraph, load
from engine.runtime.operator import OperatorLabel, RuntimeOperand, RuntimeOperator
from engine.runtime.parameter import (
    RuntimeAttribute,
    RuntimeParameter,
    RuntimeParameterBool,
    RuntimeParameterComplex,
    RuntimeParameterComplexArray,
    RuntimeParameterFloat,
    RuntimeParameterFloatArray,
    RuntimeParameterInt,
    RuntimeParameterIntArray,
    RuntimeParameterNull,
    RuntimeParameterString,
    RuntimeParameterStringArray,
    RuntimeParameterType,
)

__all__ = [
    "GraphState",
    "OperatorLabel",
    "RuntimeAttribute",
    "RuntimeGraph",
    "RuntimeOperand",
    "RuntimeOperator",
    "RuntimeParameter",
    "RuntimeParameterBool",
    "RuntimeParameterComplex",
    "RuntimeParameterComplexArray",
    "RuntimeParameterFloat",
    "RuntimeParameterFloatArray",
    "RuntimeParameterInt",
    "RuntimeParameterIntArray",
    "RuntimeParameterNull",
    "RuntimeParameterString",
    "RuntimeParameterStringArray",
    "RuntimeParameterType",
    "load",
]
