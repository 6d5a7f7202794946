"""Attention of a network: where it is, its weights, and what they say of the input.

`finding` finds attentions: operators that compute one as a whole, and softmax operators between
two products of matrices. `scores` computes the weights of every query for every key, also of
operators that keep none, and multiplies those of several blocks. `tokens` says where on a
picture a query or a key lies. All but `scores` loads no layer, so that the window may use it.
"""

from __future__ import annotations

from engine.attention.finding import Attention, find_attentions, find_blocks
from engine.attention.tokens import TokenPlaces, find_heads, key_places, query_places

__all__ = [
    "Attention",
    "TokenPlaces",
    "find_attentions",
    "find_blocks",
    "find_heads",
    "key_places",
    "query_places",
]
