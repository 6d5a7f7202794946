"""The filters of a weight: their norms, and which are dead or the same; no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.statistics import find_twins
from engine.text import format_brief, format_count

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = ["ChannelScales", "Filters", "measure_filters", "scales_of_channels"]

_AT_A_TIME: Final = 1 << 20  # elements that are converted to float64
_DEAD: Final = 1e-7  # of the largest norm


@dataclass(frozen=True, slots=True, eq=False)
class Filters:
    """Numbers of each filter of a weight: of what makes one output channel, or of a row.

    Attributes
    ----------
    norms : ndarray of float64, shape (N,)
        Square root of the sum of the squares of its finite elements.
    is_dead : ndarray of bool, shape (N,)
        Whether the norm is 0, or less than 1e-7 of the largest one.
    twin : ndarray of int64, shape (N,)
        First filter with the same elements, where that is another one and not dead; else -1.
    """

    norms: npt.NDArray[np.float64]
    is_dead: npt.NDArray[np.bool_]
    twin: npt.NDArray[np.int64]

    title: ClassVar[str] = "Norm of each filter"

    def describe(self, place: int) -> str:
        """Return norm and peculiarity of a filter: ``norm 0.53, equal to 3``."""
        text = f"norm {format_brief(float(self.norms[place]))}"
        if self.is_dead[place]:
            return f"{text}, dead"
        return f"{text}, equal to {self.twin[place]}" if self.twin[place] >= 0 else text

    def summary(self) -> str:
        """Return range and peculiarities: ``norms 0.1 … 2.3 · 3 dead, 2 duplicates``."""
        low, high = (format_brief(float(each)) for each in (self.norms.min(), self.norms.max()))
        dead, twins = int(self.is_dead.sum()), int((self.twin >= 0).sum())
        special = [
            f"{dead} dead" if dead else "",
            format_count(twins, "duplicate") if twins else "",
        ]
        found = ", ".join(filter(None, special))
        return f"norms {low} … {high}" + (f" · {found}" if found else "")


class ChannelScales(Filters):
    """The scales of an int8 weight, shown as norms are."""

    title: ClassVar[str] = "Scale of each filter"

    @override
    def describe(self, place: int) -> str:
        """Return a scale, and what one step of the stored integers is worth."""
        scale = float(self.norms[place])
        step = f", a step of {format_brief(1 / scale)}" if scale else ""
        return f"scale {format_brief(scale)}{step}"

    @override
    def summary(self) -> str:
        """Return their range: ``int8 scales 41 … 97``."""
        low, high = (format_brief(float(each)) for each in (self.norms.min(), self.norms.max()))
        return f"int8 scales {low} … {high}" if len(self.norms) > 1 else f"int8 scale {low}"


def scales_of_channels(scales: Array) -> ChannelScales:
    """Return the scales of an int8 weight, at least one, those that are no numbers as 0."""
    flat = np.nan_to_num(scales.reshape(-1).astype(np.float64), posinf=0, neginf=0)
    return ChannelScales(flat, flat == 0, np.full(len(flat), -1))


def measure_filters(array: Array, axis: int = 0) -> Filters | None:
    """Measure the filters of a weight.

    Parameters
    ----------
    array : ndarray of shape (..., N, ...)
        Real; not copied as a whole if `axis` is 0.
    axis : int, optional
        Along which the filters are.

    Returns
    -------
    Filters or None
        None for fewer than two filters, and for a weight of fewer than two dimensions.
    """
    if array.ndim < 2 or array.shape[axis] < 2 or not array.size:
        return None
    filters = np.moveaxis(array, axis, 0)
    rows = filters.reshape(len(filters), -1)
    norms = np.empty(len(rows))
    step = max(1, _AT_A_TIME // rows.shape[1])
    for start in range(0, len(rows), step):
        norms[start : start + step] = _norms(rows[start : start + step])
    dead = norms <= _DEAD * norms.max()
    ends = rows[:, [0, rows.shape[1] // 2, -1]].astype(np.float64)
    facts = np.column_stack([norms, ends])
    return Filters(norms, dead, find_twins(rows, facts, dead))


def _norms(rows: Array) -> npt.NDArray[Any]:
    numbers = rows.astype(np.float64)
    numbers[~np.isfinite(numbers)] = 0.0
    largest = np.abs(numbers).max(axis=1, keepdims=True)  # squares must not leave float64
    largest[largest == 0] = 1.0
    scaled = numbers / largest
    return np.asarray(largest[:, 0] * np.sqrt(np.einsum("ij,ij->i", scaled, scaled)))
