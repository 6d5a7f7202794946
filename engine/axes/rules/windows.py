"""Windows of an image as columns, and back: unfold and fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dim, Dims
    from engine.axes.layout import Size


@rule("unfold")
def unfold(call: Call) -> Results:
    """Take windows of an image: channels and positions within, and positions of windows."""
    dims, shape = call.first, call.shape
    if dims is not None and shape is not None and len(shape) == len(dims) + 1:
        return [slide(call, dims, shape)]
    if dims is None or shape is None or len(dims) != 4 or not call.claim_image(dims, 2):
        return []
    columns = _columns(call, dims)
    return [call.fit(columns)] if columns is not None and len(shape) == 3 else []


def slide(call: Call, dims: Dims, shape: tuple[Size, ...]) -> Dims | None:
    """Take windows along one dimension; the positions within are a new last one.

    So does ``Tensor.unfold``. The dimension is the one whose size changes. Its positions have
    an order: that is time, or rows and columns where windows are taken along two dimensions.
    """
    factors = call.factors
    extents = [factors.extent(dim) for dim in dims]
    changed = [place for place, size in enumerate(extents) if size != shape[place]]
    if len(changed) != 1:
        return None
    place, dim = changed[0], dims[changed[0]]
    length, count, size = extents[place], shape[place], shape[-1]
    if isinstance(count, int) and isinstance(size, int) and count * size == length:
        windows, within = factors.regroup((dim,), (count, size))
    else:
        windows, within = factors.derive(dim, count), factors.take(dim, size)
    factors.claim(dim, Kind.TIME, Rank.STATED)
    factors.claim(windows, Kind.TIME, Rank.STATED)
    if len(dims) == 3 and place == 1:
        factors.claim(dims[2], Kind.CHANNEL, Rank.DERIVED)
    for other, each in enumerate(dims[:place]):
        whole = factors.slid.get(factors.find(each[0]))
        if whole is not None:
            sides = (Kind.ROW, Kind.COLUMN)
            call.claim((whole, dim), sides, Rank.DECLARED)
            call.claim((each, windows), sides, Rank.DECLARED)
            if other > 1:
                call.factors.claim(dims[1], Kind.FEATURE, Rank.EXPECTED)
    factors.slid[factors.find(windows[0])] = dim
    return call.fit((*dims[:place], windows, *dims[place + 1 :], within))


@rule("asstrided")
def stride(call: Call) -> Results:
    """View a value by other steps, such as windows that overlap, as Longformer takes them."""
    dims, shape, steps = call.first, call.shape, call.integers("stride")
    if dims is None or shape is None or steps is None or len(steps) != len(shape):
        return []
    if len(shape) == len(dims):  # steps of memory that a permute left in another order
        return [call.fit(dims)]
    extents = [call.factors.extent(dim) for dim in dims]
    if any(not isinstance(extent, int) for extent in extents):
        return []
    found: list[Dim] = []
    used: dict[int, int] = {}
    own = _steps([extent for extent in extents if isinstance(extent, int)])
    for size, step in zip(shape, steps, strict=True):
        fitting = [p for p, each in enumerate(own) if step % each == 0 and extents[p] != 1]
        if size == 1 or not fitting or step == 0:
            found.append((call.factors.make(size),))
            continue
        place = fitting[0]
        is_same = step == own[place] and size == extents[place]
        found.append(dims[place] if is_same else call.factors.derive(dims[place], size))
        if place in used:
            call.factors.slid[call.factors.find(found[used[place]][0])] = dims[place]
        used[place] = len(found) - 1
    return [call.fit(found)]


def _steps(sizes: list[int]) -> list[int]:
    """Return how far neighbours of each dimension are apart in memory."""
    steps = [1]
    for size in sizes[:0:-1]:
        steps.append(steps[-1] * size)
    return steps[::-1]


@rule("fold")
def fold(call: Call) -> Results:
    """Put windows back to their places in an image."""
    dims, shape, kernel = call.first, call.shape, _pair(call, "kernel_size", 0)
    if dims is None or shape is None or len(dims) != 3 or len(shape) != 4 or kernel is None:
        return []
    factors = call.factors
    image = (dims[0], *factors.make_dims(shape[1:]))
    call.claim_image(image, 2)
    columns = _columns(call, image)
    if columns is not None:
        for given, made in zip(dims, columns, strict=True):
            if factors.extent(given) == factors.extent(made):
                factors.unify(given, made)
    return [call.fit(image)]


def _columns(call: Call, image: Dims) -> Dims | None:
    """Return the dimensions of the windows of an image; None if their number is unknown."""
    kernel, stride = _pair(call, "kernel_size", 0), _pair(call, "stride", 1)
    padding, dilation = _pair(call, "padding", 0), _pair(call, "dilation", 1)
    if kernel is None or stride is None or padding is None or dilation is None:
        return None
    windows: Dim = ()
    within: Dim = ()
    for dim, kind, size, step, pad, gap in zip(
        image[2:], (Kind.ROW, Kind.COLUMN), kernel, stride, padding, dilation, strict=True
    ):
        found = _split(call, dim, size, step, pad, gap)
        if found is None:
            return None
        call.claim(found, (kind, kind), Rank.EXPECTED)
        windows, within = (*windows, *found[0]), (*within, *found[1])
    return (image[0], (*image[1], *within), windows)


def _split(
    call: Call, dim: Dim, kernel: int, stride: int, padding: int, dilation: int
) -> tuple[Dim, Dim] | None:
    """Split rows or columns to those of windows and those within."""
    length: Size = call.factors.extent(dim)
    if not isinstance(length, int) or kernel < 1 or stride < 1:
        return None
    count = (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if kernel == stride and not padding and dilation == 1 and count * kernel == length:
        windows, within = call.factors.regroup((dim,), (count, kernel))
        return windows, within
    return call.factors.derive(dim, count), call.factors.derive(dim, kernel)


def _pair(call: Call, name: str, default: int) -> tuple[int, int] | None:
    """Return a parameter for rows and columns."""
    values = call.integers(name) if name in call.operator.params else (default,)
    if values is None or len(values) not in {1, 2}:
        return None
    return values[0], values[-1]
