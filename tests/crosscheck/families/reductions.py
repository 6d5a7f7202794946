"""Reductions, scans and order."""

from __future__ import annotations

import torch

from crosscheck.draw import FLOATS, INTEGERS, Draw
from crosscheck.specification import Case, spec, specs

# Nothing is drawn with a dtype here: pnnx drops it.


def of_any_kind(draw: Draw, rank: int, dtypes=(*FLOATS, *INTEGERS, torch.bool)):
    dtype = torch.float32 if draw.flag(0.6) else draw.one(*dtypes)
    return draw.tensor(*draw.shape(rank, 1, 5), dtype=dtype)


SEVERAL = {
    "sum": "torch.sum", "mean": "torch.mean", "amax": "torch.amax", "amin": "torch.amin",
    "nansum": "aten::nansum", "nanmean": "aten::nanmean", "logsumexp": "torch.logsumexp",
    "all": "aten::all", "any": "aten::any",
}  # fmt: skip


@specs({name: (kind,) for name, kind in SEVERAL.items()})
def over_dims(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    real = name in {"mean", "nanmean", "logsumexp"}
    x = of_any_kind(draw, rank, FLOATS if real else (*FLOATS, *INTEGERS, torch.bool))
    function = getattr(torch, name)
    keepdim = draw.flag()
    dims = draw.one(draw.dim(rank), draw.dims(rank))
    if name != "logsumexp" and draw.turn(False, False, True):
        return Case(function, x)
    return Case(lambda x: function(x, dim=dims, keepdim=keepdim), x)


@specs({"prod": ("torch.prod",)})
def over_a_dim(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    x = of_any_kind(draw, rank)
    function = getattr(torch, name)
    dim, keepdim = draw.dim(rank), draw.flag()
    if draw.turn(False, False, True):
        return Case(function, x)
    return Case(lambda x: function(x, dim=dim, keepdim=keepdim), x)


@specs({"argmax": ("torch.argmax",), "argmin": ("torch.argmin",)})
def place(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    x = draw.distinct(*draw.shape(rank, 1, 5))
    function = getattr(torch, name)
    dim, keepdim = draw.one(None, draw.dim(rank)), draw.flag()
    return Case(lambda x: function(x, dim=dim, keepdim=keepdim), x)


@specs({
    "max": ("torch.max",), "min": ("torch.min",), "median": ("aten::median",),
    "cummax": ("aten::cummax",), "cummin": ("aten::cummin",),
})  # fmt: skip
def with_places(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    x = draw.distinct(*draw.shape(rank, 1, 5), dtype=draw.one(*FLOATS, torch.int64))
    function = getattr(torch, name)
    dim = draw.dim(rank)
    if name.startswith("cum"):
        return Case(lambda x: function(x, dim), x)
    keepdim = draw.flag()
    match draw.turn("both", "values", "all", "places"):
        case "both":
            return Case(lambda x: function(x, dim, keepdim), x)
        case "values":
            return Case(lambda x: function(x, dim, keepdim)[0], x)
        case "places":
            return Case(lambda x: function(x, dim, keepdim)[1], x)
        case _:
            return Case(function, x)


@specs({
    "std": ("torch.std",), "var": ("torch.var",), "std_mean": ("aten::std_mean",),
    "var_mean": ("aten::var_mean",),
})  # fmt: skip
def spread(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    x = draw.normal(*draw.shape(rank, 2, 5), dtype=draw.one(*FLOATS))
    function = getattr(torch, name)
    keepdim = draw.flag()
    dims = draw.one(draw.dim(rank), draw.dims(rank))
    match draw.turn("unbiased", "correction", "all", "plain"):
        case "unbiased":
            unbiased = draw.flag()
            return Case(lambda x: function(x, dim=dims, unbiased=unbiased, keepdim=keepdim), x)
        case "correction":
            less = draw.integer(0, 1)
            return Case(lambda x: function(x, dim=dims, correction=less, keepdim=keepdim), x)
        case "all":
            unbiased = draw.flag()
            return Case(lambda x: function(x, unbiased=unbiased), x)
        case _:
            return Case(lambda x: function(x, dims), x)


@spec("torch.norm")
def norm(draw: Draw):
    rank = draw.integer(1, 4)
    x = draw.normal(*draw.shape(rank, 1, 5), dtype=draw.one(*FLOATS))
    p = draw.one(1, 2, 3, 0, 1.5, float("inf"), float("-inf"), "fro")
    dims, keepdim = draw.one(draw.dim(rank), draw.dims(rank, most=2)), draw.flag()
    match draw.turn("dims", "method", "all"):
        case "dims":
            return Case(lambda x: torch.norm(x, p, dims, keepdim), x)
        case "method":
            return Case(lambda x: x.norm(p, dims, keepdim), x)
        case _:
            return Case(lambda x: torch.norm(x, p), x)


@spec("aten::linalg_vector_norm")
def vector_norm(draw: Draw):
    rank = draw.integer(1, 3)
    x = draw.normal(*draw.shape(rank, 1, 5))
    order = draw.one(1, 2, 3.5, 0, float("inf"), float("-inf"))
    dims, keepdim = draw.one(None, draw.dim(rank), draw.dims(rank)), draw.flag()
    return Case(lambda x: torch.linalg.vector_norm(x, order, dims, keepdim), x)


@specs({
    "cumsum": ("torch.cumsum",), "cumprod": ("torch.cumprod",),
    "logcumsumexp": ("aten::logcumsumexp",),
})  # fmt: skip
def scan(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    dtypes = FLOATS if name.startswith("log") else (*FLOATS, *INTEGERS, torch.bool)
    x = of_any_kind(draw, rank, dtypes)
    function, dim = getattr(torch, name), draw.dim(rank)
    return Case(lambda x: function(x, dim), x)


@spec("torch.topk")
def topk(draw: Draw):
    rank = draw.integer(1, 3)
    shape = draw.shape(rank, 1, 7)
    x = draw.distinct(*shape, dtype=draw.one(*FLOATS, torch.int64))
    dim = draw.dim(rank)
    k, largest = draw.integer(1, shape[dim]), draw.flag()
    match draw.turn("both", "default", "values"):
        case "both":
            return Case(lambda x: torch.topk(x, k, dim, largest), x)
        case "values":
            return Case(lambda x: x.topk(k, dim, largest)[0], x)
        case _:
            k = draw.integer(1, shape[-1])
            return Case(lambda x: torch.topk(x, k), x)


@specs({"sort": ("aten::sort",), "argsort": ("aten::argsort",), "msort": ()})
def order(draw: Draw, name: str):
    rank = draw.integer(1, 3)
    x = draw.distinct(*draw.shape(rank, 1, 7), dtype=draw.one(*FLOATS, torch.int64))
    dim, descending = draw.dim(rank), draw.flag()
    function = getattr(torch, name)
    if name == "msort":
        return Case(function, x)
    match draw.turn("plain", "stable", "default"):
        case "plain":
            return Case(lambda x: function(x, dim=dim, descending=descending), x)
        case "stable":
            equal = draw.integers(0, 3, *x.shape)
            return Case(
                lambda x: function(x, dim=dim, descending=descending, stable=True), equal
            )
        case _:
            return Case(function, x)


@spec("aten::kthvalue")
def kthvalue(draw: Draw):
    rank = draw.integer(1, 3)
    shape = draw.shape(rank, 1, 6)
    dim = draw.dim(rank)
    k, keepdim = draw.integer(1, shape[dim]), draw.flag()
    return Case(lambda x: torch.kthvalue(x, k, dim, keepdim), draw.distinct(*shape))


@spec("aten::bincount")
def bincount(draw: Draw):
    x, least = draw.integers(0, 8, draw.integer(1, 12)), draw.integer(0, 12)
    if draw.flag():
        return Case(lambda x, w: torch.bincount(x, w, least), x, draw.normal(*x.shape))
    return Case(lambda x: torch.bincount(x, minlength=least), x)


@specs({"bucketize": ("aten::bucketize",), "searchsorted": ("aten::searchsorted",)})
def buckets(draw: Draw, name: str):
    edges = draw.distinct(draw.integer(1, 8)).sort()[0]
    x = draw.integers(-5, 5, *draw.shape(draw.integer(1, 3))).float() / 4
    more = draw.keywords(right=draw.flag(), out_int32=draw.flag())
    if name == "bucketize":
        return Case(lambda x, e: torch.bucketize(x, e, **more), x, edges)
    return Case(lambda e, x: torch.searchsorted(e, x, **more), edges, x)
