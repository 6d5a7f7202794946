"""Operators that pnnx knows nothing of, and other names of some that it knows."""

from __future__ import annotations

import torch
from torch.nn import functional

from crosscheck.draw import FLOATS, Draw
from crosscheck.specification import Case, spec, specs

ALIASES = {
    "absolute": (-3, 3), "arccos": (-1, 1), "arccosh": (1, 5), "arcsin": (-1, 1),
    "arcsinh": (-3, 3), "arctan": (-3, 3), "arctanh": (-0.9, 0.9), "fix": (-3, 3),
    "negative": (-3, 3), "isreal": (-1, 1), "resolve_neg": (-1, 1), "ravel": (-1, 1),
    "digamma": (0.2, 5), "erfinv": (-0.9, 0.9), "i0": (-4, 4), "atleast_1d": (0, 1),
    "atleast_2d": (0, 1), "atleast_3d": (0, 1),
}  # fmt: skip


@specs({name: (f"aten::{name}",) for name in ALIASES})
def of_one(draw: Draw, name: str):
    low, high = ALIASES[name]
    return Case(getattr(torch, name), draw.uniform(low, high, *draw.shape(draw.integer(0, 3))))


PAIRS = (
    "arctan2", "greater", "greater_equal", "less", "less_equal", "not_equal", "multiply",
    "subtract", "divide", "isclose", "ldexp",
)  # fmt: skip


@specs({name: (f"aten::{name}",) for name in PAIRS})
def of_two(draw: Draw, name: str):
    shape = draw.shape(draw.integer(1, 3), 1, 4)
    x, y = (draw.integers(-3, 3, *draw.broadcastable(shape)).float() for _ in range(2))
    if name == "divide":
        y = y.abs() + 1
    if name == "isclose":
        more = draw.keywords(rtol=draw.number(0, 1), atol=draw.number(0, 2))
        return Case(lambda x, y: torch.isclose(x, y, **more), x, y)
    return Case(getattr(torch, name), x, y)


# Of a matrix or more; and what they take beside it.
REDUCED = {
    "count_nonzero": lambda d, dim: {"dim": dim},
    "aminmax": lambda d, dim: {"dim": dim, "keepdim": d.flag()},
    "nanmedian": lambda d, dim: {"dim": dim, "keepdim": d.flag()},
    "mode": lambda d, dim: {"dim": dim, "keepdim": d.flag()},
    "quantile": lambda d, dim: {"q": d.number(0, 1), "dim": dim, "keepdim": d.flag()},
    "nanquantile": lambda d, dim: {"q": d.number(0, 1), "dim": dim, "keepdim": d.flag()},
    "diff": lambda d, dim: {"n": d.integer(1, 2), "dim": dim},
    "trapezoid": lambda d, dim: {"dx": d.number(0.5, 2), "dim": dim},
    "cumulative_trapezoid": lambda d, dim: {"dx": d.number(0.5, 2), "dim": dim},
    "renorm": lambda d, dim: {"p": d.one(1, 2), "dim": dim, "maxnorm": d.number(0.5, 2)},
    "unbind": lambda d, dim: {"dim": dim},
    "adjoint": lambda d, dim: {},
    "hsplit": lambda d, dim: {"indices": [1, 2]},
    "vsplit": lambda d, dim: {"indices": [1]},
    "gradient": lambda d, dim: {"dim": dim},
    "diag_embed": lambda d, dim: {"offset": d.integer(-1, 2)},
    "block_diag": lambda d, dim: {},
    "cov": lambda d, dim: {"correction": d.integer(0, 1)},
    "corrcoef": lambda d, dim: {},
    "std_mean": lambda d, dim: {"dim": dim},
}
OF_MATRICES = {"block_diag", "cov", "corrcoef"}


@specs({name: (f"aten::{name}",) for name in REDUCED}, tolerance=1e-4)
def along(draw: Draw, name: str):
    rank = 2 if name in OF_MATRICES else draw.integer(2, 4)
    more = REDUCED[name](draw, draw.dim(rank))
    function = getattr(torch, name)
    x = draw.distinct(*draw.shape(rank, 3, 5))
    if name == "mode":
        x = draw.integers(0, 2, *x.shape).sort()[0]
    if name == "count_nonzero":
        x = draw.integers(0, 1, *x.shape)
    return Case(lambda x: function(x, **more), x)


UNIQUE = {
    "unique": ("aten::_unique2",), "unique_consecutive": ("aten::unique_consecutive",),
    "unique_dim": ("aten::unique_dim",),
}  # fmt: skip


@specs(UNIQUE)
def unique(draw: Draw, name: str):
    more = {"return_inverse": draw.flag(), "return_counts": draw.flag()}
    if name == "unique_dim":
        return Case(
            lambda x: torch.unique(x, dim=0, **more), draw.integers(0, 1, draw.integer(1, 6), 2)
        )
    x = draw.integers(
        0, 4, *draw.shape(draw.integer(1, 2)), dtype=draw.one(*FLOATS, torch.int64)
    )
    return Case(lambda x: getattr(torch, name)(x, **more), x)


@spec("aten::isin")
def isin(draw: Draw):
    x = draw.integers(0, 5, *draw.shape(draw.integer(1, 3)))
    more = draw.keywords(invert=draw.flag())
    return Case(lambda x, y: torch.isin(x, y, **more), x, draw.integers(0, 5, 3))


@specs({"index_copy": ("aten::index_copy",), "index_reduce": ("aten::index_reduce",)})
def placed(draw: Draw, name: str):
    rank = draw.integer(1, 3)
    shape = list(draw.shape(rank, 2, 5))
    dim = draw.dim(rank)
    where = torch.tensor(draw.shuffled(range(shape[dim]))[: draw.integer(1, shape[dim])])
    x = draw.normal(*shape)
    shape[dim] = len(where)
    if name == "index_copy":
        return Case(lambda x, i, s: x.index_copy(dim, i, s), x, where, draw.normal(*shape))
    how, with_self = draw.turn("prod", "mean", "amax", "amin"), draw.flag()
    return Case(
        lambda x, i, s: x.index_reduce(dim, i, s, how, include_self=with_self),
        x, where, draw.normal(*shape),
    )  # fmt: skip


@spec("aten::put")
def put(draw: Draw):
    x = draw.normal(*draw.shape(draw.integer(1, 3), 2, 4))
    where = torch.tensor(draw.shuffled(range(x.numel()))[:2])
    accumulate = draw.flag()
    return Case(lambda x, i, s: torch.put(x, i, s, accumulate), x, where, draw.normal(2))


@specs({"cartesian_prod": (), "combinations": (), "meshgrid": ("aten::meshgrid",)})
def vectors(draw: Draw, name: str):
    x, y = draw.normal(draw.integer(2, 4)), draw.normal(draw.integer(1, 4))
    if name == "combinations":
        return Case(torch.combinations, x)
    if name == "meshgrid":
        indexing = draw.turn("ij", "xy")
        return Case(lambda x, y: torch.meshgrid(x, y, indexing=indexing), x, y)
    return Case(torch.cartesian_prod, x, y)


@spec("aten::histc")
def histc(draw: Draw):
    bins, low, high = draw.integer(1, 6), draw.integer(-2, 0), draw.integer(1, 3)
    return Case(lambda x: torch.histc(x, bins, low, high), draw.normal(20))


@spec("aten::linalg_vecdot")
def vecdot(draw: Draw):
    rank = draw.integer(1, 3)
    shape, dim = draw.shape(rank), draw.dim(rank)
    return Case(
        lambda x, y: torch.linalg.vecdot(x, y, dim=dim),
        draw.normal(*shape),
        draw.normal(*shape),
    )


# pnnx comes without LAPACK and ends on these; they are checked as they stand.
ALGEBRA = {
    "det": torch.linalg.det, "inv": torch.linalg.inv, "slogdet": torch.linalg.slogdet,
    "cholesky": torch.linalg.cholesky, "old_det": torch.det, "old_inverse": torch.inverse,
    "old_slogdet": torch.slogdet, "old_cholesky": torch.cholesky, "solve": torch.linalg.solve,
    "solve_triangular": lambda x, y: torch.linalg.solve_triangular(x, y, upper=False),
    "multi_dot": lambda x, y: torch.linalg.multi_dot([x, y, x]),
    "logdet": torch.logdet, "matrix_exp": torch.linalg.matrix_exp,
}  # fmt: skip


@specs(dict.fromkeys(ALGEBRA, ()), tolerance=1e-4, levels=())
def algebra(draw: Draw, name: str):
    size = draw.integer(1, 4)
    batch = () if name == "multi_dot" else draw.shape(draw.integer(0, 2), 1, 2)
    x = draw.normal(*batch, size, size)
    x = x @ x.mT + torch.eye(size)
    if name in {"solve", "solve_triangular", "multi_dot"}:
        return Case(ALGEBRA[name], x, draw.normal(*batch, size, size))
    return Case(ALGEBRA[name], x)


@specs(dict.fromkeys(("GRUCell", "RNNCell", "LSTMCell"), ()), levels=(), tolerance=1e-4)
def cell_without_states(draw: Draw, name: str):
    size, hidden = draw.integer(1, 4), draw.integer(1, 4)
    return Case(getattr(torch.nn, name)(size, hidden), draw.normal(draw.integer(1, 3), size))


@specs(
    dict.fromkeys(("sum", "mean", "prod", "cumsum", "cumprod", "softmax", "log_softmax"), ()),
    levels=(),
    tolerance=1e-4,
)
def with_a_dtype(draw: Draw, name: str):
    """pnnx drops it."""
    rank = draw.integer(1, 3)
    dim, dtype = draw.dim(rank), draw.one(*FLOATS)
    function = getattr(functional if name.endswith("softmax") else torch, name)
    x = draw.tensor(*draw.shape(rank), dtype=draw.one(*FLOATS, torch.int64))
    if name.endswith("softmax"):
        return Case(lambda x: function(x, dim, dtype=dtype), x.float())
    return Case(lambda x: function(x, dim=dim, dtype=dtype), x)


@specs(dict.fromkeys(("floor", "trunc"), ()), levels=())
def rounded_quotient(draw: Draw, mode: str):
    """pnnx drops the mode, or rounds otherwise."""
    x, y = (draw.uniform(0.5, 9, *draw.shape(1, 3, 3)) for _ in range(2))
    return Case(lambda x, y: torch.div(x, -y, rounding_mode=mode), x, y)
