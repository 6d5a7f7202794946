"""Wrong weights of attentions and recurrent layers, and positions that tell nothing."""

from __future__ import annotations

import numpy as np
import pytest

from array_reference import compare, reference_of
from engine.comparison.reasons import explain
from reasons.operators import make_operator

RNG = np.random.default_rng(8)
WIDTH, HEADS = 8, 2


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def attended(x, w):
    """Attention by its definition, head by head; also its queries, keys and values."""
    q, k, v = (
        x @ part.T + bias
        for part, bias in zip(
            np.split(w["in_proj_weight"], 3), np.split(w["in_proj_bias"], 3), strict=True
        )
    )
    heads, width = [], WIDTH // HEADS
    for head in range(HEADS):
        own = slice(head * width, (head + 1) * width)
        scores = np.exp(q[..., own] @ k[..., own].swapaxes(1, 2) / np.sqrt(width))
        heads.append(scores / scores.sum(-1, keepdims=True) @ v[..., own])
    joined = np.concatenate(heads, -1)
    return (joined @ w["out_proj.weight"].T + w["out_proj.bias"]).astype("f4"), (q, k, v)


def weights():
    return {
        "in_proj_weight": normal(3 * WIDTH, WIDTH), "in_proj_bias": normal(3 * WIDTH),
        "out_proj.weight": normal(WIDTH, WIDTH), "out_proj.bias": normal(WIDTH),
    }  # fmt: skip


def attention(w):
    params = {
        "num_heads": HEADS, "embed_dim": WIDTH, "kdim": WIDTH, "vdim": WIDTH, "bias": True,
        "batch_first": True, "add_bias_kv": False, "add_zero_attn": False,
    }  # fmt: skip
    return make_operator("nn.MultiheadAttention", params, w, [0])


def test_the_last_weight_is_solved_as_that_of_a_linear_layer():
    x, right = normal(1, 40, WIDTH), weights()
    wrong = right["out_proj.weight"] * (1 + 0.1 * normal(WIDTH, WIDTH))
    expected, _ = attended(x, right)
    (reason, *_) = explain(attention(right | {"out_proj.weight": wrong}), [x], expected)
    assert reason.kind == "weight_values"
    (change,) = reason.changes
    assert change.name == "out_proj.weight"
    assert np.abs(change.value - right["out_proj.weight"]).max() < 1e-3


def test_rows_of_the_last_weight_in_another_order_are_a_layout():
    x, right = normal(1, 40, WIDTH), weights() | {"out_proj.bias": np.zeros(WIDTH, "f4")}
    rolled = np.roll(right["out_proj.weight"], 1, 0)
    expected, _ = attended(x, right)
    (reason, *_) = explain(attention(right | {"out_proj.weight": rolled}), [x], expected)
    assert reason.kind == "weight_layout"


@pytest.mark.parametrize("part", range(3))
def test_one_transposed_projection_is_named(part):
    x, right = normal(1, 20, WIDTH), weights()
    turned = right["in_proj_weight"].reshape(3, WIDTH, WIDTH).copy()
    turned[part] = turned[part].T
    wrong = right | {"in_proj_weight": turned.reshape(3 * WIDTH, WIDTH)}
    expected, _ = attended(x, right)
    (reason, *_) = explain(attention(wrong), [x], expected)
    assert reason.kind == "weight_layout"
    assert f"with {'qkv'[part]} " in reason.text


MODEL = (
    f"pnnx.Input in 0 1 0 #0=(1,5,{WIDTH})f32",
    (
        f"nn.MultiheadAttention att 1 1 0 1 num_heads={HEADS} embed_dim={WIDTH} kdim={WIDTH} "
        f"vdim={WIDTH} bias=True batch_first=True add_bias_kv=False add_zero_attn=False "
        f"@in_proj_weight=({3 * WIDTH},{WIDTH})f32 @in_proj_bias=({3 * WIDTH})f32 "
        f"@out_proj.weight=({WIDTH},{WIDTH})f32 @out_proj.bias=({WIDTH})f32 #1=(1,5,{WIDTH})f32"
    ),
    f"F.tanh act 1 1 1 2 $input=1 #2=(1,5,{WIDTH})f32",
    "pnnx.Output out 1 0 2",
)


def with_projections_apart(x, right):
    """A reference that projects queries, keys and values by a call each, with these weights."""
    y, (q, k, v) = attended(x, right)
    arrays = {"x": x, "q": q, "k": k, "v": v, "y": y, "act": np.tanh(y)}
    w, b = (np.split(right[key], 3) for key in ("in_proj_weight", "in_proj_bias"))
    calls = [
        ("linear", ("x",), key, {"weight": w[i], "bias": b[i]}) for i, key in enumerate("qkv")
    ]
    last = {"weight": right["out_proj.weight"], "bias": right["out_proj.bias"]}
    calls += [("attention", ("q", "k", "v"), "y", last), ("tanh", ("y",), "act", {})]
    return reference_of({name: array.astype("f4") for name, array in arrays.items()}, calls)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("in_proj_weight", "weight_values"),
        ("in_proj_bias", "bias"),
        ("out_proj.weight", "weight_values"),
    ],
)
def test_hashes_of_separate_projections_tell_which_weight_differs(make_pair, name, kind):
    """Five tokens tell no numbers; the reference projects queries, keys and values apart."""
    x, right = normal(1, 5, WIDTH), weights()
    wrong = right[name] + 0.3 * normal(*right[name].shape)
    path = make_pair(
        *MODEL, weights={f"att.{n}": a for n, a in (right | {name: wrong}).items()}
    )
    (origin,) = compare(path, with_projections_apart(x, right), x).origins
    assert origin.operator.name == "att"
    assert origin.reasons[0].kind == kind
    assert name in origin.reasons[0].text


def linear(weight, bias):
    sizes = {"in_features": weight.shape[1], "out_features": len(weight), "bias": True}
    return make_operator("nn.Linear", sizes, {"weight": weight, "bias": bias}, [0])


def test_equal_positions_tell_neither_scales_nor_biases():
    """Any result of equal rows is ours with a factor, or an offset, for each channel."""
    x = np.repeat(normal(1, 1, WIDTH), 6, 1)
    weight, bias = normal(WIDTH, WIDTH), normal(WIDTH)
    expected = x @ normal(WIDTH, WIDTH).T + bias
    assert not {"scale", "bias"} & {
        reason.kind for reason in explain(linear(weight, bias), [x], expected)
    }


def test_zeros_of_a_zero_weight_are_no_activation():
    x, weight = normal(1, 30, WIDTH), normal(WIDTH, WIDTH)
    zero = np.zeros((WIDTH, WIDTH), "f4")
    reasons = explain(linear(zero, zero[0]), [x], x @ weight.T)
    assert reasons
    assert reasons[0].kind == "weight_values"


def test_last_weights_of_two_attentions_are_exchanged(make_pair):
    """Both are somewhere in the reference, but not where it computes these tensors."""
    x, first, second = normal(1, 5, WIDTH), weights(), weights()
    arrays, calls, before = {"x": x}, [], x
    for place, right in enumerate((first, second)):
        y, parts = attended(before, right)
        source = "y0" if place else "x"
        w, b = (np.split(right[key], 3) for key in ("in_proj_weight", "in_proj_bias"))
        keys = [f"{letter}{place}" for letter in "qkv"]
        arrays |= dict(zip(keys, parts, strict=True)) | {f"y{place}": y}
        calls += [
            ("linear", (source,), key, {"weight": w[i], "bias": b[i]})
            for i, key in enumerate(keys)
        ]
        last = {"weight": right["out_proj.weight"], "bias": right["out_proj.bias"]}
        calls.append(("attention", tuple(keys), f"y{place}", last))
        before = y
    again = MODEL[1].replace(" att 1 1 0 1 ", " again 1 1 1 2 ").replace("#1=", "#2=")
    name = "out_proj.weight"
    given = {f"att.{n}": a for n, a in (first | {name: second[name]}).items()}
    given |= {f"again.{n}": a for n, a in (second | {name: first[name]}).items()}
    path = make_pair(*MODEL[:2], again, "pnnx.Output out 1 0 2", weights=given)
    reference = reference_of({n: a.astype("f4") for n, a in arrays.items()}, calls)
    found = compare(path, reference, x)
    assert [origin.operator.name for origin in found.origins] == ["att", "again"]
    assert {origin.reasons[0].kind for origin in found.origins} == {"weight_values"}


def test_hashes_tell_that_all_weights_differ(make_pair):
    """The reference has matrices of these sizes, and none of ours is among them."""
    x, right, wrong = normal(1, 5, WIDTH), weights(), weights()
    path = make_pair(*MODEL, weights={f"att.{n}": a for n, a in wrong.items()})
    (origin,) = compare(path, with_projections_apart(x, right), x).origins
    assert origin.reasons[0].kind == "weight_values"
    assert "as the hashes tell. Take the reference's." in origin.reasons[0].text


def test_hashes_tell_which_weight_of_a_recurrent_layer_differs(make_pair):
    """A result tells no matrix between its gates, and is too large to fit the biases."""
    x, width = normal(1, 9, 6), 70
    right = {"weight_ih_l0": normal(4 * width, 6), "weight_hh_l0": normal(4 * width, width)}
    right |= {"bias_ih_l0": normal(4 * width), "bias_hh_l0": normal(4 * width)}
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,9,6)f32",
        (
            "nn.LSTM cell 1 1 0 1 batch_first=True bias=True bidirectional=False "
            "hidden_size=70 input_size=6 num_layers=1 proj_size=0 @bias_hh_l0=(280)f32 "
            "@bias_ih_l0=(280)f32 @weight_hh_l0=(280,70)f32 @weight_ih_l0=(280,6)f32 "
            "#1=(1,9,70)f32"
        ),
        "pnnx.Output out 1 0 1",
    )
    arrays = {"x": x, "y": recurrent(x, right)}
    reference = reference_of(arrays, [("lstm", ("x",), "y", right)])
    for name, kind in (("weight_hh_l0", "weight_values"), ("bias_ih_l0", "bias")):
        wrong = right | {name: normal(*right[name].shape)}
        path = make_pair(*lines, weights={f"cell.{n}": a for n, a in wrong.items()})
        (origin,) = compare(path, reference, x).origins
        assert origin.reasons[0].kind == kind
        assert origin.reasons[0].text.startswith(f"{name} differs")


def recurrent(rows, w):
    """An LSTM by its definition, one row after the other."""
    h = c = np.zeros((1, w["weight_hh_l0"].shape[1]))
    results = []
    for row in rows.swapaxes(0, 1):
        ends = row @ w["weight_ih_l0"].T + h @ w["weight_hh_l0"].T
        i, f, g, o = np.split(ends + w["bias_ih_l0"] + w["bias_hh_l0"], 4, -1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        results.append(h)
    return np.stack(results, 1).astype("f4")
