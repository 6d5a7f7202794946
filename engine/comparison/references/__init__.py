"""References: the tensors of another run, to compare a session with.

A `Reference` lists tensors in the order in which they were computed, and loads each on first
use. `open_reference` makes one from a dump, a recording, arrays in files, another model or
another session.
"""

from __future__ import annotations

from engine.comparison.references.opening import (
    open_data,
    open_reference,
    open_reference_for,
)
from engine.comparison.references.reference import (
    Reference,
    ReferenceOperator,
    ReferenceTensor,
    WeightHash,
)

__all__ = [
    "Reference",
    "ReferenceOperator",
    "ReferenceTensor",
    "WeightHash",
    "open_data",
    "open_reference",
    "open_reference_for",
]
