"""Computes statistics and histograms without blocking the window.

Small arrays are measured at once. Large ones go to a thread as a frozen request; its result is
dropped if a newer request of the same kind was made.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from engine.statistics import histogram, sampling_step, statistics
from kuiper_studio.background import Background, Done
from kuiper_studio.engine_service.channels import measure_channels as measure_distances
from kuiper_studio.tensor_view.channel_order import likeness, measure_channels
from kuiper_studio.tensor_view.facts import channel_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.values import Array
    from kuiper_studio.engine_service.channels import ChannelView

__all__ = ["AT_ONCE", "Answer", "Measurer", "What"]

AT_ONCE: Final = 1 << 21  # elements; about 5 ms
_PASSES: Final = 16  # over an array, that a difference, or to know channels, takes as long as
# One processor is left to the window, which paints the array meanwhile.
_THREADS: Final = min(2, max(1, (os.cpu_count() or 1) - 1))


class What(Enum):
    """Kind of a measurement; a new request cancels the previous one of its kind."""

    TENSOR = "statistics of the tensor"
    CHANNEL = "statistics of the channel"
    REGION = "statistics of a rectangle of the channel"
    KEYS = "what is special about the channels"
    LIKENESS = "likeness of the channels to one of them"
    PAGE = "ranges of a page of channels"
    HISTOGRAM = "histogram"
    REFERENCE = "histogram of the reference"
    DIFFERENCE = "difference from the tensor beside it"
    DISTANCES = "difference of each channel from that of the tensor beside it"


@dataclass(frozen=True, slots=True)
class _Request:
    """One request.

    `low` and `high` are for histograms, `channel` for likeness, and `other` and `view` for
    differences.
    """

    number: int
    what: What
    array: Array = field(repr=False, compare=False)
    low: float
    high: float
    channel: int = 0
    other: Array | None = field(default=None, repr=False, compare=False)
    view: ChannelView | None = None

    def measure(self) -> Any:  # noqa: ANN401 - statistics or counts
        """Measure, on any thread."""
        if self.what in {What.HISTOGRAM, What.REFERENCE}:
            step = sampling_step(self.array.size)
            return histogram(self.array, self.low, self.high, step=step)
        if self.other is not None:
            from engine.comparison.measures import measure  # the window starts without it

            if self.view is None:
                return measure(self.array, self.other)
            return measure_distances(self.array, self.other, self.view, 0.0)
        if self.what in {What.PAGE, What.KEYS, What.LIKENESS}:
            return self._measure_channels()
        return statistics(self.array, threads=_THREADS)

    def _measure_channels(self) -> Any:  # noqa: ANN401 - facts, keys or counts
        # Each channel is measured alone: quickly, where nothing of others lies in between.
        planes = np.ascontiguousarray(self.array)
        if self.what is What.PAGE:
            return channel_facts(planes)
        if self.what is What.KEYS:
            return measure_channels(planes)
        return likeness(planes, self.channel)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a measurement.

    Attributes
    ----------
    number : int
        Number of the request.
    what : What
    result : TensorStatistics, ChannelFacts, ChannelKeys, ndarray, Measures, \
            ChannelDistances, or None
        None if memory ran out.
    """

    number: int
    what: What
    result: Any = field(repr=False)


class Measurer(QObject):
    """Measures arrays at once or on another thread.

    Signals
    -------
    answered
        The `Answer` to a request that went to the thread.
    """

    answered = Signal(object)

    def __init__(self, parent: QObject | None = None, at_once: int = AT_ONCE) -> None:
        super().__init__(parent)
        self._at_once = at_once
        self._number = 0
        self._latest: dict[What, int] = {}
        self._background = Background(self)
        self._background.finished.connect(self._on_measured)

    def ask(
        self, what: What, array: Array, low: float = 0.0, high: float = 0.0, channel: int = 0
    ) -> Any | None:  # noqa: ANN401 - statistics or counts
        """Measure an array.

        Parameters
        ----------
        what : What
        array : ndarray
            Of real or complex numbers; must not be written to afterwards.
        low, high : float, optional
            Range of the histogram.
        channel : int, optional
            That others are compared with.

        Returns
        -------
        TensorStatistics, ChannelFacts, ChannelKeys, ndarray, or None
            None if the signal will deliver the result.
        """
        request = _Request(self._next(what), what, array, low, high, channel)
        return self._carry_out(request, array.size * (_PASSES if what is What.KEYS else 1))

    def _next(self, what: What) -> int:
        self._number += 1
        self._latest[what] = self._number
        return self._number

    def _carry_out(self, request: _Request, size: int) -> Any | None:  # noqa: ANN401
        if size <= self._at_once:
            return request.measure()
        self._background.submit(request, _measure, request, self._latest)
        return None

    def compare(
        self, what: What, array: Array, other: Array, view: ChannelView | None = None
    ) -> Any | None:  # noqa: ANN401 - of two kinds
        """Measure how far an array is from another one of its shape.

        Parameters
        ----------
        what : What
        array, other : ndarray
        view : ChannelView, optional
            The channels that are measured; by default all of the array.

        Returns
        -------
        Measures, ChannelDistances, or None
            None if the signal will deliver the result.
        """
        number = self._next(what)
        request = _Request(number, what, array, 0.0, 0.0, other=other, view=view)
        return self._carry_out(request, _PASSES * array.size)

    def forget(self, what: What) -> None:
        """Drop the result of the last request of a kind."""
        self._latest.pop(what, None)

    @Slot(object)
    def _on_measured(self, done: Done) -> None:
        request = done.key
        if isinstance(request, _Request) and self._latest.get(request.what) == request.number:
            self.answered.emit(Answer(request.number, request.what, done.result))


def _measure(request: _Request, latest: Mapping[What, int]) -> Any:  # noqa: ANN401 - as it says
    """Measure, unless a newer request was made."""
    if latest.get(request.what) != request.number:
        return None
    return request.measure()
