"""Resizes images by the methods of the usual libraries."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from PIL.Image import Image

    from engine.image_methods import Resampling
    from engine.values import Array

__all__ = ["ImageResizer", "shrunk", "with_channels"]

_MODES: Final[Mapping[str, Mapping[str, Any]]] = {
    "nearest": {"mode": "nearest-exact"},
    "opencv-bilinear": {"mode": "bilinear"},
    "opencv-bicubic": {"mode": "bicubic"},
    "opencv-nearest": {"mode": "nearest"},
}


def with_channels(image: Array, channels: int) -> npt.NDArray[np.uint8]:
    """Make an image grey or give it three channels.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3) or (H, W)
    channels : {1, 3}

    Returns
    -------
    ndarray of uint8, shape (H, W, channels)
        May be `image` itself. A colour becomes as bright as in Pillow.
    """
    if image.ndim == 3 and channels == 3:
        return image  # Pillow would copy it, and a photograph is large
    if image.ndim == 3:
        from PIL import Image

        image = np.asarray(Image.fromarray(image).convert("L"))
    return np.repeat(image[:, :, np.newaxis], channels, axis=2)


def shrunk(image: Array, least: tuple[int, int]) -> Array:
    """Shrink an image by means of blocks, as far as a whole factor allows.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, C), with 1 or 3 channels
    least : (int, int)
        Rows and columns that are left at least.

    Returns
    -------
    ndarray of uint8
        `image` itself if it is not twice as large.
    """
    factor = min(size // few for size, few in zip(image.shape, least, strict=False))
    if factor < 2:
        return image
    found = np.asarray(_picture_of(image).reduce(factor))
    return found if found.ndim == 3 else found[:, :, np.newaxis]


def _picture_of(image: Array) -> Image:
    from PIL import Image

    return Image.fromarray(image if image.shape[2] == 3 else image[:, :, 0])


class ImageResizer:
    """Resizes one image, again and again.

    Only those pixels are computed that are asked for: the whole resized image of a long strip
    would be very large.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, C), with 1 or 3 channels
    """

    def __init__(self, image: Array) -> None:
        self._image = image

    @cached_property
    def _picture(self) -> Image:
        return _picture_of(self._image)

    def resize(
        self,
        whole: tuple[int, int],
        resampling: Resampling,
        start: tuple[int, int] = (0, 0),
        size: tuple[int, int] | None = None,
    ) -> npt.NDArray[np.uint8]:
        """Resize the image, and return a part of it.

        Parameters
        ----------
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
        ndarray of uint8, shape (rows, columns, C)
        """
        if resampling in _MODES:
            found = self.interpolate(whole, _MODES[resampling], start, size)
            return np.rint(found).astype(np.uint8)
        from PIL import Image

        rows, columns = size or (whole[0] - start[0], whole[1] - start[1])
        picture = self._picture
        high, wide = picture.height / whole[0], picture.width / whole[1]
        top, left = start
        box = (left * wide, top * high, (left + columns) * wide, (top + rows) * high)
        way = Image.Resampling[resampling.upper()]
        array = np.asarray(picture.resize((columns, rows), way, box=box))
        return array if array.ndim == 3 else array[:, :, np.newaxis]

    def interpolate(
        self,
        whole: tuple[int, int],
        arguments: Mapping[str, Any],
        start: tuple[int, int] = (0, 0),
        size: tuple[int, int] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Resize it by the arguments of ``torch.nn.functional.interpolate``.

        Parameters
        ----------
        whole, start, size
            As for `resize`.
        arguments : mapping
            Such as `mode` and `antialias`.

        Returns
        -------
        ndarray of float32, shape (rows, columns, C)
            From 0 to 255, not rounded.
        """
        from engine.layers.resampling import interpolation_taps, weighted_taps

        image = self._image
        rows, columns = size or (whole[0] - start[0], whole[1] - start[1])
        (top, left), (height, width) = start, image.shape[:2]
        taps = interpolation_taps(
            (1, 1, height, width),
            np.dtype(np.float32),
            whole,
            None,
            arguments["mode"],
            align_corners=arguments.get("align_corners", False),
            recompute_scale_factor=False,
            antialias=arguments.get("antialias", False),
            kept=(range(top, top + rows), range(left, left + columns)),
        )
        used = [np.unique(positions, return_inverse=True) for positions, _ in taps]
        pixels = np.take(np.take(image, used[0][0], axis=0), used[1][0], axis=1)
        # The axis that shrinks most is first, as for torch.
        order = sorted((0, 1), key=lambda axis: whole[axis] / image.shape[axis])
        planes = []
        for channel in range(image.shape[2]):  # one by one, because floats take more memory
            plane = pixels[..., channel].astype(np.float32)
            for axis in order:
                positions, weights = taps[axis]
                places = used[axis][1].reshape(positions.shape)
                plane = weighted_taps(plane, axis, places, weights)
            planes.append(plane)
        return np.clip(np.stack(planes, axis=2), 0, 255)
