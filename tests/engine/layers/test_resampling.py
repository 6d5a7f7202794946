"""Resizing images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.errors import LayerError

RNG = np.random.default_rng
ROW = np.array([[[1, 2, 3, 4]]], np.float32)


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        pytest.param(
            "nn.Upsample", {"mode": "nearest", "size": (6,)}, [1, 1, 2, 3, 3, 4], id="nearest"
        ),
        pytest.param(
            "nn.Upsample",
            {"mode": "nearest", "scale_factor": (2.0,), "size": None},
            [1, 1, 2, 2, 3, 3, 4, 4],
            id="twice",
        ),
        pytest.param("F.upsample", {"size": (2,)}, [1, 3], id="nearest-smaller"),
        pytest.param(
            "F.interpolate", {"mode": "nearest-exact", "size": (2,)}, [2, 4], id="exact-smaller"
        ),
        # floor(4 * 1.4) = 5 outputs; o / 1.4 is 0, 0.71, 1.43, 2.14, 2.86.
        pytest.param(
            "F.interpolate", {"scale_factor": 1.4}, [1, 1, 2, 3, 3], id="scale-as-given"
        ),
        # The same outputs at o * 4 / 5: 0, 0.8, 1.6, 2.4, 3.2.
        pytest.param(
            "F.interpolate",
            {"scale_factor": 1.4, "recompute_scale_factor": True},
            [1, 1, 2, 3, 4],
            id="scale-recomputed",
        ),
        # Positions (o + 0.5) / 2 - 0.5: -0.25, 0.25, 0.75, 1.25, ...
        pytest.param(
            "F.interpolate",
            {"mode": "linear", "size": (8,), "align_corners": False},
            [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4],
            id="linear",
        ),
        # Positions o * 3 / 6.
        pytest.param(
            "F.interpolate",
            {"mode": "linear", "size": 7, "align_corners": True},
            [1, 1.5, 2, 2.5, 3, 3.5, 4],
            id="linear-corners",
        ),
        pytest.param(
            "F.interpolate",
            {"mode": "linear", "size": 1, "align_corners": True},
            [1],
            id="one-corner",
        ),
        pytest.param("F.interpolate", {"mode": "area", "size": (2,)}, [1.5, 3.5], id="area"),
    ],
)
def test_values(run, operator_type, params, expected):
    y = run(operator_type, ROW, **params)
    np.testing.assert_allclose(y, [[expected]], rtol=1e-6)
    assert y.dtype == np.float32


def test_bilinear(run):
    x = np.array([[[[0, 4], [8, 12]]]], np.float32)
    expected = [[0, 2, 4], [4, 6, 8], [8, 10, 12]]
    for operator_type in ("F.upsample_bilinear", "nn.UpsamplingBilinear2d"):
        np.testing.assert_allclose(run(operator_type, x, size=(3, 3)), [[expected]])
    middle = run("nn.Upsample", x, size=(1, 1), mode="bilinear", align_corners=False)
    np.testing.assert_allclose(middle, [[[[6]]]])


def test_an_axis_of_the_same_size_is_copied(run):
    x = np.array([[[[np.nan, 1, 2]]]], np.float32)
    y = run("F.interpolate", x, size=(2, 3), mode="bilinear")
    np.testing.assert_array_equal(y, [[[[np.nan, 1, 2], [np.nan, 1, 2]]]])


def test_bicubic_keeps_a_straight_line(run):
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 1, 8)
    y = run("F.interpolate", x, size=(1, 15), mode="bicubic", align_corners=True)
    # Inside, cubic convolution is exact for polynomials of degree 1.
    np.testing.assert_allclose(y[0, 0, 0, 2:-2], np.arange(1, 6.5, 0.5), rtol=1e-5)


def test_size_and_scale_as_operands(run):
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    expected = [[[[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]]]
    for name, value in (
        ("size", (4, 4)),
        ("size", np.array([4, 4])),
        ("scale_factor", (2.0, 2.0)),
        ("scale_factor", 2.0),
    ):
        y = run("F.interpolate", x, value, names=("input", name), mode="nearest")
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", ["u1", "i8", "?", "f2", "f8"])
def test_nearest_keeps_every_dtype(run, dtype):
    y = run("nn.UpsamplingNearest2d", np.ones((1, 1, 2, 2), dtype), scale_factor=(2.0, 2.0))
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(y, np.ones((1, 1, 4, 4)))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "either size or scale_factor must be given"),
        ({"size": (2, 2)}, "size=(2, 2) needs 1 numbers"),
        ({"scale_factor": (2.0, 2.0)}, "scale_factor=(2.0, 2.0) needs 1 positive numbers"),
        ({"size": 0}, "spatial size 4 cannot become 0; both must be positive"),
        (
            {"size": 2, "mode": "bilinear"},
            "mode bilinear cannot resize an input of 3 dimensions (1×1×4)",
        ),
        (
            {"size": 2, "mode": "cubic"},
            "mode cubic cannot resize an input of 3 dimensions (1×1×4)",
        ),
        (
            {"size": 2, "antialias": True},
            "antialias is for modes bilinear and bicubic, not nearest",
        ),
    ],
)
def test_errors(run, params, message):
    with pytest.raises(LayerError) as caught:
        run("F.interpolate", ROW, **params)
    assert str(caught.value) == message


def test_linear_modes_need_floats(run):
    with pytest.raises(
        LayerError, match="mode linear needs floats or uint8, the input is int64"
    ):
        run("F.interpolate", ROW.astype(np.int64), size=2, mode="linear")


CASES = [
    (rank, mode, corners, how)
    for (rank, mode), corners, how in itertools.product(
        (
            (1, "nearest"),
            (2, "nearest"),
            (3, "nearest"),
            (2, "nearest-exact"),
            (1, "linear"),
            (2, "bilinear"),
            (3, "trilinear"),
            (2, "bicubic"),
            (1, "area"),
            (2, "area"),
            (3, "area"),
        ),
        (None, True),
        (
            {"size": (12, 5, 9)},
            {"size": (7, 10, 3)},
            {"scale_factor": (2.0, 1.7, 0.6)},
            {"scale_factor": (0.77, 2.97674394, 1.3)},
            {"scale_factor": (1.3, 0.5, 2.2), "recompute_scale_factor": True},
        ),
    )
    if not (corners and (mode.startswith("nearest") or mode == "area"))
]


@pytest.mark.parametrize(("rank", "mode", "corners", "how"), CASES)
def test_against_pytorch(run, rank, mode, corners, how):
    torch = pytest.importorskip("torch")
    how = {k: v[:rank] if isinstance(v, tuple) else v for k, v in how.items()}
    for dtype in (np.float32, np.float64):
        x = RNG(rank).random((2, 3, *(7, 10, 6)[:rank]), dtype=dtype)
        expected = torch.nn.functional.interpolate(
            torch.from_numpy(x), mode=mode, align_corners=corners, **how
        ).numpy()
        found = run("F.interpolate", x, mode=mode, align_corners=corners, **how)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(3, 4), (20, 5), (9, 31)])
def test_antialias_against_pytorch(run, mode, corners, size):
    torch = pytest.importorskip("torch")
    x = RNG(1).random((1, 2, 9, 14), dtype=np.float32)
    params = {"mode": mode, "align_corners": corners, "antialias": True, "size": size}
    expected = torch.nn.functional.interpolate(torch.from_numpy(x), **params).numpy()
    np.testing.assert_allclose(
        run("F.interpolate", x, **params), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(86, 255), (13, 20), (20, 13), (5, 10), (10, 5), (7, 7)])
def test_nearest_positions_are_pytorchs(run, sizes, rank):
    torch = pytest.importorskip("torch")
    size, count = sizes
    shape = (1, 1, size, 3, 2)[: rank + 2]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for how in ({"size": (count, 3, 4)[:rank]}, {"scale_factor": (count + 0.3) / size}):
        for mode in ("nearest", "nearest-exact"):
            expected = torch.nn.functional.interpolate(torch.from_numpy(x), mode=mode, **how)
            found = run("F.interpolate", x, mode=mode, **how)
            np.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize("scales", [(None, None), (0.5, 0.5), ((0.5, 0.5),), (None,)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_as_torchscript_calls_it(run, mode, scales):
    """Twice as wide, the bilinear kernel has the taps 1, 3, 3, 1 over 8."""
    row = np.zeros((1, 1, 4, 8), np.float32)
    row[..., 3] = 8
    result = run(f"aten::_upsample_{mode}2d_aa", row, (2, 4), False, *scales)
    same = run("F.interpolate", row, size=(2, 4), mode=mode, antialias=True)
    np.testing.assert_array_equal(result, same)
    if mode == "bilinear":
        np.testing.assert_allclose(result[0, 0, 0], [0, 3, 1, 0], rtol=1e-6)


def test_antialiased_to_one_position_with_corners_in_place(run):
    """No distance between outputs, and so nothing to widen: the first position is taken."""
    row = np.arange(8, dtype=np.float32).reshape(1, 1, 1, 8)
    params = {"size": (1, 1), "align_corners": True, "antialias": True}
    result = run("F.interpolate", row, mode="bilinear", **params)
    np.testing.assert_allclose(result, [[[[0.0]]]])


BYTES = np.array([[[[0, 255], [10, 20]]]], np.uint8)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((2, 4), [[0, 64, 191, 255], [10, 13, 18, 20]]),  # 12.5 and 17.5 are rounded up
        ((4, 1), [[128], [100], [43], [15]]),  # of 128 and 15, which are rounded already
    ],
)
def test_bytes_are_rounded_after_each_axis(run, size, expected):
    result = run("F.interpolate", BYTES, size=size, mode="bilinear", align_corners=False)
    np.testing.assert_array_equal(result, np.array([[expected]], np.uint8), strict=True)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("size", [(13, 20), (40, 33), (7, 64)])
def test_bytes_against_pytorch(run, size, aligned, antialias):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(3).integers(0, 256, (1, 3, 20, 31), np.uint8)
    params = {"mode": "bilinear", "align_corners": aligned, "antialias": antialias}
    want = torch.nn.functional.interpolate(torch.from_numpy(x), size, **params).numpy()
    np.testing.assert_array_equal(run("F.interpolate", x, size=size, **params), want)
