"""Operators of ONNX that make and rearrange tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.errors import LayerError, ParameterError
from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_ints, as_sizes, axes_of
from engine.layers.layer import Ints
from engine.layers.onnx.arguments import dtype_of_code, numbers_of
from engine.layers.padding import PADDING_MODES, pad, pad_axes
from engine.layers.registry import register
from engine.layers.repeat import stretch
from engine.layers.repeat import tile as tile_dims
from engine.layers.windows import new_output
from engine.values import Array, Value

__all__ = ["center_crop_pad", "pad_edges", "reshape"]


@register("Identity")
def identity(input: OperandOf[Value]) -> Value:
    """Return the input: ONNX ``Identity``."""
    return input


@register("Size")
def size(data: Array) -> Array:
    """Number of elements: ONNX ``Size``.

    Returns
    -------
    int64 ndarray of shape ()
    """
    return np.array(data.size, np.int64)


@register("Shape")
def shape(data: Array, start: int = 0, end: int | None = None) -> Array:
    """Sizes of the dimensions: ONNX ``Shape``.

    Parameters
    ----------
    data : ndarray of any shape
    start, end : int
        Range of dimensions, as in Python's slices.

    Returns
    -------
    int64 ndarray of shape (D,)
    """
    return np.array(data.shape[start:end], np.int64)


@register("Range")
def range_of(start: Value, limit: Value, delta: Value) -> Array:
    """Evenly spaced numbers: ONNX ``Range``.

    Parameters
    ----------
    start, limit, delta : numbers, or ndarray of shape ()
        First number, end (exclusive) and step.

    Returns
    -------
    ndarray of shape (N,)
        Of the dtype of the operands that are tensors.
    """
    ends = [np.asarray(value) for value in (start, limit, delta)]
    dtypes = [v.dtype for v in (start, limit, delta) if isinstance(v, np.ndarray)]
    numbers = [end.item() for end in ends]
    if not numbers[2]:
        raise LayerError("delta is 0")
    if not dtypes:
        whole = all(isinstance(number, int) for number in numbers)
        dtypes = [np.dtype(np.int64 if whole else np.float32)]
    count = max(int(np.ceil((numbers[1] - numbers[0]) / numbers[2])), 0)
    return np.asarray(numbers[0] + np.arange(count) * numbers[2], dtypes[0])


@register("ConstantOfShape")
def constant_of_shape(input: OperandOf[Any], value: Any = 0.0) -> Array:
    """Tensor filled with one number: ONNX ``ConstantOfShape``.

    Parameters
    ----------
    input : ints
        Sizes of the result.
    value : number
        The number.

    Returns
    -------
    ndarray of the given shape
        int64 for an integer, else float32.
    """
    number = numbers_of(value)
    dtype = np.dtype(np.float32) if number.dtype.kind == "f" else number.dtype
    return new_output(as_sizes(input, "input"), dtype, number[0])


@register("EyeLike")
def eye_like(input: Array, dtype: int | None = None, k: int = 0) -> Array:
    """Matrix with ones on a diagonal: ONNX ``EyeLike``.

    Parameters
    ----------
    input : ndarray of shape (H, W)
    dtype : int, optional
        ONNX's number of the dtype; the input's by default.
    k : int
        Number of the diagonal; positive ones are above the main one.

    Returns
    -------
    ndarray of shape (H, W)
    """
    wanted = input.dtype if dtype is None else dtype_of_code(dtype)
    rows, columns = input.shape
    return np.asarray(np.eye(rows, columns, k, wanted))


@register("Reshape")
def reshape(data: Array, shape: Any, allowzero: int = 0) -> Array:
    """Same elements in another shape: ONNX ``Reshape``.

    Parameters
    ----------
    data : ndarray of any shape
    shape : ints
        Sizes; one may be -1, for the remaining size. 0 keeps the input's size.
    allowzero : int
        Whether 0 means the size 0 instead.

    Returns
    -------
    ndarray of the given shape
        A view of `data` if possible.
    """
    sizes = as_sizes(shape, "shape")
    if not allowzero:
        sizes = tuple(size or data.shape[place] for place, size in enumerate(sizes))
    return data.reshape(sizes)


@register("Flatten")
def flatten(input: Array, axis: int = 1) -> Array:
    """Reshape a tensor to a matrix: ONNX ``Flatten``.

    Parameters
    ----------
    input : ndarray of any shape
    axis : int
        Number of dimensions that become the rows.

    Returns
    -------
    ndarray of shape (R, C)
        A view of `input` if possible.
    """
    place = axis + input.ndim if axis < 0 else axis
    return input.reshape(int(np.prod(input.shape[:place])), -1)


@register("Squeeze")
def squeeze(data: Array, axes: Any = None) -> Array:
    """Drop dimensions of size 1: ONNX ``Squeeze``.

    Parameters
    ----------
    data : ndarray of any shape
    axes : ints, optional
        Dimensions to drop; by default all of size 1.

    Returns
    -------
    ndarray
        A view of `data`.
    """
    if axes is None:
        return data.squeeze()
    return data.squeeze(axes_of(axes, data.ndim, "axes"))


@register("Unsqueeze")
def unsqueeze(data: Array, axes: Any) -> Array:
    """Insert dimensions of size 1: ONNX ``Unsqueeze``.

    Parameters
    ----------
    data : ndarray of any shape
    axes : ints
        Their positions in the result.

    Returns
    -------
    ndarray
        A view of `data`.
    """
    return np.expand_dims(data, as_ints(axes, "axes"))


@register("Transpose")
def transpose(data: Array, perm: Ints | None = None) -> Array:
    """Reorder dimensions: ONNX ``Transpose``.

    Parameters
    ----------
    data : ndarray of any shape
    perm : ints, optional
        The dimensions in their new order; reversed by default.

    Returns
    -------
    ndarray
        A view of `data`.
    """
    return data.transpose(None if perm is None else as_ints(perm, "perm"))


@register("Expand")
def expand(input: Array, shape: Any) -> Array:
    """Repeat along dimensions of size 1: ONNX ``Expand``.

    Parameters
    ----------
    input : ndarray of any shape
    shape : ints
        Sizes to broadcast the input with.

    Returns
    -------
    ndarray
        A view of `input`.
    """
    wanted = np.broadcast_shapes(input.shape, as_sizes(shape, "shape"))
    return stretch(input, wanted)


@register("Tile")
def tile(input: Array, repeats: Any) -> Array:
    """Repeat a tensor along its dimensions: ONNX ``Tile``.

    Parameters
    ----------
    input : ndarray of any shape
    repeats : ints
        Number of repetitions along each dimension.

    Returns
    -------
    ndarray
        A new array.
    """
    return tile_dims(input, as_ints(repeats, "repeats"))


@register("Concat")
def concat(*inputs: Array, axis: int) -> Array:
    """Concatenate tensors: ONNX ``Concat``.

    Parameters
    ----------
    *inputs : ndarray
    axis : int
        Dimension to join along.

    Returns
    -------
    ndarray
        A new array.
    """
    return np.concatenate(inputs, axis)


# PyTorch's name of each padding mode of ONNX
_PAD_MODES: Final = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@register("Pad")
def pad_edges(
    data: Array,
    pads: Any,
    value: Any = None,
    axes: Any = None,
    mode: str = "constant",
) -> Array:
    """Pad or crop the borders of a tensor: ONNX ``Pad``.

    Parameters
    ----------
    data : ndarray of any shape
    pads : ints
        Padding before each axis, then after each axis; negative numbers crop.
    value : number, optional
        Value of the padding; 0 by default.
    axes : ints, optional
        The dimensions; all by default.
    mode : str
        ``constant``, ``reflect``, ``edge`` or ``wrap``.

    Returns
    -------
    ndarray
        A new array.
    """
    numbers = as_ints(pads, "pads")
    if (
        axes is None
        and np.size(() if value is None else value) * 2 == len(numbers)
        and (len(numbers) != 2 * data.ndim)
    ):
        value, axes = None, value  # without a value the axes follow
    chosen = axes_of(axes, data.ndim, "axes")
    if len(numbers) != 2 * len(chosen):
        raise LayerError(f"{len(chosen)} axes need {2 * len(chosen)} pads, not {len(numbers)}")
    pairs = [(0, 0)] * data.ndim
    for place, axis in enumerate(chosen):
        pairs[axis] = (numbers[place], numbers[place + len(chosen)])
    if mode != "constant":
        if _PAD_MODES.get(mode) not in PADDING_MODES:
            raise ParameterError("mode", f"mode={mode} is unknown")
        return pad_axes(data, pairs, _PAD_MODES[mode])
    flat = tuple(number for pair in reversed(pairs) for number in pair)
    return pad(data, flat, value=numbers_of(0 if value is None else value)[0].item())


@register("CenterCropPad")
def center_crop_pad(input_data: Array, shape: Any, axes: Ints | None = None) -> Array:
    """Crop or pad with zeros to a size, keeping the middle: ONNX ``CenterCropPad``.

    Parameters
    ----------
    input_data : ndarray of any shape
    shape : ints
        Sizes of the result.
    axes : ints, optional
        The dimensions; all by default.

    Returns
    -------
    ndarray
        A new array.
    """
    pairs = [(0, 0)] * input_data.ndim
    chosen = axes_of(axes, input_data.ndim, "axes")
    for axis, wanted in zip(chosen, as_ints(shape, "shape"), strict=True):
        missing = wanted - input_data.shape[axis]
        before = missing // 2 if missing > 0 else -(-missing // 2)
        pairs[axis] = (before, missing - before)
    return pad(input_data, tuple(number for pair in reversed(pairs) for number in pair))


@register("DepthToSpace")
def depth_to_space(input: Array, blocksize: int, mode: str = "DCR") -> Array:
    """Rearrange channels into blocks of pixels: ONNX ``DepthToSpace``.

    Parameters
    ----------
    input : ndarray of shape (N, C * B * B, H, W)
    blocksize : int
        B.
    mode : str
        ``DCR`` if the channels are ordered by position in the block, then channel; ``CRD`` for
        channel, then position.

    Returns
    -------
    ndarray of shape (N, C, H * B, W * B)
        A copy.
    """
    n, c, h, w = input.shape
    b = blocksize
    if mode == "DCR":
        blocks = input.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = input.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, c // (b * b), h * b, w * b)


@register("SpaceToDepth")
def space_to_depth(input: Array, blocksize: int, mode: str = "DCR") -> Array:
    """Rearrange blocks of pixels into channels: ONNX ``SpaceToDepth``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H * B, W * B)
    blocksize : int
        B.
    mode : str
        ``DCR`` if the channels are ordered by position in the block, then channel; ``CRD`` for
        channel, then position.

    Returns
    -------
    ndarray of shape (N, C * B * B, H, W)
        A copy.
    """
    n, c, h, w = input.shape
    b = blocksize
    blocks = input.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(n, c * b * b, h // b, w // b)
