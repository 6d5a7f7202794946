"""Square matrices."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

A = np.array([[2, 1], [1, 3]], np.float32)
B = np.array([[4], [5]], np.float32)
UPPER = np.array([[8], [6]], np.float32)


@pytest.mark.parametrize(
    ("name", "operands", "params", "expected"),
    [
        ("torch.inverse", (A,), {}, [[0.6, -0.2], [-0.2, 0.4]]),
        ("torch.linalg.det", (A,), {}, 5),
        ("torch.linalg.solve", (A, A[:, 0] * 2), {}, [2, 0]),
        ("torch.linalg.solve", (A, A * 2), {}, [[2, 0], [0, 2]]),
        ("torch.linalg.solve", (A, A[:1]), {"left": False}, [[1, 0]]),
        # 2x = 4 and x + 3y = 5; then the other triangle, 3y = 6 and 2x + y = 8.
        ("torch.linalg.solve_triangular", (A, B), {"upper": False}, [[2], [1]]),
        ("torch.linalg.solve_triangular", (A, UPPER), {"upper": True}, [[3], [2]]),
        # x = 4 and x + y = 5, without the diagonal.
        (
            "torch.linalg.solve_triangular",
            (A, B),
            {"upper": False, "unitriangular": True},
            [[4], [1]],
        ),
        # (x y) @ [[2 0] [1 3]] = (4 6): 3y = 6 and 2x + y = 4.
        (
            "torch.linalg.solve_triangular",
            (A, np.array([[4, 6]], np.float32)),
            {"upper": False, "left": False},
            [[1, 2]],
        ),
        ("torch.linalg.cholesky", (A,), {}, [[2**0.5, 0], [0.5**0.5, 2.5**0.5]]),
        ("torch.linalg.cholesky", (A,), {"upper": True}, [[2**0.5, 0.5**0.5], [0, 2.5**0.5]]),
        ("torch.kron", (A[:1], A[:1]), {}, [[4, 2, 2, 1]]),
    ],
)
def test_by_hand(run, name, operands, params, expected):
    y = run(name, *operands, **params)
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-7)
    assert y.dtype == np.float32


def test_sign_and_logarithm(run):
    sign, logarithm = run("torch.slogdet", np.stack([A, A[::-1]]))
    np.testing.assert_array_equal(sign, [1, -1])
    np.testing.assert_allclose(logarithm, [np.log(5)] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "operands", "sentence"),
    [
        ("torch.inverse", (A * 0,), "a matrix is singular"),
        ("torch.inverse", (A[:1],), "input must hold square matrices; its shape is 1×2"),
        ("torch.det", (A.astype(int),), "input is int64, not floating-point"),
        ("torch.linalg.solve", (A * 0, A), "the equations have no solution"),
        ("torch.linalg.solve", (A, np.ones((3, 3), np.float32)), "shapes 2×2, 3×3 do not fit"),
        (
            "torch.linalg.solve_triangular",
            (A, np.ones((3, 3), np.float32), False),
            "shapes 2×2, 3×3 do not fit",
        ),
        ("torch.linalg.cholesky", (-A,), "not positive-definite"),
    ],
)
def test_refusals(run, name, operands, sentence):
    with pytest.raises(LayerError, match=sentence):
        run(name, *operands)


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "solve"])
def test_against_pytorch(run, name):
    torch = pytest.importorskip("torch")
    matrices = np.random.default_rng(2).standard_normal((3, 4, 4)).astype(np.float32)
    matrices = matrices @ matrices.swapaxes(1, 2) + np.eye(4, dtype=np.float32)
    operands = (matrices, matrices[:, :, :2]) if name == "solve" else (matrices,)
    expected = getattr(torch.linalg, name)(*map(torch.from_numpy, map(np.copy, operands)))
    found = run(f"torch.linalg.{name}", *operands)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles_against_pytorch(run, upper, left, unit):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    matrices = rng.uniform(-1, 1, (2, 1, 4, 4)).astype(np.float32) + 2 * np.eye(4, dtype="f")
    other = rng.standard_normal((3, 4, 5) if left else (3, 5, 4)).astype(np.float32)
    options = {"upper": upper, "left": left, "unitriangular": unit}
    expected = torch.linalg.solve_triangular(
        torch.from_numpy(matrices), torch.from_numpy(other), **options
    )
    found = run("torch.linalg.solve_triangular", matrices, other, **options)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)
    zero = matrices * 0
    expected = torch.linalg.solve_triangular(
        torch.from_numpy(zero), torch.from_numpy(other), **options
    )
    found = run("torch.linalg.solve_triangular", zero, other, **options)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected.numpy()))


@pytest.mark.parametrize(
    ("n", "expected"),
    [(0, [[1, 0], [0, 1]]), (1, [[1, 1], [0, 2]]), (3, [[1, 7], [0, 8]]),
     (-1, [[1, -0.5], [0, 0.5]])],
)  # fmt: skip
def test_matrix_power(run, n, expected):
    x = np.array([[1, 1], [0, 2]], np.float32)
    result = run("aten::linalg_matrix_power", x, n)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected)


def test_power_of_a_singular_matrix(run):
    with pytest.raises(LayerError, match="has no inverse"):
        run("aten::matrix_power", np.zeros((2, 2), np.float32), -1)


@pytest.mark.parametrize(
    ("order", "expected"),
    [("fro", np.sqrt(30)), ("nuc", np.sqrt(34)), (1, 6), (-1, 4), (np.inf, 7), (-np.inf, 3),
     (2, 5.4649857), (-2, 0.36596619)],
)  # fmt: skip
def test_matrix_norm(run, order, expected):
    x = np.array([[1, -2], [-3, 4]], np.float32)
    np.testing.assert_allclose(run("torch.linalg.matrix_norm", x, order), expected, rtol=1e-6)
    kept = run("aten::linalg_matrix_norm", x[np.newaxis], order, (-2, -1), True, None)
    assert kept.shape == (1, 1, 1)


def test_matrix_norm_of_no_matrix(run):
    with pytest.raises(LayerError, match="there is no norm of order 3 of matrices"):
        run("torch.linalg.matrix_norm", np.ones((2, 2), np.float32), 3)
    with pytest.raises(LayerError, match="dim has 1 numbers"):
        run("torch.linalg.matrix_norm", np.ones((2, 2), np.float32), dim=(0,))


def test_logdet(run):
    x = np.array([[[2, 0], [0, 3]], [[0, 1], [1, 0]], [[1, 1], [1, 1]]], np.float32)
    np.testing.assert_allclose(run("aten::logdet", x), [np.log(6), np.nan, -np.inf], rtol=1e-6)


@pytest.mark.parametrize("angle", [0.0, 0.5, 3.0, 40.0])
def test_matrix_exp_of_a_turn(run, angle):
    x = np.array([[0, -angle], [angle, 0]])
    cos, sin = np.cos(angle), np.sin(angle)
    result = run("torch.linalg.matrix_exp", x)
    np.testing.assert_allclose(result, [[cos, -sin], [sin, cos]], atol=1e-11)


def test_covariance(run):
    x = np.array([[1, 2, 3], [6, 4, 2]], np.float32)
    result = run("aten::cov", x)
    assert result.dtype == np.float32
    assert result.tolist() == [[1, -2], [-2, 4]]
    np.testing.assert_allclose(run("torch.cov", x, 0), np.array([[1, -2], [-2, 4]]) * 2 / 3)
    assert run("torch.cov", x[0]).item() == 1
    weighted = run("torch.cov", x, 1, np.array([2, 0, 1]))
    np.testing.assert_allclose(weighted, np.array([[4, -8], [-8, 16]]) / 3, rtol=1e-6)
    np.testing.assert_allclose(run("aten::corrcoef", x), [[1, -1], [-1, 1]])
    assert run("torch.corrcoef", x[0]).item() == 1
    with pytest.raises(LayerError, match="input has 3 dimensions, not 0 or 1 or 2"):
        run("torch.cov", np.ones((1, 1, 1)))


def test_logdet_of_complex_numbers(run):
    x = np.array([[2j, 0], [0, 3]], np.complex64)
    result = run("torch.logdet", x)
    assert result.dtype == np.complex64
    np.testing.assert_allclose(result, np.log(6) + 0.5j * np.pi, rtol=1e-6)


def test_covariance_of_halves_with_weights(run):
    result = run("torch.cov", np.float16([1, 3]), 0, None, np.float32([1, 3]))
    assert (result.item(), result.dtype) == (0.75, np.float32)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, 30**0.5),
        ({"ord": 1}, 6),
        ({"ord": "inf"}, 7),
        ({"ord": 1, "dim": 1}, [3, 7]),
        ({"ord": 0, "dim": -1, "keepdim": True}, [[2], [2]]),
        ({"dim": 0}, [10**0.5, 20**0.5]),
    ],
)
def test_norm_of_vectors_or_matrices(run, params, expected):
    result = run("torch.linalg.norm", np.float32([[1, -2], [3, 4]]), **params)
    np.testing.assert_allclose(result, np.float32(expected), rtol=1e-6, strict=True)


def test_no_norm_of_three_dimensions(run):
    with pytest.raises(LayerError, match="of order 1 is of one dimension or two, not 3"):
        run("aten::linalg_norm", np.ones((2, 2, 2), np.float32), 1)
