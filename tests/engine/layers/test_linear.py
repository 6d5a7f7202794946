"""Fully connected layers."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

WEIGHT = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
BIAS = np.array([10, 20], np.float32)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        pytest.param([1, 0, -1], [8, 18], id="vector"),
        pytest.param([[1, 0, -1], [1, 1, 1]], [[8, 18], [16, 35]], id="rows"),
        pytest.param([[[1, 1, 1]], [[0, 0, 2]]], [[[16, 35]], [[16, 32]]], id="batch-of-rows"),
    ],
)
def test_values(run, x, expected):
    x = np.array(x, np.float32)
    y = run(
        "nn.Linear",
        x,
        weights={"weight": WEIGHT, "bias": BIAS},
        bias=True,
        in_features=3,
        out_features=2,
    )
    np.testing.assert_array_equal(y, expected)
    assert y.dtype == np.float32
    names = ("input", "weight", "bias")
    np.testing.assert_array_equal(run("F.linear", x, WEIGHT, BIAS, names=names), expected)


def test_without_bias(run):
    x = np.ones((1, 3), np.float32)
    weights = {"weight": WEIGHT}
    np.testing.assert_array_equal(run("nn.Linear", x, weights=weights, bias=False), [[6, 15]])
    np.testing.assert_array_equal(run("F.linear", x, WEIGHT, bias=None), [[6, 15]])


def test_a_weight_with_one_row_less_dimension(run):
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(run("F.linear", x, WEIGHT[0]), np.full(4, 6))


@pytest.mark.parametrize("dtype", ["f2", "f8", "i8"])
def test_dtypes(run, dtype):
    y = run("nn.Linear", np.ones((2, 3), dtype), weights={"weight": WEIGHT.astype(dtype)})
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(y, [[6, 15], [6, 15]])


def test_empty_batch(run):
    assert run("nn.Linear", np.ones((0, 3), "f4"), weights={"weight": WEIGHT}).shape == (0, 2)


@pytest.mark.parametrize(
    ("params", "bias", "parameter", "reason"),
    [
        ({"in_features": 4}, BIAS, "in_features", "in_features=4, but the weight has 3"),
        ({"out_features": 4}, BIAS, "out_features", "out_features=4, but the weight has 2"),
        ({}, np.zeros(3, "f4"), "bias", "the bias has shape (3,), there are 2 outputs"),
    ],
)
def test_wrong_parameters(run, params, bias, parameter, reason):
    with pytest.raises(ParameterError) as caught:
        run("nn.Linear", names=("",), weights={"weight": WEIGHT, "bias": bias}, **params)
    assert (caught.value.parameter, caught.value.reason) == (parameter, reason)


def test_a_weight_that_is_no_matrix(run):
    with pytest.raises(ParameterError, match=r"a weight of shape \(3,\) is not a matrix"):
        run("nn.Linear", names=("",), weights={"weight": WEIGHT[0]})


def test_wrong_features(run):
    with pytest.raises(LayerError) as caught:
        run("nn.Linear", np.zeros((1, 4), "f4"), weights={"weight": WEIGHT})
    assert str(caught.value) == "the input's last axis has size 4, the weight takes 3"


def test_the_model_of_the_course(run, shared):
    """Linear then sigmoid, with the weights of the course's own file."""
    engine = pytest.importorskip("engine")
    graph = engine.load(shared / "models" / "test_linear.pnnx.param")
    session = engine.Session(graph, backend="numpy")
    linear = next(op for op in graph.operators if op.type == "nn.Linear")
    x = np.random.default_rng(7).random((1, 32), dtype=np.float32)
    session.feed([x])
    session.run()
    weight = np.asarray(linear.attributes["weight"])
    total = [sum(float(w) * float(v) for w, v in zip(row, x[0], strict=True)) for row in weight]
    expected = 1 / (1 + np.exp(-(np.array(total) + np.asarray(linear.attributes["bias"]))))
    np.testing.assert_allclose(session.outputs()[0][0], expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 3, 5), (2, 1, 3, 5)])
def test_against_pytorch(run, shape):
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(5, 7)
    x = np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(
        run("nn.Linear", x, weights=weights), expected, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(("bias", "expected"), [(None, [[5, 10]]), ([1, -1], [[6, 9]])])
def test_bilinear(run, bias, expected):
    weight = np.stack([np.eye(2), 2 * np.eye(2)]).astype(np.float32)
    x, y = np.array([[1, 2]], np.float32), np.array([[1, 2]], np.float32)
    added = None if bias is None else np.array(bias, np.float32)
    result = run("aten::bilinear", x, y, weight, added)
    assert result.dtype == np.float32
    assert result.tolist() == expected
    weights = {"weight": weight} if bias is None else {"weight": weight, "bias": added}
    sizes = {"in1_features": 2, "in2_features": 2, "out_features": 2}
    assert run("nn.Bilinear", x, y, weights=weights, **sizes).tolist() == expected


def test_bilinear_of_other_sizes(run):
    x, weight = np.ones((1, 2), np.float32), np.ones((1, 3, 2), np.float32)
    with pytest.raises(LayerError, match="shapes 1×2, 1×2, 1×3×2 do not fit"):
        run("aten::bilinear", x, x, weight, None)
