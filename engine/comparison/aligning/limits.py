"""Limits that several rules share: how near values are, and how far to look."""

from __future__ import annotations

from typing import Final

__all__ = ["AHEAD", "ALIKE", "CLEARLY", "CONFIRMING", "EXACT", "NEAR", "ROUNDED"]

# Relative distances, of fingerprints or of whole tensors.
EXACT: Final = 2e-4
"""What rounding reaches."""
ROUNDED: Final = 2e-3
"""What rounding reaches, float16 included."""
CONFIRMING: Final = 3e-3
"""Up to which a result may confirm what it was computed from."""
NEAR: Final = 5e-2
"""Of a tensor that may be ours with a difference, or with rounding to int8."""
ALIKE: Final = 0.6
"""Of a tensor that has something of ours."""

CLEARLY: Final = 3.0
"""Times that a tensor must be nearer than the next one."""
AHEAD: Final = 3
"""Operators, or calls of the reference, to look ahead."""
