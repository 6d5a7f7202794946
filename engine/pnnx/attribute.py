"""Attributes: the weights of an operator, read on first use."""

from __future__ import annotations

import math
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from typing_extensions import override

from engine.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.file_versions import FileVersion
    from engine.values import Array

__all__ = ["DTYPES", "ITEMSIZES", "Attribute", "MissingWeights", "WeightSource"]

# pnnx's name of each dtype, and NumPy's of the array it becomes. NumPy has neither bfloat16
# nor complex32: they become the next wider. "null" is what pnnx writes for a dtype that it
# does not know, quantised ones for instance; nothing of such a weight is in the file.
DTYPES: Final[Mapping[str, np.dtype[Any]]] = MappingProxyType(
    {
        "f32": np.dtype("<f4"),
        "f64": np.dtype("<f8"),
        "f16": np.dtype("<f2"),
        "i32": np.dtype("<i4"),
        "i64": np.dtype("<i8"),
        "i16": np.dtype("<i2"),
        "i8": np.dtype("i1"),
        "u8": np.dtype("u1"),
        "bool": np.dtype("?"),
        "c64": np.dtype("<c8"),
        "c128": np.dtype("<c16"),
        "c32": np.dtype("<c8"),
        "bf16": np.dtype("<f4"),
        "null": np.dtype("V"),
    }
)
ITEMSIZES: Final[Mapping[str, int]] = MappingProxyType(
    {**{name: dtype.itemsize for name, dtype in DTYPES.items()}, "c32": 4, "bf16": 2}
)
"""Bytes that one element takes in the file, by pnnx's name of the dtype."""

_NAMES: Final = {
    dtype: name for name, dtype in DTYPES.items() if name not in {"c32", "bf16", "null"}
}
_COMPARED_AT_ONCE: Final = 1 << 24


class WeightSource(Protocol):
    """A source of attributes' bytes."""

    @property
    def path(self) -> Path:
        """File to name in errors."""
        ...

    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Bytes from `offset` on, read-only: the same memory each time, and nobody writes it.

        Raises
        ------
        ModelFileError
            If they cannot be read.
        """
        ...


class WeightArchive(WeightSource, Protocol):
    """All weights of a model, in a ``.bin`` of this or another process."""

    @property
    def entries(self) -> Mapping[str, tuple[int, int]]:
        """Offset and size of each weight's bytes, by ``operator.attribute``."""
        ...

    @property
    def version(self) -> FileVersion:
        """Of the ``.bin`` when it was opened."""
        ...

    @property
    def directory(self) -> bytes:
        """The directory of the ``.bin``: names, sizes, offsets and checksums."""
        ...

    @property
    def is_kept(self) -> bool:
        """Whether all weights are copied, so that a change of the file does not matter."""
        ...


class MissingWeights:
    """The weights of a model that was opened without its ``.bin``.

    Parameters
    ----------
    path : Path
        The ``.param`` file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:  # noqa: ARG002
        """Raise an error: there are no weights."""
        raise ModelFileError(
            self.path,
            "its weights are missing, because the model was opened without its .bin; "
            "open it together with the .bin file",
        )


class _Memory:
    """Bytes in memory."""

    path: Final = Path("weights in memory")

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self._data = data

    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        return self._data[offset : offset + nbytes]


class Attribute:
    """One weight of an operator.

    Parameters
    ----------
    dtype : str
        pnnx's name, a key of `DTYPES`.
    shape : tuple of int
        ``()`` for a single number.
    source : WeightSource
        Asked for the bytes when they are first used.
    offset : int
        Of the first byte in `source`.
    """

    __slots__ = ("_array", "_offset", "_source", "dtype", "shape")

    def __init__(
        self, dtype: str, shape: tuple[int, ...], source: WeightSource, offset: int = 0
    ) -> None:
        self.dtype, self.shape = dtype, shape
        self._source, self._offset = source, offset
        self._array: Array | None = None

    @classmethod
    def from_array(cls, array: npt.ArrayLike) -> Attribute:
        """Make a weight from an array.

        Parameters
        ----------
        array : array_like
            Copied.

        Raises
        ------
        TypeError
            If PNNX has no such dtype.
        """
        given = np.asarray(array)
        dtype = _NAMES.get(given.dtype.newbyteorder("<"))
        if dtype is None:
            raise TypeError(f"PNNX has no attributes of dtype {given.dtype}")
        stored = given.astype(DTYPES[dtype], order="C")
        return cls.from_bytes(stored.tobytes(), stored.shape, dtype)

    @classmethod
    def from_bytes(cls, data: bytes, shape: tuple[int, ...], dtype: str) -> Attribute:
        """Make a weight from the bytes of a file, such as bf16 and c32.

        Parameters
        ----------
        data : bytes
            Little-endian, last dimension fastest.
        shape : tuple of int
        dtype : str
            A key of `DTYPES`.

        Raises
        ------
        ValueError
            If `shape` and `dtype` need another number of bytes.
        """
        attribute = cls(dtype, shape, _Memory(np.frombuffer(data, np.uint8)))
        if attribute.nbytes != len(data):
            raise ValueError(
                f"{shape} of {dtype} takes {attribute.nbytes} bytes, {len(data)} were given"
            )
        return attribute

    def bind(self, source: WeightSource, offset: int) -> None:
        """Change the source of the bytes."""
        self._source, self._offset, self._array = source, offset, None

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * ITEMSIZES[self.dtype]

    @property
    def is_stored(self) -> bool:
        """Whether the file has the weight: pnnx knew its dtype, and there is a ``.bin``."""
        return self.dtype != "null" and not isinstance(self._source, MissingWeights)

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """Bytes of the weight.

        Returns
        -------
        ndarray of shape (nbytes,)
            Read-only; read when first asked for, and the same from then on.

        Raises
        ------
        ModelFileError
            If the model was opened without its ``.bin``, or that was written again before
            this weight was read.
        """
        nbytes = self.nbytes
        return (
            self._source.view(self._offset, nbytes) if nbytes else np.frombuffer(b"", np.uint8)
        )

    @property
    def array(self) -> Array:
        """The weight.

        Returns
        -------
        ndarray
            Read-only. A view of `data`, which may start at an address that is no
            multiple of the element's size (``flags.aligned``; NumPy computes with it all
            the same). A copy for bf16 (as float32) and c32 (as complex64), made once.

        Raises
        ------
        ModelFileError
            As for `data`, or if pnnx did not know the dtype.
        """
        if self._array is None:
            if self.dtype == "null":
                raise ModelFileError(
                    self._source.path,
                    "pnnx does not know the dtype of this weight and did not store it; "
                    "export the model without quantisation",
                )
            array = _CONVERSIONS.get(self.dtype, _plain)(self.data, DTYPES[self.dtype])
            array.flags.writeable = False
            self._array = array.reshape(self.shape)
        return self._array

    def same_as(self, other: Attribute) -> bool:
        """Whether dtype, shape and every byte are equal; two missing weights are."""
        if (self.dtype, self.shape) != (other.dtype, other.shape):
            return False
        missing = [isinstance(a._source, MissingWeights) for a in (self, other)]  # noqa: SLF001
        if any(missing):
            return all(missing)
        mine, theirs = self.data, other.data
        return all(
            np.array_equal(mine[i : i + _COMPARED_AT_ONCE], theirs[i : i + _COMPARED_AT_ONCE])
            for i in range(0, self.nbytes, _COMPARED_AT_ONCE)
        )

    @override
    def __repr__(self) -> str:
        return f"Attribute({self.dtype}, {self.shape})"


def _plain(data: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> Array:
    return data.view(dtype)


def _from_bool(data: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> Array:
    # NumPy assumes that a bool is 0 or 1; a file may hold anything.
    return data.view(dtype) if data.size == 0 or data.max() <= 1 else data != 0


def _from_bfloat16(data: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> Array:
    # the upper half of a float32
    return (data.view("<u2").astype("<u4") << np.uint32(16)).view(dtype)


def _from_complex32(data: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> Array:
    return data.view("<f2").astype("<f4").view(dtype)


_CONVERSIONS: Final = {
    "bool": _from_bool,
    "bf16": _from_bfloat16,
    "c32": _from_complex32,
}
