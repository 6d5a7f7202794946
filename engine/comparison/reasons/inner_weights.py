"""Weights that act inside an operator: names of an attention's, and recurrent layers."""

from __future__ import annotations

from typing import Final

__all__ = ["OUTPUT_BIAS", "OUTPUT_WEIGHT", "PROJECTIONS", "RECURRENT"]

OUTPUT_WEIGHT: Final = "out_proj.weight"
"""Of the projection of the joined heads of an ``nn.MultiheadAttention``."""
OUTPUT_BIAS: Final = "out_proj.bias"
PROJECTIONS: Final = frozenset(
    {"in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"}
)
"""Of the projections before the softmax; those of queries, keys and values may be stacked."""
RECURRENT: Final = ("LSTM", "GRU", "RNN")
"""Words for layers with gates in their types."""
