"""Rules of the operators, one family per file."""

from __future__ import annotations

from engine.axes.rules import (
    attention,
    convolution,
    elementwise,
    fourier,
    joining,
    matmul,
    moving,
    ncnn,
    recurrent,
    reduction,
    shaping,
    windows,
)

__all__ = [
    "attention",
    "convolution",
    "elementwise",
    "fourier",
    "joining",
    "matmul",
    "moving",
    "ncnn",
    "recurrent",
    "reduction",
    "shaping",
    "windows",
]
