"""Matrix products, against sums written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.errors import InferStatus, LayerError

A = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
B = np.array([[1, 0, 2], [-1, 1, 0]], np.float32)


def multiplied(a, b):
    """Product of two matrices, term by term."""
    result = [[0.0] * b.shape[1] for _ in range(a.shape[0])]
    for i, j, k in itertools.product(range(a.shape[0]), range(b.shape[1]), range(a.shape[1])):
        result[i][j] += float(a[i, k]) * float(b[k, j])
    return np.array(result)


def test_by_hand(run):
    expected = [[-1, 2, 2], [-1, 4, 6], [-1, 6, 10]]
    for operator_type in ("torch.matmul", "torch.mm", "Tensor.matmul"):
        result = run(operator_type, A, B)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(A[0], B, [-1, 2, 2], id="row times matrix"),
        pytest.param(A, B[:, 0], [-1, -1, -1], id="matrix times column"),
        pytest.param(A[0], A[1], 11, id="vectors"),
        pytest.param(A[:, :0], B[:0], np.zeros((3, 3)), id="nothing to add up"),
    ],
)
def test_vectors(run, left, right, expected):
    np.testing.assert_array_equal(run("torch.matmul", left, right), expected)


def test_batches_are_broadcast(run):
    rng = np.random.default_rng(5)
    a, b = rng.integers(-5, 5, (2, 1, 3, 4)), rng.integers(-5, 5, (6, 4, 2))
    result = run("torch.matmul", a, b)
    assert result.shape == (2, 6, 3, 2)
    assert result.dtype == np.int64
    for i, j in np.ndindex(2, 6):
        np.testing.assert_array_equal(result[i, j], multiplied(a[i, 0], b[j]))


def test_bmm(run):
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4, 5))
    result = run("torch.bmm", a, b)
    for i in range(2):
        np.testing.assert_allclose(result[i], multiplied(a[i], b[i]))


def test_halves_are_added_up_in_single_precision(run):
    ones = np.ones((1, 4096), np.float16)
    result = run("torch.mm", ones, ones.T)
    assert result.dtype == np.float16
    assert result == 4096


def test_different_dtypes_are_promoted(run):
    assert run("torch.mm", A, B.astype(np.float64)).dtype == np.float64


def test_vector_products(run):
    np.testing.assert_array_equal(run("torch.mv", A, B[:, 2]), [2, 6, 10])
    np.testing.assert_array_equal(run("torch.dot", A[0], A[1]), 11)
    np.testing.assert_array_equal(run("torch.outer", A[0], B[0]), [[1, 0, 2], [2, 0, 4]])


@pytest.mark.parametrize(
    ("beta", "alpha", "expected"),
    [
        (1, 1, [[9, 22, 32], [9, 24, 36], [9, 26, 40]]),
        (0.5, 2, [[3, 14, 19], [3, 18, 27], [3, 22, 35]]),
        (0, 1, [[-1, 2, 2], [-1, 4, 6], [-1, 6, 10]]),
    ],
)
def test_addmm(run, beta, alpha, expected):
    added = np.array([10, 20, 30], np.float32)
    result = run("torch.addmm", added, A, B, beta=beta, alpha=alpha)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, expected)


def test_addmm_does_not_look_at_what_is_times_zero(run):
    nan = np.full((3, 3), np.nan, np.float32)
    assert np.isfinite(run("torch.addmm", nan, A, B, beta=0)).all()


def test_addmm_by_names(run):
    operands = (B, np.zeros(3, np.float32), A)
    result = run("torch.addmm", *operands, names=("mat2", "input", "mat1"), beta=1, alpha=1)
    np.testing.assert_array_equal(result, multiplied(A, B))


def test_baddbmm_and_addmv(run):
    result = run("torch.baddbmm", np.ones((1, 3, 3)), A[None], B[None], beta=2, alpha=-1)
    np.testing.assert_array_equal(result, 2 - multiplied(A, B)[None])
    np.testing.assert_array_equal(run("torch.addmv", np.ones(3), A, B[:, 0]), [0, 0, 0])


@pytest.mark.parametrize(
    ("operator_type", "operands"),
    [
        ("torch.matmul", (A, A)),
        ("torch.mm", (A, B[:, 0])),
        ("torch.mm", (A[None], B[None])),
        ("torch.bmm", (A, B)),
        ("torch.bmm", (A[None], np.stack([B, B]))),
        ("torch.mv", (A, B)),
        ("torch.dot", (A, A)),
        ("torch.dot", (A[0], B[0])),
        ("torch.addmm", (np.zeros(2), A, B)),
        ("torch.addmm", (np.zeros((2, 3, 3)), A, B)),
    ],
)
def test_shapes_that_do_not_fit(run, operator_type, operands):
    with pytest.raises(LayerError) as caught:
        run(operator_type, *operands)
    assert caught.value.status is InferStatus.kInferArraySizeMismatch


@pytest.mark.parametrize(
    ("equation", "operands", "expected"),
    [
        ("ij,jk->ik", (A, B), [[-1, 2, 2], [-1, 4, 6], [-1, 6, 10]]),
        ("ij,jk", (A, B), [[-1, 2, 2], [-1, 4, 6], [-1, 6, 10]]),
        ("ji", (A,), [[1, 3, 5], [2, 4, 6]]),
        ("ij->", (A,), 21),
        ("ij->i", (A,), [3, 7, 11]),
        ("ii", (A[:2],), 5),
        ("ii->i", (A[:2],), [1, 4]),
        ("i,j->ij", (A[0], A[1]), [[3, 4], [6, 8]]),
        ("...i,...i->...", (A, A), [5, 25, 61]),
        ("ik,kl,l->i", (A, B, np.ones(3, np.float32)), [3, 9, 15]),
    ],
)
def test_einsum(run, equation, operands, expected):
    result = run("torch.einsum", *operands, equation=equation)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(run("torch.einsum", operands, equation=equation), expected)


def test_einsum_as_torchscript_calls_it(run):
    for path in ((), (None,)):
        result = run("torch.einsum", "ij->j", (A,), *path)
        np.testing.assert_array_equal(result, [9, 12])
    with pytest.raises(LayerError, match="there is no equation"):
        run("torch.einsum", A, B)


def test_einsum_that_does_not_fit(run):
    with pytest.raises(LayerError, match="equation ij,ij->ij does not fit shapes 3×2, 2×3"):
        run("torch.einsum", A, B, equation="ij,ij->ij")


SQUARE = np.array([[1, 2], [3, 4]], np.float32)
TWICE = np.stack([SQUARE, SQUARE])


@pytest.mark.parametrize(
    ("operator_type", "operands", "expected"),
    [
        ("inner", (SQUARE, SQUARE), [[5, 11], [11, 25]]),
        ("inner", (SQUARE[0], SQUARE), [5, 11]),
        ("inner", (SQUARE, np.float32(2)), [[2, 4], [6, 8]]),
        ("vdot", (np.array([1j, 2]), np.array([3, 1j])), -1j),
        ("vdot", (SQUARE[0], SQUARE[1]), 11),
        ("linalg_vecdot", (SQUARE, SQUARE[0], 0), [4, 12]),
        ("linalg_vecdot", (np.array([1j, 2]), np.array([3, 1j]), -1), -1j),
        ("tensordot", (SQUARE, SQUARE, (1,), (0,)), [[7, 10], [15, 22]]),
        ("tensordot", (SQUARE, SQUARE, (0, 1), (1, 0)), 29),
        ("tensordot", (SQUARE, SQUARE, (), ()), np.multiply.outer(SQUARE, SQUARE)),
        ("tensordot", (SQUARE[:, :1], SQUARE, (1,), (0,)), [[4, 6], [12, 18]]),
        ("chain_matmul", ((SQUARE, SQUARE, SQUARE),), [[37, 54], [81, 118]]),
        ("linalg_multi_dot", ((SQUARE[0], SQUARE, SQUARE[0]),), 27),
        ("addbmm", (SQUARE, TWICE, TWICE, 2, 0.5), [[9, 14], [21, 30]]),
        ("addr", (SQUARE, SQUARE[0], SQUARE[1], 1, 2), [[7, 10], [15, 20]]),
        ("ger", (SQUARE[0], SQUARE[1]), [[3, 4], [6, 8]]),
    ],
)
def test_other_products(run, operator_type, operands, expected):
    operands = tuple(np.asarray(o) if isinstance(o, np.generic) else o for o in operands)
    np.testing.assert_array_equal(run(f"aten::{operator_type}", *operands), expected)


def test_tensordot_of_other_sizes(run):
    with pytest.raises(LayerError, match="shapes 2×2, 3×2 do not fit"):
        run("aten::tensordot", SQUARE, np.ones((3, 2), np.float32), (1,), (0,))
    with pytest.raises(LayerError, match="are not equally many"):
        run("aten::tensordot", SQUARE, SQUARE, (0, 1), (0,))
