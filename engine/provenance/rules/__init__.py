"""The rules, one family of operators per file; importing the package registers them."""

from __future__ import annotations

from engine.provenance.rules import (
    attention,
    constants,
    convolution,
    deformable,
    distances,
    elementwise,
    embedding,
    encoder,
    joining,
    moving,
    normalization,
    pooling,
    products,
    reduction,
    regions,
    resizing,
    sampling,
    sequences,
    softmax,
)

__all__ = [
    "attention",
    "constants",
    "convolution",
    "deformable",
    "distances",
    "elementwise",
    "embedding",
    "encoder",
    "joining",
    "moving",
    "normalization",
    "pooling",
    "products",
    "reduction",
    "regions",
    "resizing",
    "sampling",
    "sequences",
    "softmax",
]
