"""Parameters of PNNX: a token of text, and its typed value.

Follows Parameter::parse_from_string and encode_to_string of ncnn's ``tools/pnnx/src/ir.cpp``
and float_to_string of its ``utils.cpp`` (a4d2ea1, July 2026). Deviations when reading:

- Numbers keep the precision of their text; pnnx rounds them to float32 and int32.
- ``inf``, ``-inf`` and ``nan`` are numbers; pnnx takes them for strings.
- Complex numbers are read; pnnx stops after the real part.
- In a tuple of integers and floats all become floats, and beside a string all become
  strings; pnnx drops what differs from the last element.
- What only begins like a number (``2d``) is a string; pnnx takes the number.
- A tuple that is not closed, and a number that no type holds, are errors.
- A text that only begins with a list (``[@0],@1``) is a string; pnnx cuts its ends off.

When writing, ``nan`` is not spelled ``nan.0``.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Parameter", "ParameterType", "ParameterValue", "float_text"]

Number: TypeAlias = int | float | complex
ParameterValue: TypeAlias = (
    bool
    | str
    | Number
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[complex, ...]
    | tuple[str, ...]
    | None
)


class ParameterType(IntEnum):
    """Type of a parameter; the numbers are pnnx's."""

    NULL = 0
    BOOL = 1
    INT = 2
    FLOAT = 3
    STRING = 4
    INT_ARRAY = 5
    FLOAT_ARRAY = 6
    STRING_ARRAY = 7
    COMPLEX = 10
    COMPLEX_ARRAY = 11


_REAL: Final = r"(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|inf|nan(?:\.0)?)"
_INT_PATTERN: Final = re.compile(r"-?[0-9]+")
_FLOAT_PATTERN: Final = re.compile(f"-?{_REAL}")
# pnnx puts a plus before the imaginary part whatever its sign: 1.0e+00+-2.0e+00j
_COMPLEX_PATTERN: Final = re.compile(f"(-?{_REAL})(\\+-?|-)({_REAL})j")
_INT_LIMIT: Final = 2**63
_INT32_LIMIT: Final = 2**31
_SPACE: Final = frozenset(" \t\n\r\v\f")
_STRINGS: Final = frozenset({ParameterType.STRING, ParameterType.STRING_ARRAY})
_CONSTANTS: Final[dict[str, tuple[ParameterType, bool | None]]] = {
    "None": (ParameterType.NULL, None),
    "()": (ParameterType.NULL, None),
    "[]": (ParameterType.NULL, None),
    "True": (ParameterType.BOOL, True),
    "False": (ParameterType.BOOL, False),
}


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """One parameter; immutable, so operators may share it.

    Two are equal when type and value are: ``(1,2)`` equals ``[1,2]``, and NaN equals NaN.

    Attributes
    ----------
    type : ParameterType
    value : None, bool, int, float, complex, str, or a tuple of one kind
    text : str
        Its token in the file.
    """

    type: ParameterType
    value: ParameterValue
    text: str

    @classmethod
    def parse(cls, text: str) -> Parameter:
        """Read a token.

        Parameters
        ----------
        text : str
            The text after the ``=``.

        Raises
        ------
        ValueError
            If a tuple is not closed or a number is too large for its type.
        """
        constant = _CONSTANTS.get(text)
        if constant is not None:
            return cls(*constant, text)
        if "%" in text:  # a symbol, alone or inside a list
            return cls(ParameterType.STRING, text, text)
        if text.startswith("(") and not text.endswith(")"):
            raise ValueError(f"{_shorten(text)} lacks its closing bracket")
        if text[:1] + text[-1:] in {"()", "[]"}:
            return cls(*_parse_list(text[1:-1].split(",")), text)
        number = _parse_number(text)
        if number is None:
            return cls(ParameterType.STRING, text, text)
        return cls(_TYPE_OF_NUMBER[type(number)], number, text)

    @classmethod
    def of(cls, value: object) -> Parameter:
        """Encode a value as pnnx does, floats in as many digits as float32 needs.

        Parameters
        ----------
        value : None, bool, int, float, complex, str, or a sequence of numbers or strings
            NumPy scalars count as numbers. What the text says becomes the value, so a
            float is rounded to float32, and an empty sequence is None.

        Raises
        ------
        TypeError
            If PNNX has no parameter of that kind.
        ValueError
            If reading the text back would give something else, as for the string ``"1"``.
        """
        given: object
        if isinstance(value, (list, tuple)):
            given = tuple(map(_plain, value))
            expected, text = _encode_list(given)
        else:
            given = _plain(value)
            expected, text = _encode_scalar(given)
        parameter = cls.parse(text)
        faithful = expected not in _STRINGS or parameter.value == given
        if parameter.type is not expected or not faithful or not _SPACE.isdisjoint(text):
            raise ValueError(f"{value!r} cannot be written as a PNNX parameter")
        return parameter

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parameter):
            return NotImplemented
        if self.type is not other.type:
            return False
        mine, theirs = _elements(self.value), _elements(other.value)
        return len(mine) == len(theirs) and all(
            a == b or (a != a and b != b)  # noqa: PLR0124 - NaN
            for a, b in zip(mine, theirs, strict=True)
        )

    @override
    def __hash__(self) -> int:
        return hash((self.type, *("nan" if v != v else v for v in _elements(self.value))))  # noqa: PLR0124

    @override
    def __str__(self) -> str:
        return self.text


_TYPE_OF_NUMBER: Final = {
    int: ParameterType.INT,
    float: ParameterType.FLOAT,
    complex: ParameterType.COMPLEX,
}


def float_text(value: float) -> str:
    """Format a number like pnnx's float32: ``1.0``, ``0.1``, ``1.000000e-5``.

    Raises
    ------
    ValueError
        If `value` is finite and too large for float32.
    """
    rounded = _as_float32(value)
    if rounded == 0:
        return "0.0"
    if not math.isfinite(rounded):
        return "nan" if math.isnan(rounded) else f"{rounded:g}"
    if not _PLAIN_FROM <= abs(rounded) < _PLAIN_UNTIL:
        text = f"{rounded:e}"
        exact = _as_float32(float(text)) == rounded
        return _short_exponent(text if exact else f"{rounded:.8e}")
    text = f"{rounded:g}"
    if _as_float32(float(text)) != rounded:
        text = f"{rounded:.9g}"
    whole, _, fraction = text.partition(".")
    if len(fraction) > 9:  # ncnn's own reader overflows at more digits
        return _short_exponent(f"{rounded:.8e}")
    return f"{whole}.{fraction or '0'}"


def _short_exponent(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}"


def _as_float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        raise ValueError(f"{value} does not fit in a float32") from None


# Between these pnnx writes a number without an exponent; it compares in float32.
_PLAIN_FROM: Final = _as_float32(0.0001)
_PLAIN_UNTIL: Final = 1000000.0


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")


def _parse_number(text: str) -> Number | None:
    """Parse the whole text as a number; None if it is not one."""
    if _INT_PATTERN.fullmatch(text):
        # the length first: converting thousands of digits takes long
        if len(text) > 20 or not -_INT_LIMIT <= int(text) < _INT_LIMIT:
            raise ValueError(f"the integer {_shorten(text)} does not fit in 64 bits")
        return int(text)
    if _FLOAT_PATTERN.fullmatch(text):
        return _parse_real(text)
    parts = _COMPLEX_PATTERN.fullmatch(text)
    if parts is None:
        return None
    sign = "-" if parts[2].endswith("-") else ""
    return complex(_parse_real(parts[1]), _parse_real(sign + parts[3]))


def _parse_real(text: str) -> float:
    value = float(text.removesuffix(".0") if "nan" in text else text)
    if math.isinf(value) and not text.endswith("inf"):
        raise ValueError(f"the number {_shorten(text)} is too large")
    return value


def _parse_list(items: list[str]) -> tuple[ParameterType, ParameterValue]:
    numbers = [number for number in map(_parse_number, items) if number is not None]
    if len(numbers) < len(items):
        return ParameterType.STRING_ARRAY, tuple(items)
    kinds = set(map(type, numbers))
    if complex in kinds:
        return ParameterType.COMPLEX_ARRAY, tuple(map(complex, numbers))
    if float in kinds:
        return ParameterType.FLOAT_ARRAY, tuple(float(number.real) for number in numbers)
    return ParameterType.INT_ARRAY, tuple(int(number.real) for number in numbers)


def _plain(value: object) -> object:
    """A NumPy scalar as Python's; anything else as it is."""
    item = getattr(value, "item", None)
    return value if item is None else item()


def _encode_scalar(value: object) -> tuple[ParameterType, str]:
    if value is None or isinstance(value, bool):
        return (ParameterType.NULL if value is None else ParameterType.BOOL), str(value)
    if isinstance(value, int):
        if not -_INT32_LIMIT <= value < _INT32_LIMIT:
            raise ValueError(f"{value} does not fit in the 32 bits of a PNNX integer")
        return ParameterType.INT, str(value)
    if isinstance(value, float):
        return ParameterType.FLOAT, float_text(value)
    if isinstance(value, complex):
        real, imaginary = _as_float32(value.real), _as_float32(value.imag)
        return ParameterType.COMPLEX, f"{real:e}+{imaginary:e}j"
    if isinstance(value, str):
        return ParameterType.STRING, value
    raise TypeError(f"PNNX has no parameter of type {type(value).__name__}")


def _encode_list(values: Sequence[object]) -> tuple[ParameterType, str]:
    if not values:
        return ParameterType.NULL, "()"
    mixed = {type(value) for value in values} == {int, float}
    encoded = [
        _encode_scalar(float(value) if mixed and isinstance(value, int) else value)
        for value in values
    ]
    array_types = {_ARRAY_OF.get(kind) for kind, _ in encoded}
    array_type = array_types.pop()
    if array_types or array_type is None:
        raise TypeError(
            "PNNX has arrays of integers, of floats, of complex numbers or of strings"
        )
    return array_type, f"({','.join(text for _, text in encoded)})"


_ARRAY_OF: Final = {
    ParameterType.INT: ParameterType.INT_ARRAY,
    ParameterType.FLOAT: ParameterType.FLOAT_ARRAY,
    ParameterType.COMPLEX: ParameterType.COMPLEX_ARRAY,
    ParameterType.STRING: ParameterType.STRING_ARRAY,
}


def _elements(value: ParameterValue) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
