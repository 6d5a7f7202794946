"""Typed parameters and lazily read weights of a runtime operator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.pnnx import DTYPES, ParameterType

if TYPE_CHECKING:
    from engine.pnnx import Attribute, Parameter
    from engine.values import Array, Value

__all__ = [
    "RuntimeAttribute",
    "RuntimeParameter",
    "RuntimeParameterBool",
    "RuntimeParameterComplex",
    "RuntimeParameterComplexArray",
    "RuntimeParameterFloat",
    "RuntimeParameterFloatArray",
    "RuntimeParameterInt",
    "RuntimeParameterIntArray",
    "RuntimeParameterNull",
    "RuntimeParameterString",
    "RuntimeParameterStringArray",
    "RuntimeParameterType",
    "runtime_parameter",
]

RuntimeParameterType = ParameterType


@dataclass(frozen=True, slots=True)
class RuntimeParameter:
    """A parameter with its type.

    Attributes
    ----------
    value : Value
        None, bool, int, float, str, complex, or a tuple of one kind.
    type : RuntimeParameterType
        Class attribute of each subclass.
    """

    value: Value
    type: ClassVar[ParameterType]


class RuntimeParameterNull(RuntimeParameter):
    """``None``, ``()`` or ``[]``."""

    __slots__ = ()
    type = ParameterType.NULL


class RuntimeParameterBool(RuntimeParameter):
    """``True`` or ``False``."""

    __slots__ = ()
    type = ParameterType.BOOL


class RuntimeParameterInt(RuntimeParameter):
    """An integer."""

    __slots__ = ()
    type = ParameterType.INT


class RuntimeParameterFloat(RuntimeParameter):
    """A floating-point number."""

    __slots__ = ()
    type = ParameterType.FLOAT


class RuntimeParameterString(RuntimeParameter):
    """A word, or a symbol such as ``%batch``."""

    __slots__ = ()
    type = ParameterType.STRING


class RuntimeParameterIntArray(RuntimeParameter):
    """A tuple of integers."""

    __slots__ = ()
    type = ParameterType.INT_ARRAY


class RuntimeParameterFloatArray(RuntimeParameter):
    """A tuple of floating-point numbers."""

    __slots__ = ()
    type = ParameterType.FLOAT_ARRAY


class RuntimeParameterStringArray(RuntimeParameter):
    """A tuple of words."""

    __slots__ = ()
    type = ParameterType.STRING_ARRAY


class RuntimeParameterComplex(RuntimeParameter):
    """A complex number."""

    __slots__ = ()
    type = ParameterType.COMPLEX


class RuntimeParameterComplexArray(RuntimeParameter):
    """A tuple of complex numbers."""

    __slots__ = ()
    type = ParameterType.COMPLEX_ARRAY


_CLASS_OF: Final = {
    cls.type: cls
    for cls in (
        RuntimeParameterNull,
        RuntimeParameterBool,
        RuntimeParameterInt,
        RuntimeParameterFloat,
        RuntimeParameterString,
        RuntimeParameterIntArray,
        RuntimeParameterFloatArray,
        RuntimeParameterStringArray,
        RuntimeParameterComplex,
        RuntimeParameterComplexArray,
    )
}


def runtime_parameter(parameter: Parameter) -> RuntimeParameter:
    """Wrap a parameter of the file in the class of its type."""
    return _CLASS_OF[parameter.type](parameter.value)


class RuntimeAttribute:
    """A weight: shape and dtype at once, its bytes only when looked at.

    Parameters
    ----------
    attribute : Attribute
        Of the file.
    """

    __slots__ = ("_attribute",)

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape; ``()`` for a single number."""
        return self._attribute.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of `array`; float32 for stored bf16, complex64 for stored c32."""
        return DTYPES[self._attribute.dtype]

    @property
    def stored_dtype(self) -> str:
        """Dtype in the file, in PNNX's own short name such as ``f32`` or ``bf16``."""
        return self._attribute.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return self._attribute.nbytes

    @property
    def is_stored(self) -> bool:
        """Whether there is a weight: pnnx knew its dtype, and the ``.bin`` was there."""
        return self._attribute.is_stored

    @property
    def array(self) -> Array:
        """The weight.

        Returns
        -------
        ndarray
            Read-only; read when first asked for, and the same from then on. Those of bf16
            and c32 are converted.

        Raises
        ------
        ModelFileError
            If the model was opened without its ``.bin``, or that was written again before
            this weight was read.
        """
        return self._attribute.array

    def __array__(
        self,
        dtype: np.dtype[Any] | None = None,
        copy: bool | None = None,  # noqa: FBT001
    ) -> Array:
        if copy:
            return np.array(self.array, dtype=dtype)
        return np.asarray(self.array, dtype=dtype)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - NumPy's own indexing
        return self.array[index]

    def __len__(self) -> int:
        return self.shape[0]

    @override
    def __repr__(self) -> str:
        return f"RuntimeAttribute(shape={self.shape}, dtype={self.stored_dtype})"
