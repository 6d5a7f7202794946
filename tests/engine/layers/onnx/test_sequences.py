"""ONNX's recurrent layers, attention and signals; its package's cases cover the rest."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers import OperatorCall, build_layer


def compute(operator_type, *operands, outputs=1, shapes=(), **params):
    call = OperatorCall(
        "op", operator_type, params, {}, ("",) * len(operands), outputs, output_shapes=shapes
    )
    with np.errstate(all="ignore"):
        return build_layer(call).forward(*operands)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


X = np.float32([[[1]], [[2]], [[3]]])  # three steps of one sample with one feature


def weights(gates, directions=1):
    w = np.arange(1, gates + 1, dtype=np.float32).reshape(1, gates, 1) / 10
    return np.repeat(w, directions, 0), np.repeat(w * 2, directions, 0)


def plain(xs, h=0.0, w=0.1, r=0.2):
    hs = []
    for x in xs:
        h = np.tanh(w * x + r * h)
        hs.append(h)
    return hs


def gru(xs, before, h=0.0):
    (wz, wr, wh), (rz, rr, rh) = (0.1, 0.2, 0.3), (0.2, 0.4, 0.6)
    hs = []
    for x in xs:
        z, r = sigmoid(wz * x + rz * h), sigmoid(wr * x + rr * h)
        inner = r * (rh * h) if before else (r * h) * rh
        h = (1 - z) * np.tanh(wh * x + inner) + z * h
        hs.append(h)
    return hs


def lstm(xs, peep=(0, 0, 0), h=0.0, c=0.0, coupled=False):
    wi, wo, wf, wc = 0.1, 0.2, 0.3, 0.4
    hs, cs = [], []
    for x in xs:
        i = sigmoid(wi * x + 2 * wi * h + peep[0] * c)
        f = 1 - i if coupled else sigmoid(wf * x + 2 * wf * h + peep[2] * c)
        c = f * c + i * np.tanh(wc * x + 2 * wc * h)
        h = sigmoid(wo * x + 2 * wo * h + peep[1] * c) * np.tanh(c)
        hs.append(h)
        cs.append(c)
    return hs, cs


def test_rnn():
    result = compute("RNN", X, *weights(1), hidden_size=1)
    np.testing.assert_allclose(result[0].ravel(), plain([1, 2, 3]), rtol=1e-6)
    np.testing.assert_allclose(result[1].ravel(), plain([1, 2, 3])[-1:], rtol=1e-6)
    assert [part.shape for part in result] == [(3, 1, 1, 1), (1, 1, 1)]


def test_directions():
    backwards = plain([3, 2, 1])[::-1]
    alone = compute("RNN", X, *weights(1), direction="reverse")
    np.testing.assert_allclose(alone[0].ravel(), backwards, rtol=1e-6)
    both = compute("RNN", X, *weights(1, 2), direction="bidirectional")
    np.testing.assert_allclose(both[0][:, 0].ravel(), plain([1, 2, 3]), rtol=1e-6)
    np.testing.assert_allclose(both[0][:, 1].ravel(), backwards, rtol=1e-6)
    np.testing.assert_allclose(both[1].ravel(), [plain([1, 2, 3])[-1], backwards[0]], rtol=1e-6)


def test_lengths_biases_and_states():
    x = np.repeat(X, 2, 1)
    bias = np.float32([[0.5, 0.25]])
    lengths, begin = np.array([3, 1], np.int32), np.float32([[[0], [0.5]]])
    y, last = compute("RNN", x, *weights(1), bias, lengths, begin)
    first = plain(np.array([1, 2, 3]) + 7.5)  # 0.75 / 0.1
    second = np.tanh(0.1 * 1 + 0.2 * 0.5 + 0.75)
    np.testing.assert_allclose(y[:, 0, 0, 0], first, rtol=1e-6)
    np.testing.assert_allclose(y[:, 0, 1, 0], [second, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(last[0, :, 0], [first[-1], second], rtol=1e-6)


def test_the_last_state_alone_is_told_by_its_rank():
    last = compute("GRU", X, *weights(3), shapes=((1, 1, 1),))[0]
    np.testing.assert_allclose(last.ravel(), gru([1, 2, 3], before=False)[-1:], rtol=1e-6)


def test_layout():
    y, last = compute("RNN", X.swapaxes(0, 1), *weights(1), layout=1)
    assert (y.shape, last.shape) == ((1, 3, 1, 1), (1, 1, 1))
    np.testing.assert_allclose(y.ravel(), plain([1, 2, 3]), rtol=1e-6)


@pytest.mark.parametrize("before", [0, 1])
def test_gru(before):
    y = compute("GRU", X, *weights(3), linear_before_reset=before)[0]
    np.testing.assert_allclose(y.ravel(), gru([1, 2, 3], before), rtol=1e-6)


def test_lstm():
    y, h, c = compute("LSTM", X, *weights(4), outputs=3)
    hs, cs = lstm([1, 2, 3])
    np.testing.assert_allclose(y.ravel(), hs, rtol=1e-6)
    np.testing.assert_allclose([h.item(), c.item()], [hs[-1], cs[-1]], rtol=1e-6)


def test_lstm_with_peepholes_and_states():
    begin = np.float32([[[0.5]]])
    peep = np.float32([[0.1, 0.2, 0.3]])
    bias = np.zeros((1, 8), np.float32)
    y = compute("LSTM", X, *weights(4), bias, begin, begin * 2, peep)[0]
    expected, _ = lstm([1, 2, 3], (0.1, 0.2, 0.3), 0.5, 1.0)
    np.testing.assert_allclose(y.ravel(), expected, rtol=1e-6)


def test_what_enters_is_what_is_forgotten():
    y = compute("LSTM", X, *weights(4), input_forget=1)[0]
    np.testing.assert_allclose(y.ravel(), lstm([1, 2, 3], coupled=True)[0], rtol=1e-6)


def test_functions_with_numbers():
    w, r = weights(1)
    y = compute("RNN", X, w, r * 0, activations=("Affine",), activation_alpha=(2.0,),
                activation_beta=(1.0,))[0]  # fmt: skip
    np.testing.assert_allclose(y.ravel(), [1.2, 1.4, 1.6], rtol=1e-6)
    clipped = compute("RNN", X, w * 10, r * 0, activations="Relu", clip=1.5)[0]
    np.testing.assert_allclose(clipped.ravel(), [1, 1.5, 1.5], rtol=1e-6)


def test_recurrent_layers_that_cannot_be():
    with pytest.raises((LayerError, ParameterError), match="activation Sinus is not known"):
        compute("RNN", X, *weights(1), activations=("Sinus",))
    with pytest.raises(LayerError, match="weights of shapes 1×1×1, 1×3×1 do not fit"):
        compute("RNN", X, weights(1)[0], weights(3)[0])
    with pytest.raises(LayerError, match="input and weights are needed"):
        compute("RNN", X)


# Attention

RNG = np.random.default_rng(3)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def attended(q, k, v, added=0.0, scale=None):
    """One head."""
    scores = q @ k.T * (1 / np.sqrt(q.shape[-1]) if scale is None else scale) + added
    shares = np.exp(scores)
    shares /= shares.sum(-1, keepdims=True)
    return shares @ v, scores, shares


def test_attention_of_shared_heads():
    q, k, v = some(1, 4, 3, 2), some(1, 2, 5, 2), some(1, 2, 5, 6)
    result, key, value, _ = compute("Attention", q, k, v, outputs=4)
    for head in range(4):
        expected, _, _ = attended(q[0, head], k[0, head // 2], v[0, head // 2])
        np.testing.assert_allclose(result[0, head], expected, rtol=1e-5)
    np.testing.assert_array_equal(key, k)
    np.testing.assert_array_equal(value, v)


def test_attention_of_three_dimensions():
    q, k, v = some(2, 3, 8), some(2, 5, 8), some(2, 5, 12)
    result = compute("Attention", q, k, v, q_num_heads=4, kv_num_heads=4, scale=0.5)[0]
    assert result.shape == (2, 3, 12)
    expected, _, _ = attended(q[1, :, 2:4], k[1, :, 2:4], v[1, :, 3:6], scale=0.5)
    np.testing.assert_allclose(result[1, :, 3:6], expected, rtol=1e-5)


def test_attention_that_looks_back():
    q, k, v = (some(1, 1, 3, 2) for _ in range(3))
    past_key, past_value = some(1, 1, 2, 2), some(1, 1, 2, 2)
    result, key, *_ = compute(
        "Attention", q, k, v, past_key, past_value, outputs=3, is_causal=1
    )
    np.testing.assert_array_equal(key, np.concatenate([past_key, k], 2))
    value = np.concatenate([past_value, v], 2)
    hidden = np.where(np.tri(3, 5, 2, bool), 0, -np.inf)
    np.testing.assert_allclose(
        result[0, 0], attended(q[0, 0], key[0, 0], value[0, 0], hidden)[0], rtol=1e-5
    )


@pytest.mark.parametrize(
    ("params", "seen"),
    [
        ({"left_window_size": 1}, [[1, 1, 1], [1, 1, 1], [0, 1, 1]]),
        ({"right_window_size": 0}, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        ({"left_window_size": 0, "is_causal": 1}, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    ],
)
def test_windows_of_attention(params, seen):
    q, k, v = (some(1, 1, 3, 2) for _ in range(3))
    added = np.where(np.array(seen, bool), 0, -np.inf)
    result = compute("Attention", q, k, v, **params)[0]
    np.testing.assert_allclose(
        result[0, 0], attended(q[0, 0], k[0, 0], v[0, 0], added)[0], rtol=1e-5
    )


def test_masks_of_attention():
    q, k, v = (some(1, 1, 2, 2) for _ in range(3))
    for mask in (np.array([[True, False], [True, True]]), np.float32([[0, -np.inf], [0, 0]])):
        result = compute("Attention", q, k, v, mask)[0]
        np.testing.assert_allclose(result[0, 0, 0], v[0, 0, 0], rtol=1e-6)
    blind = compute("Attention", q, k, v, np.array([[False, False], [True, True]]))[0]
    np.testing.assert_array_equal(blind[0, 0, 0], [0, 0])
    short = compute("Attention", q, k, v, np.float32([[0], [0]]))[0]  # as for one key
    np.testing.assert_allclose(short[0, 0], np.repeat(v[0, 0, :1], 2, 0), rtol=1e-6)
    counted = compute("Attention", q, k, v, np.array([1]))[0]  # of the keys one counts
    np.testing.assert_allclose(counted[0, 0], np.repeat(v[0, 0, :1], 2, 0), rtol=1e-6)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_what_attention_shows_of_its_scores(mode):
    q, k, v = (some(1, 1, 2, 2) for _ in range(3))
    mask = np.float32([[0, 1], [2, 0]])
    shown = compute("Attention", q, k, v, mask, outputs=2, softcap=2.0,
                    qk_matmul_output_mode=mode)[1]  # fmt: skip
    scores = q[0, 0] @ k[0, 0].T / np.sqrt(2)
    capped = 2 * np.tanh(scores / 2)
    shares = np.exp(capped + mask)
    shares /= shares.sum(-1, keepdims=True)
    expected = [scores, capped, capped + mask, shares][mode]
    np.testing.assert_allclose(shown[0, 0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("operands", "params", "message"),
    [
        ([(1, 2, 3, 4)] * 2, {}, "query, key and value are needed"),
        (
            [(1, 3, 4)] * 3,
            {"q_num_heads": 3, "kv_num_heads": 2},
            "1×3×4 cannot be split into 3",
        ),
        ([(1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4)], {}, "2 heads cannot be shared among 3"),
    ],
)
def test_attention_that_cannot_be(operands, params, message):
    with pytest.raises(LayerError, match=message):
        compute("Attention", *(some(*shape) for shape in operands), **params)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [-3, -4, 1, 2]),
        ({"interleaved": 1}, [-2, 1, -4, 3]),
        ({"rotary_embedding_dim": 2}, [-2, 1, 3, 4]),
    ],
)
def test_rotary_embedding(params, expected):
    x = np.float32([[[[1, 2, 3, 4]]]])
    half = params.get("rotary_embedding_dim", 4) // 2
    cos, sin = np.zeros((1, 1, half), np.float32), np.ones((1, 1, half), np.float32)
    result = compute("RotaryEmbedding", x, cos, sin, **params)  # a quarter of a turn
    np.testing.assert_array_equal(result, np.float32([[[expected]]]))
    flat = compute("RotaryEmbedding", x[0], cos, sin, num_heads=1, **params)
    np.testing.assert_array_equal(flat, np.float32([[expected]]))


def test_positions_choose_rows_of_the_caches():
    cos, sin = np.float32([[1], [0]]), np.float32([[0], [1]])
    x = np.float32([[[[1, 2], [1, 2]]]])
    result = compute("RotaryEmbedding", x, cos, sin, np.array([[1, 0]]))
    np.testing.assert_array_equal(result, [[[[-2, 1], [1, 2]]]])


# Signals


@pytest.mark.parametrize(
    ("operator_type", "periodic", "expected"),
    [
        ("HannWindow", 1, [0, 0.5, 1, 0.5]),
        ("HannWindow", 0, [0, 0.75, 0.75, 0]),
        ("HammingWindow", 1, [4 / 46, 25 / 46, 1, 25 / 46]),
        ("BlackmanWindow", 1, [0, 0.34, 1, 0.34]),
    ],
)
def test_window(operator_type, periodic, expected):
    result = compute(operator_type, np.array(4), periodic=periodic)
    np.testing.assert_allclose(result, np.float32(expected), atol=1e-6, strict=True)


PULSE = np.float32([1, 2, 0, -1]).reshape(1, 4, 1)
SPECTRUM = [[2, 0], [1, -3], [0, 0], [1, 3]]


def test_dft():
    whole = compute("DFT", PULSE)
    np.testing.assert_allclose(whole[0], np.float32(SPECTRUM), atol=1e-6, strict=True)
    np.testing.assert_allclose(compute("DFT", PULSE, np.array(1)), whole)  # an axis
    half = compute("DFT", PULSE, onesided=1)
    np.testing.assert_allclose(half[0], SPECTRUM[:3], atol=1e-6)
    back = compute("DFT", whole, inverse=1)
    np.testing.assert_allclose(back[0], [[1, 0], [2, 0], [0, 0], [-1, 0]], atol=1e-6)
    np.testing.assert_allclose(compute("DFT", half, inverse=1, onesided=1), PULSE, atol=1e-6)
    longer = compute("DFT", PULSE, np.array(8), np.array(-2))
    np.testing.assert_allclose(longer[0, ::2], SPECTRUM, atol=1e-6)


def test_stft():
    signal = np.concatenate([PULSE, PULSE], 1)
    result = compute("STFT", signal, np.array(4), np.ones(4, np.float32), onesided=0)
    np.testing.assert_allclose(result[0], [SPECTRUM, SPECTRUM], atol=1e-6)
    without_window = compute("STFT", signal, 4, np.array(4))
    np.testing.assert_allclose(without_window[0], [SPECTRUM[:3]] * 2, atol=1e-6)
    with pytest.raises(LayerError, match="a signal of 1×4×1 has no piece of 9"):
        compute("STFT", PULSE, 1, np.ones(9, np.float32))


def test_mel_weight_matrix():
    matrix = compute("MelWeightMatrix", 2, 8, 8000, 0.0, 4000.0)
    assert matrix.shape == (5, 2)
    assert matrix.dtype == np.float32
    assert matrix.max(0).tolist() == [1, 1]
    assert matrix[-1].tolist() == [0, 0]
