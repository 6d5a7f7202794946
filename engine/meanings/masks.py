"""Masks of segmentation, from files of the user."""

from __future__ import annotations

import warnings
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import EngineError, MeaningError
from engine.numpy_files import read_npy

if TYPE_CHECKING:
    import numpy.typing as npt
    from PIL import Image

    from engine.meanings.results import LabelMap
    from engine.values import Array

__all__ = ["Match", "match_mask", "read_mask", "resize_nearest"]

_UNKNOWN: Final = 255  # the usual value of pixels without a class
_MOST_PIXELS: Final = 1 << 26


def read_mask(path: str) -> npt.NDArray[np.int32]:
    """Read the class of each pixel from a picture or ``.npy``.

    Parameters
    ----------
    path : str
        Of a picture of one channel or with a palette, or of a whole-number array of shape
        (H, W).

    Returns
    -------
    ndarray of shape (H, W)
        -1 where no class is known.

    Raises
    ------
    MeaningError
        If the file cannot be read or is no mask.
    """
    found = read_npy(Path(path)) if path.lower().endswith(".npy") else _read_picture(path)
    if found.ndim != 2 or found.dtype.kind not in "iub" or not found.size:
        raise MeaningError(f"{path} is no mask: it needs one whole number for each pixel")
    if found.size > _MOST_PIXELS:
        raise MeaningError(f"{path} has {found.size} pixels, which is too large")
    wide = found.astype(np.int64)
    return np.where((wide < 0) | (wide >= _UNKNOWN), -1, wide).astype(np.int32)


def _read_picture(path: str) -> Array:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                _require_mask(path, image)
                return np.asarray(image)
    except EngineError:
        raise
    except Exception as exc:  # decoders raise any exception for a damaged file
        reason = getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
        raise MeaningError(f"{path} cannot be read as a mask: {reason}") from exc


def _require_mask(path: str, image: Image.Image) -> None:
    if image.width * image.height > _MOST_PIXELS:
        size = f"{image.width}×{image.height}"
        raise MeaningError(f"{path} has {size} pixels, which is too large")
    if image.mode not in {"1", "L", "P", "I", "I;16"}:
        raise MeaningError(
            f"{path} is a picture in colour; a mask has one number for each pixel"
        )


def resize_nearest(
    labels: npt.NDArray[np.int32], shape: tuple[int, ...]
) -> npt.NDArray[np.int32]:
    """Return labels at another size, each pixel from the nearest."""
    rows, columns = (
        (np.arange(wanted) * 2 + 1) * given // (2 * wanted)
        for wanted, given in zip(shape, labels.shape, strict=True)
    )
    found: npt.NDArray[np.int32] = labels[rows[:, np.newaxis], columns]
    return found


class Match(IntEnum):
    """How a pixel compares with the mask."""

    NEITHER = 0
    AGREEMENT = 1
    FALSE = 2
    MISSED = 3
    OTHER = 4


def match_mask(result: LabelMap, entry: int = -1) -> npt.NDArray[np.uint8]:
    """Compare each pixel with the user's mask.

    Parameters
    ----------
    result : LabelMap
        With `expected`.
    entry : int, optional
        A class; by default all classes but background.

    Returns
    -------
    ndarray of shape (H, W), uint8
        Of `Match`. For one class a pixel is false where only the output has the class, missed
        where only the mask has it, and never `OTHER`. For all classes a pixel is `OTHER` where
        both have different ones. `NEITHER` where the mask knows no class, or both have none.

    Raises
    ------
    MeaningError
        If there is no mask.
    """
    if result.expected is None:
        raise MeaningError("there is no mask to compare with")
    labels, expected = result.labels, result.expected
    if entry >= 0:
        ours, theirs = labels == entry, expected == entry
    else:
        empty = 0 if result.has_background else -1
        ours, theirs = labels != empty, expected != empty
    found = np.zeros(labels.shape, np.uint8)
    found[ours & ~theirs] = Match.FALSE
    found[theirs & ~ours] = Match.MISSED
    both = ours & theirs
    found[both] = np.where(labels == expected, Match.AGREEMENT, Match.OTHER)[both]
    found[expected < 0] = Match.NEITHER
    return found
