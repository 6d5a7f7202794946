"""Complex numbers made and taken apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

Z = np.array([[3 + 4j, -1j], [-2, 0]], np.complex64)


@pytest.mark.parametrize(("dtype", "expected"), [("f4", "c8"), ("f8", "c16")])
def test_of_parts(run, dtype, expected):
    real, imag = np.array([1, 2], dtype), np.array([[3], [4]], dtype)
    result = run("torch.complex", real, imag)
    assert result.dtype == expected
    assert result.tolist() == [[1 + 3j, 2 + 3j], [1 + 4j, 2 + 4j]]
    turned = run("torch.polar", np.array([2.0], dtype), np.array([math.pi / 2], dtype))
    np.testing.assert_allclose(turned, [2j], atol=1e-6)


def test_parts(run):
    assert run("torch.real", Z).tolist() == [[3, 0], [-2, 0]]
    assert run("torch.imag", Z).tolist() == [[4, -1], [0, 0]]
    assert run("torch.conj", Z).tolist() == [[3 - 4j, 1j], [-2, 0]]
    np.testing.assert_allclose(
        run("torch.angle", Z), [[math.atan2(4, 3), -math.pi / 2], [math.pi, 0]], rtol=1e-6
    )


def test_real_numbers(run):
    x = np.array([1.5, -2, math.nan], np.float32)
    np.testing.assert_array_equal(run("torch.real", x), x)
    np.testing.assert_array_equal(run("torch.conj", x), x)
    np.testing.assert_allclose(run("torch.angle", x), [0, math.pi, math.nan], rtol=1e-6)


@pytest.mark.parametrize("moved", [False, True])
def test_as_pairs_and_back(run, moved):
    z = Z.T if moved else Z
    pairs = run("torch.view_as_real", z)
    assert pairs.dtype == np.float32
    assert pairs[0, 0].tolist() == [3, 4]
    np.testing.assert_array_equal(pairs[..., 1], z.imag)
    np.testing.assert_array_equal(run("torch.view_as_complex", pairs), z)


@pytest.mark.parametrize(
    ("operator_type", "x", "reason"),
    [
        ("torch.imag", np.ones(2), "float64 is not complex"),
        ("torch.view_as_real", np.ones(2), "float64 is not complex"),
        ("torch.view_as_complex", np.ones((2, 3)), "of shape 2×3 holds no pairs"),
        ("torch.view_as_complex", np.ones((2, 2), int), "int64 of shape 2×2 holds no pairs"),
        ("torch.view_as_complex", np.array(1.0), "of shape scalar holds no pairs"),
    ],
)
def test_what_is_not_complex(run, operator_type, x, reason):
    with pytest.raises(LayerError, match=reason):
        run(operator_type, x)


@pytest.mark.parametrize("name", ["torch.conj", "aten::_conj", "torch.conj_physical"])
def test_conjugates(run, name):
    assert run(name, np.array([1 + 2j, -3j])).tolist() == [1 - 2j, 3j]


@pytest.mark.parametrize("name", ["torch.resolve_conj", "torch.resolve_neg"])
def test_nothing_is_put_off(run, name):
    assert run(name, np.array([1 + 2j, -3j])).tolist() == [1 + 2j, -3j]
