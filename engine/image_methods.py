"""Names of the ways to bring an image to the size of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FITS", "RESAMPLINGS", "Fit", "Resampling"]

Fit = Literal["resize", "crop", "letterbox"]
Resampling = Literal[
    "bilinear", "bicubic", "lanczos", "box", "nearest",
    "opencv-bilinear", "opencv-bicubic", "opencv-nearest",
]  # fmt: skip

FITS: Final[Mapping[Fit, str]] = {
    "resize": "stretches the image",
    "crop": "keeps its centre",
    "letterbox": "puts the whole image into a border",
}
"""Ways to fit an image of another shape, in words."""

_OPENCV: Final = "as OpenCV and torch's interpolate do"
RESAMPLINGS: Final[Mapping[Resampling, str]] = {
    "bilinear": "bilinear, averaged where it shrinks, as Pillow does",
    "bicubic": "bicubic, averaged where it shrinks, as Pillow does",
    "lanczos": "Lanczos, as Pillow does",
    "box": "by the mean of areas, as Pillow does",
    "nearest": "by the nearest pixel, as Pillow does",
    "opencv-bilinear": f"bilinear, without averaging where it shrinks, {_OPENCV}",
    "opencv-bicubic": f"bicubic, without averaging where it shrinks, {_OPENCV}",
    "opencv-nearest": f"by the nearest pixel to the upper left, {_OPENCV}",
}
"""Methods of resizing, in words."""
