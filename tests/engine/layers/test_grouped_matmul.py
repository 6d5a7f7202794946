"""Products by groups, against a loop over rows and columns."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError
from engine.layers.grouped_matmul import grouped_mm

A = np.arange(24, dtype=np.float32).reshape(6, 4) - 9
B = (np.arange(24, dtype=np.float32).reshape(3, 4, 2) % 7) - 2
ENDS = np.array([1, 1, 5], np.int32)  # the second group is empty, and a row belongs to none


def test_rows_go_to_the_matrix_of_their_group():
    expected = np.zeros((6, 2), np.float32)
    for row, group in [(0, 0), (1, 2), (2, 2), (3, 2), (4, 2)]:
        for column in range(2):
            expected[row, column] = sum(A[row, k] * B[group, k, column] for k in range(4))
    result = grouped_mm(A, B, ENDS)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, expected)


def test_ends_may_have_lost_their_dtype():
    """An export of Mixtral states integers for a sum of counts, but computes floats."""
    whole = ENDS.astype(np.float32)
    np.testing.assert_array_equal(grouped_mm(A, B, whole), grouped_mm(A, B, ENDS))


def test_columns_go_to_the_matrix_of_their_group():
    left, right = B.transpose(0, 2, 1), A.T
    expected = np.zeros((2, 6), np.float32)
    for column, group in [(0, 0), (1, 2), (2, 2), (3, 2), (4, 2)]:
        for row in range(2):
            expected[row, column] = sum(
                left[group, row, k] * right[k, column] for k in range(4)
            )
    np.testing.assert_array_equal(grouped_mm(left, right, ENDS), expected)


def test_two_matrices_are_cut_along_what_is_summed():
    left, right = A.T, A[:, :3]
    expected = np.zeros((3, 4, 3), np.float32)
    for k, group in [(0, 0), (1, 2), (2, 2), (3, 2), (4, 2)]:
        for row in range(4):
            for column in range(3):
                expected[group, row, column] += left[row, k] * right[k, column]
    np.testing.assert_array_equal(grouped_mm(left, right, ENDS), expected)


def test_without_a_cut_matrices_go_in_pairs():
    left = np.stack([A[:2], A[2:4], A[4:]])
    expected = [[[sum(r * c for r, c in zip(row, column, strict=True)) for column in b.T]
                 for row in a] for a, b in zip(left, B, strict=True)]  # fmt: skip
    np.testing.assert_array_equal(grouped_mm(left, B), expected)


@pytest.mark.parametrize(
    ("a", "b", "offs", "reason"),
    [
        (A, B, None, "offs is missing"),
        (B.transpose(0, 2, 1), B, ENDS, "no matrix to split"),
        (A, B, ENDS[:2], "cannot be multiplied by groups"),
        (A[:, :3], B, ENDS, "cannot be multiplied by groups"),
        (A, B, np.array([1, 0, 5]), "ascend from 0 to at most 6"),
        (A, B, np.array([1, 2, 7]), "ascend from 0 to at most 6"),
        (A, B, np.array([1.0, 1.5, 3.0]), "float64, and is not of whole numbers"),
        (A, B, np.array([1.0, np.nan, 3.0]), "float64, and is not of whole numbers"),
        (A, B, np.array([1.0, 2.0, np.inf]), "float64, and is not of whole numbers"),
        (A, B, np.array([True, True, True]), "bool, and is not of whole numbers"),
    ],
)
def test_what_does_not_fit_is_refused(a, b, offs, reason):
    with pytest.raises(LayerError, match=reason):
        grouped_mm(a, b, offs)


def test_a_bias_is_refused():
    with pytest.raises(LayerError, match="bias"):
        grouped_mm(A, B, ENDS, np.zeros(2, np.float32))
