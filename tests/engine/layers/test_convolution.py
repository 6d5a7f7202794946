"""Convolution."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

RNG = np.random.default_rng


def slow_convolution(x, w, b, stride, padding, dilation, groups):
    """The definition, one product at a time; padding is (before, after) per axis."""
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    sizes = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True)
    ]
    y = np.zeros((len(x), len(w), *sizes))
    per_out, per_in = len(w) // groups, w.shape[1]
    for n, o in np.ndindex(y.shape[:2]):
        for p in np.ndindex(*sizes):
            total = 0.0 if b is None else float(b[o])
            for c in range(per_in):
                for t in np.ndindex(*w.shape[2:]):
                    at = tuple(
                        i * s + j * d for i, s, j, d in zip(p, stride, t, dilation, strict=True)
                    )
                    channel = o // per_out * per_in + c
                    total += float(w[(o, c, *t)]) * float(x[(n, channel, *at)])
            y[(n, o, *p)] = total
    return y


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        # x is 1..9 in rows of three, the kernel [[1, 2], [3, 4]].
        pytest.param({}, [[37, 47], [67, 77]], id="valid"),
        pytest.param({"stride": 2}, [[37]], id="stride"),
        pytest.param({"dilation": (2, 2)}, [[64]], id="dilation"),
        pytest.param(
            {"padding": (1, 0)}, [[11, 18], [37, 47], [67, 77], [23, 26]], id="padding"
        ),
        # An even kernel has one position more behind.
        pytest.param({"padding": "same"}, [[37, 47, 21], [67, 77, 33], [23, 26, 9]], id="same"),
        pytest.param({"padding": "valid"}, [[37, 47], [67, 77]], id="padding-valid"),
        pytest.param(
            {"padding": 1, "padding_mode": "replicate", "stride": 2},
            [[10, 26], [61, 77]],
            id="replicate",
        ),
        pytest.param(
            {"padding": 1, "padding_mode": "reflect", "stride": 2},
            [[23, 35], [65, 77]],
            id="reflect",
        ),
        pytest.param(
            {"padding": 1, "padding_mode": "circular", "stride": 2},
            [[36, 44], [69, 77]],
            id="circular",
        ),
        # What pnnx makes of the padding of a layer with a padding mode: as F.pad has it ...
        pytest.param(
            {"padding": (0, 1, 1, 0), "padding_mode": "replicate"},
            [[16, 26, 30], [37, 47, 51], [67, 77, 81]],
            id="last-axis-first",
        ),
        # ... and nothing where it was "same".
        pytest.param(
            {"padding": None, "padding_mode": "replicate"},
            [[37, 47, 51], [67, 77, 81], [76, 86, 90]],
            id="none",
        ),
    ],
)
def test_values(run, params, expected):
    x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    w = np.array([[[[1, 2], [3, 4]]]], np.float32)
    y = run("nn.Conv2d", x, weights={"weight": w}, bias=False, **params)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y[0, 0], expected)


CASES = [
    # shape of x, shape of w, stride, padding, dilation, groups
    pytest.param((2, 3, 9), (4, 3, 3), (2,), (1,), (1,), 1, id="1d"),
    pytest.param((1, 4, 8), (4, 1, 3), (1,), (2,), (2,), 4, id="1d-depthwise"),
    pytest.param((2, 4, 7, 6), (6, 2, 3, 2), (2, 1), (1, 0), (1, 2), 2, id="2d-groups"),
    pytest.param((2, 3, 6, 7), (6, 1, 3, 3), (1, 2), (1, 1), (1, 1), 3, id="2d-multiplier"),
    pytest.param((2, 4, 5, 5), (6, 2, 1, 1), (1, 1), (0, 0), (1, 1), 2, id="2d-pointwise"),
    pytest.param((1, 4, 5, 6), (3, 4, 1, 1), (2, 3), (0, 0), (1, 1), 1, id="2d-point-stride"),
    pytest.param((1, 2, 4, 4), (3, 2, 1, 1), (1, 1), (2, 1), (1, 1), 1, id="2d-point-padded"),
    pytest.param((1, 2, 3, 3), (2, 2, 3, 3), (1, 1), (4, 4), (1, 1), 1, id="2d-more-padding"),
    pytest.param((1, 2, 4, 5, 4), (4, 1, 2, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2), 2, id="3d"),
    pytest.param((1, 4, 3, 4, 3), (2, 2, 2, 2, 2), (2, 1, 1), (0, 1, 1), (1, 1, 1), 2, id="3g"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "stride", "padding", "dilation", "groups"), CASES
)
@pytest.mark.parametrize("functional", [False, True])
def test_against_the_definition(
    run, x_shape, w_shape, stride, padding, dilation, groups, functional
):
    rng = RNG(sum(x_shape) + sum(w_shape))
    x = rng.standard_normal(x_shape, dtype=np.float32)
    w = rng.standard_normal(w_shape, dtype=np.float32)
    b = rng.standard_normal(w_shape[0], dtype=np.float32)
    rank = len(x_shape) - 2
    params = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if functional:
        names = ("input", "weight", "bias")
        y = run(f"F.conv{rank}d", x, w, b, names=names, **params)
    else:
        y = run(
            f"nn.Conv{rank}d",
            x,
            weights={"weight": w, "bias": b},
            bias=True,
            in_channels=x_shape[1],
            out_channels=w_shape[0],
            kernel_size=w_shape[2:],
            padding_mode="zeros",
            **params,
        )
    expected = slow_convolution(x, w, b, stride, [(p, p) for p in padding], dilation, groups)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert y.dtype == np.float32


def test_unbatched_and_empty_batches(run):
    w = np.ones((2, 3, 2, 2), np.float32)
    assert run("nn.Conv2d", np.ones((3, 4, 5), "f4"), weights={"weight": w}).shape == (2, 3, 4)
    empty = run("nn.Conv2d", np.ones((0, 3, 4, 5), "f4"), weights={"weight": w})
    assert empty.shape == (0, 2, 3, 4)


@pytest.mark.parametrize(
    ("x_dtype", "w_dtype", "expected"),
    [
        ("f8", "f8", "f8"),
        ("f2", "f2", "f2"),
        ("f4", "f2", "f4"),
        ("i8", "i8", "i8"),
        ("c8", "c8", "c8"),
    ],
)
def test_dtypes(run, x_dtype, w_dtype, expected):
    x, w = np.ones((1, 2, 3, 3), x_dtype), np.ones((1, 2, 2, 2), w_dtype)
    y = run("nn.Conv2d", x, weights={"weight": w})
    assert y.dtype == np.dtype(expected)
    np.testing.assert_array_equal(y, np.full((1, 1, 2, 2), 8))


def test_unaligned_weights(run):
    w = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    raw = np.frombuffer(b"\0" + w.tobytes(), np.uint8)[1:].view(np.float32).reshape(w.shape)
    x = RNG(3).standard_normal((1, 1, 4, 4), dtype=np.float32)
    np.testing.assert_array_equal(
        run("nn.Conv2d", x, weights={"weight": raw}), run("nn.Conv2d", x, weights={"weight": w})
    )


def test_the_same_in_many_blocks(run, monkeypatch):
    x = RNG(4).standard_normal((1, 3, 9, 8), dtype=np.float32)
    w = RNG(5).standard_normal((4, 3, 3, 3), dtype=np.float32)
    whole = run("nn.Conv2d", x, weights={"weight": w}, padding=1)
    for limit in (1, 5000):
        monkeypatch.setattr("engine.layers.convolution._COLUMN_BYTES", limit)
        np.testing.assert_allclose(
            run("nn.Conv2d", x, weights={"weight": w}, padding=1), whole, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("block_bytes", [1 << 19, 100])
@pytest.mark.parametrize(
    ("sizes", "kernel", "stride", "padding", "dilation"),
    [
        ((7,), (3,), (1,), (1,), (1,)),
        ((5, 4), (5, 3), (1, 1), (2, 1), (1, 1)),
        ((6, 5), (3, 3), (2, 2), (1, 0), (1, 1)),
        ((7, 6), (3, 2), (1, 2), (2, 1), (2, 3)),
        ((3, 4, 3), (2, 3, 1), (1, 2, 1), (0, 1, 0), (1, 1, 1)),
    ],
)
def test_many_channels_of_small_images(
    run, monkeypatch, sizes, kernel, stride, padding, dilation, block_bytes
):
    monkeypatch.setattr("engine.layers.convolution._TAP_BYTES", block_bytes)
    rng, channels = RNG(5), 17
    x = rng.normal(size=(2, channels, *sizes)).astype(np.float32)
    w = rng.normal(size=(channels, 1, *kernel)).astype(np.float32)
    b = rng.normal(size=channels).astype(np.float32)
    y = run(
        f"nn.Conv{len(sizes)}d", x, weights={"weight": w, "bias": b}, bias=True,
        groups=channels, stride=stride, padding=padding, dilation=dilation,
    )  # fmt: skip
    expected = slow_convolution(x, w, b, stride, [(p, p) for p in padding], dilation, channels)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_temporaries_stay_small(run):
    x = np.zeros((1, 32, 256, 256), np.float32)  # 8 MB; its columns would be 75
    w = np.zeros((4, 32, 3, 3), np.float32)
    tracemalloc.start()
    y = run("nn.Conv2d", x, weights={"weight": w}, padding=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < x.nbytes + y.nbytes + 20e6


@pytest.mark.parametrize(
    ("params", "weight_shape", "parameter", "reason"),
    [
        (
            {"in_channels": 4},
            (8, 3, 2, 2),
            "in_channels",
            "in_channels=4, but the weight has 3",
        ),
        (
            {"in_channels": 3, "groups": 2},
            (8, 3, 2, 2),
            "in_channels",
            "in_channels=3, but the weight has 6",
        ),
        (
            {"out_channels": 4},
            (8, 3, 2, 2),
            "out_channels",
            "out_channels=4, but the weight has 8",
        ),
        (
            {"kernel_size": (3, 3)},
            (8, 3, 2, 2),
            "kernel_size",
            "kernel_size=(3, 3), but the weight's kernel is (2, 2)",
        ),
        (
            {"groups": 3},
            (8, 3, 2, 2),
            "groups",
            "groups=3 cannot divide 8 channels of the weight",
        ),
        ({"stride": 0}, (8, 3, 2, 2), "stride", "stride=0 must not be less than 1"),
        ({"padding": -1}, (8, 3, 2, 2), "padding", "padding=-1 must not be less than 0"),
        (
            {"padding": "full"},
            (8, 3, 2, 2),
            "padding",
            "padding=full is neither same nor valid",
        ),
        (
            {"padding": "same", "stride": 2},
            (8, 3, 2, 2),
            "padding",
            "padding=same needs stride 1, not (2, 2)",
        ),
        (
            {"padding_mode": "mirror"},
            (8, 3, 2, 2),
            "padding_mode",
            "padding_mode=mirror is not one of zeros, reflect, replicate, circular",
        ),
        ({}, (8,), "weight", "a weight of shape (8,) is not a kernel"),
        (
            {"bias": True},
            (8, 3, 2, 2),
            "bias",
            "bias=True, but the model has no attribute @bias",
        ),
    ],
)
def test_wrong_parameters(run, params, weight_shape, parameter, reason):
    with pytest.raises(ParameterError) as caught:
        run(
            "nn.Conv2d", weights={"weight": np.zeros(weight_shape, "f4")}, names=("",), **params
        )
    assert (caught.value.parameter, caught.value.reason) == (parameter, reason)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ((1, 4, 5, 5), "the input has 4 channels, the layer takes 3"),
        (
            (5, 5),
            "input has 2 dimensions, not 4 (or 3 without a batch): its shape is 5×5",
        ),
        (
            (1, 3, 1, 5),
            (
                "spatial axis 1 of 2 has no room for a window: size 1 + padding 0 + 0 is less "
                "than its extent 2 (1 × (2 − 1) + 1)"
            ),
        ),
    ],
)
def test_wrong_inputs(run, shape, reason):
    w = np.zeros((8, 3, 2, 2), np.float32)
    with pytest.raises(LayerError) as caught:
        run("nn.Conv2d", np.zeros(shape, np.float32), weights={"weight": w})
    assert str(caught.value) == reason


TORCH_CASES = [
    (rank, stride, padding, dilation, groups, mode)
    for rank, stride, padding, dilation, (groups, mode) in itertools.product(
        (1, 2, 3),
        (1, 2),
        (0, 2, "same"),
        (1, 3),
        ((1, "zeros"), (2, "zeros"), (4, "zeros"), (1, "reflect"), (2, "circular")),
    )
    if not (padding == "same" and stride == 2)
]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
@pytest.mark.parametrize(
    ("rank", "stride", "padding", "dilation", "groups", "mode"), TORCH_CASES
)
def test_against_pytorch(run, rank, stride, padding, dilation, groups, mode):
    torch = pytest.importorskip("torch")
    module = getattr(torch.nn, f"Conv{rank}d")(
        4, 8, (3, 2, 3)[:rank], stride, padding, dilation, groups, padding_mode=mode
    )
    x = RNG(rank).standard_normal((2, 4, *(9, 8, 10)[:rank]), dtype=np.float32)
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}
    params = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = run(f"nn.Conv{rank}d", x, weights=weights, padding_mode=mode, **params)
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
