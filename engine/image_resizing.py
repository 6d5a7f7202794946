"""Resizes images by the methods of the usual libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.image_methods import Resampling
    from engine.values import Array

__all__ = ["interpolate_image", "resize_image"]

_MODES: Final[Mapping[str, Mapping[str, Any]]] = {
    "nearest": {"mode": "nearest-exact"},
    "opencv-bilinear": {"mode": "bilinear"},
    "opencv-bicubic": {"mode": "bicubic"},
    "opencv-nearest": {"mode": "nearest"},
}


def resize_image(
    image: Array,
    whole: tuple[int, int],
    resampling: Resampling,
    start: tuple[int, int] = (0, 0),
    size: tuple[int, int] | None = None,
) -> npt.NDArray[np.float64]:
    """Resize an image, and return a part of it.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, C), with 1 or 3 channels
    whole : (int, int)
        Rows and columns of the whole resized image.
    resampling : str
        A method of `engine.image_methods.RESAMPLINGS`.
    start : (int, int)
        First row and column of the part.
    size : (int, int), optional
        Its rows and columns; default all from `start`.

    Returns
    -------
    ndarray of float64, shape (rows, columns, C)
        Whole numbers of 0 to 255.

    Raises
    ------
    LayerError
        If the whole resized image takes too much memory, for OpenCV's methods.
    """
    rows, columns = size or (whole[0] - start[0], whole[1] - start[1])
    if resampling in _MODES:
        found = np.rint(interpolate_image(image, whole, _MODES[resampling]))
        top, left = start
        part: npt.NDArray[np.float64] = found[top : top + rows, left : left + columns]
        return part
    from PIL import Image

    picture = Image.fromarray(image if image.shape[2] == 3 else image[:, :, 0])
    # Cut before it is resized: a long strip would become very large.
    high, wide = picture.height / whole[0], picture.width / whole[1]
    top, left = start
    box = (left * wide, top * high, (left + columns) * wide, (top + rows) * high)
    way = Image.Resampling[resampling.upper()]
    array = np.asarray(picture.resize((columns, rows), way, box=box), np.float64)
    return array if array.ndim == 3 else array[:, :, np.newaxis]


def interpolate_image(
    image: Array, size: tuple[int, int], arguments: Mapping[str, Any]
) -> npt.NDArray[np.float64]:
    """Resize a whole image by the arguments of ``torch.nn.functional.interpolate``.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, C)
    size : (int, int)
    arguments : mapping
        Such as `mode` and `antialias`.

    Returns
    -------
    ndarray of float64, shape (rows, columns, C)
        From 0 to 255, not rounded.
    """
    from engine.layers.resampling import interpolate

    planes = np.ascontiguousarray(np.moveaxis(image, 2, 0)[np.newaxis], np.float32)
    found = np.moveaxis(interpolate(planes, size, **arguments)[0], 0, 2)
    pixels: npt.NDArray[np.float64] = np.clip(found, 0, 255).astype(np.float64)
    return pixels
