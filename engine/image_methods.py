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

RESAMPLINGS: Final[Mapping[Resampling, str]] = {
    "bilinear": "bilinear as in Pillow",
    "bicubic": "bicubic as in Pillow",
    "lanczos": "Lanczos as in Pillow",
    "box": "means of areas as in Pillow",
    "nearest": "nearest as in Pillow",
    "opencv-bilinear": "bilinear as in OpenCV",
    "opencv-bicubic": "bicubic as in OpenCV",
    "opencv-nearest": "nearest as in OpenCV",
}
"""Methods of resizing, in words. Pillow takes means where an image shrinks, OpenCV does not."""
