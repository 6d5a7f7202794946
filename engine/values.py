"""Values of operands, their metadata, and common functions on them.

A value is an array (0-d for a scalar tensor), a Python scalar or string where PyTorch has
one, None, or a tuple of values for a list or tuple.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "MOST_MEMBERS",
    "Array",
    "ArrayMetadata",
    "Held",
    "LazyArray",
    "Value",
    "ValueMetadata",
    "address_of",
    "describe_value",
    "flatten_value",
    "freeze",
    "materialise",
    "materialise_all",
    "metadata_of",
    "value_nbytes",
]

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = Array | int | float | complex | bool | str | tuple["Value", ...] | None


@dataclass(frozen=True, slots=True)
class ArrayMetadata:
    """Shape and dtype of an array, without its elements.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize


class LazyArray:
    """A lazy array: its elements are in a library's layout until they are read.

    Parameters
    ----------
    stored : object
        The elements in that layout, perhaps with padding; never written.
    shape : tuple of int
        Of the array.
    dtype : dtype
    arrange : callable
        Takes `stored` and the shape, and returns the array.
    block : callable, optional
        Takes `stored`, and returns a view of it in NCHWc, or None; see `blocks`.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
    """

    __slots__ = ("_arrange", "_array", "_block", "_stored", "dtype", "shape")

    def __init__(
        self,
        stored: Any,  # noqa: ANN401 - only `arrange` needs to know it
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        arrange: Callable[[Any, tuple[int, ...]], Array],
        block: Callable[[Any], Array | None] | None = None,
    ) -> None:
        self.shape, self.dtype = shape, dtype
        self._stored, self._arrange, self._block = stored, arrange, block
        self._array: Array | None = None

    @property
    def stored(self) -> Any:  # noqa: ANN401 - only who made it knows
        """The stored elements, or the array if it is materialised."""
        return self._stored

    @property
    def array(self) -> Array:
        """The array, read-only; materialised once, the same one each time."""
        # A session's values are looked at from several threads. Whoever wants an array that is
        # there already waits for no other one.
        if self._array is None:
            with _materialising:
                if self._array is None:
                    array = self._arrange(self._stored, self.shape)
                    array.flags.writeable = False
                    self._array = self._stored = array
        return self._array

    def read(self) -> Array:
        """Convert the elements without storing the array."""
        stored = self._stored  # read first, because another thread may materialise it now
        return self._arrange(stored, self.shape) if self._array is None else self._array

    def blocks(self) -> Array | None:
        """Return a view of images as they are stored, if that is in NCHWc.

        Returns
        -------
        ndarray of shape (N, G, H, W, b), or None
            Blocks of b channels innermost; after the last channel of a sample there may be
            padding. None if the elements lie otherwise, or the array is materialised.
        """
        stored = self._stored  # read first, because another thread may materialise it now
        return self._block(stored) if self._block is not None and self._array is None else None


_materialising: Final = threading.Lock()

# A value of a session.
Held: TypeAlias = Value | LazyArray


def materialise(value: Held) -> Value:
    """Read a value, a lazy array in its own order."""
    return value.array if isinstance(value, LazyArray) else value


def materialise_all(values: Iterable[Held]) -> list[Value]:
    """Read values, lazy arrays in their own order."""
    return [materialise(value) for value in values]


# A value with metadata instead of its arrays.
ValueMetadata: TypeAlias = (
    ArrayMetadata | int | float | complex | bool | str | tuple["ValueMetadata", ...] | None
)


def metadata_of(value: Held) -> ValueMetadata:
    """Return a value's metadata; a lazy array is not materialised."""
    if isinstance(value, (np.ndarray, LazyArray)):
        return ArrayMetadata(value.shape, value.dtype)
    if isinstance(value, tuple):
        return tuple([metadata_of(item) for item in value])
    return value


MOST_MEMBERS: Final = 1 << 13
"""Members of a list, those of lists in it counted; whoever looks goes through all of them."""
_DEEPEST: Final = 64  # lists in lists


def freeze(value: object) -> Value:
    """Make a value safe to return.

    Parameters
    ----------
    value : object
        Result of a layer; lists become tuples, NumPy scalars 0-d arrays.

    Returns
    -------
    Value
        Arrays are marked read-only in place; they are not copied.

    Raises
    ------
    ValueError
        If it is a list of too many members, or too deep.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        return value
    if isinstance(value, (tuple, list)):
        _require_few(value)
    return _frozen(value)


def _require_few(value: Sequence[object]) -> None:
    """Count the members of lists in lists, which double with each list of a list twice."""
    count, level = 0, [value]
    for _ in range(_DEEPEST):
        inner: list[Sequence[object]] = []
        for members in level:
            count += len(members)
            if count > MOST_MEMBERS:
                raise ValueError(f"a list has more than {MOST_MEMBERS} members in all")
            inner.extend(m for m in members if isinstance(m, (tuple, list)))
        if not inner:
            return
        level = inner
    raise ValueError(f"lists are more than {_DEEPEST} deep in one another")


def _frozen(value: object) -> Value:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        return value
    if isinstance(value, np.generic):
        array = np.asarray(value)
        array.flags.writeable = False
        return array
    if isinstance(value, (tuple, list)):
        return tuple(_frozen(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    raise TypeError(f"a layer returned {type(value).__name__}, which is no tensor value")


def describe_value(value: Held) -> tuple[int, ...] | str:
    """Return the shape of an array; a word for other values."""
    if isinstance(value, (np.ndarray, LazyArray)):
        return value.shape
    if isinstance(value, tuple):
        return f"tuple of {len(value)}"
    return type(value).__name__ if value is not None else "None"


@overload
def flatten_value(value: Value) -> Iterator[Value]: ...  # type: ignore[overload-overlap]
@overload
def flatten_value(value: ValueMetadata) -> Iterator[ValueMetadata]: ...
def flatten_value(value: Value | ValueMetadata) -> Iterator[Value | ValueMetadata]:
    """Return the members of a value or its metadata in order, with nested tuples flattened."""
    if isinstance(value, tuple):
        for item in value:
            yield from flatten_value(item)
    else:
        yield value


def value_nbytes(value: Value | ValueMetadata) -> int:
    """Return the bytes of a value's arrays, or of its metadata."""
    if isinstance(value, tuple):
        return sum(map(value_nbytes, value))
    return value.nbytes if isinstance(value, (np.ndarray, ArrayMetadata)) else 0


def address_of(array: Array) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address
