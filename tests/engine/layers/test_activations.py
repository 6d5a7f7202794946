"""Activations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

NAN, INF = math.nan, math.inf


def sigma(x):
    return 1 / (1 + math.exp(-x))


def close(found, expected):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


X = [-4.0, -1.0, -0.25, 0.0, 0.5, 2.0, 7.0]

TABLE = [
    ("ReLU", "relu", {}, [0, 0, 0, 0, 0.5, 2, 7]),
    ("ReLU6", "relu6", {}, [0, 0, 0, 0, 0.5, 2, 6]),
    ("LeakyReLU", "leaky_relu", {}, [-0.04, -0.01, -0.0025, 0, 0.5, 2, 7]),
    ("LeakyReLU", "leaky_relu", {"negative_slope": 2.0}, [-8, -2, -0.5, 0, 0.5, 2, 7]),
    ("RReLU", "rrelu", {"lower": 0.25, "upper": 0.75}, [-2, -0.5, -0.125, 0, 0.5, 2, 7]),
    ("Hardtanh", "hardtanh", {}, [-1, -1, -0.25, 0, 0.5, 1, 1]),
    ("Hardtanh", "hardtanh", {"min_val": -2, "max_val": 3}, [-2, -1, -0.25, 0, 0.5, 2, 3]),
    ("Threshold", "threshold", {"threshold": 0.5, "value": 9}, [9, 9, 9, 9, 9, 2, 7]),
    ("Hardsigmoid", "hardsigmoid", {}, [0, 1 / 3, 2.75 / 6, 0.5, 3.5 / 6, 5 / 6, 1]),
    ("Hardswish", "hardswish", {}, [0, -1 / 3, -0.6875 / 6, 0, 1.75 / 6, 10 / 6, 7]),
    ("Hardshrink", "hardshrink", {}, [-4, -1, 0, 0, 0, 2, 7]),
    ("Hardshrink", "hardshrink", {"lambd": 1}, [-4, 0, 0, 0, 0, 2, 7]),
    ("Softshrink", "softshrink", {}, [-3.5, -0.5, 0, 0, 0, 1.5, 6.5]),
    ("Softsign", "softsign", {}, [-0.8, -0.5, -0.2, 0, 1 / 3, 2 / 3, 0.875]),
    ("Sigmoid", "sigmoid", {}, [sigma(x) for x in X]),
    ("LogSigmoid", "logsigmoid", {}, [math.log(sigma(x)) for x in X]),
    ("SiLU", "silu", {}, [x * sigma(x) for x in X]),
    ("Tanh", "tanh", {}, [math.tanh(x) for x in X]),
    ("Tanhshrink", "tanhshrink", {}, [x - math.tanh(x) for x in X]),
    ("ELU", "elu", {}, [x if x > 0 else math.expm1(x) for x in X]),
    ("ELU", "elu", {"alpha": 2}, [x if x > 0 else 2 * math.expm1(x) for x in X]),
    (
        "SELU",
        "selu",
        {},
        [1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)) for x in X],
    ),
    ("CELU", "celu", {"alpha": 2.0}, [x if x > 0 else 2 * math.expm1(x / 2) for x in X]),
    ("Mish", "mish", {}, [x * math.tanh(math.log1p(math.exp(x))) for x in X]),
    ("GELU", "gelu", {}, [x / 2 * (1 + math.erf(x / math.sqrt(2))) for x in X]),
    (
        "GELU",
        "gelu",
        {"approximate": "tanh"},
        [x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) for x in X],
    ),
    ("Softplus", "softplus", {}, [math.log1p(math.exp(x)) for x in X]),
    (
        "Softplus",
        "softplus",
        {"beta": 2, "threshold": 3},
        [x if 2 * x > 3 else math.log1p(math.exp(2 * x)) / 2 for x in X],
    ),
]


@pytest.mark.parametrize(
    ("module", "function", "params", "expected"),
    [pytest.param(*row, id=f"{row[1]}-{i}") for i, row in enumerate(TABLE)],
)
def test_values(run, module, function, params, expected):
    x = np.array(X, np.float32)
    for operator_type in (f"nn.{module}", f"F.{function}"):
        close(run(operator_type, x, **params), expected)


@pytest.mark.parametrize(
    "operator_type",
    [
        "torch.relu",
        "Tensor.relu",
        "torch.sigmoid",
        "Tensor.sigmoid",
        "torch.tanh",
        "torch.selu",
    ],
)
def test_other_forms(run, operator_type):
    x = np.array(X, np.float32)
    name = operator_type.partition(".")[2]
    expected = next(row[3] for row in TABLE if row[1] == name)
    close(run(operator_type, x), expected)


@pytest.mark.parametrize(
    ("operator_type", "expected"),
    [
        # of NaN, inf, -inf
        ("F.relu", [NAN, INF, 0]),
        ("F.relu6", [NAN, 6, 0]),
        ("F.sigmoid", [NAN, 1, 0]),
        ("F.silu", [NAN, INF, NAN]),
        ("F.gelu", [NAN, INF, NAN]),
        ("F.elu", [NAN, INF, -1]),
        ("F.softplus", [NAN, INF, 0]),
        ("F.hardshrink", [NAN, INF, -INF]),
        ("F.softsign", [NAN, NAN, NAN]),
        ("F.logsigmoid", [NAN, 0, -INF]),
        ("F.mish", [NAN, INF, NAN]),
        ("F.leaky_relu", [NAN, INF, -INF]),
    ],
)
def test_not_finite(run, operator_type, expected):
    x = np.array([NAN, INF, -INF], np.float32)
    np.testing.assert_array_equal(run(operator_type, x), np.array(expected, np.float32))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3), (5, 41, 331)])
def test_shapes(run, shape):
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    y = run("F.hardswish", x)
    assert y.shape == shape
    np.testing.assert_allclose(y, x * np.clip(x + 3, 0, 6) / 6, rtol=1e-5, atol=1e-7)


def test_strided_input(run):
    x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4).T
    np.testing.assert_array_equal(run("F.relu", x), np.where(x > 0, x, 0))


@pytest.mark.parametrize(
    ("operator_type", "dtype", "expected"),
    [
        ("F.relu", "i8", "i8"),
        ("F.relu6", "i4", "i4"),
        ("F.hardtanh", "i8", "i8"),
        ("F.sigmoid", "i8", "f4"),
        ("F.tanh", "?", "f4"),
        ("F.gelu", "f2", "f2"),
        ("F.silu", "f8", "f8"),
        ("F.tanh", "c8", "c8"),
    ],
)
def test_dtypes(run, operator_type, dtype, expected):
    assert run(operator_type, np.ones(3, dtype)).dtype == np.dtype(expected)


def test_float64_is_exact(run):
    x = np.linspace(-5, 5, 41)
    expected = [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x]
    np.testing.assert_allclose(run("F.gelu", x), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("shape", "weight", "expected"),
    [
        pytest.param((2, 2), [0.5, 2], [[-0.5, -4], [3, 4]], id="per-channel"),
        pytest.param((2, 2), [0.5], [[-0.5, -1], [3, 4]], id="one-for-all"),
        pytest.param((1, 2, 2), [0.5, 2], [[[-0.5, -1], [3, 4]]], id="channels-of-an-image"),
        pytest.param((4,), [0.5], [-0.5, -1, 3, 4], id="vector"),
    ],
)
def test_prelu(run, shape, weight, expected):
    x = np.array([-1, -2, 3, 4], np.float32).reshape(shape)
    weight = np.array(weight, np.float32)
    y = run("nn.PReLU", x, weights={"weight": weight}, num_parameters=weight.size)
    np.testing.assert_array_equal(y, expected)
    names = ("input", "weight")
    np.testing.assert_array_equal(run("F.prelu", x, weight, names=names), expected)
    assert y.dtype == np.float32


def test_prelu_of_wrong_channels(run):
    with pytest.raises(LayerError) as caught:
        run("nn.PReLU", np.zeros((1, 3), "f4"), weights={"weight": np.zeros(2, "f4")})
    assert str(caught.value) == "the input has 3 channels, the weight has 2 numbers"


def test_glu(run):
    x = np.array([[1, 2, 0, 100], [3, 4, 0, -100]], np.float32)
    np.testing.assert_allclose(run("nn.GLU", x), [[0.5, 2], [1.5, 0]], atol=1e-6)
    np.testing.assert_allclose(run("F.glu", x, dim=0)[0, 3], 0, atol=1e-6)


def test_glu_of_an_odd_axis(run):
    with pytest.raises(LayerError, match="axis 0 must have an even size"):
        run("F.glu", np.zeros((3, 2), "f4"), dim=0)


def test_unknown_gelu(run):
    with pytest.raises(LayerError, match="approximate=fast is neither none nor tanh"):
        run("F.gelu", np.zeros(1, "f4"), approximate="fast")


TRAINING = {"lower": 0.1, "upper": 0.5, "training": True}


class TestRandomSlope:
    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
    def test_each_element_has_its_own(self, run, dtype):
        x = np.linspace(-4, 4, 100_001).astype(dtype)  # more than one run of the frame
        result = run("F.rrelu", x, **TRAINING)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result[x > 0], x[x > 0])
        below = x < -0.1
        slopes = (result[below] / x[below]).astype(np.float64)
        assert slopes.min() > 0.099
        assert slopes.max() < 0.501
        # 48 750 slopes of deviation .4 / sqrt(12): the mean deviates by .0005
        assert abs(slopes.mean() - 0.3) < 0.003
        assert abs(slopes.std() - 0.1155) < 0.002

    def test_seeds(self, run):
        x = np.full(100, -1, "f4")
        once = run("aten::rrelu", x, 0.1, 0.5, True, None, seed=3)
        np.testing.assert_array_equal(run("F.rrelu", x, **TRAINING, seed=3), once)
        assert (run("F.rrelu", x, **TRAINING, seed=4) != once).all()

    def test_bounds_the_wrong_way_round(self, run):
        with pytest.raises(LayerError, match="no slope from lower=0.5 to upper=0.1"):
            run("F.rrelu", np.zeros(1, "f4"), lower=0.5, upper=0.1, training=True)


@pytest.mark.parametrize(
    ("module", "params"),
    [(row[0], row[2]) for row in TABLE],
    ids=[f"{row[1]}-{i}" for i, row in enumerate(TABLE)],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_against_pytorch(run, module, params, dtype):
    torch = pytest.importorskip("torch")
    x = np.linspace(-12, 12, 1001).astype(dtype)
    expected = getattr(torch.nn, module)(**params).eval()(torch.from_numpy(x)).numpy()
    found = run(f"nn.{module}", x, **params)
    assert found.dtype == expected.dtype
    tolerance = {np.float16: 2e-3, np.float32: 2e-6, np.float64: 1e-12}[dtype]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("slope", [0.01, 1.0, 0.0, -0.5, 2.0])
def test_slopes_below_0(run, slope):
    x = np.array([-np.inf, -2, -0.0, 0.0, 1e-45, 3, np.inf, np.nan], np.float32)
    expected = [v if v > 0 else v * slope for v in x.tolist()]
    leaky = run("F.leaky_relu", x, negative_slope=slope)
    learnt = run("F.prelu", x, np.array([slope], np.float32))
    for result in (leaky, learnt):
        np.testing.assert_allclose(result, np.array(expected, np.float32), rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(result[2:4]), np.signbit(expected[2:4]))
