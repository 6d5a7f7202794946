"""Helpers for arguments of ONNX's operators: dtypes by number, and windows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.errors import LayerError, ParameterError
from engine.layers.layer import Ints
from engine.layers.windows import Windows, per_axis
from engine.promotion import DType
from engine.values import Array

__all__ = ["dtype_of_code", "numbers_of", "windows_of"]

# ``onnx.TensorProto.DataType``. NumPy has no bfloat16; its values fit into float32.
_DTYPES: Final[dict[int, DType]] = {
    code: np.dtype(dtype)
    for code, dtype in {
        1: np.float32,
        2: np.uint8,
        3: np.int8,
        4: np.uint16,
        5: np.int16,
        6: np.int32,
        7: np.int64,
        9: np.bool_,
        10: np.float16,
        11: np.float64,
        12: np.uint32,
        13: np.uint64,
        14: np.complex64,
        15: np.complex128,
        16: np.float32,
    }.items()
}


def dtype_of_code(code: int) -> DType:
    """Return the dtype for ONNX's number.

    Raises
    ------
    LayerError
        If the number is unknown.
    """
    if code not in _DTYPES:
        raise LayerError(f"{code} is not the number of a known dtype")
    return _DTYPES[code]


def numbers_of(value: Any) -> Array:
    """Convert an argument that is a number, several numbers or a tensor to a vector.

    Returns
    -------
    ndarray of shape (N,)
        Empty for None.
    """
    return np.zeros(0) if value is None else np.atleast_1d(np.asarray(value))


def windows_of(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: Ints = 1,
    dilations: Ints = 1,
    pads: Ints = 0,
    auto_pad: str = "NOTSET",
) -> Windows:
    """Make windows over an image from ONNX's parameters.

    Parameters
    ----------
    sizes : tuple of int
        Spatial sizes of the image.
    kernel : tuple of int
    strides, dilations : int or tuple of int
    pads : int or tuple of int
        Padding before each axis, then after each axis.
    auto_pad : str
        ``NOTSET`` uses `pads`, ``VALID`` pads nothing. ``SAME_UPPER`` and ``SAME_LOWER`` pad
        for ``size / stride`` windows, rounded up, with an odd position at the end or at the
        start.

    Raises
    ------
    ParameterError
        If the numbers do not fit the axes.
    """
    rank = len(kernel)
    steps = per_axis("strides", strides, rank, least=1)
    spread = per_axis("dilations", dilations, rank, least=1)
    if auto_pad in {"NOTSET", "VALID", ""}:
        numbers = per_axis("pads", pads if auto_pad != "VALID" else 0, 2 * rank)
        padding = tuple(zip(numbers[:rank], numbers[rank:], strict=True))
    elif auto_pad in {"SAME_UPPER", "SAME_LOWER"}:
        totals = [
            max((-(-size // step) - 1) * step + d * (k - 1) + 1 - size, 0)
            for size, k, step, d in zip(sizes, kernel, steps, spread, strict=True)
        ]
        padding = tuple((total // 2, total - total // 2) for total in totals)
        if auto_pad == "SAME_LOWER":
            padding = tuple((behind, before) for before, behind in padding)
    else:
        raise ParameterError("auto_pad", f"auto_pad={auto_pad} is not known")
    return Windows(kernel, steps, spread, padding)
