"""Tensor: KuiperInfer's channels x rows x cols view of one sample, over a NumPy array.

KuiperInfer keeps a sample as a cube whose channels are stored column by column. Here the
memory is NumPy's (rows are contiguous, as PyTorch leaves them) and nothing is copied to make
a tensor; *which element has which number* is KuiperInfer's all the same, so that what its
users know holds: ``index`` counts down the columns of a channel, ``fill`` and ``values`` are
row-major unless told otherwise, ``reshape`` and ``flatten`` column-major. As there, the
methods that change a tensor do so in place; they return it, so that calls chain.

It differs where KuiperInfer aborts the process: every misuse raises `TensorError`. It also
holds any dtype, and broadcasts as NumPy does, of which KuiperInfer's (C, 1, 1) against
(C, H, W) is one case.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from typing_extensions import override

from engine.errors import TensorError
from engine.promotion import promote
from engine.text import format_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from engine.promotion import Scalar
    from engine.values import Array

__all__ = ["Tensor"]


class Tensor:
    """One sample as channels x rows x cols.

    Parameters
    ----------
    array : ndarray of shape (C, H, W), (H, W), (W,) or ()
        Aliased, not copied: writing to the tensor writes to the array and the other way
        round, until `reshape`, `flatten` or `padding` has to give the tensor its own memory.
        A read-only array makes a read-only tensor; `clone` it to write.

    Raises
    ------
    TensorError
        If there are more than three dimensions, or no numbers.
    """

    __slots__ = ("_data", "_raw_shapes")

    def __init__(self, array: npt.ArrayLike) -> None:
        array = np.asarray(array)
        if array.ndim > 3:
            raise TensorError(
                f"a tensor has channels, rows and cols, not {array.ndim} dimensions;"
                f" Tensor.batch takes a whole batch"
            )
        if array.dtype.kind not in "biufc":
            raise TensorError(f"a tensor holds numbers, not {array.dtype}")
        self._data: Array = array[(np.newaxis,) * (3 - array.ndim)]
        self._raw_shapes = _without_leading_ones(self._data.shape)

    @classmethod
    def create(cls, *shape: int, dtype: npt.DTypeLike = np.float32) -> Self:
        """Make a tensor of zeros.

        Parameters
        ----------
        *shape : int
            ``C, H, W``, ``H, W`` or ``W``.
        dtype : dtype, optional
        """
        return cls(np.zeros(_checked_shape(shape), dtype))

    @classmethod
    def batch(cls, array: Array) -> list[Self]:
        """Split a batch into one tensor per sample.

        Parameters
        ----------
        array : ndarray
            The first dimension is the batch: (N, C, H, W) gives N tensors of C x H x W,
            (N, H, W) N of H x W, (N, W) N of W. Where more dimensions stand between the
            batch and the rows they all count as channels: (N, C, D, H, W) gives N tensors
            of C * D channels, channel ``c * D + d``. An array of shape (W,) or () has no
            batch and is one tensor.

        Returns
        -------
        list of Tensor
            Views of `array`. Only beyond four dimensions, and only where the strides do
            not let dimensions fold (a permuted array), is the memory a copy.
        """
        if array.ndim < 2:
            return [cls(array)]
        if array.ndim > 4:
            depth = math.prod(array.shape[1:-2])
            array = array.reshape(array.shape[0], depth, *array.shape[-2:])
        return [cls(sample) for sample in array]

    @property
    def data(self) -> Array:
        """The elements, shape (C, H, W); a view, to read and to write."""
        return self._data

    @property
    def channels(self) -> int:
        """Number of channels; 1 for 1-D and 2-D tensors."""
        return int(self._data.shape[0])

    @property
    def rows(self) -> int:
        """Number of rows; 1 for 1-D tensors."""
        return int(self._data.shape[1])

    @property
    def cols(self) -> int:
        """Number of columns."""
        return int(self._data.shape[2])

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._data.size

    @property
    def plane_size(self) -> int:
        """Number of elements of one channel."""
        return self.rows * self.cols

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._data.dtype

    @property
    def empty(self) -> bool:
        """Whether there are no elements."""
        return self._data.size == 0

    def shapes(self) -> tuple[int, int, int]:
        """Channels, rows, cols: always three, as in KuiperInfer."""
        return self.channels, self.rows, self.cols

    def raw_shapes(self) -> tuple[int, ...]:
        """Shape with the rank that the tensor was given.

        Leading ones of the shape at construction are dropped, so a 1-D tensor has one entry
        and a 2-D one two; after `reshape` and `flatten` it is the shape that was asked for,
        after `padding` always three.
        """
        return self._raw_shapes

    def slice(self, channel: int) -> Array:
        """One channel, shape (H, W); a view, to read and to write.

        Raises
        ------
        TensorError
            If there is no such channel; negative numbers are none.
        """
        self._require_index("channel", channel, self.channels)
        plane: Array = self._data[channel]
        return plane

    def at(self, channel: int, row: int, col: int) -> np.generic:
        """The element at a place; write through `data` or `slice`.

        Raises
        ------
        TensorError
            If there is no such place; negative numbers are none.
        """
        self._require_index("channel", channel, self.channels)
        self._require_index("row", row, self.rows)
        self._require_index("col", col, self.cols)
        element: np.generic = self._data[channel, row, col]
        return element

    def index(self, offset: int) -> np.generic:
        """The element with a number: channel by channel, down the columns of each.

        Raises
        ------
        TensorError
            If `offset` is negative, or not below `size`.
        """
        self._require_index("index", offset, self.size)
        channel, rest = divmod(offset, self.plane_size)
        col, row = divmod(rest, self.rows)
        element: np.generic = self._data[channel, row, col]
        return element

    def values(self, *, row_major: bool = True) -> Array:
        """All elements in order, shape (C * H * W,); always a copy.

        Parameters
        ----------
        row_major : bool, optional
            Along the rows of each channel, or down its columns.
        """
        ordered = self._data if row_major else self._data.transpose(0, 2, 1)
        return ordered.flatten()

    def fill(self, values: Scalar | Sequence[Any] | Array, *, row_major: bool = True) -> Self:
        """Write one value everywhere, or all values in order; in place.

        Parameters
        ----------
        values : scalar, or sequence of C * H * W numbers
            Copied, and converted to the tensor's dtype.
        row_major : bool, optional
            Whether `values` runs along the rows of each channel, or down its columns.

        Raises
        ------
        TensorError
            If the number of values is another, or the tensor is read-only.
        """
        self._require_writable()
        given = np.asarray(values)
        if given.ndim == 0:
            self._data[...] = given
            return self
        if given.size != self.size:
            raise TensorError(f"fill got {given.size} values for {self.size} elements")
        self._data[...] = _from_flat(given.reshape(-1), self.shapes(), row_major=row_major)
        return self

    def ones(self) -> Self:
        """Write 1 everywhere; in place.

        Raises
        ------
        TensorError
            If the tensor is read-only.
        """
        return self.fill(1)

    def rand(
        self, seed: int | np.random.Generator = 0, *, mean: float = 0.0, std: float = 1.0
    ) -> Self:
        """Write normally distributed numbers (KuiperInfer's RandN); in place.

        Parameters
        ----------
        seed : int or Generator, optional
            The same seed gives the same numbers.
        mean, std : float, optional

        Raises
        ------
        TensorError
            If the tensor does not hold floats, or is read-only.
        """
        if self.dtype.kind != "f":
            raise TensorError(f"normally distributed numbers do not fit {self.dtype}")
        return self.fill(np.random.default_rng(seed).normal(mean, std, self.size))

    def rand_uniform(
        self, seed: int | np.random.Generator = 0, *, low: float = 0, high: float = 1
    ) -> Self:
        """Write uniformly distributed numbers (KuiperInfer's RandU); in place.

        Parameters
        ----------
        seed : int or Generator, optional
            The same seed gives the same numbers.
        low, high : float, optional
            Integers may be `high`, floats are below it.

        Raises
        ------
        TensorError
            If `high` is below `low`, or the tensor is read-only.
        """
        if high < low:
            raise TensorError(f"the range {low} to {high} is empty")
        rng = np.random.default_rng(seed)
        if self.dtype.kind in "biu":
            return self.fill(rng.integers(int(low), int(high), self.size, endpoint=True))
        return self.fill(rng.uniform(low, high, self.size))

    def transform(self, function: Callable[[Any], Any]) -> Self:
        """Replace every element by a function of it; in place.

        Parameters
        ----------
        function : callable
            Gets each element as a Python number, in row-major order. A NumPy ufunc gets
            them all at once, which is much faster. Results are converted to the tensor's
            dtype.

        Raises
        ------
        TensorError
            If the tensor is read-only.
        """
        self._require_writable()
        if isinstance(function, np.ufunc):
            self._data[...] = function(self._data)
            return self
        new = [function(value) for value in self._data.ravel().tolist()]
        self._data[...] = np.array(new).reshape(self._data.shape)
        return self

    def padding(
        self, top: int, bottom: int, left: int, right: int, value: Scalar = 0.0
    ) -> Self:
        """Add rows and columns around every channel; in place.

        Parameters
        ----------
        top, bottom, left, right : int
            Rows and columns to add.
        value : scalar, optional
            What they hold.

        Returns
        -------
        Tensor
            This one, of shape (C, top + H + bottom, left + W + right), in memory of its
            own; `raw_shapes` has three entries.

        Raises
        ------
        TensorError
            If a number is negative.
        """
        if min(top, bottom, left, right) < 0:
            raise TensorError(f"padding {(top, bottom, left, right)} has a negative width")
        shape = (self.channels, top + self.rows + bottom, left + self.cols + right)
        padded = np.full(shape, value, self.dtype)
        padded[:, top : top + self.rows, left : left + self.cols] = self._data
        self._data, self._raw_shapes = padded, shape
        return self

    def reshape(self, shape: Sequence[int], *, row_major: bool = False) -> Self:
        """Give the elements another shape; in place.

        Parameters
        ----------
        shape : sequence of int
            (C, H, W), (H, W) or (W,); `raw_shapes` becomes exactly this.
        row_major : bool, optional
            The order in which elements are taken and put back: along the rows of each
            channel, or, as KuiperInfer's default, down its columns.

        Returns
        -------
        Tensor
            This one. Row-major keeps aliasing the array where its strides allow;
            column-major gives the tensor memory of its own unless the columns are
            contiguous.

        Raises
        ------
        TensorError
            If the shape is not one of one to three sizes, or has another number of elements.
        """
        shape = _checked_shape(shape)
        if math.prod(shape) != self.size:
            raise TensorError(
                f"{self.size} elements of shape {self._raw_shapes} do not fill {shape}"
            )
        full = (1,) * (3 - len(shape)) + shape
        ordered = self._data if row_major else self._data.transpose(0, 2, 1)
        self._data = _from_flat(ordered.reshape(-1), full, row_major=row_major)
        self._raw_shapes = shape
        return self

    def flatten(self, *, row_major: bool = False) -> Self:
        """Make the tensor 1-D; `reshape` to (C * H * W,), in place."""
        return self.reshape((self.size,), row_major=row_major)

    def clone(self) -> Self:
        """Copy: a writable tensor in memory of its own, with the same shapes."""
        return type(self)(self._data.copy()).reshape(self._raw_shapes, row_major=True)

    def add(self, other: Self | Scalar) -> Self:
        """Sum with another tensor, element by element.

        Parameters
        ----------
        other : Tensor or scalar
            Dimensions of size 1 stretch, so (C, 1, 1) adds one number per channel.

        Returns
        -------
        Tensor
            A new one, of PyTorch's dtype for the sum.

        Raises
        ------
        TensorError
            If the shapes do not match.
        """
        return self._combine(np.add, other)

    def multiply(self, other: Self | Scalar) -> Self:
        """Product with another tensor, element by element; otherwise like `add`."""
        return self._combine(np.multiply, other)

    def is_same(self, other: Self, threshold: float = 1e-5) -> bool:
        """Whether shapes are equal and no element differs by more than `threshold`.

        NaN equals NaN. Dimensions that are lacking count as 1: shapes are those of `shapes`.
        """
        if self.shapes() != other.shapes():
            return False
        return np.allclose(self._data, other.data, rtol=0.0, atol=threshold, equal_nan=True)

    def show(self) -> str:
        """Spell the elements channel by channel, long ones abbreviated."""
        return "\n".join(f"Channel: {i}\n{plane}" for i, plane in enumerate(self._data))

    def _combine(self, operation: np.ufunc, other: Self | Scalar) -> Self:
        mine, theirs = promote(self._data, other.data if isinstance(other, Tensor) else other)
        try:
            with np.errstate(all="ignore"):
                return type(self)(operation(mine, theirs))
        except ValueError:
            raise TensorError(
                f"shapes {self.shapes()} and {theirs.shape} cannot be broadcast together"
            ) from None

    def _require_writable(self) -> None:
        if not self._data.flags.writeable:
            raise TensorError("the tensor is a read-only view; clone it to write")

    @staticmethod
    def _require_index(what: str, index: int, count: int) -> None:
        if not 0 <= index < count:
            raise TensorError(f"{what} {index} is not among the {count} there are")

    def __add__(self, other: Self | Scalar) -> Self:
        return self.add(other)

    def __mul__(self, other: Self | Scalar) -> Self:
        return self.multiply(other)

    def __array__(
        self,
        dtype: np.dtype[Any] | None = None,
        copy: bool | None = None,  # noqa: FBT001 - NumPy's protocol
    ) -> Array:
        if copy is None:
            return np.asarray(self._data, dtype)
        return np.array(self._data, dtype, copy=copy)

    @override
    def __repr__(self) -> str:
        return f"Tensor({format_shape(self._raw_shapes)}, {self.dtype})"


def _from_flat(flat: Array, shape: tuple[int, ...], *, row_major: bool) -> Array:
    """Elements in order as (C, H, W); a view of `flat`."""
    if row_major:
        return flat.reshape(shape)
    channels, rows, cols = shape
    return flat.reshape(channels, cols, rows).transpose(0, 2, 1)


def _checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    if not 1 <= len(shape) <= 3 or min(shape) < 0:
        raise TensorError(f"{tuple(shape)} is no shape of one to three sizes")
    return tuple(shape)


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """KuiperInfer's raw shape of a (C, H, W) tensor: ``1, 1, W`` is W, ``1, H, W`` is H, W."""
    if shape[0] != 1:
        return shape
    return shape[1:] if shape[1] != 1 else shape[2:]
