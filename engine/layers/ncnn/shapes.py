"""Layers that move numbers, and those that reduce an axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.layer import Ints, Layer, NotInNumpyError, OperatorCall, Outputs
from engine.layers.ncnn.expression import evaluate_sizes
from engine.layers.ncnn.table import layer, require_weights
from engine.layers.softmax import softmax as torch_softmax
from engine.memory_bound import require_memory
from engine.ncnn.types import AXES, PERMUTE_ORDERS, UNSET, Params
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NO_BATCH: Final = 233
_MOST_OPERANDS: Final = 10  # an expression names an operand by one digit
_LARGEST: Final = 2**31 - 1


def _axis(axis: int, ndim: int) -> int:
    """Return an axis counted from the front.

    Raises
    ------
    LayerError
        If the operand has no such axis.
    """
    if not -ndim <= axis < ndim:
        raise LayerError(f"axis={axis} is not one of {ndim} axes")
    return axis % ndim


def _ints(values: Ints | None) -> tuple[int, ...]:
    return values if isinstance(values, tuple) else ()


@layer("Noop", "DeepCopy")
def noop(*inputs: Array) -> Outputs:
    """Return the operands as they are."""
    return Outputs(inputs)


@layer("Split")
class Split(Layer):
    """Return the operand several times."""

    def __init__(self, call: OperatorCall) -> None:
        self._count = call.output_count

    @override
    def forward(self, input: Array) -> Outputs:
        return Outputs([input] * self._count)


@layer("MemoryData")
class MemoryData(Layer):
    """Return a stored array: float32, or bytes as they are.

    Parameters
    ----------
    **given
        Parameters of ncnn, and the array.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        require_weights(call)
        self._data = call.attributes["data"]

    @override
    def forward(self) -> Array:
        data = self._data
        return data if data.dtype == np.int8 else np.asarray(data, np.float32)


@layer("Flatten")
def flatten(input: Array) -> Array:
    """Join all axes into one."""
    return input.reshape(-1)


@layer("Reshape")
class Reshape(Layer):
    """Change the shape.

    A side of 0 keeps the side of the operand; -1 stands for the remaining size. An expression
    computes the sides from those of the operands: ``0w`` is the width of the first.

    With a batch axis one side counts images, which ncnn keeps apart; in NumPy it is 1.

    Parameters
    ----------
    **given
        Parameters of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        self._batch_axis = params.integer("output_batch_axis", _NO_BATCH)
        self.expression = str(call.params.get("shape_expr", ""))
        sides = [params.integer(name, UNSET) for name in ("w", "h", "d", "c")]
        if UNSET in sides[:2] and any(side != UNSET for side in sides[2:]):
            sides = [side for side in sides[:2] if side != UNSET][:1]
        self.sides = [side for side in sides if side != UNSET]
        if self._batch_axis != _NO_BATCH:  # only one image, whatever the operands' sizes are
            for side in (5, 7):
                self._find_sides([(side,) * 4] * _MOST_OPERANDS)

    @override
    def forward(self, *inputs: Array) -> Array:
        x = inputs[0]
        sides = self._find_sides([array.shape for array in inputs])
        if not 1 <= len(sides) <= 4:
            raise LayerError(f"{len(sides)} sides are not a shape")
        own = dict(zip(AXES[x.ndim], x.shape, strict=True))
        names = ("w", "h", *(("c",) if len(sides) == 3 else ("d", "c")))[: len(sides)]
        wanted = [own.get(n, 1) if s == 0 else s for n, s in zip(names, sides, strict=True)]
        shape = tuple(reversed(wanted))
        known = math.prod(side for side in shape if side != -1)
        if shape.count(-1) > 1 or min(shape) < -1 or not known or x.size % known:
            raise LayerError(f"{describe_shapes([x.shape])} does not fill {shape}")
        shape = tuple(x.size // known if side == -1 else side for side in shape)
        if math.prod(shape) != x.size:
            raise LayerError(f"{describe_shapes([x.shape])} does not fill {shape}")
        return x.reshape(shape)

    def _find_sides(self, shapes: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the sides of the result, the innermost first, without that of the batch."""
        sides = evaluate_sizes(self.expression, shapes) if self.expression else [*self.sides]
        if self._batch_axis != _NO_BATCH:
            count = sides.pop(-1 - _axis(self._batch_axis, len(sides)))
            if count != 1:
                raise NotInNumpyError(
                    "NumPy has no code for several images at once; choose the backend ncnn"
                )
        return sides


@layer("Permute")
def permute(input: Array, order_type: int = 0) -> Array:
    """Exchange axes.

    Parameters
    ----------
    input : ndarray of two to four axes
    order_type : int
        Number of the order: for three axes from ``whc`` (unchanged) to ``chw``.
    """
    orders = PERMUTE_ORDERS.get(input.ndim, ("w",))
    if not 0 <= order_type < len(orders):
        raise LayerError(f"order_type={order_type} is not an order of {input.ndim} axes")
    own = AXES[input.ndim]
    order = [own.index(name) for name in reversed(orders[order_type])]
    return np.ascontiguousarray(input.transpose(order))


@layer("Concat")
def concat(*inputs: Array, axis: int = 0) -> Array:
    """Join along an axis.

    Parameters
    ----------
    inputs : ndarray
    axis : int
        Counted from the outermost.
    """
    place = _axis(axis, inputs[0].ndim)
    rest = {array.shape[:place] + array.shape[place + 1 :] for array in inputs}
    if len(rest) > 1 or len({array.ndim for array in inputs}) > 1:
        shapes = describe_shapes([array.shape for array in inputs])
        raise LayerError(f"operands of shapes {shapes} do not fit along axis {axis}")
    return np.concatenate(inputs, place)


@layer("Slice")
class Slice(Layer):
    """Split along an axis into as many parts as there are outputs.

    Parameters
    ----------
    slices : tuple of int
        Sizes; -233 for an equal share of the rest.
    axis : int
    indices : tuple of int, optional
        Indices at which to split, instead of sizes.
    """

    def __init__(
        self,
        call: OperatorCall,
        slices: Ints | None = None,
        axis: int = 0,
        indices: Ints | None = None,
    ) -> None:
        self._count, self._axis = call.output_count, axis
        self._sizes, self._indices = _ints(slices), _ints(indices)
        given = len(self._indices) + 1 if self._indices else len(self._sizes)
        if given < self._count:
            raise ParameterError("slices", f"{given} sizes are too few for {self._count} parts")

    @override
    def forward(self, input: Array) -> Outputs:
        axis = _axis(self._axis, input.ndim)
        size, start = input.shape[axis], 0
        parts: list[Array] = []
        for place in range(self._count):
            if self._indices:
                last = place == self._count - 1
                stop = size if last else self._indices[place]
                stop = stop + size if stop < 0 else stop
            else:
                wanted = self._sizes[place]
                share = (size - start) // (self._count - place)
                stop = start + (share if wanted == UNSET else wanted)
            if not start < stop <= size:
                raise LayerError(f"part {place} of an axis of {size} would end at {stop}")
            parts.append(np.take(input, range(start, stop), axis))
            start = stop
        return Outputs(parts)


@layer("Crop")
class Crop(Layer):
    """Crop to a region.

    Either `starts` and `ends` of `axes` give the region; they may be expressions of the
    operands' sides. Or offsets and sizes do; the sizes may be those of a second operand.

    Parameters
    ----------
    **given
        Parameters of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        self.texts = [str(call.params.get(f"{n}_expr", "")) for n in ("starts", "ends", "axes")]
        self.numbers = [
            tuple(int(number) for number in params.array(name))
            for name in ("starts", "ends", "axes")
        ]
        self.offsets = {axis: params.integer(f"{axis}offset") for axis in "whdc"}
        self.behind = {axis: params.integer(f"{axis}offset2") for axis in "whdc"}
        self.sizes = {axis: params.integer(f"out{axis}") for axis in "whdc"}

    @override
    def forward(self, *inputs: Array) -> Array:
        x = inputs[0]
        if self.texts[0] and self.texts[1]:
            shapes = [array.shape for array in inputs]
            found = [evaluate_sizes(text, shapes) if text else [] for text in self.texts]
            regions = self._find_regions_as_numpy(x.shape, *found)
        elif self.numbers[0] and self.numbers[1]:
            regions = self._find_regions_as_numpy(x.shape, *self.numbers)
        else:
            regions = self._find_regions_by_offsets(
                x.shape, inputs[1].shape if len(inputs) > 1 else None
            )
        for (start, stop), size in zip(regions, x.shape, strict=True):
            if not 0 <= start < stop <= size:
                raise LayerError(f"{start} to {stop} is not inside an axis of {size}")
        region = tuple(slice(start, stop) for start, stop in regions)
        return np.ascontiguousarray(x[region])

    def _find_regions_as_numpy(
        self, shape: tuple[int, ...], starts: Sequence[int], ends: Sequence[int],
        axes: Sequence[int],
    ) -> list[tuple[int, int]]:  # fmt: skip
        regions = [(0, size) for size in shape]
        places = [_axis(axis, len(shape)) for axis in axes] or list(range(len(shape)))
        if len(places) > min(len(starts), len(ends)):
            raise LayerError("there are fewer starts or ends than axes")
        for axis, start, end in zip(places, starts, ends, strict=False):
            size = shape[axis]
            first = 0 if start == UNSET else start if start >= 0 else size + start
            last = size if end == UNSET else end if end > 0 else size + end
            regions[axis] = (first, min(size, last))
        return regions

    def _find_regions_by_offsets(
        self, shape: tuple[int, ...], reference: tuple[int, ...] | None
    ) -> list[tuple[int, int]]:
        has_sizes = any([*self.sizes.values(), *self.behind.values()])
        if reference is None and not has_sizes:
            raise LayerError("the operand that gives the size is missing")
        regions = []
        names = AXES[len(shape)]
        others = {} if reference is None else dict(
            zip(AXES[len(reference)], reference, strict=True)
        )  # fmt: skip
        for name, size in zip(names, shape, strict=True):
            start = self.offsets[name]
            stop = size - self.behind[name]
            if reference is not None:
                keeps = name == "c" and len(reference) != len(shape)
                stop = start + (size if keeps else others.get(name, 1))
            elif self.sizes[name] != UNSET:
                stop = min(stop, start + self.sizes[name])
            regions.append((start, stop))
        return regions


@layer("Squeeze")
class Squeeze(Layer):
    """Remove axes of size 1.

    Parameters
    ----------
    **given
        Parameters of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        self.axes = [int(axis) for axis in params.array("axes")]
        self.named = "".join(axis for axis in "whdc" if params.integer(f"squeeze_{axis}"))

    @override
    def forward(self, input: Array) -> Array:
        if self.axes:
            places = {_axis(axis, input.ndim) for axis in self.axes}
        else:
            places = {p for p, name in enumerate(AXES[input.ndim]) if name in self.named}
        kept = [s for p, s in enumerate(input.shape) if s != 1 or p not in places]
        return input.reshape(kept or (1,))


@layer("ExpandDims")
def expand_dims(input: Array, axes: Ints | None = None) -> Array:
    """Insert axes of size 1.

    Parameters
    ----------
    input : ndarray
    axes : tuple of int
        Their indices in the result.
    """
    wanted = _ints(axes)
    count = input.ndim + len(wanted)
    places = {_axis(axis, count) for axis in wanted}
    if count > 4 or len(places) != len(wanted):
        raise LayerError(f"axes {wanted} cannot be added to {input.ndim}")
    sizes = iter(input.shape)
    return input.reshape([1 if place in places else next(sizes) for place in range(count)])


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(x.sum(axes, keepdims=True, dtype=np.float32))


_REDUCTIONS: Final[tuple[Callable[[Array, tuple[int, ...]], Array], ...]] = (
    _sum,
    lambda x, axes: _sum(np.abs(x), axes),
    lambda x, axes: _sum(np.square(x), axes),
    lambda x, axes: np.asarray(x.mean(axes, keepdims=True, dtype=np.float32)),
    lambda x, axes: x.max(axes, keepdims=True),
    lambda x, axes: x.min(axes, keepdims=True),
    lambda x, axes: np.asarray(x.prod(axes, keepdims=True)),
    lambda x, axes: _sum(np.abs(x), axes),
    lambda x, axes: np.sqrt(_sum(np.square(x), axes)),
    lambda x, axes: np.log(_sum(x, axes)),
    lambda x, axes: np.log(_sum(np.exp(x), axes)),
)


@layer("Reduction")
class Reduction(Layer):
    """Reduce axes to one number each.

    Parameters
    ----------
    operation : int
        0 sum, 1 asum, 2 sumsq, 3 mean, 4 max, 5 min, 6 prod, 7 L1, 8 L2, 9 logsum,
        10 logsumexp.
    reduce_all, keepdims : int
    coeff : float
        Factor of the result.
    axes : tuple of int
    fixbug0 : int
        1 in files that count axes from the outermost.
    """

    def __init__(
        self,
        operation: int = 0,
        reduce_all: int = 1,
        coeff: float = 1.0,
        axes: Ints | None = None,
        keepdims: int = 0,
        fixbug0: int = 0,
    ) -> None:
        if not 0 <= operation < len(_REDUCTIONS):
            raise ParameterError("operation", f"operation={operation} is unknown")
        if not reduce_all and (not _ints(axes) or not fixbug0):
            raise ParameterError(
                "axes", "the axes are missing, or the file is too old for ncnn"
            )
        self.operation, self.coefficient = operation, np.float32(coeff)
        self._axes = None if reduce_all else _ints(axes)
        self._keepdims = bool(keepdims)

    def places(self, ndim: int) -> tuple[int, ...]:
        """Return the axes that are reduced, of an input with so many."""
        if ndim == 1:
            return (0,)
        axes = range(ndim) if self._axes is None else self._axes
        return tuple(sorted({_axis(axis, ndim) for axis in axes}))

    @override
    def forward(self, input: Array) -> Array:
        places = self.places(input.ndim)
        result = _REDUCTIONS[self.operation](input, places)
        if self.coefficient != 1:
            result = np.asarray(result * self.coefficient)
        if self._keepdims:
            return result
        kept = [size for place, size in enumerate(result.shape) if place not in places]
        return result.reshape(kept or (1,))


@layer("Softmax")
def softmax(input: Array, axis: int = 0, fixbug0: int = 0) -> Array:
    """Compute ``exp(x) / sum(exp(x))`` along an axis.

    Parameters
    ----------
    input : ndarray
    axis : int
    fixbug0 : int
        1 in files that count axes from the outermost.
    """
    if axis and not fixbug0:
        raise LayerError("the file is too old for ncnn: fixbug0 is missing")
    return torch_softmax(input, _axis(axis, input.ndim))


@layer("CumulativeSum")
def cumulative_sum(input: Array, axis: int = 0) -> Array:
    """Sum up along an axis.

    Parameters
    ----------
    input : ndarray
    axis : int
    """
    return np.cumsum(input, _axis(axis, input.ndim), dtype=np.float32)


@layer("Flip")
def flip(input: Array, axes: Ints | None = None) -> Array:
    """Reverse axes.

    Parameters
    ----------
    input : ndarray
    axes : tuple of int
    """
    places = tuple({_axis(axis, input.ndim) for axis in _ints(axes)})
    return np.ascontiguousarray(np.flip(input, places)) if places else input


@layer("Tile")
def tile(input: Array, axis: int = 0, tiles: int = 1, repeats: Ints | None = None) -> Array:
    """Repeat along axes.

    Parameters
    ----------
    input : ndarray
    axis, tiles : int
        The axis, and how often to repeat along it.
    repeats : tuple of int, optional
        Instead of both, how often to repeat along each of the last axes.
    """
    counts = list(_ints(repeats))
    if not counts:
        counts = [1] * input.ndim
        counts[_axis(axis, input.ndim)] = tiles
    if min(counts) < 1 or len(counts) > 4:
        raise LayerError(f"{counts} are not counts of repetitions")
    shape = (*(1,) * (len(counts) - input.ndim), *input.shape)
    whole = [*(1,) * (len(shape) - len(counts)), *counts]
    require_memory([size * n for size, n in zip(shape, whole, strict=True)], input.dtype)
    return np.tile(input, counts)


@layer("ShuffleChannel")
def shuffle_channel(input: Array, group: int = 1, reverse: int = 0) -> Array:
    """Interleave groups of channels.

    Parameters
    ----------
    input : ndarray of shape (C, H, W)
    group : int
    reverse : int
        Whether to undo it.
    """
    channels = input.shape[0]
    if input.ndim < 3 or group < 1 or channels % group:
        raise LayerError(f"group={group} cannot divide {describe_shapes([input.shape])}")
    count = channels // group if reverse else group
    parts = input.reshape(count, channels // count, *input.shape[1:])
    return np.ascontiguousarray(parts.swapaxes(0, 1)).reshape(input.shape)


@layer("PixelShuffle")
def pixel_shuffle(input: Array, upscale_factor: int = 1, mode: int = 0) -> Array:
    """Rearrange channels into blocks of pixels.

    Parameters
    ----------
    input : ndarray of shape (C * f * f, H, W)
    upscale_factor : int
        f.
    mode : int
        0 if the f * f channels of a result are neighbours, 1 if they are C apart.

    Returns
    -------
    ndarray of shape (C, H * f, W * f)
    """
    factor = upscale_factor
    if input.ndim != 3 or factor < 1 or input.shape[0] % (factor * factor):
        raise LayerError(
            f"upscale_factor={factor} cannot divide {describe_shapes([input.shape])}"
        )
    channels, rows, columns = input.shape[0] // (factor * factor), *input.shape[1:]
    if mode == 0:
        parts = input.reshape(channels, factor, factor, rows, columns)
    else:
        parts = input.reshape(factor, factor, channels, rows, columns).transpose(2, 0, 1, 3, 4)
    result = parts.transpose(0, 3, 1, 4, 2)
    return np.ascontiguousarray(result).reshape(channels, rows * factor, columns * factor)


@layer("Reorg")
def reorg(input: Array, stride: int = 1, mode: int = 0) -> Array:
    """Rearrange blocks of pixels into channels.

    Parameters
    ----------
    input : ndarray of shape (C, H * s, W * s)
    stride : int
        s.
    mode : int
        0 if the s * s channels of an input are neighbours, 1 if they are C apart.

    Returns
    -------
    ndarray of shape (C * s * s, H, W)
    """
    if input.ndim != 3 or stride < 1 or input.shape[1] % stride or input.shape[2] % stride:
        raise LayerError(f"stride={stride} cannot divide {describe_shapes([input.shape])}")
    channels, rows, columns = (
        input.shape[0], input.shape[1] // stride, input.shape[2] // stride
    )  # fmt: skip
    parts = input.reshape(channels, rows, stride, columns, stride)
    order = (0, 2, 4, 1, 3) if mode == 0 else (2, 4, 0, 1, 3)
    result = np.ascontiguousarray(parts.transpose(order))
    return result.reshape(channels * stride * stride, rows, columns)


@layer("GLU")
def glu(input: Array, axis: int = 0) -> Array:
    """Multiply one half by the sigmoid of the other.

    Parameters
    ----------
    input : ndarray
    axis : int
    """
    from engine.layers.activations import glu as torch_glu

    place = _axis(axis, input.ndim)
    if input.shape[place] % 2:
        raise LayerError(f"an axis of odd size {input.shape[place]} cannot be halved")
    return torch_glu(input, place)


@layer("CopyTo")
class CopyTo(Layer):
    """Replace a region of the first operand by the second.

    Parameters
    ----------
    woffset, hoffset, doffset, coffset : int
        Where the region begins.
    starts, axes : tuple of int
        The same for some axes, counted from the outermost; negative ones from the end.
    """

    def __init__(
        self,
        woffset: int = 0,
        hoffset: int = 0,
        doffset: int = 0,
        coffset: int = 0,
        starts: Ints | None = None,
        axes: Ints | None = None,
    ) -> None:
        self._offsets = {"w": woffset, "h": hoffset, "d": doffset, "c": coffset}
        self._starts, self._axes = _ints(starts), _ints(axes)

    @override
    def forward(self, input: Array, source: Array) -> Array:
        if input.ndim != source.ndim:
            raise LayerError(
                f"{describe_shapes([source.shape])} is no region of "
                f"{describe_shapes([input.shape])}"
            )
        if input.shape == source.shape:
            return source
        first = self._find_first(input.shape)
        ends = [a + size for a, size in zip(first, source.shape, strict=True)]
        if min(first) < 0 or any(e > s for e, s in zip(ends, input.shape, strict=True)):
            raise LayerError(
                f"the region {describe_shapes([source.shape])} at {first} is outside "
                f"{describe_shapes([input.shape])}"
            )
        result = input.copy()
        result[tuple(map(slice, first, ends))] = source
        return result

    def _find_first(self, shape: tuple[int, ...]) -> list[int]:
        if not self._starts:
            return [self._offsets[name] for name in AXES[len(shape)]]
        first = [0] * len(shape)
        axes = self._axes or tuple(range(len(shape)))
        if len(axes) > len(self._starts):
            raise LayerError(f"{len(self._starts)} starts are too few for {len(axes)} axes")
        for axis, start in zip(axes, self._starts, strict=False):
            place = _axis(axis, len(shape))
            start = 0 if start == UNSET else start  # noqa: PLW2901 - ncnn's word for none
            first[place] = start if start >= 0 else start + shape[place]
        return first


@layer("Diag")
def diag(input: Array, diagonal: int = 0) -> Array:
    """Write a vector on a diagonal of a matrix, or read one.

    Parameters
    ----------
    input : ndarray of shape (W,) or (H, W)
    diagonal : int
        Above the main one; negative below.
    """
    if input.ndim > 2:
        raise LayerError(f"{describe_shapes([input.shape])} is neither a vector nor a matrix")
    if input.ndim == 1:
        side = len(input) + abs(diagonal)
        require_memory((side, side), np.dtype(np.float32))
    elif not -input.shape[0] < diagonal < input.shape[1]:
        raise LayerError(f"{describe_shapes([input.shape])} has no diagonal {diagonal}")
    return np.ascontiguousarray(np.diag(input, diagonal))


@layer("ArgMax")
def arg_max(input: Array, out_max_val: int = 0, topk: int = 1) -> Array:
    """Return the indices of the largest elements, counted in memory; of equal ones the last.

    Parameters
    ----------
    input : ndarray of at most 2 axes
        ncnn counts the gaps between channels, too.
    out_max_val : int
        Whether the elements are a row before the indices.
    topk : int
    """
    if input.ndim > 2:
        raise LayerError(f"{describe_shapes([input.shape])} has gaps between its channels")
    if not 1 <= topk <= input.size:
        raise ParameterError("topk", f"{topk} elements are not among {input.size}")
    flat = input.reshape(-1)
    order = np.lexsort((np.arange(flat.size), flat))[::-1][:topk]
    indices = order.astype(np.float32)
    return np.stack([flat[order], indices]) if out_max_val else indices[np.newaxis]


@layer("Cast")
def cast_type(input: Array, type_from: int = 0, type_to: int = 0) -> Array:
    """Convert bytes to float32; other types have no operands here.

    Parameters
    ----------
    input : ndarray
    type_from, type_to : int
        0 automatic, 1 float32, 2 float16, 3 int8, 4 bfloat16.
    """
    if type_from == type_to:
        return input
    if (type_from, type_to) != (3, 1) or input.dtype != np.int8:
        raise LayerError(f"{input.dtype} is not of type {type_from}, or {type_to} not float32")
    return input.astype(np.float32)


@layer("StatisticsPooling")
def statistics_pooling(input: Array, include_stddev: int = 0) -> Array:
    """Return the mean of each channel, and then the standard deviations.

    Parameters
    ----------
    input : ndarray of shape (C, ...), or without channels
    include_stddev : int
    """
    x = input.reshape(len(input) if input.ndim > 2 else 1, -1)
    means = x.mean(1, dtype=np.float32)
    if not include_stddev:
        return np.asarray(means)
    deviations = np.sqrt(np.square(x - means[:, np.newaxis]).mean(1, dtype=np.float32))
    return np.concatenate([means, deviations])
