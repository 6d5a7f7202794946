"""Reductions and order against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(7)
FLOATS = RNG.standard_normal((3, 4, 5)).astype(np.float32)
TENSORS = {
    "f4": FLOATS,
    "f2": FLOATS.astype(np.float16),
    "f8": FLOATS.astype(np.float64),
    "c8": (FLOATS + 1j * FLOATS[::-1]).astype(np.complex64),
    "i4": RNG.integers(-9, 9, (3, 4, 5)).astype(np.int32),
    "i8": RNG.integers(-9, 9, (3, 4, 5)),
    "u1": RNG.integers(0, 255, (3, 4, 5)).astype(np.uint8),
    "bool": RNG.random((3, 4, 5)) < 0.8,
    "nan": np.where(FLOATS > 1, np.nan, FLOATS).astype(np.float32),
    "inf": np.where(FLOATS > 1, np.inf, FLOATS).astype(np.float32),
    "scalar": np.array(-1.5, np.float32),
    "none": np.zeros((0, 4), np.float32),
    "not many": np.zeros((4, 0), np.float32),
    "one": np.full((1, 1, 1), 2, np.float32),
}
ONE_DIM = [None, 0, 1, -1, 3]
DIMS = [*ONE_DIM, (0,), (0, 1), (-1, 0), (0, 0)]


@pytest.fixture(params=TENSORS, ids=str)
def x(request):
    return TENSORS[request.param]


def spell(value):
    return str(value).replace(" ", "")


def reduced(function):
    """A PyTorch reduction that takes its dim only where there is one."""

    def call(t, dim=None, **more):
        return function(t) if dim is None and not more else function(t, dim=dim, **more)

    return call


@pytest.mark.parametrize("dim", DIMS, ids=spell)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    "name", ["sum", "mean", "nansum", "nanmean", "amax", "amin", "all", "any"]
)
def test_reduction(agree, x, name, dim, keepdim):
    if dim is None and name in {"amax", "amin"}:
        dim = ()
    if x.dtype.kind == "c" and name in {"nansum", "nanmean"}:
        pytest.skip("PyTorch has it for real numbers only")
    agree(f"torch.{name}", x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("dim", DIMS, ids=spell)
@pytest.mark.parametrize("keepdim", [False, True])
def test_logsumexp(agree, x, dim, keepdim):
    if x.dtype.kind == "c":
        pytest.skip("PyTorch gives principal values of another branch")
    dim = tuple(range(x.ndim)) if dim is None else dim
    agree("torch.logsumexp", x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("dim", ONE_DIM)
@pytest.mark.parametrize("keepdim", [False, True])
def test_prod(agree, x, dim, keepdim):
    function = None if dim is not None else lambda t, dim, keepdim: t.prod()
    agree(
        "torch.prod",
        x,
        function=function,
        loose=4,
        dim=dim,
        keepdim=keepdim and dim is not None,
    )


@pytest.mark.parametrize("dtype", ["torch.float", "torch.double", "torch.int", "torch.half"])
@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_with_a_dtype(agree, name, dtype):
    agree(f"torch.{name}", TENSORS["i4"], dim=1, dtype=dtype)


@pytest.mark.parametrize("name", ["std", "var", "std_mean", "var_mean"])
@pytest.mark.parametrize("dim", DIMS, ids=spell)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    "more", [{}, {"unbiased": True}, {"unbiased": False}, {"correction": 0}, {"correction": 2}],
    ids=spell,
)  # fmt: skip
def test_spread(agree, x, name, dim, keepdim, more):
    if "unbiased" in more and dim is None:
        pytest.skip("PyTorch has no such overload with keepdim")
    if not np.isfinite(x).all() and name.endswith("mean"):
        pytest.skip("PyTorch's running mean of infinities depends on their place")
    loose = 4 if x.dtype != np.float16 else 2
    agree(f"torch.{name}", x, dim=dim, keepdim=keepdim, loose=loose, **more)


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, -1, float("inf"), float("-inf"), "fro"])
@pytest.mark.parametrize("dim", [None, 0, (0, 1), -1], ids=spell)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("kind", ["f4", "f8", "c8", "nan", "inf", "one"])
def test_norm(agree, kind, p, dim, keepdim):
    agree("torch.norm", TENSORS[kind], p=p, dim=dim, keepdim=keepdim, loose=4)


@pytest.mark.parametrize("dim", [(0, 1), (2, 0)])
def test_nuclear_norm(agree, dim):
    agree("torch.norm", FLOATS, p="nuc", dim=dim, loose=4)


@pytest.mark.parametrize("name", ["max", "min", "median"])
@pytest.mark.parametrize("dim", ONE_DIM)
@pytest.mark.parametrize("keepdim", [False, True])
def test_extremes(agree, x, name, dim, keepdim):
    if name == "median" and x.dtype.kind == "b":
        pytest.skip("PyTorch has it for numbers only")
    if dim is None:
        agree(f"torch.{name}", x, function=getattr(torch, name))
    elif name == "median" and len(np.unique(x)) < x.size:
        pytest.skip("which of equal elements is chosen is open")
    else:
        agree(f"torch.{name}", x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dim", ONE_DIM)
@pytest.mark.parametrize("keepdim", [False, True])
def test_arg_extremes(agree, x, name, dim, keepdim):
    if x.dtype.kind == "b":
        pytest.skip("PyTorch has it for numbers only")
    agree(f"torch.{name}", x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("dim", [0, 1, -1, 5])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sort(agree, x, name, dim, descending):
    if x.dtype.kind == "c":
        pytest.skip("PyTorch does not order complex numbers")
    agree(f"torch.{name}", x, dim=dim, descending=descending, stable=True)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("sorted", [False, True])
@pytest.mark.parametrize("kind", ["f4", "f8", "nan", "one"])
def test_topk(agree, kind, k, dim, largest, sorted):
    x = TENSORS[kind]
    if kind == "nan" and sorted:
        x = x[0]
        pytest.skip("which of several NaN comes first is open")
    agree("torch.topk", x, k=k, dim=dim, largest=largest, sorted=sorted)


@pytest.mark.parametrize("length", [5, 17, 40, 130])
@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_unsorted_topk_of_equal_elements(agree, length, k):
    x = RNG.integers(0, 4, (6, length))
    if 64 * k <= length:
        pytest.skip("which of equal elements is chosen is open")
    agree("torch.topk", x, k=k, sorted=False)


@pytest.mark.parametrize("k", [0, 1, 3, 4])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_kthvalue(agree, k, dim, keepdim):
    agree("torch.kthvalue", FLOATS, k=k, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
def test_scan(agree, x, name, dim):
    if x.dtype.kind in "ciub" and name == "logcumsumexp":
        pytest.skip("PyTorch has it for real floating-point numbers only")
    agree(f"torch.{name}", x, dim=dim, loose=4)
