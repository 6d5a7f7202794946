"""Multi-head attention and the encoder layer around it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers import OperatorCall, build_layer

MHA = "nn.MultiheadAttention"
RNG = np.random.default_rng(5)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def compute(weights, *operands, names=(), outputs=2, **params):
    call = OperatorCall(
        "attn", MHA, params, weights, names or ("",) * len(operands), output_count=outputs
    )
    with np.errstate(all="ignore"):
        return build_layer(call).forward(*operands)


def plain_weights(size):
    """Projections that change nothing."""
    eye = np.eye(size, dtype=np.float32)
    return {
        "in_proj_weight": np.concatenate([eye, eye, eye]),
        "in_proj_bias": np.zeros(3 * size, np.float32),
        "out_proj.weight": eye,
        "out_proj.bias": np.zeros(size, np.float32),
    }


def one_head(query, key, value, added):
    scores = query @ key.T / np.sqrt(query.shape[1]) + added
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return shares @ value, shares


def test_two_heads_are_two_attentions():
    query, key, value = some(3, 1, 4), some(5, 1, 4), some(5, 1, 4)
    mask = some(3, 5)
    result, weights = compute(
        plain_weights(4), query, key, value, mask,
        names=("", "", "", "attn_mask"), num_heads=2, embed_dim=4,
    )  # fmt: skip
    parts = [
        one_head(query[:, 0, half], key[:, 0, half], value[:, 0, half], mask)
        for half in (slice(0, 2), slice(2, 4))
    ]
    np.testing.assert_allclose(
        result[:, 0], np.concatenate([p[0] for p in parts], 1), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(weights[0], (parts[0][1] + parts[1][1]) / 2, rtol=1e-5)
    assert result.shape == (3, 1, 4)
    assert weights.shape == (1, 3, 5)


def test_fewer_operands_stand_for_more():
    query, key = some(3, 2, 4), some(5, 2, 4)
    weights = plain_weights(4)
    for given, spelt in (((query,), (query,) * 3), ((query, key), (query, key, key))):
        short = compute(weights, *given, num_heads=2)[0]
        np.testing.assert_array_equal(short, compute(weights, *spelt, num_heads=2)[0])


def test_a_mask_after_two_sequences():
    query, key, mask = some(3, 2, 4), some(5, 2, 4), some(3, 5)
    names = ("", "", "attn_mask")
    short = compute(plain_weights(4), query, key, mask, names=names, num_heads=2)[0]
    names = ("", "", "", "attn_mask")
    full = compute(plain_weights(4), query, key, key, mask, names=names, num_heads=2)[0]
    np.testing.assert_array_equal(short, full)


def test_without_a_batch_axis():
    x = some(3, 4)
    result, weights = compute(plain_weights(4), x, num_heads=2, batch_first=True)
    batched, batched_weights = compute(plain_weights(4), x[None], num_heads=2, batch_first=True)
    np.testing.assert_array_equal(result, batched[0])
    np.testing.assert_array_equal(weights, batched_weights[0])


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_sequence_that_is_called_a_mask(batch_first):
    # pnnx calls the last operand attn_mask, but the key padding mask of a traced module
    # stands first.
    query, memory = some(3, 2, 4), some(5, 2, 4)
    padding = np.array([[0, 0, 1, 0, 0], [0, 0, 0, 1, 1]], np.bool_)
    expected = np.stack(
        [
            one_head(query[:, n], memory[:, n], memory[:, n], np.where(padding[n], -np.inf, 0))[
                0
            ]
            for n in range(2)
        ],
        1,
    )
    if batch_first:
        query, memory, expected = (x.swapaxes(0, 1) for x in (query, memory, expected))
    result = compute(
        plain_weights(4), padding, query, memory,
        names=("", "", "attn_mask"), num_heads=1, batch_first=batch_first,
    )[0]  # fmt: skip
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_the_only_sequence_may_be_called_a_mask():
    x, padding = some(3, 2, 4), np.array([[0, 0, 1], [0, 1, 0]], np.bool_)
    named = compute(plain_weights(4), padding, x, names=("", "attn_mask"), num_heads=2)[0]
    plain = compute(plain_weights(4), x, padding, num_heads=2)[0]
    np.testing.assert_array_equal(named, plain)


def test_a_bool_mask_leaves_keys_out():
    x = some(4, 1, 4)
    padding = np.array([[False, False, False, True]])
    result, weights = compute(
        plain_weights(4), x, padding, names=("", "attn_mask"), num_heads=2
    )
    np.testing.assert_array_equal(weights[0, :, 3], np.zeros(4))
    others, _ = compute(plain_weights(4), x, x[:3], x[:3], num_heads=2)
    np.testing.assert_allclose(result, others, rtol=1e-5, atol=1e-6)


def test_padding_of_as_many_samples_as_queries():
    """The same sizes as a mask of scores: the name tells that it is one row for a sample."""
    x = some(3, 3, 4)
    padding = np.array([[False, False, True], [False, True, True], [False, False, False]])
    result, _ = compute(
        plain_weights(4), x, padding, names=("", "key_padding_mask"), num_heads=2,
        batch_first=True,
    )  # fmt: skip
    for sample, count in enumerate((2, 1, 3)):
        own, keys = x[sample : sample + 1], x[sample : sample + 1, :count]
        alone, _ = compute(plain_weights(4), own, keys, keys, num_heads=2, batch_first=True)
        np.testing.assert_allclose(result[sample], alone[0], rtol=1e-5, atol=1e-6)


def test_a_query_that_sees_nothing():
    x, mask = some(2, 1, 4), np.array([[True, True], [False, False]])
    names = ("", "attn_mask")
    needed = compute(plain_weights(4), x, mask, names=names, num_heads=2, outputs=2)[0]
    assert np.isnan(needed[0]).all()
    alone = compute(plain_weights(4), x, mask, names=names, num_heads=2, outputs=1)[0]
    np.testing.assert_array_equal(alone[0], np.zeros((1, 4)))
    np.testing.assert_allclose(alone[1], needed[1], rtol=1e-5)


def test_extra_keys():
    x = some(3, 1, 4)
    weights = plain_weights(4) | {"bias_k": some(1, 1, 4), "bias_v": some(1, 1, 4)}
    result, shares = compute(
        weights, x, num_heads=1, add_bias_kv=True, add_zero_attn=True, embed_dim=4
    )
    zero = np.zeros((1, 4), np.float32)
    keys = np.concatenate([x[:, 0], weights["bias_k"][0], zero])
    values = np.concatenate([x[:, 0], weights["bias_v"][0], zero])
    expected, expected_shares = one_head(x[:, 0], keys, values, 0)
    np.testing.assert_allclose(result[:, 0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(shares[0], expected_shares, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_heads": 3}, "num_heads=3 cannot divide embed_dim=4"),
        ({"kdim": 7}, "in_features=7, but the weight has 4"),
    ],
)
def test_wrong_parameters(changes, sentence):
    with pytest.raises(ParameterError, match=sentence):
        compute(plain_weights(4), some(3, 1, 4), **({"num_heads": 2} | changes))


def test_a_missing_weight():
    weights = plain_weights(4)
    del weights["in_proj_weight"], weights["in_proj_bias"]
    with pytest.raises(ParameterError, match="q_proj_weight is missing"):
        compute(weights, some(3, 1, 4), num_heads=2)


@pytest.mark.parametrize(
    ("shapes", "names", "sentence"),
    [
        ([(4,)], (), "operands of shapes 4 are no query"),
        ([(3, 1, 4), (2, 2)], ("", "attn_mask"), "a mask of shape 2×2 does not fit 1 samples"),
        ([(3, 1, 4), (3, 2, 4)], (), "query, key and value have unequal batch sizes"),
    ],
)
def test_wrong_shapes(shapes, names, sentence):
    operands = [some(*shape) for shape in shapes]
    with pytest.raises(LayerError, match=sentence):
        compute(plain_weights(4), *operands, names=names, num_heads=2, outputs=1)


def as_attributes(module):
    return {name: tensor.detach().numpy() for name, tensor in module.named_parameters()}


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("mask", ["none", "float", "bool", "heads", "padding"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"kdim": 6, "vdim": 10},
        {"add_bias_kv": True, "add_zero_attn": True},
        {"kdim": 6, "vdim": 10, "add_zero_attn": True, "bias": False},
    ],
)
def test_against_pytorch(options, mask, batch_first):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    module = torch.nn.MultiheadAttention(8, 4, batch_first=batch_first, **options).eval()
    batch, rows, columns = 3, 5, 6
    query = some(rows, batch, 8)
    key = some(columns, batch, options.get("kdim", 8))
    value = some(columns, batch, options.get("vdim", 8))
    operands = [x.swapaxes(0, 1) if batch_first else x for x in (query, key, value)]
    masks = {
        "none": (None, None),
        "float": ("attn_mask", some(rows, columns)),
        "bool": ("attn_mask", np.arange(rows * columns).reshape(rows, columns) % 4 == 1),
        "heads": ("attn_mask", some(batch * 4, rows, columns)),
        "padding": ("key_padding_mask", np.arange(18).reshape(batch, columns) % 5 == 3),
    }
    name, values = masks[mask]
    given = {} if name is None else {name: torch.from_numpy(values)}
    with torch.no_grad():
        expected, shares = module(*map(torch.from_numpy, map(np.copy, operands)), **given)
    if name is not None:
        operands.append(values)
    result, ours = compute(
        as_attributes(module),
        *operands,
        names=("", "", "", name) if name else (),
        embed_dim=8,
        num_heads=4,
        batch_first=batch_first,
        **options,
    )
    np.testing.assert_allclose(result, expected.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours, shares.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("mask_type", [None, 0, 1])
def test_encoder_layer_against_pytorch(run, activation, norm_first, mask_type):
    torch = pytest.importorskip("torch")
    torch.manual_seed(2)
    module = torch.nn.TransformerEncoderLayer(
        8, 2, 12, activation=activation, norm_first=norm_first, batch_first=True
    ).eval()
    for parameter in module.parameters():  # biases of zero would hide their order
        torch.nn.init.normal_(parameter)
    x = some(3, 5, 8)
    mask = {
        None: None,
        0: np.triu(np.ones((5, 5), bool), 1),
        1: np.array([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]]),
    }[mask_type]
    given = None if mask is None else torch.from_numpy(mask)
    name = {None: "src_mask", 0: "src_mask", 1: "src_key_padding_mask"}[mask_type]
    expected = module(torch.from_numpy(x), **{name: given}).detach().numpy()
    w = as_attributes(module)
    y = run(
        "aten::_transformer_encoder_layer_fwd", x, 8, 2,
        w["self_attn.in_proj_weight"], w["self_attn.in_proj_bias"],
        w["self_attn.out_proj.weight"], w["self_attn.out_proj.bias"],
        activation == "gelu", norm_first, 1e-5,
        w["norm1.weight"], w["norm1.bias"], w["norm2.weight"], w["norm2.bias"],
        w["linear1.weight"], w["linear1.bias"], w["linear2.weight"], w["linear2.bias"],
        mask, mask_type,
    )  # fmt: skip
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
