"""Small pictures of the inputs of a data set, as they are on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import EngineError
from engine.inputs import IMAGE_SUFFIXES, read_image, thin_planes
from engine.numpy_files import read_npy, read_npz

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.datasets.inputs import InputReader
    from engine.values import Array

__all__ = ["draw_input"]


def draw_input(
    reader: InputReader, index: int, side: int = 160
) -> npt.NDArray[np.uint8] | None:
    """Draw an input.

    Parameters
    ----------
    reader : InputReader
    index : int
        Of the input in the data set.
    side : int, optional
        Most pixels along either side.

    Returns
    -------
    ndarray of uint8, shape (H, W, 3)
        A picture of the file, or of an array of one or three planes, from its least to its
        greatest element. None where there is none, or it cannot be read any more.
    """
    try:
        found = reader.entry(index)
        array = _read(found) if isinstance(found, Path) else found
    except EngineError:
        return None
    if isinstance(found, Path) and found.suffix.lower() in IMAGE_SUFFIXES:
        return _shrink(array, side)
    planes = thin_planes(array, side)
    if planes is None:
        return None
    values = np.nan_to_num(planes.astype(np.float64))
    low, high = float(values.min()), float(values.max())
    scaled = (values - low) * (255 / (high - low) if high > low else 0.0)
    pixels = np.moveaxis(scaled, 0, -1).astype(np.uint8)
    return _shrink(pixels[..., 0] if pixels.shape[-1] == 1 else pixels, side)


def _read(path: Path) -> Array:
    suffix = path.suffix.lower()
    if suffix in IMAGE_SUFFIXES:
        return read_image(path)
    if suffix == ".npy":
        return read_npy(path)
    found = read_npz(path, lambda names: {"first": names[0]} if names else {})
    return found.get("first", np.empty(0))


def _shrink(pixels: Array, side: int) -> npt.NDArray[np.uint8]:
    from PIL import Image

    image = Image.fromarray(pixels).convert("RGB")
    image.thumbnail((side, side))
    return np.asarray(image)
