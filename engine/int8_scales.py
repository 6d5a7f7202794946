"""What the elements of ncnn's int8 weights stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from engine.text import format_brief

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.runtime import RuntimeAttribute
    from engine.values import Array

__all__ = ["Scales", "find_scales"]


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of an int8 weight: the numbers are the weights times them, rounded.

    Attributes
    ----------
    scales : ndarray of float32, of at most as many axes as the weight
        One, or one for each filter, group of filters, or row. No size is larger than the
        weight's; an element of the weight has the scale at its share of each axis.
    """

    scales: Array = field(repr=False, compare=False)

    def at(self, index: tuple[int, ...], shape: tuple[int, ...]) -> float:
        """Return the scale of an element of the weight."""
        leading = index[: self.scales.ndim]
        counts = zip(leading, self.scales.shape, shape, strict=False)
        return float(self.scales[tuple([at * own // size for at, own, size in counts])])

    def describe(self, index: tuple[int, ...], array: Array) -> str:
        """Say what an element of the weight stands for: ``÷ 41.3 = −0.412``."""
        scale = self.at(index, array.shape)
        if not scale:
            return "scale 0"
        return f"÷ {format_brief(scale)} = {format_brief(float(array[index]) / scale)}"


def find_scales(name: str, weights: Mapping[str, RuntimeAttribute]) -> Scales | None:
    """Return the scales of a weight; None where it has none.

    Parameters
    ----------
    name : str
        Of the weight.
    weights : mapping of str to RuntimeAttribute
        All weights of the operator.

    Raises
    ------
    ModelFileError
        If the scales cannot be read.
    """
    found = weights.get(f"{name}_int8_scales")
    if found is None:
        found = weights.get(f"{name}_int8_scale")
    stored = weights.get(name)
    if found is None or stored is None or stored.dtype != np.int8 or not found.size:
        return None
    fits = found.ndim <= stored.ndim and all(
        own <= size for own, size in zip(found.shape, stored.shape, strict=False)
    )
    return Scales(found.array) if fits else None
