"""Operators of shape against PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("torch")

X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
ONES = np.arange(6, dtype=np.int64).reshape(1, 2, 1, 3, 1)
SCALAR = np.array(2.5, np.float32)
EMPTY = np.zeros((0, 3), np.float32)
SHAPES = [X, ONES, SCALAR, EMPTY]
IDS = ["2x3x4", "1x2x1x3x1", "scalar", "empty"]
DIMS = [-3, -2, -1, 0, 1, 2]


def params(**lists):
    """All combinations, as keyword dictionaries."""
    return [
        dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())
    ]


def spell(value):
    return str(value).replace(" ", "").replace("'", "") if isinstance(value, dict) else None


@pytest.mark.parametrize("x", SHAPES, ids=IDS)
@pytest.mark.parametrize(
    ("operator_type", "kwargs"),
    ids=spell,
    argvalues=[
        *(("torch.flatten", p) for p in params(start_dim=[0, 1, -2], end_dim=[-1, 0, 1, 2])),
        *(("torch.squeeze", p) for p in params(dim=[0, 2, -1, -5, (0, 2), (-1, 0)])),
        ("torch.squeeze", {}),
        *(("torch.unsqueeze", p) for p in params(dim=[0, 1, -1, -2, 3, 5])),
        *(("torch.transpose", p) for p in params(dim0=DIMS, dim1=[0, -1, 1])),
        *(("torch.permute", p) for p in params(dims=[(2, 0, 1), (-1, 0, 1), (0, 1), (1, 0)])),
        *(("torch.flip", p) for p in params(dims=[(0,), (-1,), (0, 1), (1, -1), (0, 0)])),
        *(("torch.roll", p) for p in params(shifts=[1, -2, 7])),
        *(
            ("torch.roll", p)
            for p in params(shifts=[(1, 2), (1,)], dims=[(0, 1), (0, 0), (1,)])
        ),
        *(("torch.unbind", p) for p in params(dim=[0, 1, -1])),
        *(("torch.chunk", p) for p in params(chunks=[1, 2, 3, 5], dim=[0, 1, -1])),
        *(
            ("torch.split", p)
            for p in params(
                split_size_or_sections=[1, 2, 3, 9, (1, 2), (2, 1), (1, 1)], dim=[0, 1]
            )
        ),
        *(("torch.tensor_split", p) for p in params(sections=[0, 1, 2, 5], dim=[0, -1])),
        *(
            ("torch.tensor_split", p)
            for p in params(indices=[(1,), (1, 2), (2, 1), (5,), (-1, 7)], dim=[0, 1])
        ),
        *(("torch.tile", p) for p in params(dims=[(2,), (2, 1, 3), (1, 2, 1, 1, 1, 2), (0,)])),
        *(
            ("torch.narrow", p)
            for p in params(dim=[0, -1], start=[0, 1, -1, -2], length=[0, 1, 2, 3])
        ),
        *(("torch.select", p) for p in params(dim=DIMS, index=[0, 1, -1, -2, 4])),
        *(("torch.movedim", p) for p in params(source=[0, (0, 1)], destination=[-1, (1, 0)])),
        *(("torch.diagonal", p) for p in params(offset=[-1, 0, 1], dim1=[0, 1], dim2=[-1])),
        *((f"torch.{name}", {}) for name in ("t", "clone", "positive", "trace")),
        *(("torch.tril", p) for p in params(diagonal=[-1, 0, 2])),
        *(("torch.triu", p) for p in params(diagonal=[-1, 0, 2])),
        *(
            ("Tensor.unflatten", p)
            for p in params(dim=[1, -1], sizes=[(3, 1), (-1, 2), (2, -1)])
        ),
    ],
)
def test_one_tensor(agree, x, operator_type, kwargs):
    agree(operator_type, x, **kwargs)


@pytest.mark.parametrize("shape", [(24,), (4, -1), (-1, 3, 2), (2, 12), (5, -1), (2, -1, -1)])
@pytest.mark.parametrize(
    "x", [X, X.transpose(2, 0, 1), X[:, ::2]], ids=["whole", "moved", "cut"]
)
def test_reshape(agree, x, shape):
    agree("torch.reshape", x, shape=shape)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (-1,)])
def test_reshape_of_one_element(agree, shape):
    agree("torch.reshape", SCALAR, shape=shape)


@pytest.mark.parametrize(
    "sizes", [(2, 3, 4), (5, 2, 3, 4), (-1, -1, -1), (2, -1, 3), (7, 1, 2, 1, 3, 6)]
)
@pytest.mark.parametrize("x", [X, X[:1], ONES], ids=["full", "one", "ones"])
def test_expand(agree, x, sizes):
    agree(
        "Tensor.expand", x, sizes=sizes, function=lambda t, sizes: t.expand(*sizes).contiguous()
    )


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("repeats", [0, 1, 3, np.array([2]), np.array([1, 0, 2])], ids=str)
@pytest.mark.parametrize("x", [X[:, :, :3], ONES, EMPTY], ids=["2x3x3", "ones", "empty"])
def test_repeat_interleave(agree, x, repeats, dim):
    agree("torch.repeat_interleave", x, repeats, dim=dim)


@pytest.mark.parametrize("sizes", [(2, 1, 1), (1, 2, 3), (2, 2, 1, 1), (2, 2), (0, 1, 1)])
def test_repeat(agree, sizes):
    agree("Tensor.repeat", X, sizes=sizes, function=lambda t, sizes: t.repeat(*sizes))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("operator_type", ["torch.cat", "torch.stack"])
@pytest.mark.parametrize(
    "tensors",
    [
        (X, X),
        (X, X[:1]),
        (X, X[:, :1], X),
        (X, np.zeros(0, np.float32)),
        (X, ONES),
        (SCALAR,) * 2,
    ],
    ids=["same", "first", "second", "legacy empty", "ranks", "scalars"],
)
def test_joining(agree, operator_type, tensors, dim):
    agree(operator_type, tensors, dim=dim)


@pytest.mark.parametrize(
    "dtypes",
    list(itertools.combinations(["bool", "u1", "i1", "i8", "f2", "f4", "f8", "c8"], 2)),
)
def test_joining_promotes(agree, dtypes):
    agree("torch.cat", tuple(np.ones(2, d) for d in dtypes), dim=0)


@pytest.mark.parametrize("start", [None, 0, 1, -2, -9, 9])
@pytest.mark.parametrize("end", [None, 0, 2, -1, 2147483647])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_slice(agree, start, end, step):
    agree(
        "Tensor.slice",
        X,
        function=lambda t, dim, start, end, step: t[:, :, start:end:step],
        dim=2,
        start=start,
        end=end,
        step=step,
    )


@pytest.mark.parametrize("start", [None, 0, 1, -2])
@pytest.mark.parametrize("end", [None, 3, -1])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_slice_scatter(agree, start, end, step, size):
    agree("torch.slice_scatter", X, -X[:, :, :size], dim=2, start=start, end=end, step=step)


@pytest.mark.parametrize("kind", ["shuffle", "unshuffle"])
@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 8, 2, 4), (9, 3, 6), (2, 1, 4, 2, 6), (4, 4)])
def test_pixels(agree, kind, factor, shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    name = "upscale_factor" if kind == "shuffle" else "downscale_factor"
    agree(f"torch.pixel_{kind}", x, **{name: factor})


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", [(2, 4, 3), (1, 12, 2, 2), (1, 6, 1, 2, 2)])
def test_channel_shuffle(agree, groups, shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    agree("torch.channel_shuffle", x, groups=groups)
