"""Look-up tables."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError, ParseParameterAttrStatus

TABLE = np.array([[1, 2], [3, 4], [0.6, 0.8]], np.float32)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        (np.array([2, 0]), [[0.6, 0.8], [1, 2]]),
        (np.array([[1], [1]]), [[[3, 4]], [[3, 4]]]),
        (np.array(1, np.int32), [3, 4]),
        (np.zeros((0, 3), np.int64), np.zeros((0, 3, 2))),
    ],
)
def test_rows(run, indices, expected):
    more = {"num_embeddings": 3, "embedding_dim": 2, "sparse": False, "padding_idx": 0}
    result = run("nn.Embedding", indices, weights={"weight": TABLE}, **more)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, np.array(expected, np.float32))
    np.testing.assert_array_equal(run("F.embedding", indices, TABLE), result)


def test_longer_rows_are_shortened(run):
    result = run("F.embedding", np.array([1, 2]), TABLE, max_norm=1.0)
    np.testing.assert_allclose(result, [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)
    result = run("F.embedding", np.array([1, 2]), TABLE, max_norm=3.5, norm_type=1.0)
    np.testing.assert_allclose(result, [[1.5, 2.0], [0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("indices", "reason"),
    [
        (np.array([0, 3]), "indices run from 0 to 3, the table has 3 rows"),
        (np.array([-1]), "indices run from -1 to -1"),
        (np.array([0.0]), "dtype float64, not an integer one"),
    ],
)
def test_wrong_indices(run, indices, reason):
    with pytest.raises(LayerError, match=reason):
        run("F.embedding", indices, TABLE)


def test_without_a_table(run):
    with pytest.raises(ParameterError) as caught:
        run("nn.Embedding", np.array([0]))
    assert caught.value.status is ParseParameterAttrStatus.kAttrMissingWeight
