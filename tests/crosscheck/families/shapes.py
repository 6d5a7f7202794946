"""Operators that move elements, or only name them otherwise."""

from __future__ import annotations

import math

import torch
from torch import nn

from crosscheck.draw import FLOATS, Draw
from crosscheck.specification import Case, spec, specs

ANY = (*FLOATS, torch.int64, torch.int32, torch.bool, torch.complex64)


def something(draw: Draw, rank: int, low: int = 1, high: int = 5):
    dtype = torch.float32 if draw.flag(0.7) else draw.one(*ANY)
    return draw.tensor(*draw.shape(rank, low, high), dtype=dtype)


@specs({"reshape": ("Tensor.reshape",), "view": ("Tensor.reshape",)})
def reshape(draw: Draw, name: str):
    x = something(draw, draw.integer(1, 4))
    left, shape = x.numel(), []
    for _ in range(draw.integer(0, 3)):
        shape.append(draw.one(*(n for n in range(1, left + 1) if left % n == 0)))
        left //= shape[-1]
    shape.append(left)
    shape = draw.shuffled(shape)
    if draw.flag():
        shape[draw.integer(0, len(shape) - 1)] = -1
    return Case(lambda x: getattr(x, name)(shape), x)


@spec("torch.flatten")
def flatten(draw: Draw):
    rank = draw.integer(1, 5)
    x = something(draw, rank)
    first = draw.integer(0, rank - 1)
    last = draw.integer(first, rank - 1)
    first, last = (d - rank if draw.flag() else d for d in (first, last))
    return Case(draw.turn(lambda x: torch.flatten(x, first, last), nn.Flatten(first, last)), x)


@spec("Tensor.unflatten")
def unflatten(draw: Draw):
    rank = draw.integer(1, 3)
    dim = draw.dim(rank)
    parts = list(draw.shape(draw.integer(1, 3), 1, 3))
    shape = list(draw.shape(rank))
    shape[dim] = math.prod(parts)
    if draw.flag(0.3):
        parts[draw.integer(0, len(parts) - 1)] = -1
    x = draw.normal(*shape)
    if draw.flag(0.7):
        return Case(lambda x: x.unflatten(dim, parts), x)
    return Case(nn.Unflatten(dim, tuple(parts)), x)


@spec("Tensor.permute")
def permute(draw: Draw):
    rank = draw.integer(1, 5)
    order = [d - rank if draw.flag(0.3) else d for d in draw.shuffled(range(rank))]
    return Case(lambda x: x.permute(order), something(draw, rank))


@specs({"transpose": ("torch.transpose",), "swapaxes": (), "swapdims": ()})
def transpose(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    one, other = draw.dim(rank), draw.dim(rank)
    return Case(lambda x: getattr(torch, name)(x, one, other), something(draw, rank))


@spec("torch.t")
def t(draw: Draw):
    return Case(torch.t, something(draw, draw.integer(0, 2)))


@specs({"movedim": ("aten::movedim",), "moveaxis": ()})
def movedim(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    function = getattr(torch, name)
    if draw.flag():
        one, other = draw.dim(rank), draw.dim(rank)
    else:
        one = draw.dims(rank)
        other = draw.dims(rank, len(one), len(one))
    return Case(lambda x: function(x, one, other), something(draw, rank))


@spec("torch.squeeze")
def squeeze(draw: Draw):
    rank = draw.integer(1, 5)
    x = draw.normal(*(draw.one(1, 1, 3) for _ in range(rank)))
    match draw.turn("one", "all", "several"):
        case "one":
            dim = draw.dim(rank)
            return Case(lambda x: torch.squeeze(x, dim), x)
        case "all":
            return Case(torch.squeeze, x)
        case _:
            dims = draw.dims(rank)
            return Case(lambda x: torch.squeeze(x, dims), x)


@spec("torch.unsqueeze")
def unsqueeze(draw: Draw):
    rank = draw.integer(0, 4)
    dim = draw.dim(rank + 1)
    return Case(lambda x: torch.unsqueeze(x, dim), something(draw, rank))


@spec("Tensor.expand")
def expand(draw: Draw):
    rank = draw.integer(0, 4)
    shape = draw.shape(rank)
    small = [1 if draw.flag() else n for n in shape]
    target = [-1 if draw.flag(0.3) else n for n in shape]
    more = list(draw.shape(draw.integer(0, 2), 1, 3))
    return Case(lambda x: x.expand([*more, *target]), draw.normal(*small))


@spec("Tensor.expand_as")
def expand_as(draw: Draw):
    shape = draw.shape(draw.integer(1, 4))
    small = draw.broadcastable(shape)
    return Case(lambda x, y: x.expand_as(y), draw.normal(*small), draw.normal(*shape))


@spec("aten::broadcast_to")
def broadcast_to(draw: Draw):
    shape = draw.shape(draw.integer(1, 4))
    small = draw.broadcastable(shape)
    return Case(lambda x: torch.broadcast_to(x, shape), draw.normal(*small))


@spec("Tensor.repeat")
def repeat(draw: Draw):
    rank = draw.integer(0, 3)
    times = draw.shape(rank + draw.integer(0, 2), 1, 3)
    return Case(lambda x: x.repeat(times), something(draw, rank))


@spec("torch.tile")
def tile(draw: Draw):
    times = draw.shape(draw.integer(1, 4), 1, 3)
    return Case(lambda x: torch.tile(x, times), something(draw, draw.integer(1, 3)))


@spec("torch.repeat_interleave")
def repeat_interleave(draw: Draw):
    rank = draw.integer(1, 3)
    x = something(draw, rank)
    times, dim = draw.integer(1, 3), draw.one(None, draw.dim(rank))
    if draw.turn(True, True, False):
        return Case(lambda x: torch.repeat_interleave(x, times, dim), x)
    dim = draw.dim(rank)
    counts = draw.integers(0, 3, x.shape[dim])
    return Case(lambda x, n: torch.repeat_interleave(x, n, dim), x, counts)


@spec("torch.flip")
def flip(draw: Draw):
    rank = draw.integer(1, 4)
    dims = draw.dims(rank)
    return Case(lambda x: torch.flip(x, dims), something(draw, rank))


@specs({"fliplr": (), "flipud": (), "rot90": ()})
def turned(draw: Draw, name: str):
    return Case(getattr(torch, name), something(draw, draw.integer(2, 4)))


@spec("torch.roll")
def roll(draw: Draw):
    rank = draw.integer(1, 4)
    x = something(draw, rank)
    if draw.flag(0.2):
        shift = draw.integer(-9, 9)
        return Case(lambda x: torch.roll(x, shift), x)
    dims = draw.dims(rank)
    shifts = tuple(draw.integer(-7, 7) for _ in dims)
    return Case(lambda x: torch.roll(x, shifts, dims), x)


@specs({"cat": ("torch.cat",), "concat": (), "concatenate": ()})
def concatenate(draw: Draw, name: str):
    rank, count = draw.integer(1, 4), draw.integer(1, 4)
    dim = draw.dim(rank)
    shape = list(draw.shape(rank))
    dtype = draw.one(*ANY)
    parts = []
    for _ in range(count):
        shape[dim] = draw.integer(1, 4)
        parts.append(draw.tensor(*shape, dtype=draw.one(dtype, dtype, *ANY)))
    function = getattr(torch, name)
    return Case(lambda *xs: function(xs, dim), *parts)


@spec("torch.stack")
def stack(draw: Draw):
    shape = draw.shape(draw.integer(0, 3))
    dim = draw.dim(len(shape) + 1)
    parts = [draw.normal(*shape) for _ in range(draw.integer(1, 4))]
    return Case(lambda *xs: torch.stack(xs, dim), *parts)


@specs({"hstack": (), "vstack": (), "dstack": (), "column_stack": ()})
def stacked(draw: Draw, name: str):
    shape = draw.shape(draw.integer(1, 3), 2, 4)
    parts = [draw.normal(*shape) for _ in range(draw.integer(1, 3))]
    return Case(lambda *xs: getattr(torch, name)(xs), *parts)


@spec("torch.chunk")
def chunk(draw: Draw):
    rank = draw.integer(1, 4)
    dim, count = draw.dim(rank), draw.integer(1, 4)
    return Case(lambda x: torch.chunk(x, count, dim), something(draw, rank, 1, 9))


@spec("torch.split")
def split(draw: Draw):
    rank = draw.integer(1, 4)
    dim = draw.dim(rank)
    shape = list(draw.shape(rank))
    if draw.turn(True, False):
        size = draw.integer(1, 4)
        shape[dim] = draw.integer(1, 9)
        return Case(lambda x: torch.split(x, size, dim), draw.normal(*shape))
    sizes = draw.shape(draw.integer(1, 4), 0, 3)
    shape[dim] = sum(sizes)
    return Case(lambda x: torch.split(x, sizes, dim), draw.normal(*shape))


@spec("torch.tensor_split")
def tensor_split(draw: Draw):
    rank = draw.integer(1, 4)
    dim = draw.dim(rank)
    x = something(draw, rank, 1, 9)
    places = draw.turn(draw.integer(1, 5), tuple(sorted(draw.shape(draw.integer(1, 3), 0, 8))))
    return Case(lambda x: torch.tensor_split(x, places, dim), x)


@spec("torch.unbind")
def unbind(draw: Draw):
    rank = draw.integer(1, 4)
    dim = draw.dim(rank)
    # Not one number of one: the file does not tell a list of one from what is in it.
    return Case(lambda x: torch.unbind(x, dim), something(draw, rank, 2 if rank == 1 else 1))


@spec("torch.diag")
def diag(draw: Draw):
    diagonal = draw.integer(-3, 3)
    x = draw.normal(*draw.shape(draw.turn(1, 2), 1, 6))
    return Case(lambda x: torch.diag(x, diagonal), x)


@spec("aten::diagonal")
def diagonal(draw: Draw):
    rank = draw.integer(2, 4)
    offset, (one, other) = draw.integer(-2, 2), draw.dims(rank, 2, 2)
    return Case(lambda x: torch.diagonal(x, offset, one, other), something(draw, rank))


@specs({"tril": ("aten::tril",), "triu": ("aten::triu",)})
def triangle(draw: Draw, name: str):
    offset = draw.integer(-4, 4)
    x = something(draw, draw.integer(2, 4))
    return Case(lambda x: getattr(torch, name)(x, offset), x)


@spec("torch.as_strided")
def as_strided(draw: Draw):
    x = draw.normal(4, 9)
    size, stride = draw.shape(2, 1, 3), draw.shape(2, 0, 4)
    # Without an offset: pnnx drops it.
    return Case(lambda x: torch.as_strided(x, size, stride), x)


@specs({"clone": ("Tensor.clone",), "contiguous": (), "detach": ()})
def copies(draw: Draw, name: str):
    return Case(lambda x: getattr(x.transpose(0, 1), name)().neg(), draw.normal(*draw.shape(2)))


@spec("Tensor.reshape_as", "aten::view_as")
def like(draw: Draw):
    shape = draw.shape(3, 1, 4)
    name = draw.turn("reshape_as", "view_as")
    y = draw.normal(*draw.shuffled(shape))
    return Case(lambda x, y: getattr(x, name)(y), draw.normal(*shape), y)


@spec("aten::unfold")
def unfold_dimension(draw: Draw):
    rank = draw.integer(1, 3)
    dim, size, step = draw.dim(rank), draw.integer(1, 3), draw.integer(1, 3)
    return Case(lambda x: x.unfold(dim, size, step), something(draw, rank, 3, 7))


# Parts --------------------------------------------------------------------------------------


def places(draw: Draw, size: int):
    """An entry of an index: a range, a place, all of it."""
    match draw.one("range", "range", "place", "all", "step"):
        case "range":
            first = draw.one(None, draw.integer(-size, size))
            return slice(first, draw.one(None, draw.integer(-size, size + 3)))
        case "place":
            return draw.integer(-size, size - 1)
        case "step":
            return slice(draw.one(None, 0, 1), None, draw.integer(1, 3))
        case _:
            return slice(None)


@spec("Tensor.slice")
def slices(draw: Draw):
    rank = draw.integer(1, 4)
    shape = draw.shape(rank, 2, 6)
    index = tuple(places(draw, size) for size in shape[: draw.integer(1, rank)])
    if draw.flag(0.2):
        index = (*index[:1], Ellipsis, *index[1:][: rank - 1])
    if draw.flag(0.2):
        index = (None, *index)
    if not torch.empty(shape)[index].numel():
        raise ValueError("pnnx does not end on a part without elements")
    return Case(lambda x: x[index] + 1, draw.normal(*shape))


@spec("Tensor.slice_copy", levels=(2,))  # below, pnnx leaves a writing operator
def slice_assignment(draw: Draw):
    rank = draw.integer(1, 4)
    shape = draw.shape(rank, 2, 6)
    index = tuple(places(draw, size) for size in shape[: draw.integer(1, rank)])
    part = torch.empty(shape)[index].shape
    value = draw.normal(*draw.broadcastable(part))

    def assign(x, value):
        y = x.clone()
        y[index] = value
        return y * 2

    return Case(assign, draw.normal(*shape), value)


@spec("torch.slice_scatter")
def slice_scatter(draw: Draw):
    rank = draw.integer(1, 3)
    shape = draw.shape(rank, 3, 6)
    dim = draw.dim(rank)
    first, last = draw.integer(-3, 2), draw.one(None, draw.integer(1, 7))
    step = draw.integer(1, 2)
    index = [slice(None)] * rank
    index[dim] = slice(first, last, step)
    part = torch.empty(shape)[tuple(index)].shape
    return Case(
        lambda x, y: torch.slice_scatter(x, y, dim, first, last, step),
        draw.normal(*shape), draw.normal(*part),
    )  # fmt: skip


@spec("aten::select_scatter")
def select_scatter(draw: Draw):
    rank = draw.integer(1, 3)
    shape = list(draw.shape(rank))
    dim = draw.dim(rank)
    index = draw.integer(-shape[dim], shape[dim] - 1)
    x = draw.normal(*shape)
    return Case(
        lambda x, y: torch.select_scatter(x, y, dim, index),
        x,
        draw.normal(*x.select(dim, 0).shape),
    )


@spec("Tensor.select")
def select(draw: Draw):
    rank = draw.integer(1, 4)
    shape = draw.shape(rank)
    dim = draw.dim(rank)
    index = draw.integer(-shape[dim], shape[dim] - 1)
    return Case(lambda x: torch.select(x, dim, index), draw.normal(*shape))


@spec("torch.narrow")
def narrow(draw: Draw):
    rank = draw.integer(1, 4)
    shape = draw.shape(rank)
    dim = draw.dim(rank)
    start = draw.integer(-shape[dim], shape[dim] - 1)
    length = draw.integer(0 if draw.flag(0.1) else 1, shape[dim] - start % shape[dim])
    return Case(lambda x: torch.narrow(x, dim, start, length), draw.normal(*shape))
