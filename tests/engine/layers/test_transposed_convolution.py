"""Transposed convolution."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

RNG = np.random.default_rng


def slow_transposed(x, w, b, stride, padding, output_padding, dilation, groups):
    """Every input position adds its value times the kernel; then the borders are cut."""
    kernel = w.shape[2:]
    sizes = [
        (size - 1) * s + d * (k - 1) + 1 + extra
        for size, s, d, k, extra in zip(
            x.shape[2:], stride, dilation, kernel, output_padding, strict=True
        )
    ]
    per_in, per_out = len(w) // groups, w.shape[1]
    y = np.zeros((len(x), per_out * groups, *sizes))
    for n, c in np.ndindex(x.shape[:2]):
        for p in np.ndindex(*x.shape[2:]):
            for o, *t in np.ndindex(*w.shape[1:]):
                at = tuple(
                    i * s + j * d for i, s, j, d in zip(p, stride, t, dilation, strict=True)
                )
                y[(n, c // per_in * per_out + o, *at)] += float(x[(n, c, *p)]) * w[(c, o, *t)]
    y += b.reshape(-1, *(1,) * len(kernel))
    cut = tuple(slice(p, size - p) for p, size in zip(padding, sizes, strict=True))
    return y[(slice(None), slice(None), *cut)]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        # x is [[1, 2], [3, 4]], the kernel [[1, 10], [100, 1000]].
        pytest.param({}, [[1, 12, 20], [103, 1234, 2040], [300, 3400, 4000]], id="overlap"),
        pytest.param(
            {"stride": 2},
            [[1, 10, 2, 20], [100, 1000, 200, 2000], [3, 30, 4, 40], [300, 3000, 400, 4000]],
            id="side-by-side",
        ),
        pytest.param({"padding": 1}, [[1234]], id="padding-cuts"),
        pytest.param(
            {"padding": 1, "stride": (2, 1), "output_padding": (1, 0)},
            [[1200], [34], [3400]],
            id="output-padding",
        ),
        # Of the full 4x4 the middle is left, where no two windows meet.
        pytest.param({"dilation": 2, "padding": (1, 1)}, [[4, 30], [200, 1000]], id="dilation"),
    ],
)
def test_values(run, params, expected):
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    w = np.array([[[[1, 10], [100, 1000]]]], np.float32)
    y = run("nn.ConvTranspose2d", x, weights={"weight": w}, bias=False, **params)
    np.testing.assert_array_equal(y[0, 0], expected)
    assert y.dtype == np.float32


CASES = [
    # x, w, stride, padding, output_padding, dilation, groups
    pytest.param((2, 3, 5), (3, 4, 3), (2,), (1,), (1,), (1,), 1, id="1d"),
    pytest.param((1, 4, 3, 4), (4, 2, 3, 2), (2, 1), (1, 0), (1, 0), (1, 2), 2, id="2d-groups"),
    pytest.param((2, 3, 4, 3), (3, 1, 4, 4), (2, 2), (1, 1), (0, 0), (1, 1), 3, id="depthwise"),
    pytest.param((1, 2, 2, 3, 2), (2, 3, 2, 2, 3), (2,) * 3, (0, 1, 1), (1, 0, 1), (1, 2, 1), 1,
                 id="3d"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "stride", "padding", "output_padding", "dilation", "groups"), CASES
)
@pytest.mark.parametrize("functional", [False, True])
def test_against_the_definition(
    run, x_shape, w_shape, stride, padding, output_padding, dilation, groups, functional
):
    rng = RNG(sum(w_shape))
    rank, channels = len(x_shape) - 2, w_shape[1] * groups
    x = rng.standard_normal(x_shape, dtype=np.float32)
    w = rng.standard_normal(w_shape, dtype=np.float32)
    b = rng.standard_normal(channels, dtype=np.float32)
    params = {
        "stride": stride,
        "padding": padding,
        "output_padding": output_padding,
        "dilation": dilation,
        "groups": groups,
    }
    if functional:
        names = ("input", "weight", "bias")
        y = run(f"F.conv_transpose{rank}d", x, w, b, names=names, **params)
    else:
        params |= {"in_channels": x_shape[1], "out_channels": channels, "bias": True}
        params |= {"kernel_size": w_shape[2:]}
        y = run(f"nn.ConvTranspose{rank}d", x, weights={"weight": w, "bias": b}, **params)
    expected = slow_transposed(x, w, b, stride, padding, output_padding, dilation, groups)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert y.dtype == np.float32


def test_unbatched_and_empty_batches(run):
    w = np.ones((3, 2, 2, 2), np.float32)
    y = run("nn.ConvTranspose2d", np.ones((3, 4, 5), "f4"), weights={"weight": w})
    assert y.shape == (2, 5, 6)
    empty = run("nn.ConvTranspose2d", np.ones((0, 3, 4, 5), "f4"), weights={"weight": w})
    assert empty.shape == (0, 2, 5, 6)


@pytest.mark.parametrize(
    ("params", "parameter", "reason"),
    [
        ({"in_channels": 4}, "in_channels", "in_channels=4, but the weight has 6"),
        ({"out_channels": 2}, "out_channels", "out_channels=2, but the weight has 3"),
        ({"groups": 4}, "groups", "groups=4 cannot divide 6 channels of the weight"),
        (
            {"output_padding": 2, "stride": 2},
            "output_padding",
            "output_padding=2 must be smaller than stride (2, 2) or dilation (1, 1)",
        ),
        (
            {"padding_mode": "reflect"},
            "padding_mode",
            "padding_mode=reflect is unknown, only zeros is supported",
        ),
    ],
)
def test_wrong_parameters(run, params, parameter, reason):
    weights = {"weight": np.zeros((6, 3, 2, 2), "f4")}
    with pytest.raises(ParameterError) as caught:
        run("nn.ConvTranspose2d", names=("",), weights=weights, **params)
    assert (caught.value.parameter, caught.value.reason) == (parameter, reason)


def test_nothing_left_after_cutting(run):
    with pytest.raises(LayerError) as caught:
        run(
            "nn.ConvTranspose2d",
            np.zeros((1, 1, 1, 1), "f4"),
            weights={"weight": np.zeros((1, 1, 2, 2), "f4")},
            padding=1,
        )
    assert str(caught.value) == (
        "the output would have size (1 − 1) × 1 − 2 × 1 + 1 × (2 − 1) + 0 + 1 = 0, which is "
        "not positive"
    )


def test_wrong_channels(run):
    with pytest.raises(LayerError, match="the input has 2 channels, the layer takes 3"):
        run(
            "nn.ConvTranspose1d",
            np.zeros((1, 2, 4), "f4"),
            weights={"weight": np.zeros((3, 1, 2), "f4")},
        )


@pytest.mark.parametrize(
    ("rank", "stride", "padding", "extra", "dilation", "groups"),
    [
        case
        for case in itertools.product((1, 2, 3), (1, 2, 3), (0, 2), (0, 1), (1, 2), (1, 2, 4))
        if case[3] < max(case[1], case[4])
    ],
)
def test_against_pytorch(run, rank, stride, padding, extra, dilation, groups):
    torch = pytest.importorskip("torch")
    module = getattr(torch.nn, f"ConvTranspose{rank}d")(
        4, 8, (3, 2, 3)[:rank], stride, padding, extra, groups, dilation=dilation
    )
    x = RNG(rank).standard_normal((2, 4, *(5, 6, 4)[:rank]), dtype=np.float32)
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}
    params = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = run(f"nn.ConvTranspose{rank}d", x, weights=weights, output_padding=extra, **params)
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
