"""The picture of a tensor that is shown, for views that lay it over something else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from engine.provenance.records import GridCell
    from engine.values import Array

__all__ = ["ShownPlane"]


@dataclass(frozen=True, slots=True, eq=False)
class ShownPlane:
    """One channel of a tensor, as the tensor view shows it.

    Attributes
    ----------
    operand : str
    title : str
        Which channel, in words.
    span : str
        The range of the colours.
    values : ndarray of shape (H, W), real
    pixels : ndarray of shape (H, W, 4), uint8
        Their colours.
    shares : ndarray of shape (H, W)
        How far each value is from where the colours begin, or from zero if there are both
        signs; from 0 to 1.
    cells : tuple of GridCell
        Three cells by which the picture is laid over an input; see
        `engine.provenance.alignment.align_grid`.
    is_image : bool or None
        Whether rows and columns are those of an image, by the layout; None if it is not known.
    index : callable
        Returns the index into the tensor of a row and a column.
    pick : (int, int) or None
        The picked row and column.
    """

    operand: str
    title: str
    span: str
    values: Array = field(repr=False)
    pixels: npt.NDArray[np.uint8] = field(repr=False)
    shares: Array = field(repr=False)
    cells: tuple[GridCell, ...]
    is_image: bool | None
    index: Callable[[int, int], tuple[int, ...]]
    pick: tuple[int, int] | None = None
