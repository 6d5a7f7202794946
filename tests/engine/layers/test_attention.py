"""Scaled dot-product attention."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError
from engine.layers import OperatorCall, attention, build_layer

SDPA = "F.scaled_dot_product_attention"


def some(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def slow(query, key, value, allowed, added, scale):
    """Attention of one head, number by number."""
    result = np.zeros((len(query), value.shape[1]))
    for row, q in enumerate(query):
        scores = [
            sum(float(a) * float(b) for a, b in zip(q, k, strict=True)) * scale + added[row][i]
            for i, k in enumerate(key)
        ]
        shares = [math.exp(s) if allowed[row][i] else 0.0 for i, s in enumerate(scores)]
        total = sum(shares)
        for share, v in zip(shares, value, strict=True):
            result[row] += (share / total if total else 0.0) * v
    return result


@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("kind", ["none", "bool", "float", "causal"])
def test_values(run, kind, scale):
    query, key, value = some(1, 2, 3, 5, 4), some(2, 2, 3, 6, 4), some(3, 2, 3, 6, 7)
    allowed, added = np.ones((5, 6), bool), np.zeros((5, 6), np.float32)
    operands, params = [query, key, value], {"dropout_p": 0.0, "is_causal": kind == "causal"}
    if kind == "bool":
        allowed = np.random.default_rng(4).random((5, 6)) < 0.6
        operands.append(allowed)
    elif kind == "float":
        added = some(5, 5, 6)
        operands.append(added)
    elif kind == "causal":
        allowed = np.array([[column <= row for column in range(6)] for row in range(5)])
    if scale is not None:
        params["scale"] = scale
    y = run(SDPA, *operands, **params)
    assert y.shape == (2, 3, 5, 7)
    assert y.dtype == np.float32
    for place in np.ndindex(2, 3):
        expected = slow(query[place], key[place], value[place], allowed, added, scale or 0.5)
        np.testing.assert_allclose(y[place], expected, rtol=1e-5, atol=1e-6)


def test_by_hand(run):
    # Scores ln 3 and 0: the shares are 3/4 and 1/4.
    query = np.array([[math.log(3.0)]], np.float32)
    key = np.array([[1.0], [0.0]], np.float32)
    value = np.array([[4.0, 0.0], [0.0, 8.0]], np.float32)
    np.testing.assert_allclose(run(SDPA, query, key, value), [[3.0, 2.0]], rtol=1e-6)


def test_a_query_that_sees_nothing_is_zero(run):
    x = some(1, 3, 4)
    mask = np.array([[True] * 3, [False] * 3, [True] * 3])
    y = run(SDPA, x, x, x, mask)
    np.testing.assert_array_equal(y[1], np.zeros(4))
    assert np.all(y[[0, 2]] != 0)
    np.testing.assert_array_equal(y, run(SDPA, x, x, x, np.where(mask, 0, -np.inf)))


def test_shared_heads(run):
    query, key, value = some(1, 2, 6, 5, 4), some(2, 2, 2, 7, 4), some(3, 2, 2, 7, 4)
    y = run(SDPA, query, key, value, enable_gqa=True)
    for head in range(6):
        one = run(SDPA, query[:, head], key[:, head // 3], value[:, head // 3])
        np.testing.assert_allclose(y[:, head], one, rtol=1e-6)


def test_runs_of_queries_make_no_difference(run, monkeypatch):
    query, key, mask = some(1, 2, 9, 4), some(2, 2, 8, 4), some(3, 1, 9, 8)
    whole = run(SDPA, query, key, key, mask)
    monkeypatch.setattr(attention, "_SCORE_BYTES", 200)
    np.testing.assert_allclose(run(SDPA, query, key, key, mask), whole, rtol=1e-6)


def test_halves_are_computed_in_single_precision(run):
    x = some(1, 5, 4).astype(np.float16)
    y = run(SDPA, x, x, x)
    assert y.dtype == np.float16
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(y, run(SDPA, wide, wide, wide).astype(np.float16))


@pytest.mark.parametrize(
    ("shapes", "params", "sentence"),
    [
        ([(3, 4), (5, 3), (5, 4)], {}, "query, key and value do not fit: their shapes are 3×4"),
        ([(2, 3, 4), (3, 5, 4), (3, 5, 4)], {}, "query, key and value do not fit"),
        ([(3, 4), (5, 4), (5, 4), (3, 4)], {}, "a mask of shape 3×4 does not fit the scores"),
        ([(5, 3, 4), (2, 3, 4), (2, 3, 4)], {"enable_gqa": True}, "2 heads of keys and values"),
        ([(3, 4)] * 3, {"dropout_p": 1.5}, "dropout_p=1.5 is not a probability"),
        ([(3, 4)] * 3 + [(3, 3)], {"is_causal": True}, "exclude each other"),
    ],
)
def test_refusals(run, shapes, params, sentence):
    with pytest.raises(LayerError, match=sentence):
        run(SDPA, *(np.ones(shape, np.float32) for shape in shapes), **params)


@pytest.mark.parametrize("seed", range(12))
def test_against_pytorch(run, seed):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    rows, columns, size = (int(n) for n in rng.integers(1, 9, 3))
    heads = int(rng.integers(1, 3)) * 2
    shared = bool(rng.integers(2))
    query = some(seed, 2, heads, rows, size)
    key = some(seed + 100, 2, 2 if shared else heads, columns, size)
    value = some(seed + 200, 2, 2 if shared else heads, columns, 5)
    params = {"enable_gqa": shared, "is_causal": seed % 4 == 0}
    mask = [None, None, some(seed, rows, columns), some(seed, 2, 1, rows, columns) > 0][
        seed % 4
    ]
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(x) for x in (query, key, value)),
        None if mask is None else torch.from_numpy(mask),
        **params,
    )
    operands = [query, key, value] if mask is None else [query, key, value, mask]
    y = run(SDPA, *operands, **params)
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-5, atol=1e-6)


class TestDropout:
    """Values are unit vectors, so that the result shows the weights themselves."""

    SCORES = np.zeros((1, 8, 50, 4), np.float32)  # every query sees every key alike
    UNITS = np.broadcast_to(np.eye(40, dtype=np.float32), (1, 8, 40, 40))
    KEYS = np.zeros((1, 8, 40, 4), np.float32)

    def test_weights_are_dropped_one_by_one(self, run):
        result = run(SDPA, self.SCORES, self.KEYS, self.UNITS, dropout_p=0.2)
        np.testing.assert_allclose(np.unique(result), [0, 1 / 40 / 0.8], rtol=1e-5)
        # 16 000 weights: a deviation of sqrt(.16 / 16000) = .0032
        assert abs((result > 0).mean() - 0.8) < 0.016
        assert len(np.unique((result > 0).sum(-1))) > 3

    def test_dropping_all(self, run):
        result = run(SDPA, self.SCORES, self.KEYS, self.UNITS, dropout_p=1.0)
        assert not result.any()

    def test_runs_of_queries_do_not_share_their_chance(self, run, monkeypatch):
        monkeypatch.setattr("engine.layers.attention._SCORE_BYTES", 8 * 40 * 4 * 10)
        result = run(SDPA, self.SCORES, self.KEYS, self.UNITS, dropout_p=0.5)
        kept = result > 0
        assert not (kept[:, :, :10] == kept[:, :, 10:20]).all()

    def test_it_is_random_only_with_dropout(self):
        def layer(p):
            return build_layer(OperatorCall("op", SDPA, {"dropout_p": p}, {}, ("",) * 3))

        assert layer(0.1).generator
        assert not layer(0.0).generator
