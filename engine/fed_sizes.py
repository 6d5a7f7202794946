"""Sizes of the values to be fed, for the conversion of a model that does not say its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.inputs import read_image
from engine.numpy_files import read_npy, read_npz

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.conversion.inspection import SourceFile
    from engine.inputs import InputSource

__all__ = ["find_sizes"]

# dtypes in pnnx's words
_OF_NUMPY: Final = {
    "float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32",
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
    found = [shape for value in fed for shape in _shapes_of(value, source, size)]
    return tuple(found) if all(found) else ()


def _shapes_of(
    value: InputSource, source: SourceFile, size: tuple[int, int] | None
) -> list[str]:
    """Sizes of the arrays of a source; an empty text for one that has none of its own."""
    if value.kind == "npy" and value.path is not None:
        array = read_npy(value.path)
        return [_format(array.shape, array.dtype.name)]
    if value.kind == "npz" and value.path is not None:
        named = tuple(given.name for given in source.inputs)

        def choose(names: tuple[str, ...]) -> dict[str, str]:
            wanted = (value.member,) if value.member else named
            by_name = set(wanted) <= set(names)
            return {n: n for n in (wanted if by_name and wanted else names)}

        arrays = read_npz(value.path, choose)
        return [_format(array.shape, array.dtype.name) for array in arrays.values()]
    if value.kind == "array" and value.array is not None:
        return [_format(value.array.shape, value.array.dtype.name)]
    if value.kind == "image" and value.path is not None:
        picture = read_image(value.path)
        rows, columns = size or picture.shape[:2]
        return [f"1,{3 if picture.ndim == 3 else 1},{rows},{columns}"]
    return [""]


def _format(shape: tuple[int, ...], dtype: str) -> str:
    return f"{','.join(map(str, shape))}{_OF_NUMPY.get(dtype, '')}"
