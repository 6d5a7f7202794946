"""Sizes of the values to be fed, for the conversion of a model that does not say its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.inputs import read_image
from engine.numpy_files import read_npy, read_npz

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.conversion.inspection import SourceFile
    from engine.inputs import InputSource
    from engine.values import Array

__all__ = ["find_sizes", "size_of"]

# dtypes in pnnx's words. float64 is left out: it is NumPy's usual one, not that of modules, and
# becomes what the model takes when it is fed.
_OF_NUMPY: Final = {
    "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64",
    "complex128": "c128",
}  # fmt: skip


def find_sizes(
    source: SourceFile,
    texts: Sequence[str],
    fed: Sequence[InputSource],
    size: tuple[int, int] | None = None,
) -> tuple[str, ...]:
    """Find the sizes that a file does not say, from the values for its inputs.

    Parameters
    ----------
    source : SourceFile
    texts : sequence of str
        Sizes of the user, which count more.
    fed : sequence of InputSource
        One per input, in order, or a single ``.npz``.
    size : (int, int), optional
        Rows and columns of pictures; by default their own.

    Returns
    -------
    tuple of str
        Sizes as `settle_inputs` takes them; empty where the file says all, or nothing is known.

    Raises
    ------
    FeedError
        If a file of values cannot be read.
    """
    if source.has_shapes:
        return ()
    if texts:
        return tuple(texts)
    found = [shape for value in fed for shape in _sizes_of(value, source, size)]
    return tuple(found) if all(found) else ()


def size_of(value: InputSource, size: tuple[int, int] | None = None) -> str:
    """Find the size of one value.

    Parameters
    ----------
    value : InputSource
    size : (int, int), optional
        Rows and columns of a picture; by default its own.

    Returns
    -------
    str
        As `settle_inputs` takes it; ``""`` for a value that has none of its own, or several.

    Raises
    ------
    FeedError
        If its file cannot be read.
    """
    if value.kind == "npy" and value.path is not None:
        return _format(read_npy(value.path))
    if value.kind == "image" and value.path is not None:
        picture = read_image(value.path)
        rows, columns = size or picture.shape[:2]
        return f"1,{3 if picture.ndim == 3 else 1},{rows},{columns}"
    return ""


def _sizes_of(
    value: InputSource, source: SourceFile, size: tuple[int, int] | None
) -> list[str]:
    """Sizes of the values of a source, one for each input that it serves."""
    if value.kind != "npz" or value.path is None:
        return [size_of(value, size)]
    inputs = (value.member,) if value.member else tuple(given.name for given in source.inputs)

    def choose(names: tuple[str, ...]) -> dict[str, str]:
        chosen = inputs if set(inputs) <= set(names) else names[: len(inputs)]
        return {name: name for name in (chosen or names)}

    return [_format(array) for array in read_npz(value.path, choose).values()]


def _format(array: Array) -> str:
    return f"{','.join(map(str, array.shape))}{_OF_NUMPY.get(array.dtype.name, '')}"
