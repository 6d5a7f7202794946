"""Gathering and scattering by index."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from crosscheck.draw import FLOATS, Draw
from crosscheck.specification import Case, spec, specs


@spec("Tensor.index")
def index(draw: Draw):
    rank = draw.integer(1, 4)
    shape = draw.shape(rank, 2, 5)
    # Constants have one dimension and two numbers at least: of others pnnx loses the shape.
    common = draw.shape(draw.integer(1, 2), 2, 3)
    options = ("tensor", "all", "constant") if len(common) == 1 else ("tensor", "all")
    kinds = [draw.one(*options) for _ in range(draw.integer(1, rank))]
    x = draw.normal(*shape)
    tensors = [
        draw.integers(-size, size - 1, *common)
        for size, kind in zip(shape, kinds, strict=False) if kind != "all"
    ]  # fmt: skip
    if not tensors:
        return Case(lambda x, i: x[i], x, draw.integers(0, 1, 3))
    fed = [kind != "constant" for kind in kinds if kind != "all"]
    inputs = [t for t, is_input in zip(tensors, fed, strict=True) if is_input]

    def take(x, *given):
        rest, given = iter(tensors), iter(given)
        parts = []
        for kind in kinds:
            if kind == "all":
                parts.append(slice(None))
            else:
                constant = next(rest)
                parts.append(constant if kind == "constant" else next(given))
        return x[tuple(parts)]

    return Case(take, x, *inputs)


@spec("Tensor.index")
def index_by_list(draw: Draw):
    rank = draw.integer(1, 3)
    shape = draw.shape(rank, 2, 5)
    numbers = [draw.integer(0, 1) for _ in range(draw.integer(1, 4))]
    depth = draw.integer(0, rank - 1)
    place = (slice(None),) * depth + (numbers,)
    return Case(lambda x: x[place], draw.normal(*shape))


@spec("Tensor.index")
def index_by_mask(draw: Draw):
    rank = draw.integer(1, 3)
    shape = draw.shape(rank, 2, 5)
    mask = draw.booleans(*shape[: draw.integer(1, rank)])
    return Case(lambda x, m: x[m], draw.normal(*shape), mask)


@spec("Tensor.index_put")
def index_put(draw: Draw):
    rank = draw.integer(1, 3)
    shape = draw.shape(rank, 3, 6)
    accumulate = draw.flag()
    count = draw.integer(1, 3)
    # Different places: which of several values stays is open.
    places = [
        torch.tensor(draw.shuffled(range(n))[:count]) for n in shape[: draw.integer(1, rank)]
    ]
    value = draw.normal(count, *shape[len(places) :])
    if draw.flag(0.3):
        value = draw.normal()
    return Case(
        lambda x, v, *i: torch.index_put(x, i, v, accumulate),
        draw.normal(*shape),
        value,
        *places,
    )


@spec("Tensor.index_put", levels=(2,))  # below, pnnx leaves a writing operator
def index_assignment(draw: Draw):
    shape = draw.shape(draw.integer(1, 3), 3, 6)
    mask = draw.booleans(*shape)
    number = draw.number(-3, 3)

    def assign(x, m):
        y = x.clone()
        y[m] = number
        return y

    return Case(assign, draw.normal(*shape), mask)


@spec("torch.index_select")
def index_select(draw: Draw):
    rank = draw.integer(1, 4)
    shape = draw.shape(rank)
    dim = draw.dim(rank)
    where = draw.integers(
        0, shape[dim] - 1, draw.integer(1, 5), dtype=draw.one(torch.int64, torch.int32)
    )
    return Case(lambda x, i: torch.index_select(x, dim, i), draw.normal(*shape), where)


@spec("torch.gather")
def gather(draw: Draw):
    rank = draw.integer(1, 4)
    shape = draw.shape(rank)
    dim = draw.dim(rank)
    size = [draw.integer(1, n) for n in shape]
    size[dim] = draw.integer(1, 6)
    where = draw.integers(0, shape[dim] - 1, *size)
    return Case(lambda x, i: torch.gather(x, dim, i), draw.normal(*shape), where)


@specs({"scatter_add": ("torch.scatter_add",), "scatter_reduce": ("aten::scatter_reduce",)})
def scatter_many(draw: Draw, name: str):
    rank = draw.integer(1, 3)
    shape = draw.shape(rank, 2, 5)
    dim = draw.dim(rank)
    size = [draw.integer(1, n) for n in shape]
    where = draw.integers(0, shape[dim] - 1, *size)
    inputs = draw.normal(*shape), where, draw.normal(*size)
    if name == "scatter_add":
        return Case(lambda x, i, s: torch.scatter_add(x, dim, i, s), *inputs)
    how = draw.turn("sum", "prod", "mean", "amax", "amin")
    with_self = draw.flag()
    return Case(
        lambda x, i, s: torch.scatter_reduce(x, dim, i, s, how, include_self=with_self), *inputs
    )


@spec("aten::scatter")
def scatter(draw: Draw):
    shape = draw.shape(2, 3, 5)
    dim = draw.dim(2)
    # Different places: which of several values stays is open.
    where = torch.stack(
        [torch.tensor(draw.shuffled(range(shape[dim]))) for _ in range(shape[1 - dim % 2])]
    )
    where = where if dim % 2 else where.T.contiguous()
    x = draw.normal(*shape)
    if draw.turn(True, False):
        return Case(
            lambda x, i, s: torch.scatter(x, dim, i, s), x, where, draw.normal(*where.shape)
        )
    number = draw.number(-3, 3)
    return Case(lambda x, i: torch.scatter(x, dim, i, number), x, where)


@spec("aten::index_add")
def index_add(draw: Draw):
    rank = draw.integer(1, 3)
    shape = list(draw.shape(rank, 2, 5))
    dim, alpha = draw.dim(rank), draw.one(1, 2, -0.5)
    where = draw.integers(0, shape[dim] - 1, draw.integer(1, 4))
    x = draw.normal(*shape)
    shape[dim] = len(where)
    return Case(
        lambda x, i, s: torch.index_add(x, dim, i, s, alpha=alpha),
        x,
        where,
        draw.normal(*shape),
    )


@spec("aten::index_fill")
def index_fill(draw: Draw):
    rank = draw.integer(1, 3)
    shape = draw.shape(rank, 2, 5)
    dim, number = draw.dim(rank), draw.number(-3, 3)
    where = draw.integers(0, shape[dim] - 1, draw.integer(1, 4))
    return Case(lambda x, i: torch.index_fill(x, dim, i, number), draw.normal(*shape), where)


@spec("aten::take")
def take(draw: Draw):
    x = draw.normal(*draw.shape(draw.integer(1, 3)))
    where = draw.integers(-x.numel(), x.numel() - 1, *draw.shape(draw.integer(1, 2)))
    return Case(torch.take, x, where)


@spec("aten::take_along_dim")
def take_along_dim(draw: Draw):
    x = draw.distinct(*draw.shape(2, 2, 5))
    dim = draw.dim(2)
    where = x.argsort(dim)
    if draw.flag(0.3):
        return Case(torch.take_along_dim, x, draw.integers(0, 3, 5))
    return Case(lambda x, i: torch.take_along_dim(x, i, dim), x, where)


@spec("torch.masked_select")
def masked_select(draw: Draw):
    shape = draw.shape(draw.integer(1, 3))
    return Case(
        torch.masked_select, draw.normal(*shape), draw.booleans(*draw.broadcastable(shape))
    )


@spec("aten::masked_scatter")
def masked_scatter(draw: Draw):
    shape = draw.shape(draw.integer(1, 3))
    return Case(
        torch.masked_scatter, draw.normal(*shape), draw.booleans(*shape), draw.normal(*shape)
    )


@spec("aten::nonzero")
def nonzero(draw: Draw):
    x = draw.integers(0, 1, *draw.shape(draw.integer(1, 3)))
    as_tuple = lambda x: torch.nonzero(x, as_tuple=True)  # noqa: E731
    return Case(draw.turn(torch.nonzero, torch.argwhere, as_tuple), x)


@spec("nn.Embedding", "F.embedding")
def embedding(draw: Draw):
    count, width = draw.integer(2, 9), draw.integer(1, 6)
    where = draw.integers(0, count - 1, *draw.shape(draw.integer(0, 3), 1, 4))
    where = where.to(draw.one(torch.int64, torch.int32))
    if draw.turn(True, False):
        return Case(nn.Embedding(count, width, padding_idx=draw.one(None, 0, -1)), where)
    return Case(functional.embedding, where, draw.normal(count, width))


@spec("aten::embedding_bag")
def embedding_bag(draw: Draw):
    count, width = draw.integer(2, 9), draw.integer(1, 6)
    mode = draw.turn("sum", "mean", "max")
    bag = nn.EmbeddingBag(count, width, mode=mode)
    if draw.turn(True, False):
        return Case(bag, draw.integers(0, count - 1, draw.integer(1, 3), draw.integer(1, 5)))
    where = draw.integers(0, count - 1, 7)
    return Case(bag, where, torch.tensor([0, 2, 3]))


@spec("aten::embedding_bag")
def embedding_bag_of_offsets(draw: Draw):
    count, mode = draw.integer(2, 5), draw.one("sum", "mean", "max")
    where = draw.integers(0, count - 1, draw.integer(3, 7))
    starts = [0, *sorted(draw.shape(draw.integer(0, 2), 0, len(where)))]
    more = draw.keywords(padding_idx=draw.integer(-count, count - 1))
    if draw.flag(0.3):
        starts.append(len(where))
        more["include_last_offset"] = True
    inputs = where, draw.normal(count, draw.integer(1, 4)), torch.tensor(starts)
    if mode == "sum" and draw.flag():
        return Case(
            lambda i, w, o, s: functional.embedding_bag(
                i, w, o, mode="sum", per_sample_weights=s, **more
            ),
            *inputs, draw.normal(*where.shape),
        )  # fmt: skip
    return Case(lambda i, w, o: functional.embedding_bag(i, w, o, mode=mode, **more), *inputs)


@spec("aten::one_hot")
def one_hot(draw: Draw):
    classes = draw.integer(4, 7)
    x = draw.integers(0, 3, *draw.shape(draw.integer(1, 2)))
    return Case(lambda x: functional.one_hot(x, classes), x)


@specs({"fill": ("Tensor.fill",), "zero": ()})
def filled(draw: Draw, name: str):
    x = draw.tensor(*draw.shape(2), dtype=draw.one(*FLOATS, torch.int64))
    number = draw.integer(-3, 3)

    def fill(x):
        y = x.clone()
        return y.fill_(number) + 1 if name == "fill" else y.zero_() + 1

    return Case(fill, x)
