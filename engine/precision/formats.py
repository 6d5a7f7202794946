"""Number formats of lower precision, and rounding to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.values import Array, Value

__all__ = [
    "FORMATS",
    "Format",
    "FormatName",
    "format_of",
    "is_float",
    "round_to",
    "round_value",
]

FormatName: TypeAlias = Literal["float16", "bfloat16", "int8", "int8-per-channel"]

_INT8_LARGEST: Final = 127


@dataclass(frozen=True, slots=True)
class Format:
    """A storage format.

    Attributes
    ----------
    name : str
    largest : float or None
        Largest finite number; None if each tensor has its own scale.
    smallest : float
        Smallest normal number; 0 if each tensor has its own scale.
    per_channel : bool
        Whether each output channel of a weight has its own scale. Outputs of operators have one
        scale.
    """

    name: FormatName
    largest: float | None
    smallest: float
    per_channel: bool = False

    @property
    def is_scaled(self) -> bool:
        """Whether each tensor has its own scale."""
        return self.largest is None


_FORMATS: Final[dict[str, Format]] = {
    each.name: each
    for each in (
        Format("float16", 65504.0, 2.0**-14),
        Format("bfloat16", (2.0 - 2.0**-7) * 2.0**127, 2.0**-126),
        Format("int8", None, 0.0),
        Format("int8-per-channel", None, 0.0, per_channel=True),
    )
}
FORMATS: Final[tuple[FormatName, ...]] = tuple(each.name for each in _FORMATS.values())


def format_of(name: str) -> Format:
    """Return the format of a name.

    Raises
    ------
    EngineError
        If there is no such format.
    """
    found = _FORMATS.get(name)
    if found is None:
        raise EngineError(f"there is no format {name!r}; choose {', '.join(FORMATS)}")
    return found


def is_float(value: Value) -> bool:
    """Whether a value is an array of real floating-point numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def round_value(value: Value, format: Format) -> Value:  # noqa: A002 - the field's word
    """Round the floating-point arrays of a value; see `round_to`.

    Returns
    -------
    Value
        Integers, complex numbers and texts are returned unchanged, as the same objects.
    """
    if isinstance(value, tuple):
        return tuple(round_value(item, format) for item in value)
    if isinstance(value, np.ndarray) and is_float(value):
        rounded = round_to(value, format)
        rounded.flags.writeable = False
        return rounded
    return value


def round_to(array: Array, format: Format, axis: int | None = None) -> Array:  # noqa: A002
    """Round an array as storing it and reading it back would.

    Parameters
    ----------
    array : ndarray of float16, float32 or float64
    format : Format
    axis : int, optional
        For a scaled format, the axis whose members have their own scales; by default one scale
        for all.

    Returns
    -------
    ndarray
        Of the same shape and dtype; a copy. Ties of float16 and bfloat16 go to the even number,
        those of int8 away from zero, as in ncnn. int8 has the scale max|x| / 127 of the finite
        elements; infinities become ±127, NaN stays.
    """
    with np.errstate(all="ignore"):
        if format.is_scaled:
            return _through_int8(array, axis)
        if format.name == "float16":
            return array.astype(np.float16).astype(array.dtype)
        return _through_bfloat16(array)


def _through_bfloat16(array: Array) -> Array:
    single = array.astype(np.float32)
    bits = single.view(np.uint32) if single.ndim else single.reshape(1).view(np.uint32)
    # Add just under half of the last kept bit, and one more if it is set: ties go to even.
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    result = rounded.view(np.float32).reshape(single.shape)
    return np.where(np.isnan(single), single, result).astype(array.dtype)


def _through_int8(array: Array, axis: int | None) -> Array:
    wide = array.astype(np.float64)
    others = None if axis is None else tuple(i for i in range(array.ndim) if i != axis)
    largest = np.abs(wide).max(axis=others, keepdims=True, initial=0.0, where=np.isfinite(wide))
    scale = np.where(largest > 0, largest / _INT8_LARGEST, 1.0)
    wide = wide / scale
    wide = np.trunc(wide + np.copysign(0.5, wide))
    wide = np.clip(wide, -_INT8_LARGEST, _INT8_LARGEST) * scale
    return np.asarray(wide, array.dtype)
