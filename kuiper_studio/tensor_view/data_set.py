"""What a data set holds, as the range bar shows it. No Qt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kuiper_studio.tensor_view.choice import DataSetValues

if TYPE_CHECKING:
    from engine.datasets import OperandSummary

__all__ = ["data_set_values"]


def data_set_values(summary: OperandSummary, inputs: int) -> DataSetValues | None:
    """Return what an operand held over a data set; None where nothing is finite."""
    if not (math.isfinite(summary.min) and math.isfinite(summary.max)):
        return None
    # Bins end at the elements, so that none of them is beyond the axis.
    edges = np.clip(summary.histogram.edges, summary.min, summary.max)
    return DataSetValues(inputs, summary.min, summary.max, summary.histogram.counts, edges)
