"""Products of matrices, linear algebra, distances."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from crosscheck.draw import FLOATS, Draw
from crosscheck.specification import Case, spec, specs


@spec("nn.Linear", "F.linear")
def linear(draw: Draw):
    size, out = draw.integer(1, 5), draw.integer(1, 5)
    x = draw.normal(*draw.shape(draw.integer(0, 3), 1, 4), size)
    match draw.turn("module", "function", "without bias"):
        case "module":
            return Case(nn.Linear(size, out, bias=draw.flag(0.7)), x)
        case "function":
            return Case(functional.linear, x, draw.normal(out, size), draw.normal(out))
        case _:
            return Case(functional.linear, x, draw.normal(out, size))


@spec("aten::bilinear", levels=(1, 2))  # at 0 weight and bias have one name
def bilinear(draw: Draw):
    one, two, out = draw.shape(3, 1, 4)
    batch = draw.shape(draw.integer(1, 2), 1, 3)
    return Case(
        nn.Bilinear(one, two, out, bias=draw.flag()),
        draw.normal(*batch, one), draw.normal(*batch, two),
    )  # fmt: skip


@spec("torch.matmul")
def matmul(draw: Draw):
    rows, inner, columns = draw.shape(3, 1, 5)
    batch = draw.shape(draw.integer(0, 2), 1, 3)
    dtype = draw.one(torch.float32, *FLOATS, torch.int64)
    left = draw.one((inner,), (rows, inner), (*draw.broadcastable(batch), rows, inner))
    right = draw.one((inner,), (inner, columns), (*batch, inner, columns))
    return Case(
        draw.one(torch.matmul, lambda x, y: x @ y),
        draw.tensor(*left, dtype=dtype), draw.tensor(*right, dtype=dtype),
    )  # fmt: skip


PRODUCTS = {
    "mm": ("nm", "mk"), "bmm": ("bnm", "bmk"), "mv": ("nm", "m"), "dot": ("m", "m"),
    "outer": ("n", "m"), "inner": ("nm", "km"), "kron": ("nm", "kb"), "ger": ("n", "m"),
    "chain_matmul": ("nm", "mk"), "vdot": ("m", "m"), "cross": ("n3", "n3"),
    "addmm": ("nk", "nm", "mk"), "addmv": ("n", "nm", "m"), "addr": ("nm", "n", "m"),
    "baddbmm": ("bnk", "bnm", "bmk"), "addbmm": ("nk", "bnm", "bmk"),
}  # fmt: skip
WRITTEN = {"mm", "bmm", "mv", "cross", "addmm", "baddbmm"}


@specs({n: (f"torch.{n}" if n in WRITTEN else f"aten::{n}",) for n in PRODUCTS})
def product(draw: Draw, name: str):
    sizes = dict(zip("bnmk3", (*draw.shape(4, 1, 5), 3), strict=True))
    dtype = draw.one(torch.float32, torch.float32, torch.float64)
    inputs = [
        draw.normal(*(sizes[letter] for letter in letters), dtype=dtype)
        for letters in PRODUCTS[name]
    ]
    function = getattr(torch, name)
    if name.startswith(("add", "badd")):
        if draw.flag(0.3):
            inputs[0] = draw.normal(*draw.broadcastable(inputs[0].shape), dtype=dtype)
        more = draw.keywords(beta=draw.number(-2, 2), alpha=draw.number(-2, 2))
        return Case(lambda *xs: function(*xs, **more), *inputs)
    if name == "cross":
        return Case(lambda x, y: function(x, y, dim=-1), *inputs)
    return Case(function, *inputs)


@spec("torch.cross")
def cross(draw: Draw):
    rank = draw.integer(1, 3)
    dim = draw.dim(rank)
    shape = list(draw.shape(rank))
    shape[dim] = 3
    function = draw.turn(torch.cross, torch.linalg.cross)
    return Case(lambda x, y: function(x, y, dim=dim), draw.normal(*shape), draw.normal(*shape))


EQUATIONS = (
    "ij,jk->ik", "bij,bjk->bik", "i,j->ij", "ij->ji", "ij->", "ij->i", "ii->i", "ii->",
    "bhid,bhjd->bhij", "bi,bi->b", "ijk,jil->kl", "b...i,b...i->b...", "...ij->...ji",
    "i,i", "ij,jk", "bij,jk->bik", "ij,j->i", "ij,ij->ij", "ij,kj,lj->ikl", "abc,cd,de->abe",
    "...ij,...jk->...ik", "i->i", "nchw,kc->nkhw",
)  # fmt: skip


@spec("torch.einsum", levels=(0, 2))  # at 1 the equation is an expression that is none
def einsum(draw: Draw):
    equation = draw.one(*EQUATIONS)
    sizes = {letter: draw.integer(1, 4) for letter in "abcdehijklnw"}
    dots = ()  # for more than none of them pnnx loses the ellipsis
    inputs = []
    for term in equation.partition("->")[0].split(","):
        shape = []
        head, dotted, tail = term.partition("...")
        shape = (
            [sizes[c] for c in head] + list(dots if dotted else ()) + [sizes[c] for c in tail]
        )
        inputs.append(draw.normal(*shape))
    return Case(lambda *xs: torch.einsum(equation, *xs), *inputs)


@spec("aten::tensordot")
def tensordot(draw: Draw):
    a, b, c, d = draw.shape(4, 1, 4)
    if draw.turn(True, False):
        return Case(
            lambda x, y: torch.tensordot(x, y, dims=1), draw.normal(a, b), draw.normal(b, c, d)
        )
    return Case(
        lambda x, y: torch.tensordot(x, y, dims=([1, 0], [0, 2])),
        draw.normal(a, b, c), draw.normal(b, d, a),
    )  # fmt: skip


# Not what needs LAPACK (determinants, inverses, singular values): pnnx comes without it, and
# ends the process.
@specs({"matrix_power": ("aten::linalg_matrix_power",), "matrix_norm": ()}, tolerance=1e-4)
def algebra(draw: Draw, name: str):
    size = draw.integer(1, 4)
    x = draw.normal(*draw.shape(draw.integer(0, 2), 1, 2), size, size)
    function = getattr(torch.linalg, name)
    argument = (
        draw.integer(0, 4) if name == "matrix_power" else draw.one("fro", 1, float("inf"))
    )
    return Case(lambda x: function(x, argument), x)


@spec("aten::linalg_norm")
def norm_of_vectors_or_matrices(draw: Draw):
    rank = draw.integer(1, 4)
    x = draw.normal(*draw.shape(rank, 1, 5), dtype=draw.one(*FLOATS))
    keepdim = draw.flag()
    match draw.turn("plain", "vectors", "matrices"):
        case "plain":
            dims = draw.one(None, draw.dim(rank), draw.dims(rank, most=2))
            return Case(lambda x: torch.linalg.norm(x, dim=dims, keepdim=keepdim), x)
        case "vectors":
            dims, order = draw.dim(rank), draw.one(0, 1, 2.5, float("inf"), float("-inf"))
        case _:  # not the orders that take singular values
            dims = draw.dims(rank, 2, 2)
            order = draw.one("fro", 1, -1, float("inf"), float("-inf"))
    return Case(lambda x: torch.linalg.norm(x, order, dims, keepdim), x)


@spec("aten::trace")
def trace(draw: Draw):
    return Case(torch.trace, draw.normal(*draw.shape(2)))


@spec("F.pairwise_distance")
def pairwise_distance(draw: Draw):
    shape = draw.shape(draw.integer(1, 3))
    x, y = draw.normal(*shape), draw.normal(*shape)
    p, eps, keepdim = draw.one(1.0, 2.0, 3.0), draw.number(0, 0.1), draw.flag()
    if draw.turn(False, True):
        return Case(nn.PairwiseDistance(p, eps, keepdim), x, y)
    return Case(lambda x, y: functional.pairwise_distance(x, y, p, eps, keepdim), x, y)


@spec("aten::cosine_similarity")
def cosine_similarity(draw: Draw):
    rank = draw.integer(1, 3)
    shape, dim = draw.shape(rank), draw.dim(rank)
    x, y = draw.normal(*shape), draw.normal(*shape)
    if draw.turn(True, False):
        return Case(nn.CosineSimilarity(dim, draw.one(1e-8, 0.5)), x, y)
    return Case(lambda x, y: functional.cosine_similarity(x, y, dim), x, y)


@specs(
    {"cdist": ("aten::cdist",), "pdist": ("aten::pdist",), "dist": ("aten::dist",)},
    tolerance=1e-4,
)
def distance(draw: Draw, name: str):
    width = draw.integer(1, 4)
    p = draw.one(1.0, 2.0, 3.0, float("inf"), 0.0)
    function = getattr(torch, name)
    x = draw.normal(draw.integer(2, 5), width)
    if name == "pdist":
        return Case(lambda x: function(x, p), x)
    y = draw.normal(draw.integer(1, 5), width) if name == "cdist" else draw.normal(*x.shape)
    return Case(lambda x, y: function(x, y, p), x, y)
