"""Calibration tables as ncnn2table writes and ncnn2int8 reads them.

A line has a key and its scales, separated by blanks. The key of a layer's weight is the layer's
name and ``_param_0``, that of its input the name alone. ncnn2int8 leaves a layer without lines
in float32, and so it does when ``#`` stands before them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.datasets.calibration.layers import LayerScales
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["format_table", "parse_table"]

_OF_WEIGHT: Final = "_param_0"
_COMMENT: Final = "#"


def format_table(scales: Mapping[str, LayerScales], kept: Collection[str] = ()) -> str:
    """Write a table.

    Parameters
    ----------
    scales : mapping of str to LayerScales
        By ncnn's name of the layer.
    kept : collection of str
        Layers to keep in float32: their lines become comments.
    """
    lines: list[str] = []
    for ending in (_OF_WEIGHT, ""):
        for name, layer in scales.items():
            numbers = layer.weight if ending else [layer.activation]
            sign = _COMMENT if name in kept else ""
            # Nine digits give the same float32 again.
            lines.append(" ".join([f"{sign}{name}{ending}", *(f"{x:.9g}" for x in numbers)]))
    return "\n".join([*lines, ""])


def parse_table(text: str) -> dict[str, LayerScales]:
    """Read a table.

    Returns
    -------
    dict of str to LayerScales
        By layer. Lines of other weights (``_param_1`` and so on) are passed over.

    Raises
    ------
    EngineError
        With the line, if a scale is not a finite number, or if a layer has no scale for its
        weight.
    """
    lines: dict[str, tuple[int, list[float]]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        key, *words = line.split() or [""]
        if key and not key.startswith(_COMMENT):
            lines[key] = number, [_parse(word, number) for word in words]
    found: dict[str, LayerScales] = {}
    for key, (number, activations) in lines.items():
        if "_param_" in key:
            continue
        weight = lines.get(f"{key}{_OF_WEIGHT}")
        if weight is None or not weight[1] or len(activations) != 1:
            raise EngineError(
                f"line {number} of the table: layer {key} needs one scale here and scales of "
                f"its weight in a line {key}{_OF_WEIGHT}"
            )
        found[key] = LayerScales(np.array(weight[1], np.float32), activations[0])
    return found


def _parse(word: str, line: int) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise EngineError(f"line {line} of the table: {word[:40]!r} is not a finite scale")
    return value
