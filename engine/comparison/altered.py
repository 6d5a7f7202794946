"""Makes copies of an operator with changed weights, to try what they explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.pnnx import Attribute

if TYPE_CHECKING:
    from engine.runtime import RuntimeOperator

__all__ = ["with_rounded_weights"]


def with_rounded_weights(operator: RuntimeOperator) -> RuntimeOperator:
    """Return a copy of an operator whose float32 weights are rounded through float16.

    Raises
    ------
    ModelFileError
        If a weight cannot be read.
    """
    rounded = {}
    for key, attribute in operator.attributes.items():
        if attribute.is_stored and attribute.dtype == np.float32:
            with np.errstate(over="ignore"):
                rounded[key] = Attribute.from_array(
                    attribute.array.astype(np.float16).astype(np.float32)
                )
    return operator.with_attributes(rounded)
