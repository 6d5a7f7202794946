"""Windows: which positions of an axis an output position reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from engine.layers.padding import PADDING_MODES
from engine.provenance.records import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from engine.layers.windows import Windows
    from engine.provenance.records import Box

__all__ = ["AXIS_NAMES", "AxisReads", "Sliding", "Spreading", "Table", "read_box", "sliding"]

AXIS_NAMES: Final[dict[int, tuple[str, ...]]] = {
    0: (),
    1: ("position",),
    2: ("row", "column"),
    3: ("depth", "row", "column"),
}
"""Names of spatial axes, by their number."""
_MOST_READS: Final = 1 << 20  # positions that are listed for one axis; more count as all


class AxisReads(Protocol):
    """What the outputs of one axis read."""

    @property
    def size(self) -> int:
        """Number of positions of the axis."""
        ...

    def positions(self, outputs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions of each output's taps, -1 outside; shape (outputs, taps)."""
        ...

    def reach(self, low: int, high: int) -> tuple[int, int] | None:
        """Return the positions of a range of outputs beyond the ends; None if unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Sliding:
    """A window that slides over an axis.

    Attributes
    ----------
    size : int
    kernel, stride, dilation, before, after : int
        `before` and `after` are the padding.
    mode : str
        ``zeros``, or how the padding repeats the axis.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    mode: str = "zeros"

    @property
    def is_dense(self) -> bool:
        """Whether neighbouring windows leave no position out."""
        return self.dilation == 1 and self.kernel >= self.stride

    def positions(self, outputs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions of each output's taps, -1 outside; shape (outputs, taps)."""
        starts = outputs * self.stride - self.before
        found: npt.NDArray[np.int64]
        found = starts[:, np.newaxis] + np.arange(self.kernel) * self.dilation
        if self.mode != "zeros":
            padded = np.arange(-self.before, self.size + self.after)
            sources: npt.NDArray[np.int64] = PADDING_MODES[self.mode](padded, 0, self.size)
            found = sources[found + self.before]
            return found
        return np.where((found >= 0) & (found < self.size), found, -1)

    def reach(self, low: int, high: int) -> tuple[int, int] | None:
        """Return the positions of a range of outputs beyond the ends."""
        if self.mode != "zeros":
            return None
        first = low * self.stride - self.before
        last = (high - 1) * self.stride - self.before + self.dilation * (self.kernel - 1)
        return first, last + 1


@dataclass(frozen=True, slots=True)
class Spreading:
    """A transposed window: every position of the axis spreads over a window of the outputs.

    Attributes
    ----------
    size : int
    kernel, stride, dilation, before : int
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int

    def positions(self, outputs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions of each output's taps, -1 outside; shape (outputs, taps)."""
        shifted = (outputs + self.before)[:, np.newaxis] - np.arange(
            self.kernel
        ) * self.dilation
        found, rest = np.divmod(shifted, self.stride)
        return np.where((rest == 0) & (found >= 0) & (found < self.size), found, -1)

    def reach(self, low: int, high: int) -> tuple[int, int] | None:  # noqa: ARG002
        """Return None: the stride is a fraction."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Listed positions.

    Attributes
    ----------
    size : int
    taps : ndarray of int64, shape (taps, outputs)
        -1 outside.
    """

    size: int
    taps: npt.NDArray[np.int64]

    def positions(self, outputs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions of each output's taps, -1 outside; shape (outputs, taps)."""
        return self.taps[:, outputs].T

    def reach(self, low: int, high: int) -> tuple[int, int] | None:  # noqa: ARG002
        """Return None: the positions are irregular."""
        return None


def sliding(windows: Windows, sizes: Sequence[int], mode: str = "zeros") -> list[AxisReads]:
    """Return the windows of a layer, one for each spatial axis."""
    axes = zip(
        sizes, windows.kernel, windows.stride, windows.dilation, windows.padding, strict=True
    )
    return [Sliding(size, k, s, d, *padding, mode) for size, k, s, d, padding in axes]


def read_box(reads: Sequence[AxisReads], box: Box) -> Box | None:
    """Return the region that a region of outputs reads; None if it reads nothing."""
    found = []
    for axis, interval in zip(reads, box, strict=True):
        read = _read(axis, interval)
        if read is None:
            return None
        found.append(read)
    return tuple(found)


def _read(axis: AxisReads, interval: Interval) -> Interval | None:
    reach = axis.reach(*interval.reach)
    low, high = reach if reach is not None else (None, None)
    if isinstance(axis, Sliding) and axis.is_dense:
        ends = axis.reach(interval.start, interval.stop)
        if ends is not None and ends[0] < axis.size and ends[1] > 0:
            return Interval(max(ends[0], 0), min(ends[1], axis.size), low, high)
    if (interval.stop - interval.start) * len(_taps(axis, interval)) > _MOST_READS:
        return Interval(0, axis.size, low, high)
    places = axis.positions(np.arange(interval.start, interval.stop))
    inside = places[places >= 0]
    if not inside.size:
        return None
    return Interval(int(inside.min()), int(inside.max()) + 1, low, high)


def _taps(axis: AxisReads, interval: Interval) -> npt.NDArray[np.int64]:
    """Return the taps of the first output of an interval."""
    taps: npt.NDArray[np.int64] = axis.positions(np.array([interval.start]))[0]
    return taps
