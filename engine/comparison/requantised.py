"""What the int8 results of ncnn's layers stand for.

A quantised layer of ncnn may requantise: its result is int8 too, in steps of the next layer's
input. Other runs have the numbers themselves there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import EngineError
from engine.ncnn.types import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["dequantise", "find_requantised"]

_SPLIT: Final = f"{PREFIX}Split"
_REQUANTISING: Final = 100  # an int8_scale_term above it


def find_requantised(graph: RuntimeGraph) -> Mapping[str, float]:
    """Find the operands that quantised layers of ncnn give in int8.

    Parameters
    ----------
    graph : RuntimeGraph

    Returns
    -------
    mapping of str to float
        By operand: steps per unit, as the next layer reads it, or else as its own layer says.
    """
    found: dict[str, float] = {}
    operators = graph.operators
    if not operators or not operators[0].type.startswith(PREFIX):
        return found
    for operator in operators:
        term = operator.params.get("int8_scale_term")
        if isinstance(term, int) and term > _REQUANTISING:
            for operand in operator.outputs:
                copies = _copies_of(operand)
                readers = [(c, "bottom_int8_scales") for o in copies for c in o.consumers]
                for reader, name in (*readers, (operator, "top_int8_scales")):
                    scale = _read_scale(reader, name)
                    if scale:
                        found |= dict.fromkeys([each.name for each in copies], scale)
                        break
    return found


def _copies_of(operand: RuntimeOperand) -> list[RuntimeOperand]:
    """Return an operand and its copies."""
    found = [operand]
    for each in found:  # it grows
        found += [o for c in each.consumers if c.type == _SPLIT for o in c.outputs]
    return found


def _read_scale(operator: RuntimeOperator, name: str) -> float:
    """Return a scale of a layer; 0 if it has none."""
    attribute = operator.attributes.get(name)
    if attribute is None or not attribute.size:
        return 0.0
    try:
        scale = float(attribute.array[0])
    except EngineError:  # the layer reports the error when it runs
        return 0.0
    return scale if math.isfinite(scale) else 0.0


def dequantise(value: Value, scale: float | None) -> Value:
    """Return the numbers that an int8 result stands for; any other value as it is.

    Parameters
    ----------
    value : Value
    scale : float or None
        Steps per unit; None for an operand that is not requantised.
    """
    if scale is None or not isinstance(value, np.ndarray) or value.dtype != np.int8:
        return value
    return value.astype(np.float32) / np.float32(scale)
