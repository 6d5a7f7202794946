"""Simulates float16, bfloat16 and int8, and chooses operators to keep in float32.

Weights and outputs are rounded to the format; each operator still computes in float32.
"""

from __future__ import annotations

from engine.precision.formats import FORMATS, Format, FormatName
from engine.precision.keeping import KeptOperators, KeptStep, choose_float32
from engine.precision.loss import LOST, Loss, Storage
from engine.precision.ncnn import ncnn_lines
from engine.precision.simulation import OperatorPrecision, Simulation, simulate_precision

__all__ = [
    "FORMATS",
    "LOST",
    "Format",
    "FormatName",
    "KeptOperators",
    "KeptStep",
    "Loss",
    "OperatorPrecision",
    "Simulation",
    "Storage",
    "choose_float32",
    "ncnn_lines",
    "simulate_precision",
]
