"""Describes an input of a file to convert."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from engine.shapes import ExportedShape

__all__ = ["SourceInput"]


class SourceInput(NamedTuple):
    """An input, as far as its file describes it.

    Attributes
    ----------
    name : str
    shape : tuple or None
        Sizes, symbols such as ``%batch``, and None for open sizes; None if unknown.
    dtype : str
        pnnx's name, such as ``f32`` or ``i64``; ``""`` if unknown.
    """

    name: str
    shape: ExportedShape | None = None
    dtype: str = ""

    @property
    def is_open(self) -> bool:
        """Whether any size is open."""
        return self.shape is None or not all(isinstance(dim, int) for dim in self.shape)
