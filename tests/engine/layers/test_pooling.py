"""Pooling with windows of one size."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

RNG = np.random.default_rng
NAN, INF = math.nan, math.inf


def window_positions(o, size, kernel, stride, padding, dilation):
    """Positions of a window inside the image."""
    start = o * stride - padding
    return [p for p in range(start, start + kernel * dilation, dilation) if 0 <= p < size]


def count_of(size, kernel, stride, padding, dilation, ceil_mode):
    """Number of windows of an axis, by trying one after the other."""
    extent = dilation * (kernel - 1) + 1
    count = 0
    while True:
        start = count * stride
        fits = start + extent <= size + 2 * padding
        # Rounding up lets one window stick out, unless it would start behind the image.
        before_fits = count == 0 or (count - 1) * stride + extent < size + 2 * padding
        sticks_out = ceil_mode and before_fits and start < size + padding
        if not (fits or sticks_out):
            return count
        count += 1


def slow_pool(x, kernel, stride, padding, dilation, ceil_mode, reduce):
    """Windows one after the other; `reduce` gets the values and their flat positions."""
    rank = len(kernel)
    sizes = x.shape[-rank:]
    geometry = list(zip(sizes, kernel, stride, padding, dilation, strict=True))
    counts = [count_of(*numbers, ceil_mode) for numbers in geometry]
    results = np.zeros((*x.shape[:-rank], *counts))
    for lead in np.ndindex(*x.shape[:-rank]):
        for o in np.ndindex(*counts):
            axes = [window_positions(i, *g) for i, g in zip(o, geometry, strict=True)]
            places = list(itertools.product(*axes))
            values = [float(x[(*lead, *place)]) for place in places]
            flat = [int(np.ravel_multi_index(place, sizes)) for place in places]
            results[(*lead, *o)] = reduce(values, flat, o)
    return results


IMAGE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        pytest.param("nn.MaxPool2d", {"kernel_size": 2}, [[6, 8], [14, 16]], id="max"),
        pytest.param(
            "nn.MaxPool2d",
            {"kernel_size": (3, 3), "stride": (1, 1)},
            [[11, 12], [15, 16]],
            id="max-overlapping",
        ),
        pytest.param(
            "F.max_pool2d",
            {"kernel_size": (3, 3), "stride": (2, 2), "ceil_mode": True},
            [[11, 12], [15, 16]],
            id="max-ceil",
        ),
        pytest.param(
            "nn.MaxPool2d",
            {"kernel_size": 2, "stride": 2, "padding": 1, "dilation": 2},
            [[6, 8], [14, 16]],
            id="max-dilation",
        ),
        pytest.param("nn.AvgPool2d", {"kernel_size": 2}, [[3.5, 5.5], [11.5, 13.5]], id="mean"),
        pytest.param(
            "nn.AvgPool2d",
            {"kernel_size": 2, "padding": 1},
            [[0.25, 1.25, 1], [3.5, 8.5, 5], [3.25, 7.25, 4]],
            id="mean-with-padding",
        ),
        pytest.param(
            "nn.AvgPool2d",
            {"kernel_size": 2, "padding": 1, "count_include_pad": False},
            [[1, 2.5, 4], [7, 8.5, 10], [13, 14.5, 16]],
            id="mean-without-padding",
        ),
        pytest.param(
            "nn.AvgPool2d",
            {"kernel_size": 2, "divisor_override": 2},
            [[7, 11], [23, 27]],
            id="mean-divisor",
        ),
        pytest.param(
            "F.avg_pool2d",
            {"kernel_size": (3, 3), "stride": (2, 2), "ceil_mode": True},
            [[6, 7.5], [12, 13.5]],
            id="mean-ceil",
        ),
        pytest.param(
            "nn.LPPool2d",
            {"norm_type": 1, "kernel_size": 2},
            [[14, 22], [46, 54]],
            id="power-1",
        ),
    ],
)
def test_values(run, operator_type, params, expected):
    y = run(operator_type, IMAGE, **params)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y[0, 0], expected, rtol=1e-6)


def test_lp_pool_of_power_2(run):
    y = run("F.lp_pool1d", np.array([[3, 4, 6, 8, 1]], "f4"), norm_type=2, kernel_size=2)
    np.testing.assert_allclose(y, [[5, 10]], rtol=1e-6)


def test_lp_pool_without_a_real_value(run):
    y = run("nn.LPPool1d", np.array([[-3, 1, 2, 2]], "f4"), norm_type=3.0, kernel_size=2)
    np.testing.assert_allclose(y, [[NAN, 16 ** (1 / 3)]], rtol=1e-6)


@pytest.mark.parametrize(
    ("row", "values", "indices"),
    [
        pytest.param([1, 5, 5, 2], [5, 5], [1, 2], id="ordinary"),
        pytest.param([3, 3, 3, 3], [3, 3], [0, 2], id="first-of-equal-ones"),
        pytest.param([NAN, 1, 2, NAN], [NAN, NAN], [0, 3], id="nan-wins"),
        pytest.param([NAN, NAN, INF, 2], [NAN, INF], [1, 2], id="last-nan"),
        pytest.param([-INF, -INF, -INF, 1], [-INF, 1], [0, 3], id="minus-infinity"),
    ],
)
def test_max_with_indices(run, row, values, indices):
    found = run("nn.MaxPool1d", np.array([row], "f4"), kernel_size=2, return_indices=True)
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found[0], [values])
    np.testing.assert_array_equal(found[1], [indices])
    assert found[1].dtype == np.int64
    alone = run("nn.MaxPool1d", np.array([row], "f4"), kernel_size=2)
    np.testing.assert_array_equal(alone, [values])


def test_a_window_of_padding_alone(run):
    # Dilation puts both taps of the only window outside of the image.
    image = np.array([[7.0]], np.float32)
    y = run("nn.MaxPool1d", image, kernel_size=2, padding=1, dilation=2)
    np.testing.assert_array_equal(y, [[-INF]])


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "ceil_mode"),
    [(2, 2, 0, 1, False), (3, 2, 1, 1, True), (3, 1, 1, 2, False), (2, 3, 1, 1, True)],
)
def test_against_the_definition(
    run, rank, batched, kernel, stride, padding, dilation, ceil_mode
):
    shape = (2, 3, *(7, 6, 5)[:rank])[0 if batched else 1 :]
    x = RNG(rank).integers(-9, 9, shape).astype(np.float32)
    each = [(number,) * rank for number in (kernel, stride, padding)]
    params = dict(zip(("kernel_size", "stride", "padding"), each, strict=True))
    params["ceil_mode"] = ceil_mode
    slow = (x, *each, (dilation,) * rank, ceil_mode)
    values, indices = run(
        f"nn.MaxPool{rank}d", x, **params, dilation=dilation, return_indices=True
    )
    np.testing.assert_array_equal(values, slow_pool(*slow, lambda v, f, o: max(v)))
    np.testing.assert_array_equal(indices, slow_pool(*slow, lambda v, f, o: f[v.index(max(v))]))
    alone = run(f"F.max_pool{rank}d", x, **params, dilation=dilation)
    np.testing.assert_array_equal(alone, values)
    if dilation == 1:
        means = run(f"nn.AvgPool{rank}d", x, **params, count_include_pad=False)
        expected = slow_pool(*slow, lambda v, f, o: sum(v) / len(v))
        np.testing.assert_allclose(means, expected, rtol=1e-5, atol=1e-6)
    assert {values.dtype, alone.dtype} == {np.dtype("f4")}


@pytest.mark.parametrize("dtype", ["f2", "f8", "i4", "u1"])
@pytest.mark.parametrize("operator_type", ["nn.MaxPool2d", "nn.AvgPool2d"])
def test_dtypes(run, operator_type, dtype):
    y = run(operator_type, np.full((1, 2, 2), 3, dtype), kernel_size=2)
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(y, [[[3]]])


def test_integers_round_towards_zero(run):
    y = run("nn.AvgPool1d", np.array([[1, 2, -1, -2]], np.int64), kernel_size=2)
    np.testing.assert_array_equal(y, [[1, -1]])


@pytest.mark.parametrize(
    ("operator_type", "params", "parameter", "reason"),
    [
        ("nn.MaxPool2d", {"kernel_size": 0}, "kernel_size", "must not be less than 1"),
        ("nn.MaxPool2d", {"kernel_size": (2, 2, 2)}, "kernel_size", "2 spatial axes need 2"),
        (
            "nn.MaxPool2d",
            {"kernel_size": 3, "padding": 2},
            "padding",
            "padding=2 is more than half of the window (kernel_size=3, dilation=1)",
        ),
        ("nn.AvgPool2d", {"kernel_size": 2, "stride": 0}, "stride", "must not be less than 1"),
        (
            "nn.AvgPool2d",
            {"kernel_size": 2, "divisor_override": 0},
            "divisor_override",
            "must not be 0",
        ),
        ("nn.LPPool2d", {"kernel_size": 2, "norm_type": 0}, "norm_type", "must not be 0"),
        ("nn.MaxPool2d", {}, "kernel_size", "'kernel_size' is missing"),
    ],
)
def test_wrong_parameters(run, operator_type, params, parameter, reason):
    with pytest.raises(ParameterError) as caught:
        run(operator_type, names=("",), **params)
    assert caught.value.parameter == parameter
    assert reason in caught.value.reason


def test_wrong_inputs(run):
    with pytest.raises(LayerError, match="has no room for a window"):
        run("nn.MaxPool2d", np.zeros((1, 2, 2), "f4"), kernel_size=3)
    with pytest.raises(LayerError, match="input has 2 dimensions, not 4"):
        run("nn.AvgPool2d", np.zeros((2, 2), "f4"), kernel_size=3)


def geometries():
    for case in itertools.product((1, 2, 3), (1, 2, 3, 4), (None, 1, 2, 3), (0, 1, 2), (0, 1)):
        _, kernel, _, padding, _ = case
        if padding <= kernel // 2:
            yield case


@pytest.mark.parametrize(("rank", "kernel", "stride", "padding", "ceil"), list(geometries()))
def test_against_pytorch(run, rank, kernel, stride, padding, ceil):
    torch = pytest.importorskip("torch")
    x = RNG(kernel).standard_normal((2, 3, *(9, 7, 8)[:rank]), dtype=np.float32)
    params = {
        "kernel_size": kernel,
        "stride": stride,
        "padding": padding,
        "ceil_mode": bool(ceil),
    }
    functional = torch.nn.functional
    for dilation in (1, 2):
        expected = getattr(functional, f"max_pool{rank}d")(
            torch.from_numpy(x), **params, dilation=dilation, return_indices=True
        )
        found = run(f"F.max_pool{rank}d", x, **params, dilation=dilation, return_indices=True)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs.numpy())
    for include in (True, False):
        expected = getattr(functional, f"avg_pool{rank}d")(
            torch.from_numpy(x), **params, count_include_pad=include
        )
        found = run(f"F.avg_pool{rank}d", x, **params, count_include_pad=include)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)
    del params["padding"]
    for power in (1, 2, 1.5):
        expected = getattr(functional, f"lp_pool{rank}d")(torch.from_numpy(x), power, **params)
        found = run(f"F.lp_pool{rank}d", x, norm_type=power, **params)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)
