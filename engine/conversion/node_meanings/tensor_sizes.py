"""The sizes of a tensor, which pnnx takes for the tensor itself.

It drops ``Shape``, so an operator behind it gets the tensor. Casts keep their place. So they
stand between a ``Shape`` and what follows in the copy that pnnx converts; in the pair that it
makes they become ``Shape`` again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.conversion.onnx_nodes import OnnxNode, constant_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.conversion.node_meanings.sizes import Integers

__all__ = ["CASTS", "cast_sizes"]

CASTS: Final = ((11, "torch.double"), (6, "torch.int"), (7, "torch.long"))
"""A way that no model goes from a tensor to integers, by ONNX's numbers and pnnx's names."""


def cast_sizes(node: OnnxNode, _opset: int, _integers: Integers) -> Sequence[OnnxNode]:
    """Write a ``Shape`` with casts behind it; a range of sizes is cut out behind them."""
    sizes = node.outputs[0]
    whole = f"{sizes}/whole" if node.attributes else sizes
    names = [f"{sizes}/{number}" for number in range(len(CASTS))] + [whole]
    casts = [
        OnnxNode("Cast", (before,), (after,), {"to": number})
        for (before, after), (number, _) in zip(pairwise(names), CASTS, strict=True)
    ]
    made = (OnnxNode("Shape", node.inputs, (names[0],)), *casts)
    if not node.attributes:
        return made
    start, end = f"{sizes}/start", f"{sizes}/end"
    last = np.iinfo(np.int64).max
    return (
        *made,
        constant_node(start, np.array([node.integer("start", 0)])),
        constant_node(end, np.array([node.integer("end", last)])),
        OnnxNode("Slice", (whole, start, end), (sizes,)),
    )
