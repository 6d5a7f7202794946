"""Measuring: alternating rounds, medians and ratios, and the rows that they become."""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

T = TypeVar("T")

__all__ = ["Absent", "Bench", "Row", "Times", "alternate", "spell_seconds", "timed"]


class Absent(Exception):  # noqa: N818 - nothing is wrong
    """What a measurement needs is not here; the message is the sentence that says so."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What measurements are told.

    Attributes
    ----------
    rounds : int
        How often what is compared takes turns.
    folder : Path
        For files, empty at first.
    models : Path or None
        Folder of exported networks, ``resnet50.pnnx.param`` and so on; see
        `benchmarks.networks`.
    only : tuple of str
        Names of the networks to measure where there is a choice; all when empty.
    """

    rounds: int
    folder: Path
    models: Path | None
    only: tuple[str, ...] = ()

    def model(self, file: str) -> Path:
        """File of the folder of models.

        Raises
        ------
        Absent
            If there is no such folder or file.
        """
        path = self._folder_of_models() / file
        if not path.is_file():
            raise Absent(
                f"{file} is not in {self.models}; `make bench-networks MODELS={self.models}` "
                "makes what is missing"
            )
        return path

    def chosen(self, networks: Mapping[str, T]) -> dict[str, T]:
        """Those of some exported networks, by name, that are to be measured.

        Raises
        ------
        Absent
            If none is.
        """
        self._folder_of_models()
        chosen = {n: what for n, what in networks.items() if not self.only or n in self.only}
        if not chosen:
            raise Absent("is about other networks")
        return chosen

    def _folder_of_models(self) -> Path:
        if self.models is None:
            raise Absent(
                "needs exported networks: `make bench-networks MODELS=DIR` makes them, "
                "`make bench MODELS=DIR` measures them"
            )
        return self.models


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    what : str
    ours, other : str
        What was measured, with its unit; ``other`` is empty where nothing is beside it.
    beside : str
        What the other is.
    value : float
        What the target is about.
    unit : str
        Of `value`: ``"×"`` for a ratio.
    target : float or None
        The most that `value` should be.
    """

    what: str
    ours: str
    value: float
    target: float | None = None
    beside: str = ""
    other: str = ""
    unit: str = "×"

    @property
    def verdict(self) -> str:
        """``met`` or ``missed``; empty without a target."""
        if self.target is None:
            return ""
        return "met" if self.value <= self.target else "missed"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each round, by what was run."""

    seconds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        """Median of the rounds."""
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, other: str) -> float:
        """Median of the ratios within each round, which a drifting machine does not move."""
        pairs = zip(self.seconds[name], self.seconds[other], strict=True)
        return statistics.median(one / two for one, two in pairs)

    def row(
        self, what: str, name: str, other: str, target: float | None = None, *, beside: str = ""
    ) -> Row:
        """Compare two of them."""
        return Row(
            what,
            spell_seconds(self.median(name)),
            self.ratio(name, other),
            target,
            beside or other,
            spell_seconds(self.median(other)),
        )


def alternate(runs: Mapping[str, Callable[[], float]], rounds: int) -> Times:
    """Let all take turns.

    Parameters
    ----------
    runs : mapping of str to callable
        Each gives the seconds that it took, as `timed` and `processes.Process` do.
    rounds : int
        One more is run and not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            took = run()
            if number:
                seconds[name].append(took)
    return Times(seconds)


def timed(work: Callable[[], object], repeat: int = 1) -> Callable[[], float]:
    """Time some work, `repeat` times at once; gives the seconds of one time.

    What the work returns is let go of after the clock has stopped, cycles and all: or what
    is run next would have to look for them.
    """

    def run() -> float:
        started = time.perf_counter()
        kept = [work() for _ in range(repeat)]
        took = time.perf_counter() - started
        del kept
        gc.collect()
        return took / repeat

    return run


def spell_seconds(seconds: float) -> str:
    """Spell seconds in three digits."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"
