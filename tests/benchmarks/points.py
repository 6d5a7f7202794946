"""All that is measured, by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks import (
    comparing,
    export,
    graph_frames,
    interactions,
    memory,
    opening,
    passes,
    provenance_times,
    starting,
    stepping,
    tensor_repaints,
    tensor_statistics,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Bench, Row

__all__ = ["POINTS", "Point"]


class Point(NamedTuple):
    """A family of figures.

    Attributes
    ----------
    number : str
    title : str
    rows : callable
        Measures. Yields rows, or sentences about those that are skipped; an `Absent` that it
        raises skips all that are still to come.
    """

    number: str
    title: str
    rows: Callable[[Bench], Iterator[Row | str]]


POINTS: Final = (
    Point("1", "A full pass with every operand kept", passes.all_kept),
    Point("1b", "The first pass, with an empty tuning cache", passes.first_passes),
    Point("2", "NumPy alone", passes.numpy_alone),
    Point("3", "Single steps, and a session used again", stepping.rows),
    Point("4", "Opening", opening.rows),
    Point("5", "Memory", memory.rows),
    Point("6", "Start", starting.rows),
    Point("7", "Graph", graph_frames.rows),
    Point("8a", "Repainting a tensor", tensor_repaints.rows),
    Point("8b", "Statistics and histogram", tensor_statistics.rows),
    Point("9", "Export", export.rows),
    Point("10", "Comparing", comparing.rows),
    Point("11", "Interactions with the window", interactions.rows),
    Point("12", "Where an element comes from", provenance_times.rows),
)
