"""Normalisation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

RNG = np.random.default_rng


def standardized(values, eps):
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean) ** 2 for v in values) / len(values)
    return [(v - mean) / math.sqrt(variance + eps) for v in values]


STATISTICS = {
    "running_mean": np.array([1, 2], np.float32),
    "running_var": np.array([3, 8], np.float32),
}
AFFINE = {"weight": np.array([10, 6], np.float32), "bias": np.array([0.5, -1], np.float32)}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # eps is 1: the standard deviations are 2 and 3.
        pytest.param(STATISTICS, [[0, 1], [-1, 1]], id="plain"),
        pytest.param(STATISTICS | AFFINE, [[0.5, 10.5], [-7, 5]], id="affine"),
    ],
)
def test_batch_norm(run, weights, expected):
    x = np.array([[[1, 3], [-1, 5]]], np.float32)
    affine = "weight" in weights
    y = run("nn.BatchNorm1d", x, weights=weights, affine=affine, eps=1.0, num_features=2)
    np.testing.assert_allclose(y, [expected], rtol=1e-6)
    assert y.dtype == np.float32
    names = ("input", *weights)
    y = run("F.batch_norm", x, *weights.values(), names=names, eps=1.0)
    np.testing.assert_allclose(y, [expected], rtol=1e-6)


def test_batch_norm_without_statistics(run):
    x = RNG(1).standard_normal((3, 2, 4), dtype=np.float32)
    y = run("nn.BatchNorm1d", x, eps=0.1, affine=False)
    for channel in range(2):
        expected = standardized(x[:, channel].ravel().tolist(), 0.1)
        np.testing.assert_allclose(y[:, channel].ravel(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("operator_type", "shape", "message"),
    [
        (
            "nn.BatchNorm1d",
            (1, 3, 4),
            "the input has 3 channels, the layer takes 2",
        ),
        (
            "nn.BatchNorm2d",
            (1, 2, 3),
            "the input has 3 dimensions, not 4: its shape is 1×2×3",
        ),
        (
            "nn.BatchNorm1d",
            (2,),
            "the input has 1 dimensions, not 2 or 3: its shape is 2",
        ),
    ],
)
def test_batch_norm_of_wrong_inputs(run, operator_type, shape, message):
    with pytest.raises(LayerError) as caught:
        run(operator_type, np.zeros(shape, "f4"), weights=STATISTICS)
    assert str(caught.value) == message


def test_batch_norm_with_wrong_features(run):
    with pytest.raises(ParameterError) as caught:
        run("nn.BatchNorm1d", names=("",), weights=STATISTICS, num_features=3)
    assert caught.value.reason == "num_features=3, but running_mean has 2 numbers"
    assert caught.value.parameter == "num_features"


@pytest.mark.parametrize("batched", [True, False])
def test_instance_norm(run, batched):
    x = RNG(2).standard_normal((2, 2, 3, 4), dtype=np.float32)
    x = x if batched else x[0]
    y = run("nn.InstanceNorm2d", x, weights=AFFINE, eps=0.1, affine=True, num_features=2)
    for lead in np.ndindex(*x.shape[:-2]):
        scale, shift = AFFINE["weight"][lead[-1]], AFFINE["bias"][lead[-1]]
        expected = np.array(standardized(x[lead].ravel().tolist(), 0.1)) * scale + shift
        np.testing.assert_allclose(y[lead].ravel(), expected, rtol=1e-4, atol=1e-5)


def test_instance_norm_by_stored_statistics(run):
    x = np.array([[[1, 3], [-1, 5]]], np.float32)
    y = run("nn.InstanceNorm1d", x, weights=STATISTICS, eps=1.0, track_running_stats=True)
    np.testing.assert_allclose(y, [[[0, 1], [-1, 1]]])
    names = ("input", *STATISTICS)
    y = run("F.instance_norm", x, *STATISTICS.values(), names=names, eps=0.0)
    np.testing.assert_allclose(y, [[[-1, 1], [-1, 1]]], rtol=1e-6)


def test_group_norm(run):
    x = RNG(3).standard_normal((2, 4, 3), dtype=np.float32)
    weight, bias = np.arange(1, 5, dtype=np.float32), np.arange(4, dtype=np.float32)
    weights = {"weight": weight, "bias": bias}
    params = {"num_groups": 2, "num_channels": 4, "affine": True, "eps": 0.1}
    y = run("nn.GroupNorm", x, weights=weights, **params)
    for sample, group in np.ndindex(2, 2):
        part = x[sample, 2 * group : 2 * group + 2]
        flat = np.array(standardized(part.ravel().tolist(), 0.1)).reshape(2, 3)
        channels = slice(2 * group, 2 * group + 2)
        expected = flat * weight[channels, None] + bias[channels, None]
        np.testing.assert_allclose(y[sample, channels], expected, rtol=1e-4, atol=1e-5)


def test_group_norm_of_a_wrong_number(run):
    with pytest.raises(LayerError, match="num_groups=3 cannot divide the channels of 1×4×2"):
        run("F.group_norm", np.zeros((1, 4, 2), "f4"), num_groups=3)


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_layer_norm(run, shape):
    x = RNG(4).standard_normal((2, 3, 4), dtype=np.float32)
    weight, bias = RNG(5).random((2, *shape), dtype=np.float32)
    weights = {"weight": weight, "bias": bias}
    y = run("nn.LayerNorm", x, weights=weights, normalized_shape=shape, eps=0.1)
    for lead in np.ndindex(*x.shape[: 3 - len(shape)]):
        flat = np.array(standardized(x[lead].ravel().tolist(), 0.1)).reshape(shape)
        np.testing.assert_allclose(y[lead], flat * weight + bias, rtol=1e-4, atol=1e-5)


def test_layer_norm_of_a_wrong_shape(run):
    with pytest.raises(LayerError) as caught:
        run("nn.LayerNorm", np.zeros((2, 3), "f4"), normalized_shape=(4,))
    assert str(caught.value) == "the input's last sizes must be 4; its shape is 2×3"


def test_rms_norm(run):
    x = np.array([[3, 4], [6, 8]], np.float32)
    weight = np.array([2, 10], np.float32)
    root = math.sqrt(12.5)
    y = run("nn.RMSNorm", x, weights={"weight": weight}, normalized_shape=(2,), eps=None)
    np.testing.assert_allclose(y, [[6 / root, 40 / root], [6 / root, 40 / root]], rtol=1e-5)
    y = run("F.rms_norm", x, normalized_shape=(2,), eps=3.5)
    np.testing.assert_allclose(y[0], [0.75, 1], rtol=1e-6)


def test_local_response_norm(run):
    x = np.array([[[1], [2], [3]]], np.float32)
    y = run("nn.LocalResponseNorm", x, size=2, alpha=2.0, beta=1.0, k=1.0)
    # Sums over a channel and the one before it: 1, 5, 13.
    np.testing.assert_allclose(y[0, :, 0], [1 / 2, 2 / 6, 3 / 14], rtol=1e-6)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"p": 2.0, "dim": 1}, [[0.6, 0.8], [0, -1]]),
        ({"p": 1, "dim": (1,)}, [[3 / 7, 4 / 7], [0, -1]]),
        ({"p": math.inf, "dim": 0}, [[1, 0.8], [0, -1]]),
        ({"p": 2, "dim": 1, "eps": 10.0}, [[0.3, 0.4], [0, -0.5]]),
    ],
)
def test_normalize(run, params, expected):
    x = np.array([[3, 4], [0, -5]], np.float32)
    np.testing.assert_allclose(run("F.normalize", x, **params), expected, rtol=1e-6)


CASES = [
    ("BatchNorm1d", (6,), (4, 6)),
    ("BatchNorm1d", (6,), (4, 6, 5)),
    ("BatchNorm2d", (6,), (2, 6, 5, 4)),
    ("BatchNorm3d", (6,), (2, 6, 5, 4, 3)),
    ("InstanceNorm1d", (6,), (2, 6, 5)),
    ("InstanceNorm2d", (6,), (6, 5, 4)),
    ("InstanceNorm3d", (6,), (2, 6, 5, 4, 3)),
    ("GroupNorm", (3, 6), (2, 6, 5, 4)),
    ("GroupNorm", (6, 6), (2, 6)),
    ("LayerNorm", ((5, 4),), (2, 6, 5, 4)),
    ("RMSNorm", (4,), (2, 6, 5, 4)),
    ("LocalResponseNorm", (4, 0.1), (2, 6, 5, 4)),
    ("LocalResponseNorm", (3,), (2, 6, 5)),
]


@pytest.mark.parametrize(("name", "arguments", "shape"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_against_pytorch(run, name, arguments, shape, dtype):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = (
        getattr(torch.nn, name)(*arguments)
        .eval()
        .to(torch.from_numpy(np.zeros(1, dtype)).dtype)
    )
    for parameter in [*module.parameters(), *module.buffers()]:
        if parameter.is_floating_point():
            parameter.data.uniform_(0.5, 2)
    weights = {
        k: v.detach().numpy() for k, v in module.state_dict().items() if "num_batches" not in k
    }
    params = {
        k: (v if isinstance(v, (int, float, bool)) else tuple(v))
        for k, v in vars(module).items()
        if k in {"eps", "num_features", "affine", "num_groups", "num_channels", "size", "alpha",
                 "beta", "k", "normalized_shape", "elementwise_affine", "track_running_stats"}
        and v is not None
    }  # fmt: skip
    x = RNG(len(shape)).standard_normal(shape).astype(dtype)
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).numpy()
    if name.startswith("BatchNorm"):
        params.pop("track_running_stats")
    found = run(f"nn.{name}", x, weights=weights, **params)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
