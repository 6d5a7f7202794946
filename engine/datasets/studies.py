"""What a sweep may gather beside statistics.

A study is described by a small object that is sent to the workers. There it starts one
gatherer for every shard, which sees the values of each input and ends with arrays. The arrays
of two shards are merged, in the order of the shards, until one set of them is left for the
whole data set. So they must not grow with the number of inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.datasets.model import LoadedModel
    from engine.datasets.values import BatchValues
    from engine.values import Array

__all__ = ["Arrays", "Gatherer", "ReadsFiles", "Study"]

Arrays: TypeAlias = "dict[str, Array]"
"""Arrays by name, without objects, which ``.npz`` files can hold."""


class Gatherer(Protocol):
    """Gathers what a study wants to know, over one shard."""

    def add(self, indices: Sequence[int], values: BatchValues) -> None:
        """Add the inputs that ran together.

        Parameters
        ----------
        indices : sequence of int
            Of the inputs in the data set, ascending.
        values : BatchValues
            By operand; the first axis are these inputs. Read-only, and valid during the call
            only.
        """
        ...

    def finish(self) -> Arrays:
        """Return what was gathered."""
        ...


class Study(Protocol):
    """Describes what is gathered. Instances can be pickled.

    Attributes
    ----------
    name : str
        Of its own among studies; letters only. Its arrays become ``OUT/<name>.npz``.
    key : str
        Changes whenever its options change: a shard with another key is computed again.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - above

    @property
    def key(self) -> str: ...  # noqa: D102

    def operands(self, model: LoadedModel) -> Sequence[str]:
        """Return the operands whose values it needs."""
        ...

    def start(self, model: LoadedModel) -> Gatherer:
        """Begin a shard."""
        ...

    def merge(self, one: Arrays, other: Arrays) -> Arrays:
        """Merge what two ranges of inputs gave; those of `one` come first."""
        ...


@runtime_checkable
class ReadsFiles(Protocol):
    """A study that reads files of its own beside the inputs."""

    @property
    def reads(self) -> Sequence[str]:
        """Their paths. A sweep into a folder that holds one of them is refused."""
        ...
