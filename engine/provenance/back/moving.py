"""Moves and joins: each element gives its gradient back to where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers.concatenate import cat
from engine.layers.ncnn import shapes as ncnn_shapes
from engine.provenance.rules.constants import CONSTANTS
from engine.provenance.rules.moving import joined_members, moved_numbers
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.slopes import Gradient

__all__ = ["give_back"]


def give_back(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each element back what it was moved from."""
    found = {}
    for operand, flat, places in moved_numbers(call):
        sums: Any = np.bincount(
            flat, gradient.reshape(-1)[places], minlength=int(np.prod(operand.shape))
        )
        found[operand.name] = sums.reshape(operand.shape)
    return found


@passes_back(cat, ncnn_shapes.concat)
def _joined(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Cut the gradient at the seams."""
    members, axis = joined_members(call)
    seams = np.cumsum([member.shape[axis] for member in members])[:-1]
    found: dict[str, Gradient] = {}
    for member, part in zip(members, np.split(gradient, seams, axis), strict=True):
        found[member.name] = found.get(member.name, 0.0) + part
    return found


@passes_back(*CONSTANTS)
def _constant(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:  # noqa: ARG001 - nothing
    """Return nothing: only sizes go into a constant."""
    return {}
