"""Helpers for the arguments of many operators: dims, sizes and dtypes.

A size or index is a parameter in most files, and an operand in graphs with dynamic shapes. An
operand is a Python integer, a tuple of integers, or an integer tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.values import MOST_MEMBERS, describe_value

if TYPE_CHECKING:
    from engine.promotion import DType
    from engine.values import Array, Value

__all__ = [
    "DTYPE_OF_NAME",
    "MOST_PRODUCTS",
    "PLACEMENT",
    "along",
    "as_dtype",
    "as_int",
    "as_ints",
    "as_sizes",
    "axes_of",
    "axis_of",
    "cast",
    "is_array",
    "require_array",
    "require_few",
    "require_ndim",
    "require_order",
    "require_products",
    "require_steps",
]

# Arguments of PyTorch's factory functions for device and memory: `unused` of `register`.
PLACEMENT: Final = "layout device pin_memory requires_grad"

MOST_PRODUCTS: Final = 1 << 43
"""Maximum multiplications of one operator, a hundred times those of the largest networks."""
_MOST_STEPS: Final = 1 << 20  # about half a minute in a recurrent layer
_MOST_NUMBERS: Final = 1 << 16  # most members of a list of sizes, lengths and so on

# Dtypes by PyTorch's name. NumPy has neither bfloat16 nor half-precision complex numbers; the
# engine uses the next wider dtype for both.
DTYPE_OF_NAME: Final[dict[str, DType]] = {
    name: np.dtype(dtype)
    for names, dtype in (
        (("bool",), np.bool_),
        (("uint8",), np.uint8),
        (("uint16",), np.uint16),
        (("uint32",), np.uint32),
        (("uint64",), np.uint64),
        (("int8",), np.int8),
        (("int16", "short"), np.int16),
        (("int32", "int"), np.int32),
        (("int64", "long"), np.int64),
        (("float16", "half"), np.float16),
        (("bfloat16", "float32", "float"), np.float32),
        (("float64", "double"), np.float64),
        (("complex32", "chalf", "complex64", "cfloat"), np.complex64),
        (("complex128", "cdouble"), np.complex128),
    )
    for name in names
}

# Dtypes by their number in ``c10::ScalarType``, as operands of raw ``aten::`` operators.
_NAME_OF_CODE: Final = (
    "uint8", "int8", "short", "int", "long", "half", "float", "double", "complex32",
    "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16",
)  # fmt: skip


def as_dtype(dtype: Value) -> DType | None:
    """Return the dtype for PyTorch's name or number.

    Parameters
    ----------
    dtype : str, int or None
        ``"torch.float"``, ``6``, or None for the operator's default.

    Raises
    ------
    LayerError
        If the dtype is unknown.
    """
    if dtype is None:
        return None
    name = dtype
    if isinstance(dtype, (int, np.ndarray)):
        code = as_int(dtype, "dtype")
        name = _NAME_OF_CODE[code] if 0 <= code < len(_NAME_OF_CODE) else code
    found = DTYPE_OF_NAME.get(str(name).removeprefix("torch."))
    if found is None:
        raise LayerError(f"dtype {dtype} is not known")
    return found


def is_array(value: object) -> TypeGuard[Array]:
    """Return whether a value is a tensor."""
    return isinstance(value, np.ndarray)


def require_array(value: Value, name: str) -> Array:
    """Check that an operand is a tensor.

    Raises
    ------
    LayerError
        With the argument's name and its actual type.
    """
    if not isinstance(value, np.ndarray):
        raise LayerError(f"{name} is {describe_value(value)}, not a tensor")
    return value


def require_ndim(array: Array, ndim: int | tuple[int, ...], name: str = "input") -> None:
    """Check the number of dimensions.

    Raises
    ------
    LayerError
        With the argument's name, its shape and the expected number.
    """
    wanted = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in wanted:
        format_os_error = " or ".join(map(str, wanted))
        raise LayerError(
            f"{name} has {array.ndim} dimensions, not {format_os_error}: its shape is "
            f"{describe_shapes([array.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )


def require_order(array: Array) -> None:
    """Check that the elements can be ordered.

    Raises
    ------
    LayerError
        For complex numbers.
    """
    if array.dtype.kind == "c":
        raise LayerError("complex numbers have no order")


def as_int(value: Value, name: str) -> int:
    """Read an integer that is a Python number or a tensor with one element.

    Raises
    ------
    LayerError
        If it is neither.
    """
    if isinstance(value, int):
        return int(value)
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iub":
        return int(value.item())
    raise LayerError(f"{name} is {describe_value(value)}, not an integer")


def require_few(count: int, what: str, most: int = MOST_MEMBERS) -> None:
    """Check the length of a list before it is created.

    Raises
    ------
    LayerError
        Names `what` has too many members.
    """
    if count > most:
        raise LayerError(f"{what} has {count} members; a list has at most {most}")


def require_steps(count: int, what: str) -> None:
    """Check the number of steps of a loop in Python.

    Raises
    ------
    LayerError
        Names `what` exceeds the limit.
    """
    if count > _MOST_STEPS:
        raise LayerError(f"{count} {what} are too many to process one by one")


def require_products(count: int, most: int = MOST_PRODUCTS) -> None:
    """Check the number of multiplications; the sizes in a hostile file determine it.

    Raises
    ------
    LayerError
        If they would take hours.
    """
    if count > most:
        raise LayerError(f"{count:.0e} products are too many; at most {most:.0e} are computed")


def as_ints(value: Value, name: str) -> tuple[int, ...]:
    """Read a list of integers; an integer is a list of one, None is an empty list.

    Parameters
    ----------
    value : None, int, tuple of int, or integer ndarray of shape () or (N,)
    name : str
        Name for error messages.

    Raises
    ------
    LayerError
        If it is something else.
    """
    if value is None:
        return ()
    if isinstance(value, np.ndarray) and value.ndim == 1:
        require_few(value.size, name, _MOST_NUMBERS)
        return tuple(as_int(item, name) for item in value[..., np.newaxis])
    if isinstance(value, tuple):
        if {*map(type, value)} == {int}:  # the usual case, at every step
            return value  # type: ignore[return-value]
        return tuple([as_int(item, name) for item in value])
    return (as_int(value, name),)


def as_sizes(value: Value, name: str) -> tuple[int, ...]:
    """Read sizes, which may be the shape of a tensor.

    Parameters
    ----------
    value : as in `as_ints`, or ndarray of any other shape or dtype
        Its shape is used, because pnnx drops ONNX's ``Shape`` before ``Reshape`` and others.
        It may be a member of a list of sizes.
    name : str
        Name for error messages.
    """
    if isinstance(value, tuple) and any(isinstance(m, np.ndarray) and m.ndim for m in value):
        members = (m if isinstance(m, np.ndarray) and m.ndim else (m,) for m in value)
        return tuple(size for member in members for size in as_sizes(member, name))
    if isinstance(value, np.ndarray) and (value.ndim > 1 or value.dtype.kind not in "iu"):
        return value.shape
    return as_ints(value, name)


def axis_of(dim: Value, ndim: int, name: str = "dim") -> int:
    """Count a dim from the front.

    Parameters
    ----------
    dim : int
        Negative ones count from the end. A 0-d tensor has the dims 0 and -1, as in
        PyTorch.
    ndim : int
    name : str
        Name for error messages.

    Raises
    ------
    LayerError
        If the tensor has no such dim.
    """
    number = as_int(dim, name)
    count = max(ndim, 1)
    if not -count <= number < count:
        raise LayerError(f"{name} {number} is not in a tensor of {ndim} dimensions")
    return number % count


def axes_of(dims: Value, ndim: int, name: str = "dim") -> tuple[int, ...]:
    """Count dims from the front; None and the empty list mean all of them.

    Raises
    ------
    LayerError
        If the tensor has no such dim, or a dim is repeated.
    """
    numbers = as_ints(dims, name)
    if not numbers:
        return tuple(range(ndim))
    axes = tuple(axis_of(dim, ndim, name) for dim in numbers)
    if len(set(axes)) != len(axes):
        raise LayerError(f"{name} {numbers} has a dimension twice")
    return axes if ndim else ()


def along(axis: int, item: Any) -> tuple[Any, ...]:
    """Return an index with `item` along one axis and full slices along the others."""
    return (slice(None),) * axis + (item,)


def cast(array: Array, dtype: DType) -> Array:
    """Convert to another dtype as PyTorch does.

    Parameters
    ----------
    array : ndarray of any shape
    dtype : dtype

    Returns
    -------
    ndarray of the same shape
        `array` itself if it already has the dtype. Floats are truncated towards zero and wrap
        around if an integer dtype is too narrow. Complex numbers keep their real part.
    """
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and dtype.kind not in "cb":
            array = array.real
        if array.dtype.kind == "f" and dtype.kind in "iu" and dtype.itemsize < 8:
            array = array.astype(np.int64)
        return np.asarray(array.astype(dtype))
