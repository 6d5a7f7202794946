"""Diagnoses preprocessing: how a reference's input was prepared differently from ours."""

from __future__ import annotations

from engine.comparison.reasons.preprocessing.diagnosis import diagnose_input
from engine.comparison.reasons.preprocessing.normalisation import (
    Affine,
    Normalisation,
    describe_affine,
    recognise,
)

__all__ = ["Affine", "Normalisation", "describe_affine", "diagnose_input", "recognise"]
