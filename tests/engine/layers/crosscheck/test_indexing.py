"""Indexing, products, transforms and factories against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(11)
X = RNG.standard_normal((4, 5, 6)).astype(np.float32)


def indices(*shape, limit=4):
    return RNG.integers(0, limit, shape)


def some(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


class TestIndexing:
    @pytest.mark.parametrize(
        "places",
        [
            (indices(3),),
            (None, indices(2, 3)),
            (indices(3), indices(3)),
            (indices(3), None, indices(3)),
            (indices(2, 1), indices(3)),
            (np.array([-1, -4]), np.array([0, -5])),
            (X[:, 0, 0] > 0,),
            (None, X[0, :, 0] > 0, np.array([1])),
            (X[..., 0] > 0,),
            (np.array(2),),
            (np.array(2), None, indices(3)),
            (np.zeros(0, np.int64),),
            (np.array([9]),),
        ],
    )
    def test_index(self, agree, places):
        def take(x, places):
            return torch.ops.aten.index.Tensor(x, list(places))

        agree("Tensor.index", X, places, function=take)

    @pytest.mark.parametrize("accumulate", [False, True])
    @pytest.mark.parametrize(
        ("places", "values"),
        [
            ((np.array([0, 2]),), some(2, 5, 6)),
            ((np.array([0, 0, 2]), np.array([1, 1, -1])), np.array(2.5, np.float32)),
            ((X > 0,), np.array(0.5, np.float32)),
            ((np.array([1, 3]), np.array([0, 4])), some(2, 6)),
            ((np.array([7]),), np.array(1, np.float32)),
        ],
    )
    def test_index_put(self, agree, places, values, accumulate):
        if accumulate is False and any(
            len(np.unique(p)) < p.size and p.ndim == 1 for p in places
        ):
            values = np.array(2.5, np.float32)
        agree("torch.index_put", X, places, values, accumulate=accumulate)

    @pytest.mark.parametrize("dim", [0, 1, -1])
    @pytest.mark.parametrize(
        "index", [np.array([3, 0, 0]), np.array(2), np.array([9])], ids=str
    )
    def test_index_select(self, agree, dim, index):
        agree("torch.index_select", X, dim, index)

    @pytest.mark.parametrize("dim", [0, 1, -1, 3])
    @pytest.mark.parametrize("shape", [(4, 5, 6), (2, 3, 4), (1, 1, 1), (4, 9, 6), (2, 3)])
    def test_gather(self, agree, dim, shape):
        agree("torch.gather", X, dim, indices(*shape))

    @pytest.mark.parametrize("dim", [0, -1])
    def test_gather_of_a_scalar(self, agree, dim):
        agree("torch.gather", np.array(2.0), dim, np.array(0))

    @pytest.mark.parametrize("name", ["scatter", "scatter_add"])
    @pytest.mark.parametrize("dim", [0, 1, -1])
    @pytest.mark.parametrize("shape", [(4, 1, 6), (1, 5, 1), (2, 1, 4)])
    def test_scatter(self, agree, name, dim, shape):
        index = np.moveaxis(np.array(indices(*shape)), 0, 0)
        if name == "scatter":  # the same place twice is open
            index = np.zeros((1, 1, 1), np.int64) + 2
        agree(f"torch.{name}", X, dim, index, some(*shape))

    @pytest.mark.parametrize("reduce", ["add", "multiply"])
    def test_scatter_with_reduce(self, agree, reduce):
        agree("torch.scatter", X, 1, indices(4, 5, 6), some(4, 5, 6), reduce=reduce, loose=4)

    def test_scatter_a_number(self, agree):
        agree("torch.scatter", X, 1, indices(2, 3, 4), 2.5)

    @pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
    @pytest.mark.parametrize("include_self", [True, False])
    @pytest.mark.parametrize("dtype", ["f4", "i8"])
    def test_scatter_reduce(self, agree, reduce, include_self, dtype):
        x, src = (X * 5).astype(dtype), (some(4, 5, 6) * 5).astype(dtype)
        args = ("torch.scatter_reduce", x, 1, indices(4, 5, 6), src, reduce)
        agree(*args, include_self=include_self, loose=4)

    @pytest.mark.parametrize("dim", [0, -1])
    @pytest.mark.parametrize("alpha", [1, -2])
    def test_index_add(self, agree, dim, alpha):
        src = some(3, 5, 6) if dim == 0 else some(4, 5, 3)
        agree("torch.index_add", X, dim, np.array([0, 2, 0]), src, alpha=alpha)

    @pytest.mark.parametrize("dim", [0, -1])
    def test_index_fill(self, agree, dim):
        agree("torch.index_fill", X, dim, np.array([0, 2]), 1.5)

    def test_take(self, agree):
        agree("torch.take", X, indices(3, 2, limit=100))

    @pytest.mark.parametrize("dim", [None, 0, 1])
    def test_take_along_dim(self, agree, dim):
        agree("torch.take_along_dim", X, indices(4, 5, 6), dim=dim)


class TestEmbedding:
    @pytest.mark.parametrize("shape", [(3,), (2, 3), ()])
    @pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
    @pytest.mark.parametrize("max_norm", [None, 0.5, 1.5])
    def test_embedding(self, agree, shape, max_norm, norm_type):
        def look_up(input, weight, **more):
            return torch.nn.functional.embedding(input, weight.clone(), **more)

        agree(
            "F.embedding",
            indices(*shape),
            some(4, 7),
            function=look_up,
            loose=4,
            max_norm=max_norm,
            norm_type=norm_type,
        )


class TestProducts:
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)),
            ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((0, 4), (4, 5)),
            ((3, 0), (0, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (3, 4)), ((), (4,)),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c8"])
    def test_matmul(self, agree, left, right, dtype):
        a, b = (some(*shape) * 3 for shape in (left, right))
        agree("torch.matmul", np.asarray(a, dtype), np.asarray(b, dtype), loose=8)

    @pytest.mark.parametrize("beta", [0, 1, 0.5])
    @pytest.mark.parametrize("alpha", [1, -2.0])
    @pytest.mark.parametrize("shape", [(3, 5), (5,), (3, 1), (), (2, 3, 5)])
    def test_addmm(self, agree, shape, beta, alpha):
        added = np.asarray(some(*shape), np.float32)
        if added.ndim and beta == 0:
            added[...] = np.nan
        args = ("torch.addmm", added, some(3, 4), some(4, 5))
        agree(*args, beta=beta, alpha=alpha, loose=8)

    def test_addmm_of_integers(self, agree):
        agree("torch.addmm", indices(5), indices(3, 4), indices(4, 5), beta=2, alpha=3)

    @pytest.mark.parametrize("beta", [0, 2])
    def test_baddbmm(self, agree, beta):
        operands = some(1, 3, 5), some(2, 3, 4), some(2, 4, 5)
        agree("torch.baddbmm", *operands, beta=beta, alpha=0.5, loose=8)

    @pytest.mark.parametrize(
        ("name", "shapes"),
        [
            ("mm", [(3, 4), (4, 5)]), ("mm", [(3, 4), (4,)]), ("bmm", [(2, 3, 4), (2, 4, 5)]),
            ("bmm", [(1, 3, 4), (2, 4, 5)]), ("mv", [(3, 4), (4,)]), ("mv", [(3, 4), (4, 1)]),
            ("dot", [(4,), (4,)]), ("dot", [(4,), (3,)]), ("outer", [(4,), (3,)]),
            ("addmv", [(3,), (3, 4), (4,)]),
        ],
    )  # fmt: skip
    def test_others(self, agree, name, shapes):
        agree(f"torch.{name}", *(some(*shape) for shape in shapes), loose=8)

    @pytest.mark.parametrize(
        ("equation", "shapes"),
        [
            ("ij,jk->ik", [(2, 3), (3, 4)]), ("ii", [(3, 3)]), ("ii->i", [(3, 3)]),
            ("ji", [(2, 3)]), ("ij->", [(2, 3)]), ("b...i,b...i->b...", [(2, 4, 3), (2, 4, 3)]),
            ("i,j", [(2,), (3,)]), ("ij,j,jk->ik", [(2, 3), (3,), (3, 2)]),
            ("bA,bA->A", [(4, 2)] * 2),
            ("ij,ij->ij", [(2, 3), (1, 3)]), ("...ij,...jk", [(2, 2, 3), (3, 2)]),
            ("ij,jk", [(2, 3), (4, 4)]),
        ],
    )  # fmt: skip
    def test_einsum(self, agree, equation, shapes):
        def sum_up(*operands, equation):
            return torch.einsum(equation, *operands)

        operands = [some(*shape) for shape in shapes]
        agree("torch.einsum", *operands, equation=equation, function=sum_up, loose=8)

    @pytest.mark.parametrize("dim", [None, 0, -1])
    @pytest.mark.parametrize("shapes", [[(3, 4, 3)] * 2, [(3, 1, 3), (1, 4, 3)], [(2, 2)] * 2])
    def test_cross(self, agree, dim, shapes):
        def product(a, b, dim):
            return torch.cross(*torch.broadcast_tensors(a, b), dim=dim)

        operands = [some(*shape) for shape in shapes]
        agree("torch.cross", *operands, dim=dim, function=product)

    @pytest.mark.parametrize("diagonal", [-1, 0, 2])
    @pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 2, 2)])
    def test_diag(self, agree, diagonal, shape):
        agree("torch.diag", some(*shape), diagonal=diagonal)


class TestTransforms:
    @pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
    @pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
    @pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i8"])
    @pytest.mark.parametrize(("n", "dim"), [(None, -1), (None, 0), (3, 1), (8, -1), (1, 0)])
    def test_one_dimension(self, agree, name, norm, dtype, n, dim):
        x = (X + 1j * X[::-1] if dtype == "c8" else X * 4).astype(dtype)
        agree(f"torch.fft.{name}", x, n=n, dim=dim, norm=norm, loose=30)

    @pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
    @pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
    @pytest.mark.parametrize("dtype", ["f4", "c8"])
    @pytest.mark.parametrize(("suffix", "s", "dim"), [
        ("2", None, (-2, -1)), ("2", (3, 8), (0, 1)), ("2", None, (2, 0)), ("n", None, None),
        ("n", (4, 4), None), ("n", None, (1,)), ("n", (-1, 7), (0, 2)),
        ("n", (3, 3, 3), (2, 0, 1)),
    ])  # fmt: skip
    def test_many_dimensions(self, agree, name, norm, dtype, suffix, s, dim):
        x = (X + 1j * X[::-1] if dtype == "c8" else X).astype(dtype)
        agree(f"torch.fft.{name}{suffix}", x, s=s, dim=dim, norm=norm, loose=100)

    @pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
    @pytest.mark.parametrize("dim", [None, 0, (0, 2)])
    def test_shifts(self, agree, name, dim):
        agree(f"torch.fft.{name}", X, dim=dim)


class TestSpectra:
    @pytest.mark.parametrize("center", [True, False])
    @pytest.mark.parametrize("pad_mode", ["reflect", "constant", "replicate", "circular"])
    @pytest.mark.parametrize("normalized", [True, False])
    @pytest.mark.parametrize("onesided", [None, True, False])
    @pytest.mark.parametrize(
        ("n_fft", "hop", "width"), [(16, None, None), (10, 3, 7), (9, 4, 5)]
    )
    def test_stft(self, agree, center, pad_mode, normalized, onesided, n_fft, hop, width):
        agree(
            "torch.stft", some(2, 64), n_fft, hop, width, np.hanning(width or n_fft) + 0.1,
            center=center, pad_mode=pad_mode, normalized=normalized, onesided=onesided,
            return_complex=True, loose=10,
        )  # fmt: skip

    @pytest.mark.parametrize("center", [True, False])
    @pytest.mark.parametrize("normalized", [True, False])
    @pytest.mark.parametrize("length", [None, 50, 70])
    @pytest.mark.parametrize(
        ("n_fft", "onesided"), [(16, True), (16, False), (9, True), (9, None)]
    )
    def test_istft(self, agree, center, normalized, length, n_fft, onesided):
        frequencies = n_fft if onesided is False else n_fft // 2 + 1
        z = (some(2, frequencies, 20) + 1j * some(2, frequencies, 20)).astype(np.complex64)
        agree(
            "torch.istft", z, n_fft, None, None, (np.hanning(n_fft) + 0.5).astype(np.float32),
            center=center, normalized=normalized, onesided=onesided, length=length, loose=20,
        )  # fmt: skip


class TestFactories:
    @pytest.mark.parametrize(
        "bounds",
        [
            (5,), (2, 7), (2, 7, 2), (7, 2, -2), (0.5, 3), (0, 1, 0.1), (2.0,), (5, 5), (0,),
            (3, 1), (0, 3, 0), (1, 2, 0.25), (0, 1, 1 / 3),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("dtype", [None, "torch.float", "torch.int", "torch.half"])
    def test_arange(self, agree, bounds, dtype):
        agree("torch.arange", *bounds, dtype=dtype)

    @pytest.mark.parametrize("size", [(2, 3), (), (0, 2)])
    @pytest.mark.parametrize("dtype", [None, "torch.int", "torch.half", "torch.bool"])
    def test_constants(self, agree, size, dtype):
        agree("torch.zeros", size=size, dtype=dtype)
        agree("torch.ones", size=size, dtype=dtype)
        for name in ("zeros_like", "ones_like"):
            agree(f"torch.{name}", X[0], dtype=dtype)
        for name in ("new_zeros", "new_ones"):
            agree(f"Tensor.{name}", X.astype(np.float64), size=size, dtype=dtype)

    @pytest.mark.parametrize("fill_value", [True, 3, 2.5, 1 + 2j])
    @pytest.mark.parametrize("dtype", [None, "torch.float", "torch.complex64"])
    def test_full(self, agree, fill_value, dtype):
        if isinstance(fill_value, complex) and dtype == "torch.float":
            pytest.skip("PyTorch refuses, we keep the real part")
        agree("torch.full", size=(2, 3), fill_value=fill_value, dtype=dtype)
        if not isinstance(fill_value, complex):
            agree("torch.full_like", X, fill_value=fill_value)
            agree("Tensor.new_full", X, size=(2,), fill_value=fill_value)

    @pytest.mark.parametrize(("n", "m"), [(3, 4), (2, 2), (0, 3)])
    def test_eye(self, agree, n, m):
        agree("torch.eye", n=n, m=m)

    @pytest.mark.parametrize("steps", [0, 1, 2, 7])
    def test_linspace(self, agree, steps):
        agree("torch.linspace", start=-1.5, end=4, steps=steps)
