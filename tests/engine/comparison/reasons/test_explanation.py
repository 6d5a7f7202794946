"""What is said of an operator, where that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.comparison.reasons import KINDS, explain
from reasons.operators import make_operator

RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def convolved(x, weight, bias=None, padding=0, stride=1):
    """A slow loop over all outputs."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding))).astype(np.float64)
    kernels, _, rows, columns = weight.shape
    height = (x.shape[2] - rows) // stride + 1
    width = (x.shape[3] - columns) // stride + 1
    y = np.zeros((len(x), kernels, height, width))
    for i in range(height):
        for j in range(width):
            top, left = i * stride, j * stride
            window = x[:, :, top : top + rows, left : left + columns]
            y[:, :, i, j] = np.einsum("nchw,ochw->no", window, weight)
    if bias is not None:
        y += bias.reshape(-1, 1, 1)
    return y.astype(np.float32)


def conv(weight, bias=None, **params):
    weights = {"weight": weight} | ({} if bias is None else {"bias": bias})
    values = {
        "in_channels": weight.shape[1],
        "out_channels": weight.shape[0],
        "kernel_size": weight.shape[2:],
        "stride": (1, 1),
        "padding": (0, 0),
        "bias": bias is not None,
    }
    return make_operator("nn.Conv2d", values | params, weights, [0])


def test_padding_is_found_from_the_shape_and_stated_with_both_numbers():
    x, weight = normal(1, 2, 6, 7), normal(3, 2, 3, 3)
    (reason, *_) = explain(conv(weight), [x], convolved(x, weight, padding=1))
    assert reason.kind == "padding"
    assert reason.explains == 1
    assert reason.text == (
        "The reference has padding=(1, 1), the file (0, 0). Set padding=(1, 1)."
    )
    assert [(change.name, change.value) for change in reason.changes] == [("padding", (1, 1))]


@pytest.mark.parametrize(("dilation", "lost"), [(4, 1), (4, 2), (12, 1)])
def test_a_dilation_is_lost_together_with_its_padding(dilation, lost):
    x, weight = normal(1, 2, 30, 28), normal(3, 2, 3, 3)
    spread = np.zeros((3, 2, 2 * dilation + 1, 2 * dilation + 1), np.float32)
    spread[..., ::dilation, ::dilation] = weight
    operator = conv(weight, dilation=(lost, lost), padding=(lost, lost))
    (reason, *_) = explain(operator, [x], convolved(x, spread, padding=dilation))
    assert (reason.kind, reason.explains) == ("dilation", 1)
    found = {change.name: change.value for change in reason.changes}
    assert found == {"padding": (dilation, dilation), "dilation": (dilation, dilation)}


def test_one_changed_weight_is_located():
    x, theirs = normal(2, 3, 9, 9), normal(4, 3, 3, 3)
    ours = theirs.copy()
    ours[2, 1, 0, 2] += 1.5
    (reason, *_) = explain(conv(ours), [x], convolved(x, theirs))
    assert reason.kind == "weight_values"
    assert "weight[2, 1, 0, 2]" in reason.text
    assert "output channel 2" in reason.text
    (change,) = reason.changes
    np.testing.assert_allclose(change.value, theirs, atol=1e-4)


def transposed(x, weight):
    """A slow loop over all inputs of a transposed convolution with a stride of 2."""
    inputs, kernels, rows, columns = weight.shape
    sizes = [
        2 * (size - 1) + span for size, span in zip(x.shape[2:], (rows, columns), strict=True)
    ]
    y = np.zeros((len(x), kernels, *sizes))
    for i in range(x.shape[2]):
        for j in range(x.shape[3]):
            for c in range(inputs):
                spread = x[:, c, i, j].reshape(-1, 1, 1, 1) * weight[c]
                y[:, :, 2 * i : 2 * i + rows, 2 * j : 2 * j + columns] += spread
    return y.astype(np.float32)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            lambda own: own / 4,
            "The weight of channel 2 of the reference is 4 times",
            id="scaled",
        ),
        pytest.param(
            lambda own: own + 0.5,
            "18 of 72 numbers of the weight differ, in channel 2",
            id="moved",
        ),
    ],
)
def test_channels_of_a_transposed_convolution_are_those_of_its_result(change, words):
    """Its weight has the input's channels first."""
    x, theirs = normal(2, 2, 9, 9), normal(2, 4, 3, 3)
    ours = theirs.copy()
    ours[:, 2] = change(ours[:, 2])
    params = {
        "in_channels": 2, "out_channels": 4, "kernel_size": (3, 3), "stride": (2, 2),
        "padding": (0, 0), "bias": False,
    }  # fmt: skip
    operator = make_operator("nn.ConvTranspose2d", params, {"weight": ours}, [0])
    (reason, *_) = explain(operator, [x], transposed(x, theirs))
    assert reason.kind == "weight_values"
    assert words in reason.text
    np.testing.assert_allclose(reason.changes[0].value, theirs, atol=1e-4)


def test_weights_are_solved_where_the_inputs_are_rich():
    x, theirs = normal(1, 2, 16, 16), normal(4, 2, 3, 3)
    ours = theirs + 0.1 * normal(4, 2, 3, 3)
    (reason, *_) = explain(conv(ours), [x], convolved(x, theirs))
    assert reason.kind == "weight_values"
    np.testing.assert_allclose(reason.changes[0].value, theirs, atol=1e-4)


def test_weights_are_not_solved_if_they_could_give_any_result():
    x, theirs = normal(1, 8, 4, 4), normal(4, 8, 3, 3)
    ours = theirs + 0.1 * normal(4, 8, 3, 3)  # 72 unknowns of 4 places
    assert explain(conv(ours), [x], convolved(x, theirs)) == ()


def test_bias_is_estimated():
    x, weight, bias = normal(1, 2, 6, 6), normal(3, 2, 3, 3), np.float32([1, -2, 0.5])
    (reason, *_) = explain(conv(weight), [x], convolved(x, weight, bias))
    assert reason.kind == "bias"
    assert reason.text == (
        "The reference has a bias, the file has none. Set bias=(1, -2, 0.5)."
    )
    np.testing.assert_allclose(reason.changes[0].value, bias, atol=1e-5)


def test_a_reversed_bias_is_a_bias():
    x, weight, bias = normal(1, 2, 6, 6), normal(3, 2, 3, 3), np.float32([1, -2, 0.5])
    found = explain(conv(weight, bias[::-1].copy()), [x], convolved(x, weight, bias))
    assert {reason.kind for reason in found if reason.explains > 0.9999} == {"bias"}


def test_known_weights_decide_where_the_data_cannot():
    x = normal(1, 5)
    weight, bias = normal(3, 5), normal(3)
    params = {"in_features": 5, "out_features": 3, "bias": True}
    ours = make_operator("nn.Linear", params, {"weight": weight, "bias": bias + 1}, [x])
    expected = (x.astype(np.float64) @ weight.T + bias).astype(np.float32)
    known = {"weight": weight, "bias": bias}
    (reason, *_) = explain(ours, [x], expected, reference_weights=known)
    assert (reason.kind, reason.explains) == ("bias", 1)


@pytest.mark.parametrize("names", [("float16", np.float16), ("layout", None)])
def test_known_weights_explain_how_ours_were_made(names):
    word, dtype = names
    theirs, x = normal(4, 4, 3, 3), normal(1, 4, 8, 8)
    ours = theirs.astype(dtype) if dtype else theirs[:, :, ::-1, ::-1]
    operator = conv(np.ascontiguousarray(ours, np.float32))
    (reason, *_) = explain(
        operator, [x], convolved(x, theirs), reference_weights={"weight": theirs}
    )
    assert reason.kind == ("precision" if dtype else "weight_layout")
    assert word in reason.text or "rotated by 180 degrees" in reason.text


def test_axes_of_a_kernel_of_three_dimensions_may_be_exchanged():
    x, theirs = normal(1, 2, 5, 5, 5), normal(3, 2, 3, 3, 3)
    expected = np.zeros((1, 3, 3, 3, 3))
    for place in np.ndindex(3, 3, 3):
        window = x[0, :, place[0] :, place[1] :, place[2] :][:, :3, :3, :3].astype(np.float64)
        for channel in range(3):
            expected[(0, channel, *place)] = (window * theirs[channel]).sum()
    params = {
        "in_channels": 2, "out_channels": 3, "kernel_size": (3, 3, 3), "stride": (1, 1, 1),
        "padding": (0, 0, 0), "dilation": (1, 1, 1), "groups": 1, "bias": False,
        "padding_mode": "zeros",
    }  # fmt: skip
    ours = np.ascontiguousarray(theirs.swapaxes(-1, -2))
    operator = make_operator("nn.Conv3d", params, {"weight": ours}, [x])
    (reason, *_) = explain(operator, [x], expected.astype(np.float32))
    assert reason.kind == "weight_layout"
    np.testing.assert_array_equal(reason.changes[0].value, theirs)


@pytest.mark.parametrize("with_bias", [False, True])
def test_known_weights_that_are_scaled(with_bias):
    theirs, x, bias = normal(4, 3, 3, 3), normal(1, 3, 8, 8), normal(4)
    factor = np.float32(1.25)
    operator = conv(theirs * factor, bias * factor if with_bias else bias)
    known = {"weight": theirs, "bias": bias}
    (reason, *_) = explain(operator, [x], convolved(x, theirs, bias), reference_weights=known)
    assert (reason.kind, reason.explains) == ("scale", 1)
    assert "0.8 times ours" in reason.text


def test_a_known_weight_of_which_one_channel_is_scaled():
    theirs, x = normal(4, 3, 3, 3), normal(1, 3, 8, 8)
    ours = theirs.copy()
    ours[2] *= 1.25
    (reason, *_) = explain(
        conv(ours), [x], convolved(x, theirs), reference_weights={"weight": theirs}
    )
    assert reason.kind == "weight_values"
    assert "channel 2" in reason.text


@pytest.mark.parametrize("with_bias", [False, True])
def test_known_weights_whose_rows_have_another_order(with_bias):
    theirs, x, bias = normal(9, 3, 3, 3), normal(1, 3, 8, 8), normal(9)
    order = [4, 0, 7, 2, 8, 1, 6, 3, 5]
    operator = conv(theirs[order], bias[order] if with_bias else bias)
    known = {"weight": theirs, "bias": bias}
    (reason, *_) = explain(operator, [x], convolved(x, theirs, bias), reference_weights=known)
    assert (reason.kind, reason.explains) == ("weight_layout", 1)
    assert "in the order (4, 0, 7, 2, 8, 1, 6, 3, 5)" in reason.text


def test_known_weights_of_which_only_the_names_are_exchanged():
    names = [f"{name}_l0{end}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
             for end in ("", "_reverse")]  # fmt: skip
    columns = {"weight_ih": (9, 5), "weight_hh": (9, 3)}
    theirs = {name: normal(*columns.get(name.partition("_l0")[0], (9,))) for name in names}
    forward = {name: name.removesuffix("_reverse") for name in names}
    ours = {
        name: theirs[other if name != other else f"{name}_reverse"]
        for name, other in forward.items()
    }
    x, made = normal(1, 4, 5), []
    for end, step in (("", 1), ("_reverse", -1)):
        given = [
            theirs[f"{n}_l0{end}"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        made.append(gru(x[0, ::step], *given)[::step])
    operator = make_operator(
        "nn.GRU",
        {"input_size": 5, "hidden_size": 3, "num_layers": 1, "bias": True, "batch_first": True,
         "bidirectional": True}, ours, [0],
    )  # fmt: skip
    expected = np.concatenate(made, -1)[np.newaxis].astype(np.float32)
    (reason, *_) = explain(operator, [x], expected, reference_weights=theirs)
    assert (reason.kind, reason.explains) == ("weight_layout", 1)
    assert "weight_ih_l0 as weight_ih_l0_reverse" in reason.text


def test_channels_are_scaled_before_the_bias():
    """As by lost statistics of a norm; the result is too small to solve the weight from it."""
    x, weight, bias = normal(1, 9, 5, 5), normal(6, 9, 3, 3), normal(6)
    factors = np.float32([0.5, 2, 3, 0.25, 1.5, 4])
    expected = convolved(x, weight * factors.reshape(-1, 1, 1, 1), bias)
    (reason, *_) = explain(conv(weight, bias), [x], expected)
    assert reason.kind == "scale"
    assert "before the bias: (0.5, 2, 3, 0.25, 1.5, 4)" in reason.text


def test_the_weight_that_a_norm_has_lost_is_no_scale():
    x, weight = normal(2, 12, 8), np.linspace(0.5, 2, 8, dtype=np.float32)
    operator = make_operator(
        "nn.RMSNorm",
        {"normalized_shape": (8,), "eps": 1e-6, "elementwise_affine": False},
        {},
        [0],
    )
    mean = np.sqrt(np.square(x.astype(np.float64)).mean(-1, keepdims=True) + 1e-6)
    (reason, *_) = explain(operator, [x], (x / mean * weight).astype(np.float32))
    assert (reason.kind, reason.explains) == ("normalization", 1)
    np.testing.assert_allclose(reason.changes[0].value, weight, rtol=1e-4)


@pytest.mark.parametrize("channel", [0, 1, 5])
def test_one_channel_of_many_is_found(channel):
    """Every so many elements, of a multiple of the channels, would never meet some of them."""
    x, weight = normal(1, 300, 400), normal(1536, 400)
    expected = np.matmul(x.astype(np.float64), weight.T).astype(np.float32)
    wrong = weight.copy()
    wrong[channel] *= normal(400)
    operator = make_operator(
        "nn.Linear",
        {"in_features": 400, "out_features": 1536, "bias": False},
        {"weight": wrong},
        [0],
    )
    (reason, *_) = explain(operator, [x], expected)
    assert reason.kind == "weight_values"
    assert f"Only output channel {channel} of 1536 differs" in reason.text


def test_zeros_of_the_reference_are_no_scale():
    """But for rounding each is a multiple of a number; other numbers are the reason."""
    data = normal(1, 10, 64)
    expected = data.copy()
    expected[:, 1:] = np.float32(1e-8) * normal(1, 9, 64)
    operator = make_operator("pnnx.Attribute", {}, {"data": data}, [])
    reasons = explain(operator, [], expected)
    assert [reason.kind for reason in reasons] == ["weight_values"]


def test_two_faults_are_both_named():
    x, weight = normal(1, 3, 9, 9), normal(4, 3, 3, 3)
    expected = np.maximum(convolved(x, weight, padding=1), 0)
    reasons = explain(conv(weight), [x], expected)
    assert {reason.kind for reason in reasons} == {"padding", "activation_missing"}


def test_expression_with_another_constant():
    x = normal(3, 4)
    operator = make_operator("pnnx.Expression", {"expr": "mul(add(@0,1.0),0.25)"}, {}, [x])
    (reason, *_) = explain(operator, [x], ((x + 1) * np.float32(0.3)).astype(np.float32))
    assert reason.kind == "expression"
    assert reason.changes[0].value == "mul(add(@0,1.0),0.3)"


def test_a_lost_relu_behind_a_sum_with_zeros_is_no_maximum():
    """The larger of a product and biases of zero is a ReLU."""
    x, factors, zeros = normal(2, 4, 6, 6), normal(4, 1, 1), np.zeros((4, 1, 1), np.float32)
    inputs = [x, factors, zeros]
    operator = make_operator("pnnx.Expression", {"expr": "add(mul(@0,@1),@2)"}, {}, inputs)
    (reason, *_) = explain(operator, inputs, np.maximum(x * factors, 0))
    assert reason.kind == "activation_missing"
    assert "applies relu" in reason.text


def test_the_larger_of_two_results_is_no_activation():
    x, y = normal(2, 4, 6), normal(2, 4, 6)
    operator = make_operator("pnnx.Expression", {"expr": "add(@0,@1)"}, {}, [x, y])
    (reason, *_) = explain(operator, [x, y], np.maximum(x, y))
    assert (reason.kind, reason.changes[0].value) == ("expression", "maximum(@0,@1)")


def test_a_result_of_zeros_is_no_clamped_one():
    """A norm whose weights are zero, as at the start of training, gives zeros."""
    x, weight, bias = normal(4, 20, 16), normal(16), normal(16)
    operator = make_operator(
        "nn.LayerNorm", {"normalized_shape": (16,), "eps": 1e-5, "elementwise_affine": True},
        {"weight": weight, "bias": bias}, [0],
    )  # fmt: skip
    found = explain(operator, [x], np.zeros_like(x))
    assert found[0].kind == "weight_values"
    assert not any("clamp" in reason.text for reason in found)


def test_an_operator_that_cannot_run_is_explained_too():
    x, weight = normal(1, 4, 6, 6), normal(4, 2, 3, 3)
    operator = conv(weight, in_channels=2)
    expected = np.concatenate(
        [convolved(x[:, :2], weight[:2]), convolved(x[:, 2:], weight[2:])], 1
    )
    (reason, *_) = explain(operator, [x], expected)
    assert reason.kind == "groups"
    assert "groups=2" in reason.text


@pytest.mark.parametrize("scale", [0, 1e-7, 5e-7])
def test_rounding_is_never_explained(scale):
    x, weight = normal(1, 3, 9, 9), normal(4, 3, 3, 3)
    expected = convolved(x, weight)
    noisy = expected + scale * np.abs(expected).max() * normal(*expected.shape)
    assert explain(conv(weight), [x], noisy.astype(np.float32)) == ()


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1])
def test_noise_has_no_reason(scale):
    x, weight = normal(1, 3, 12, 12), normal(4, 3, 3, 3)
    expected = convolved(x, weight, padding=1)
    noisy = expected + scale * normal(*expected.shape)
    assert explain(conv(weight, padding=(1, 1)), [x], noisy.astype(np.float32)) == ()


def test_random_operators_are_not_explained():
    x = normal(2, 3)
    operator = make_operator("torch.rand_like", {}, {}, [x])
    assert explain(operator, [x], x) == ()


def test_an_unknown_type_is_explained_by_its_result_alone():
    x = normal(2, 3)
    operator = make_operator("my.Unknown", {}, {}, [x])
    assert explain(operator, [x], x + 1) == ()
    (reason, *_) = explain(operator, [x], 2 * x, ours=x)
    assert reason.kind == "scale"


def test_nan_in_ours_counts_as_difference():
    x = np.zeros((1, 4), np.float32)
    operator = make_operator("F.normalize", {"p": 2.0, "dim": 1, "eps": 0.0}, {}, [x])
    (reason, *_) = explain(operator, [x], x)
    assert reason.explains == 1


def test_cancelling_stops_at_the_next_alternative():
    x, weight = normal(1, 3, 9, 9), normal(4, 3, 3, 3)
    calls = []

    def check():
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explain(conv(weight), [x], normal(1, 4, 7, 7), check_cancelled=check)
    assert len(calls) == 4


def test_large_operators_get_the_same_reasons_as_small_ones():
    # Large enough that a corner is tried first; the fault shows only at the border.
    x, weight = normal(1, 16, 48, 48), normal(16, 16, 3, 3)
    ours = conv(weight, padding=(1, 1))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    (reason, *_) = explain(ours, [x], convolved(padded, weight))
    assert reason.kind == "padding"
    assert "'replicate'" in reason.text


def test_hostile_numbers_cost_nothing():
    x, weight = normal(1, 2, 6, 6), normal(3, 2, 3, 3)
    for params in ({"stride": (0, 0)}, {"dilation": (1 << 30, 1)}, {"padding": (1 << 30, 0)}):
        reasons = explain(conv(weight, **params), [x], convolved(x, weight))
        assert all(reason.kind in KINDS for reason in reasons)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.complex64, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (1, 4, 7, 7), (196,)])
def test_results_of_any_kind_are_explained(dtype, shape):
    x, weight = normal(1, 3, 9, 9), normal(4, 3, 3, 3)
    expected = np.zeros(shape, dtype)
    for reason in explain(conv(weight), [x], expected):
        assert reason.kind in KINDS
        assert 0 <= reason.explains <= 1


def test_nan_and_infinity_in_the_inputs_are_numbers():
    x, weight = normal(1, 3, 9, 9), normal(4, 3, 3, 3)
    x[0, 0, 4, 4], x[0, 1, 2, 2] = np.nan, np.inf
    expected = np.maximum(convolved(x, weight), 0)
    (reason, *_) = explain(conv(weight), [x], expected)
    assert reason.kind == "activation_missing"


def test_one_output_channel_of_many_names_the_weights_there():
    x, theirs, bias = normal(1, 30), normal(40, 30), normal(40)
    ours = theirs.copy()
    ours[7] = normal(30)
    params = {"in_features": 30, "out_features": 40, "bias": True}
    operator = make_operator("nn.Linear", params, {"weight": ours, "bias": bias}, [x])
    expected = (x.astype(np.float64) @ theirs.T + bias).astype(np.float32)
    (reason, *_) = explain(operator, [x], expected)
    assert reason.kind == "weight_values"
    assert "output channel 7 of 40" in reason.text


def gru(x, weight_ih, weight_hh, bias_ih, bias_hh):
    """A slow loop over the steps of one sample, (T, I) to (T, H)."""
    h = np.zeros(weight_hh.shape[1])
    results = []
    for step in x.astype(np.float64):
        given, held = weight_ih @ step + bias_ih, weight_hh @ h + bias_hh
        (r_x, z_x, n_x), (r_h, z_h, n_h) = np.split(given, 3), np.split(held, 3)
        r, z = 1 / (1 + np.exp(-r_x - r_h)), 1 / (1 + np.exp(-z_x - z_h))
        h = (1 - z) * np.tanh(n_x + r * n_h) + z * h
        results.append(h)
    return np.float32(results)


GRU_SIZES = {
    "weight_ih_l0": (12, 3),
    "weight_hh_l0": (12, 4),
    "bias_ih_l0": 12,
    "bias_hh_l0": 12,
}
GRU_PARAMS = {
    "input_size": 3, "hidden_size": 4, "num_layers": 1, "bias": True, "batch_first": True,
    "bidirectional": False,
}  # fmt: skip


def test_a_bias_of_gates_is_fitted():
    rng = np.random.default_rng(11)
    x = rng.standard_normal((1, 24, 3)).astype(np.float32)
    theirs = {k: rng.standard_normal(size).astype(np.float32) for k, size in GRU_SIZES.items()}
    ours = {**theirs, "bias_hh_l0": theirs["bias_hh_l0"] * np.float32(0.5)}
    operator = make_operator("nn.GRU", GRU_PARAMS, ours, [x])
    (reason, *_) = explain(operator, [x], gru(x[0], *theirs.values())[np.newaxis])
    assert reason.kind == "bias"
    assert "bias_hh_l0" in reason.text
    found = gru(x[0], *({**theirs, "bias_hh_l0": reason.changes[0].value}).values())
    np.testing.assert_allclose(found, gru(x[0], *theirs.values()), atol=1e-4)


@pytest.mark.parametrize(
    ("name", "place", "words"),
    [
        ("bias_hh_l0", 5, "bias_ih_l0, or of bias_hh_l0 that is added to it,"),
        ("bias_ih_l0", 5, "bias_ih_l0, or of bias_hh_l0 that is added to it,"),
        ("bias_ih_l0", 9, "bias_ih_l0"),  # the reset gate multiplies the other one
        ("bias_hh_l0", 9, "bias_hh_l0"),
    ],
)
def test_no_data_tell_apart_biases_that_are_added(name, place, words):
    rng = np.random.default_rng(12)
    x = rng.standard_normal((1, 24, 3)).astype(np.float32)
    theirs = {k: rng.standard_normal(size).astype(np.float32) for k, size in GRU_SIZES.items()}
    ours = theirs | {name: theirs[name].copy()}
    ours[name][place] += 1
    operator = make_operator("nn.GRU", GRU_PARAMS, ours, [x])
    (reason, *_) = explain(operator, [x], gru(x[0], *theirs.values())[np.newaxis])
    assert reason.text == f"1 of 12 numbers of {words} differ. Take the reference's."


def test_a_mean_of_windows_is_told_from_a_maximum():
    x = normal(2, 3, 6, 6)
    ours = make_operator(
        "nn.MaxPool2d",
        {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1),
         "ceil_mode": False, "return_indices": False},
        {}, [x],
    )  # fmt: skip
    (reason, *_) = explain(ours, [x], x.reshape(2, 3, 3, 2, 3, 2).mean((3, 5)))
    assert reason.kind == "parameter"
    assert "nn.AvgPool2d" in reason.text


def test_a_maximum_of_everything_is_told_from_a_mean():
    x = normal(2, 3, 6, 6)
    ours = make_operator("nn.AdaptiveAvgPool2d", {"output_size": (1, 1)}, {}, [x])
    (reason, *_) = explain(ours, [x], x.max((2, 3), keepdims=True))
    assert reason.kind == "parameter"
    assert "nn.AdaptiveMaxPool2d" in reason.text


def test_a_sum_is_told_from_a_mean_by_a_single_number():
    x = normal(1, 16)
    ours = make_operator("torch.mean", {"dim": (1,), "keepdim": False}, {}, [x])
    (reason, *_) = explain(ours, [x], x.sum(1))
    assert reason.kind == "parameter"
    assert "torch.sum" in reason.text


@pytest.mark.parametrize("biased", [False, True])
def test_a_layer_norm_is_told_from_one_by_root_mean_squares(biased):
    x, weight = normal(1, 40, 12) + np.float32(0.7), normal(12)
    params = {"normalized_shape": (12,), "eps": 1e-5, "elementwise_affine": True}
    ours = make_operator("nn.RMSNorm", params, {"weight": weight}, [x])
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight
    if biased:
        y = y + np.arange(12)
    (reason, *_) = explain(ours, [x], y.astype(np.float32))
    assert reason.kind == "normalization"
    assert "mean" in reason.text


def test_the_weight_of_a_norm_without_bias_is_no_scale():
    x, weight = normal(1, 40, 12), normal(12)
    params = {"normalized_shape": (12,), "eps": 1e-5, "elementwise_affine": True}
    ours = make_operator("nn.RMSNorm", params, {"weight": np.ones(12, np.float32)}, [x])
    wide = x.astype(np.float64)
    y = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * weight
    (reason, *_) = explain(ours, [x], y.astype(np.float32))
    assert reason.kind == "normalization"
    np.testing.assert_allclose(reason.changes[0].value, weight, rtol=1e-4)


def test_two_of_five_sizes_are_exchanged():
    x = normal(1, 24, 5)
    operator = make_operator("Tensor.reshape", {"shape": (1, 2, 3, 4, 5)}, {}, [x])
    (reason, *_) = explain(operator, [x], x.reshape(1, 3, 2, 4, 5))
    assert (reason.kind, reason.explains) == ("parameter", 1)
    assert [change.value for change in reason.changes] == [(1, 3, 2, 4, 5)]


def test_a_mask_of_an_attention_that_is_read_oppositely():
    """A module ignores the keys that ``scaled_dot_product_attention`` attends to."""
    query, key, value = normal(1, 4, 3), normal(1, 4, 3), normal(1, 4, 3)
    mask = np.tril(np.ones((4, 4), np.bool_))
    mask[0, 3] = True  # so that each row has both, also inverted
    mask[3, 0] = False
    scores = np.where(mask, query @ key.swapaxes(1, 2) / np.sqrt(3), -np.inf)
    shares = np.exp(scores)
    expected = (shares / shares.sum(-1, keepdims=True)) @ value
    operator = make_operator(
        "F.scaled_dot_product_attention", {}, {}, [0, 1, 2, 3],
        ["query", "key", "value", "attn_mask"],
    )  # fmt: skip
    (reason, *_) = explain(operator, [query, key, value, ~mask], expected.astype(np.float32))
    assert reason.explains == pytest.approx(1, abs=1e-6)
    assert reason.text.startswith("True of input 3, a mask, is false in the reference")
    assert [(change.name, change.value) for change in reason.changes] == [("invert", 3)]


def test_what_is_negative_everywhere_is_scaled_and_not_given_to_an_activation():
    values = -np.abs(normal(1, 1, 24)) - 0.01
    (reason, *_) = explain(
        make_operator("pnnx.Attribute", {}, {"data": values}, []), [], values * -1.5
    )
    assert reason.kind == "scale"


def test_a_wrong_row_of_a_constant_is_no_lost_leaky_relu():
    """Only the wrong row is negative, so a slope would fit it exactly."""
    right = np.abs(normal(1, 6, 16)) + 0.01
    wrong = right.copy()
    wrong[0, 2] *= -1.5
    (reason, *_) = explain(make_operator("pnnx.Attribute", {}, {"data": wrong}, []), [], right)
    assert reason.kind == "weight_values"
    assert "row 2 of the reference is -0.666667 times ours" in reason.text


def test_a_wrong_row_of_a_constant_is_no_lost_clamp():
    """Its numbers are the least of all, as a clamp would have made them."""
    right = np.abs(normal(1, 6, 16)) + 0.01
    right[0, 2] = 0.005
    wrong = right.copy()
    wrong[0, 2] = -np.abs(normal(16))
    (reason, *_) = explain(make_operator("pnnx.Attribute", {}, {"data": wrong}, []), [], right)
    assert reason.kind == "weight_values"


def test_a_gate_lacks_its_activation():
    """A number for each channel would explain as much."""
    x, gate = normal(1, 24, 8, 8), normal(1, 24, 1, 1)
    (reason, *_) = explain(
        make_operator("pnnx.Expression", {"expr": "mul(@0,@1)"}, {}, [0, 1]),
        [x, gate],
        (x / (1 + np.exp(-gate))).astype(np.float32),
    )
    assert reason.kind == "activation_missing"
    assert "sigmoid to input 1" in reason.text


@pytest.mark.parametrize(
    ("right", "compute"),
    [
        ("mul(add(@0,0.75),@1)", lambda x, y: (x + 0.75) * y),
        ("add(@0,mul(@1,3.0))", lambda x, y: x + 3 * y),
    ],
)
def test_a_number_that_an_expression_has_lost_is_fitted(right, compute):
    x, y = normal(2, 30), normal(2, 30)
    wrong = "mul(@0,@1)" if right.startswith("mul") else "add(@0,@1)"
    operator = make_operator("pnnx.Expression", {"expr": wrong}, {}, [x, y])
    (reason, *_) = explain(operator, [x, y], compute(x, y))
    assert reason.kind == "expression"
    assert reason.changes[0].value == right
    assert f"the file {wrong}" in reason.text


def test_a_wrong_row_of_an_embedding_is_called_a_row():
    table, index = normal(5, 4), np.array([[3, 1, 0, 2, 4]])
    wrong = table.copy()
    wrong[2] = normal(4)
    params = {"num_embeddings": 5, "embedding_dim": 4, "sparse": False}
    operator = make_operator("nn.Embedding", params, {"weight": wrong}, [index])
    (reason, *_) = explain(operator, [index], table[index])
    assert reason.kind == "weight_values"
    assert "4 of 20 numbers of the weight differ, in row 2, by up to" in reason.text


def test_a_constant_of_more_dimensions_has_rows():
    """The positions of a sequence are the rows, not the batch of one before them."""
    right = normal(1, 6, 4)
    wrong = right.copy()
    wrong[0, 1:3] = normal(2, 4)
    operator = make_operator("pnnx.Attribute", {}, {"data": wrong}, [])
    (reason, *_) = explain(operator, [], right)
    assert "8 of 24 numbers of the data differ, in 2 rows, by up to" in reason.text


def test_a_constant_of_one_dimension_has_neither_rows_nor_channels():
    right = normal(6)
    operator = make_operator("pnnx.Attribute", {}, {"data": normal(6)}, [])
    (reason, *_) = explain(operator, [], right)
    assert "6 of 6 numbers of the data differ, by up to" in reason.text
