"""Padding and cropping the borders of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import InferStatus, LayerError, ParameterError
from engine.layers.arguments import as_ints
from engine.layers.layer import Ints, Number, OperatorCall
from engine.layers.registry import register
from engine.layers.windows import new_output, spatial_rank
from engine.memory_bound import require_memory
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["PADDING_MODES", "pad", "pad_axes", "pad_border"]


@register("torch.constant_pad_nd", "aten::constant_pad_nd", operands="input pad value")
@register("F.pad", "aten::pad")
def pad(
    input: Array,
    pad: Ints | Array,
    mode: str = "constant",
    value: Number | Array | None = None,
) -> Array:
    """Pad the last axes: ``torch.nn.functional.pad``.

    Parameters
    ----------
    input : ndarray of shape (..., H, W)
    pad : tuple of int
        ``(left, right, top, bottom, ...)``: pairs from the last axis forwards. Negative
        numbers crop.
    mode : str
        ``constant`` adds `value` (0 by default), ``reflect`` mirrors without repeating the
        border, ``replicate`` repeats the border, ``circular`` continues at the other end.
    value : scalar, optional

    Returns
    -------
    ndarray of shape (..., top + H + bottom, left + W + right)
        A new array.
    """
    numbers = as_ints(pad, "pad")
    if len(numbers) % 2 or len(numbers) > 2 * input.ndim:
        raise LayerError(
            f"pad={numbers} must be pairs of numbers, at most {input.ndim} of them"
        )
    pairs = list(zip(numbers[0::2], numbers[1::2], strict=True))[::-1]
    if mode != "constant":
        return pad_axes(input, pairs, mode)
    return _pad_constant(input, pairs, 0 if value is None else np.asarray(value).item())


@register(
    "nn.ConstantPad1d", "nn.ConstantPad2d", "nn.ConstantPad3d",
    "nn.ZeroPad1d", "nn.ZeroPad2d", "nn.ZeroPad3d",
    "nn.ReflectionPad1d", "nn.ReflectionPad2d", "nn.ReflectionPad3d",
    "nn.ReplicationPad1d", "nn.ReplicationPad2d", "nn.ReplicationPad3d",
    "nn.CircularPad1d", "nn.CircularPad2d", "nn.CircularPad3d",
)  # fmt: skip
def pad_border(
    input: Array, call: OperatorCall, padding: Ints, value: Number | None = None
) -> Array:
    """Pad all spatial axes: ``torch.nn.ZeroPad2d``, ``ReflectionPad2d`` and their kin.

    Parameters
    ----------
    input : ndarray of shape (N, C, H, W) or (C, H, W)
        Also with one or three spatial axes.
    padding : int or tuple of int
        ``(left, right, top, bottom)``; one number stands for all. Negative numbers crop.
    value : scalar
        Of ``ConstantPad``; 0 otherwise.

    Returns
    -------
    ndarray of shape (N, C, top + H + bottom, left + W + right)
        A new array. ``Reflection`` mirrors without repeating the border, ``Replication``
        repeats the border, ``Circular`` continues at the other end.
    """
    rank = spatial_rank(call)
    numbers = padding if isinstance(padding, tuple) else (padding,) * (2 * rank)
    if len(numbers) != 2 * rank:
        raise ParameterError(
            "padding", f"padding={padding} has {len(numbers)} numbers, {2 * rank} are needed"
        )
    mode = _MODE_OF_NAME[call.type.removeprefix("nn.")[:-5]]
    return pad(input, numbers, mode, value)


@register(
    *(
        f"aten::{name}_pad{rank}d"
        for name in ("reflection", "replication")
        for rank in (1, 2, 3)
    )
)
def reflect_or_replicate(input: Array, call: OperatorCall, padding: Ints | Array) -> Array:
    """Pad all spatial axes with values of the tensor: ``F.pad`` in raw form.

    Parameters
    ----------
    input : ndarray of shape (N, C, H, W) or (C, H, W)
        Also with one or three spatial axes.
    padding : tuple of int
        ``(left, right, top, bottom)``.

    Returns
    -------
    ndarray of shape (N, C, top + H + bottom, left + W + right)
        A new array.
    """
    return pad(input, padding, "reflect" if "reflection" in call.type else "replicate")


def pad_axes(input: Array, pairs: Sequence[tuple[int, int]], mode: str) -> Array:
    """Pad the last axes with values of the tensor itself.

    Parameters
    ----------
    input : ndarray of shape (..., H, W)
    pairs : sequence of (int, int)
        Before and after, for each of the last axes in order; negative numbers crop.
    mode : str
        One of `PADDING_MODES`.

    Returns
    -------
    ndarray
        A new array, or `input` where nothing is padded.

    Raises
    ------
    LayerError
        If the mode is unknown, or an axis is too short for it.
    """
    source = PADDING_MODES.get(mode)
    if source is None:
        raise LayerError(f"padding mode {mode} is not one of {', '.join(PADDING_MODES)}")
    for axis, (before, after) in enumerate(pairs, input.ndim - len(pairs)):
        if before or after:
            size = input.shape[axis]
            _require_positive(axis, size, before, after)
            require_memory((input.size // size, size + before + after), input.dtype)
            positions = source(np.arange(-before, size + after), axis, size)
            input = np.take(input, positions, axis)
    return input


def _require_positive(axis: int, size: int, before: int, after: int) -> None:
    if size + before + after < 0 or size == 0:
        raise LayerError(
            f"axis {axis} of size {size} cannot be padded by {before} and {after}",
            InferStatus.kInferArraySizeMismatch,
        )


def _find_longest_border(positions: Array, size: int) -> int:
    """Length of the longer border."""
    return int(max(-positions[0], positions[-1] - size + 1)) if positions.size else 0


def _reflect(positions: Array, axis: int, size: int) -> Array:
    longest = _find_longest_border(positions, size)
    if longest >= size:
        raise LayerError(
            f"axis {axis} of size {size} is too short to reflect {longest} positions; at most "
            f"{size - 1} fit",
            InferStatus.kInferArraySizeMismatch,
        )
    folded = np.abs(positions)
    return np.where(folded >= size, 2 * (size - 1) - folded, folded)


def _replicate(positions: Array, axis: int, size: int) -> Array:
    return np.clip(positions, 0, size - 1)


def _wrap(positions: Array, axis: int, size: int) -> Array:
    # Crop first: an end must not continue with elements that the other end crops.
    inside = positions[(positions >= 0) & (positions < size)]
    longest = _find_longest_border(positions, size)
    if longest > inside.size:
        raise LayerError(
            f"axis {axis} of size {inside.size} is too short to wrap {longest} positions "
            "around",
            InferStatus.kInferArraySizeMismatch,
        )
    wrapped: Array = inside[:1] + (positions - inside[:1]) % max(inside.size, 1)
    return wrapped


# Maps positions along the padded axis (0 is the tensor's first element) to the tensor's index
# of the value.
PADDING_MODES: Final[dict[str, Callable[[Array, int, int], Array]]] = {
    "reflect": _reflect,
    "replicate": _replicate,
    "circular": _wrap,
}

_MODE_OF_NAME: Final = {
    "Constant": "constant",
    "Zero": "constant",
    "Reflection": "reflect",
    "Replication": "replicate",
    "Circular": "circular",
}


def _pad_constant(input: Array, pairs: Sequence[tuple[int, int]], value: Number) -> Array:
    lead = (slice(None),) * (input.ndim - len(pairs))
    shape = list(input.shape)
    targets, sources = [], []
    for axis, (before, after) in enumerate(pairs, len(lead)):
        size = input.shape[axis]
        if size + before + after < 0:
            _require_positive(axis, size, before, after)
        shape[axis] = size + before + after
        sources.append(slice(max(-before, 0), size - max(-after, 0)))
        targets.append(slice(max(before, 0), shape[axis] - max(after, 0)))
    output = new_output(shape, input.dtype, value)
    output[(*lead, *targets)] = input[(*lead, *sources)]
    return output
