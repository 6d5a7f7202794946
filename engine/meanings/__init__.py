"""What the outputs of a model mean: classes, boxes, label maps, pictures and more.

A *reading* turns outputs into something that people recognise. Each is a small class in
`engine.meanings.readings`; a file of the user may register others. Every reading says how well
it fits, by shapes and last operators. `engine.output_reading` applies them to a session.
"""

from __future__ import annotations

from engine.meanings.ends import Ends, OutputEnd
from engine.meanings.registry import (
    Fit,
    Option,
    Reading,
    ReadingContext,
    all_readings,
    find_reading,
    register_reading,
)

__all__ = [
    "Ends",
    "Fit",
    "Option",
    "OutputEnd",
    "Reading",
    "ReadingContext",
    "all_readings",
    "find_reading",
    "register_reading",
]
