"""The executable graph: KuiperInfer's RuntimeGraph over the file's graph.

`engine.pnnx` holds the file as it stands; here every operator has typed parameters, a layer
bound to it and a place in one execution order, and operands are *shared*: a consumer's
input is the producer's output, the same object.
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
