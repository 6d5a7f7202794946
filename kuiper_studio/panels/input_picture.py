"""The input picture as the user knows it: read from the fed tensor, its preparation undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kuiper_studio.panels.input_preview import image_of_planes

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from engine.values import Array
    from kuiper_studio.session import StudioSession

__all__ = ["InputPicture", "PictureSource", "picture_source"]

_COLORS: Final = frozenset({1, 3})  # channels of a picture


class PictureSource(NamedTuple):
    """An input that is a picture.

    Attributes
    ----------
    operand : str
    shape : tuple of int
    axes : (int, int)
        Rows and columns.
    """

    operand: str
    shape: tuple[int, ...]
    axes: tuple[int, int]

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.shape[self.axes[0]], self.shape[self.axes[1]]


class InputPicture:
    """The first input of the shown model that is a picture.

    Parameters
    ----------
    session : StudioSession
    """

    def __init__(self, session: StudioSession) -> None:
        self._session = session
        self._kept: tuple[object, QImage | None] = (None, None)

    def find(self) -> PictureSource | None:
        """Return the input; None if none is a picture."""
        session = self._session
        graph = session.graph
        for operand in graph.input_operands if graph is not None else ():
            metadata: Any = session.tensors.metadata(operand.name)
            found = picture_source(operand.name, getattr(metadata, "shape", ()))
            if found is not None:
                return found
        return None

    def image(self, source: PictureSource, sample: int = 0) -> QImage | None:
        """Return the picture of a sample; None until it is here, which `recalled` tells."""
        tensors = self._session.tensors
        if not tensors.look(source.operand):
            return None
        number = sample if sample < source.shape[0] else 0
        key = source.operand, tensors.serial(source.operand), number
        if self._kept[0] != key:
            value: Any = tensors.value(source.operand)
            planes = value[number] if len(source.shape) == 4 else value
            if source.axes[1] == len(source.shape) - 2:
                planes = np.moveaxis(planes, -1, 0)
            self._kept = key, image_of_planes(self._plain(source.operand, planes))
        return self._kept[1]

    def _plain(self, operand: str, planes: Array) -> Array:
        """Undo the preprocessing of an image, as far as colours need it."""
        source, options = self._session.inputs.get(operand), self._session.image_options
        if source is None or source.kind != "image" or len(planes) != 3:
            return planes
        mean, std = (
            np.broadcast_to(np.asarray(each, np.float64), 3)[:, np.newaxis, np.newaxis]
            for each in (options.mean, options.std)
        )
        plain: Array = planes * std + mean
        return plain[::-1] if options.order == "BGR" else plain


def picture_source(operand: str, shape: tuple[int, ...]) -> PictureSource | None:
    """Return an input as a picture; None if its shape is none of one.

    Parameters
    ----------
    operand : str
    shape : tuple of int
        Three dimensions, or four with the samples of a batch.
    """
    count = len(shape)
    if count not in {3, 4}:
        return None
    first = count - 3
    if shape[first] in _COLORS and min(shape[-2:]) > 1:
        return PictureSource(operand, shape, (count - 2, count - 1))
    if shape[-1] in _COLORS and min(shape[first:-1]) > 1:
        return PictureSource(operand, shape, (first, first + 1))
    return None
