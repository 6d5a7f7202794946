"""An input of a file that is to be converted."""

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
        Sizes, symbols such as ``%batch``, and None for open sizes; None where the file says
        nothing.
    dtype : str
        In pnnx's words, such as ``f32`` or ``i64``; ``""`` where the file says nothing.
    """

    name: str
    shape: ExportedShape | None = None
    dtype: str = ""

    @property
    def is_open(self) -> bool:
        """Whether any size is open."""
        return self.shape is None or not all(isinstance(dim, int) for dim in self.shape)
