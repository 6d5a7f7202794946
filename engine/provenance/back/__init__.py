"""How gradients go back, one family of operators per file; importing it registers the rules."""

from __future__ import annotations

from engine.provenance.back import (
    attention,
    distances,
    elementwise,
    embedding,
    encoder,
    fourier,
    losses,
    moving,
    normalization,
    products,
    reduction,
    regions,
    sampling,
    sequences,
    triangular,
    windows,
)

__all__ = [
    "attention",
    "distances",
    "elementwise",
    "embedding",
    "encoder",
    "fourier",
    "losses",
    "moving",
    "normalization",
    "products",
    "reduction",
    "regions",
    "sampling",
    "sequences",
    "triangular",
    "windows",
]
