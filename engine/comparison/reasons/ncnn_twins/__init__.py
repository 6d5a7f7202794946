"""Layers of ncnn as calls of PyTorch's operators that compute the same.

The alternatives of parameters and weights are those of PyTorch's operators. A layer of ncnn
has other names for the same numbers, and no batch axis.
"""

from engine.comparison.reasons.ncnn_twins.finding import converted_weights, twin_of
from engine.comparison.reasons.ncnn_twins.stored import in_float32
from engine.comparison.reasons.ncnn_twins.twin import Border, Twin, add_batch, put_border

__all__ = [
    "Border",
    "Twin",
    "add_batch",
    "converted_weights",
    "in_float32",
    "put_border",
    "twin_of",
]
