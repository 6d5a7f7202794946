"""What all workers of a sweep are told, and how ranges of inputs become one result."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from engine.datasets.failures import FAILURES, merge_failures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.datasets.inputs import InputSet
    from engine.datasets.model import ModelSpec
    from engine.datasets.studies import Arrays, Study

__all__ = ["FAN_IN", "SHARDS", "MergeTree", "Result", "SweepPlan", "merge_results"]

T = TypeVar("T")

Result: TypeAlias = "dict[str, Arrays]"
"""Arrays by study, of a range of inputs."""
FAN_IN: Final = 8
"""Results that are merged by one task."""
SHARDS: Final = "shards"
"""Folder of the results of tasks."""


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Describes a sweep, for workers.

    Attributes
    ----------
    output : str
        Folder of the sweep, the same path for all workers.
    model : ModelSpec
    inputs : InputSet
    studies : tuple of Study
    shard : int
        Inputs of a task; a multiple of the batch.
    key : str
        Hash of the model and of all options that change results.
    dump : bool
        Whether tensors are written.
    strict : bool
        Whether an unreadable input ends the sweep.
    """

    output: str
    model: ModelSpec
    inputs: InputSet
    studies: tuple[Study, ...]
    shard: int
    key: str
    dump: bool = False
    strict: bool = False

    @property
    def shards(self) -> int:
        """Number of tasks."""
        return -(-self.inputs.count // self.shard)

    def range_of(self, number: int) -> range:
        """Return the inputs of a task."""
        begin = number * self.shard
        return range(begin, min(begin + self.shard, self.inputs.count))

    def path_of(self, number: int) -> Path:
        """Return where the result of a task is kept."""
        return Path(self.output) / SHARDS / f"{number:08}.npz"

    def key_of(self, number: int, digests: Sequence[bytes]) -> str:
        """Return what the result of a task depends on: content of inputs, model and options."""
        digest = hashlib.sha256(self.key.encode())
        inputs = self.range_of(number)
        digest.update(f" {inputs.start} {inputs.stop} ".encode())
        for each in digests:
            digest.update(each)
        return digest.hexdigest()


def merge_results(studies: Sequence[Study], results: Sequence[Result]) -> Result:
    """Merge the results of consecutive ranges of inputs, in their order."""
    total = results[0]
    for other in results[1:]:
        merged = {
            study.name: study.merge(total[study.name], other[study.name]) for study in studies
        }
        merged[FAILURES] = merge_failures(total[FAILURES], other[FAILURES])
        total = merged
    return total


class MergeTree(Generic[T]):
    """Merges any number of items, in groups, holding only a few of them.

    The groups depend on the order of the items alone.

    Parameters
    ----------
    join : callable
        Makes one item of several consecutive ones.
    """

    def __init__(self, join: Callable[[list[T]], T]) -> None:
        self._join = join
        self._levels: list[list[T]] = [[]]

    def push(self, item: T) -> None:
        """Add the next item."""
        for level in self._levels:
            level.append(item)
            if len(level) < FAN_IN:
                return
            item = self._join(level.copy())
            level.clear()
        self._levels.append([item])

    def finish(self) -> T:
        """Merge what is left; there must have been an item."""
        rest: list[T] = []
        for level in self._levels:
            items = [*level, *rest]
            rest = [self._join(items)] if len(items) > 1 else items
        return rest[0]
