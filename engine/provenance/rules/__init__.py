"""The rules, one family of operators per file; importing the package registers them."""

from __future__ import annotations

from engine.provenance.rules import (
    attention,
    convolution,
    deformable,
    elementwise,
    embedding,
    moving,
    normalization,
    pooling,
    products,
    reduction,
    resizing,
    sequences,
    softmax,
)

__all__ = [
    "attention",
    "convolution",
    "deformable",
    "elementwise",
    "embedding",
    "moving",
    "normalization",
    "pooling",
    "products",
    "reduction",
    "resizing",
    "sequences",
    "softmax",
]
