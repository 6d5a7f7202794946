"""Inputs that were passed over, with the reason."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.datasets.studies import Arrays
    from engine.values import Array

__all__ = ["FAILURES", "FailedInput", "merge_failures", "pack_failures", "unpack_failures"]

FAILURES: Final = "failures"
"""Name among the results of studies."""
_MOST_LISTED: Final = 1000
_LONGEST_REASON: Final = 500  # characters


_Row: TypeAlias = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class FailedInput:
    """An input that could not be read or run.

    Attributes
    ----------
    index : int
        In the data set.
    name : str
    reason : str
    """

    index: int
    name: str
    reason: str

    @property
    def sentence(self) -> str:
        """Its name and the reason; most reasons have the name already."""
        return self.reason if self.name in self.reason else f"{self.name}: {self.reason}"

    @property
    def bare_reason(self) -> str:
        """The reason without the name before it, to stand beside the name."""
        return self.reason.removeprefix(f"{self.name} ").removeprefix(f"{self.name}: ")


def pack_failures(failed: Sequence[FailedInput], done: int) -> Arrays:
    """Pack the failures of a range of inputs, and how many ran, as arrays."""
    listed = [(each.index, each.name, each.reason[:_LONGEST_REASON]) for each in failed]
    return {
        "count": np.array([len(failed), done]),
        "listed": _packed(listed[:_MOST_LISTED]),
    }


def merge_failures(one: Arrays, other: Arrays) -> Arrays:
    """Merge the failures of two ranges; only the first thousand are listed."""
    listed = [*_unpacked(one["listed"]), *_unpacked(other["listed"])]
    return {"count": one["count"] + other["count"], "listed": _packed(listed[:_MOST_LISTED])}


def unpack_failures(arrays: Arrays) -> tuple[int, int, tuple[FailedInput, ...]]:
    """Return how many failed, how many ran, and the first failures."""
    failed, done = (int(count) for count in arrays["count"])
    listed = _unpacked(arrays["listed"])
    return failed, done, tuple(FailedInput(*each) for each in listed)


def _packed(listed: list[_Row]) -> Array:
    return np.frombuffer(json.dumps(listed).encode(), np.uint8)


def _unpacked(array: Array) -> list[_Row]:
    found: list[_Row] = [tuple(row) for row in json.loads(array.tobytes())]
    return found
