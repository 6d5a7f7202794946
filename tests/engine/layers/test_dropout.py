"""Dropout: at rest it hands its input on, while training it drops by chance."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers import OperatorCall, build_layer

TYPES = [
    "nn.Dropout",
    "nn.Dropout2d",
    "nn.AlphaDropout",
    "nn.FeatureAlphaDropout",
    "F.dropout",
    "F.dropout3d",
    "F.alpha_dropout",
    "F.feature_alpha_dropout",
]
ALPHA = 1.7580993408473766  # -SELU(-inf)
IMAGES = np.full((40, 50, 3, 4), 2, np.float32)
SAVED = {"p": 0.25, "training": True}


@pytest.mark.parametrize("operator_type", TYPES)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"p": 0.5, "training": False},
        {"p": 0.0, "training": True},
        {"p": 0, "training": True},
    ],
    ids=str,
)
def test_at_rest_it_hands_the_input_on_and_is_not_random(operator_type, params):
    call = OperatorCall("op", operator_type, params, input_names=("",))
    layer = build_layer(call)
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    assert layer.generator == ""
    assert layer.forward(x) is x


@pytest.mark.parametrize("operator_type", TYPES)
def test_training_is_random(operator_type):
    assert build_layer(OperatorCall("op", operator_type, SAVED, input_names=("",))).generator


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_elements_are_dropped_one_by_one(run, dtype):
    x = np.linspace(1, 2, 40_000).reshape(200, 200).astype(dtype)
    result = run("F.dropout", x, **SAVED)
    kept = result != 0
    assert result.dtype == dtype
    tolerance = 1e-3 if dtype == np.float16 else 1e-6
    np.testing.assert_allclose(result[kept], x[kept] / 0.75, rtol=tolerance)
    # 40 000 trials: the share of the kept has a deviation of sqrt(.75 * .25 / 40000) = .0022
    assert abs(kept.mean() - 0.75) < 0.011
    assert 0 < kept[0].mean() < 1  # neither rows nor columns as a whole
    assert 0 < kept[:, 0].mean() < 1


@pytest.mark.parametrize(
    "operator_type", ["F.dropout2d", "F.dropoutnd", "nn.Dropout2d", "torch.feature_dropout"]
)
def test_channels_are_dropped_whole(run, operator_type):
    result = run(operator_type, IMAGES, **SAVED).reshape(2000, 12)
    values = np.unique(result)
    np.testing.assert_allclose(values, [0, 8 / 3], rtol=1e-6)
    assert (result == result[:, :1]).all()
    # 2000 channels: a deviation of sqrt(.75 * .25 / 2000) = .0097
    assert abs((result[:, 0] != 0).mean() - 0.75) < 0.05


@pytest.mark.parametrize(
    ("operator_type", "shape", "together"),
    [
        pytest.param("F.dropout1d", (500, 8), (1,), id="(C, L)"),
        pytest.param("F.dropout1d", (50, 10, 8), (2,), id="(N, C, L)"),
        pytest.param("nn.Dropout3d", (500, 2, 2, 2), (1, 2, 3), id="(C, D, H, W)"),
        pytest.param("F.dropout3d", (50, 10, 2, 2, 2), (2, 3, 4), id="(N, C, D, H, W)"),
        pytest.param("F.dropout2d", (50, 10, 8), (2,), id="an image of three axes has a batch"),
    ],
)
def test_what_a_channel_is(run, operator_type, shape, together):
    kept = run(operator_type, np.ones(shape, "f4"), p=0.5, training=True) != 0
    assert (kept.all(together) == kept.any(together)).all()
    channels = kept.all(together)
    assert channels.size == 500
    assert abs(channels.mean() - 0.5) < 0.12  # a deviation of sqrt(.25 / 500) = .022
    if channels.ndim > 1:
        assert 0 < channels[0].mean() < 1


@pytest.mark.parametrize(
    ("operator_type", "whole"), [("F.alpha_dropout", False), ("F.feature_alpha_dropout", True)]
)
def test_alpha_dropout_keeps_mean_and_variance(run, operator_type, whole):
    x = np.random.default_rng(5).standard_normal((400, 100, 4, 4))
    result = run(operator_type, x, p=0.25, training=True)
    scale = 1 / np.sqrt(0.75 * (1 + 0.25 * ALPHA**2))
    dropped = np.isclose(result, -0.75 * ALPHA * scale)
    np.testing.assert_allclose(result[~dropped], scale * (x[~dropped] + 0.25 * ALPHA))
    # Channels count as one trial each: deviations up to 1 / sqrt(40 000) = .005
    assert abs(dropped.mean() - 0.25) < 0.02
    assert abs(result.mean()) < 0.025
    assert abs(result.var() - 1) < 0.05
    assert (dropped.all((2, 3)) == dropped.any((2, 3))).all() == whole


@pytest.mark.parametrize("operator_type", TYPES[4:])
def test_dropping_all(run, operator_type):
    x = np.array([[1, -2, np.inf]], "f4").reshape(1, 1, 1, 1, 3)
    result = run(operator_type, x, p=1.0, training=True)
    np.testing.assert_array_equal(result.ravel(), [0, 0, np.nan])


def test_the_mask_comes_too(run):
    x = np.linspace(1, 2, 1000, dtype=np.float32)
    result, kept = run("aten::native_dropout", x, 0.5, True)
    assert kept.dtype == np.bool_
    np.testing.assert_allclose(result, np.where(kept, x * 2, 0))
    assert 400 < kept.sum() < 600  # a deviation of sqrt(250) = 16
    for params in ((0.5, False), (0.0, True)):
        result, kept = run("aten::native_dropout", x, *params)
        np.testing.assert_array_equal(result, x)
        assert kept.all()
    result, kept = run("aten::native_dropout", x, 1.0, None)
    assert not result.any()
    assert not kept.any()


def test_operands_may_tell(run):
    """Below its usual level of optimisation pnnx gives the parameters as operands."""
    x = np.ones(1000, "f4")
    names = ("input", "p", "training")
    assert (run("F.dropout", x, 0.5, False, names=names) == 1).all()
    assert set(run("F.dropout", x, 0.5, True, names=names)) == {0, 2}


@pytest.mark.parametrize(
    ("constants", "random"),
    [
        ({}, True),
        ({2: True}, True),
        ({2: False}, False),
        ({1: 0.0}, False),
        ({1: 0.1, 2: True}, True),
    ],
    ids=str,
)
def test_constants_of_the_file_settle_whether_it_is_random(constants, random):
    names = ("input", "p", "training")
    call = OperatorCall("op", "F.dropout", {}, input_names=names, constants=constants)
    assert bool(build_layer(call).generator) == random


@pytest.mark.parametrize(
    ("operator_type", "x", "p", "sentence"),
    [
        ("F.dropout", np.zeros(3, "f4"), 1.5, "p=1.5 is not a probability"),
        ("F.dropout", np.zeros(3, "f4"), -0.1, "p=-0.1 is not a probability"),
        ("F.dropout", np.zeros(3, "i8"), 0.5, "dropout gives floats; int64 cannot hold them"),
        ("F.alpha_dropout", np.zeros(3, "i8"), 0.5, "int64 cannot hold them"),
        ("F.dropout2d", np.zeros(3, "f4"), 0.5, "the input has 1 dimensions"),
    ],
)
def test_refusals(run, operator_type, x, p, sentence):
    with pytest.raises(LayerError, match=sentence):
        run(operator_type, x, p=p, training=True)


def test_wrong_parameter(run):
    with pytest.raises(ParameterError, match="parameter training is 'yes', not True or False"):
        run("F.dropout", np.zeros(2, "f4"), p=0.5, training="yes")


@pytest.mark.parametrize(
    ("operator_type", "function"),
    [
        ("F.dropout", "dropout"),
        ("F.dropout2d", "dropout2d"),
        ("F.alpha_dropout", "alpha_dropout"),
        ("F.feature_alpha_dropout", "feature_alpha_dropout"),
    ],
)
def test_same_distribution_as_pytorch(run, operator_type, function):
    """The values that come, and how many of each; which come where is chance."""
    torch = pytest.importorskip("torch")
    x = np.full((200, 100, 2, 2), 3, np.float32)
    ours = run(operator_type, x, p=0.3, training=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        theirs = getattr(torch.nn.functional, function)(
            torch.from_numpy(x), p=0.3, training=True
        )
    found, counts = np.unique(ours, return_counts=True)
    expected, wanted = np.unique(theirs.numpy(), return_counts=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # 20 000 channels: a deviation of sqrt(.21 / 20000) = .0032 on either side
    np.testing.assert_allclose(counts / ours.size, wanted / ours.size, atol=0.025)
