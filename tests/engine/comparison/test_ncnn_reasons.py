"""What is said of layers of ncnn whose numbers are wrong, beside what PyTorch would give."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import F16, f32, tagged, write_pair

import engine
from array_reference import compare, reference_of
from comparison_network import conv3x3
from engine.comparison.reasons import explain


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X = normal(0, 1, 6, 8, 9)
SHORT = X[..., :8]  # square images, for `conv3x3`
GAMMA, BETA = normal(5, 6) + 2, normal(6, 6)


def first_reason(folder, layer, expected, weights=b"", x=X, inputs=1):
    """The first reason that is given for a layer, and its text."""
    taken = [f"in{place}" for place in range(inputs)]
    lines = [f"Input {name} 0 1 {name}" for name in taken]
    kind, _, numbers = layer.partition(" ")
    lines.append(f"{kind} it {inputs} 1 {' '.join(taken)} 1 {numbers}")
    path = write_pair(folder, [*lines, "TanH end 1 1 1 out0"], weights)
    arrays = dict(zip(taken, np.split(x, inputs, 1), strict=True))
    arrays |= {"made": expected, "tanh": np.tanh(expected)}
    calls = (("call", tuple(taken), "made", {}), ("tanh", ("made",), "tanh", {}))
    given = [array[0] for array in list(arrays.values())[:inputs]]
    found = compare(path, reference_of(arrays, calls), *given)
    assert [origin.operator.name for origin in found.origins] == ["it"]
    reason = found.origins[0].reasons[0]
    return reason.kind, reason.text


def group_normed(groups, eps, gamma=GAMMA, beta=BETA):
    parts = [
        (part - part.mean()) / np.sqrt(part.var() + eps)
        for part in np.split(X.astype(np.float64), groups, 1)
    ]
    shape = (1, -1, 1, 1)
    made = np.concatenate(parts, 1) * gamma.reshape(shape) + beta.reshape(shape)
    return made.astype(np.float32)


ONE_OTHER = GAMMA * np.where(np.arange(6) == 2, -1.5, 1).astype(np.float32)


@pytest.mark.parametrize(
    ("numbers", "expected", "kind", "text"),
    [
        ("0=3 1=6 2=0.1 3=1", group_normed(3, 1e-5), "eps", "Set eps=1e-05."),
        ("0=2 1=6 2=1e-5 3=1", group_normed(3, 1e-5), "groups", "Set num_groups=3."),
        (
            "0=3 1=6 2=1e-5 3=1", group_normed(3, 1e-5, np.ones(6), np.zeros(6)),
            "normalization", "neither weight nor bias",
        ),
        ("0=3 1=6 2=1e-5 3=1", group_normed(3, 1e-5, ONE_OTHER), "weight_values", "1 of 6"),
        ("0=3 1=6 2=1e-5 3=1", group_normed(3, 1e-5, beta=-BETA), "bias", "6 of 6 channels"),
    ],
    ids=["eps", "groups", "affine", "gamma", "beta"],
)  # fmt: skip
def test_a_group_norm(tmp_path, numbers, expected, kind, text):
    weights = f32(GAMMA) + f32(BETA)
    found = first_reason(tmp_path, f"GroupNorm {numbers}", expected, weights)
    assert found[0] == kind
    assert text in found[1]


def test_a_lost_statistic_of_a_batch_norm(tmp_path):
    """Numbers of one channel; the layer has no batch axis."""
    mean, var = normal(7, 6), np.abs(normal(8, 6)) + 0.5
    shape = (1, -1, 1, 1)
    scale = GAMMA / np.sqrt(var + 1e-3)
    made = (X - mean.reshape(shape)) * scale.reshape(shape) + BETA.reshape(shape)
    wrong = var * np.where(np.arange(6) == 4, 9, 1)
    weights = f32(GAMMA) + f32(mean) + f32(wrong) + f32(BETA)
    kind, _ = first_reason(tmp_path, "BatchNorm 0=6 1=1e-3", made, weights)
    assert kind == "weight_values"


def padded(pads, mode="constant", **more):
    return np.pad(X, ((0, 0), (0, 0), *pads), mode, **more)


@pytest.mark.parametrize(
    ("numbers", "expected", "text"),
    [
        # top, bottom, left, right; PyTorch's order is left, right, top, bottom.
        ("0=2 1=0 2=1 3=1 4=2", padded(((1, 1), (1, 1)), "reflect"), "Set pad=(1, 1, 1, 1)."),
        ("0=1 1=1 2=1 3=2", padded(((1, 1), (1, 1))), "Set pad=(1, 1, 1, 1)."),
        ("0=1 1=1 2=1 3=1", padded(((1, 1), (1, 1)), "edge"), "Set mode='replicate'."),
        (
            "0=1 1=1 2=1 3=1 5=-2.0", padded(((1, 1), (1, 1)), constant_values=0.5),
            "Set value=0.5.",
        ),
    ],
    ids=["side", "size", "mode", "value"],
)  # fmt: skip
def test_a_border(tmp_path, numbers, expected, text):
    assert text in first_reason(tmp_path, f"Padding {numbers}", expected)[1]


def bilinear(x, rows, columns, *, aligned):
    """Mix four pixels for each of the result, one by one."""
    height, width = x.shape[2:]
    made = np.zeros((*x.shape[:2], rows, columns))
    for i in range(rows):
        for j in range(columns):
            if aligned:
                at = i * (height - 1) / (rows - 1), j * (width - 1) / (columns - 1)
            else:
                at = (i + 0.5) * height / rows - 0.5, (j + 0.5) * width / columns - 0.5
            top, left = (max(0.0, place) for place in at)
            r, c = int(top), int(left)
            below, right = min(r + 1, height - 1), min(c + 1, width - 1)
            b, a = top - r, left - c
            made[:, :, i, j] = (
                (1 - b) * ((1 - a) * x[:, :, r, c] + a * x[:, :, r, right])
                + b * ((1 - a) * x[:, :, below, c] + a * x[:, :, below, right])
            )  # fmt: skip
    return made.astype(np.float32)


@pytest.mark.parametrize(
    ("numbers", "expected", "kind", "text"),
    [
        (
            "0=2 1=2.0 2=2.0 6=1", bilinear(X, 16, 18, aligned=False), "align_corners",
            "Set align_corners=False.",
        ),
        (
            "0=1 1=2.0 2=2.0", bilinear(X, 16, 18, aligned=False), "parameter",
            "Set mode='bilinear'.",
        ),
        ("0=2 3=16 4=18", X.repeat(2, 2).repeat(2, 3), "parameter", "Set mode='nearest'."),
        (
            "0=1 1=3.0 2=2.0", X.repeat(2, 2).repeat(2, 3), "scale",
            "Set scale_factor=(2, 2).",
        ),
        ("0=1 3=12 4=18", X.repeat(2, 2).repeat(2, 3), "parameter", "Set size=(16, 18)."),
    ],
    ids=["corners", "bilinear", "nearest", "scale", "size"],
)  # fmt: skip
def test_a_resized_image(tmp_path, numbers, expected, kind, text):
    found = first_reason(tmp_path, f"Interp {numbers}", expected)
    assert found[0] == kind
    assert text in found[1]


A, B = np.split(X, 2, 1)


@pytest.mark.parametrize(
    ("layer", "expected", "text"),
    [
        ("BinaryOp 0=7", A - B, "computes sub(@0,@1), the file sub(@1,@0). Let the layer"),
        ("BinaryOp 0=2", A + B, "computes add(@0,@1), the file mul(@0,@1)"),
        ("Eltwise 0=1 -23301=2,0.5,1.0", 0.75 * A + B, "computes add(mul(@0,0.75),@1)"),
        ("Eltwise 0=0", np.maximum(A, B), "computes maximum(@0,@1)"),
    ],
    ids=["exchanged", "operation", "factor", "maximum"],
)
def test_arithmetic_of_two(tmp_path, layer, expected, text):
    kind, found = first_reason(tmp_path, layer, expected, inputs=2)
    assert kind == "expression"
    assert text in found


@pytest.mark.parametrize(
    ("layer", "expected", "text"),
    [
        ("BinaryOp 0=0 1=1 2=2.0", X + np.float32(0.3), "computes add(@0,0.3)"),
        ("BinaryOp 0=7 1=1 2=1.5", X - np.float32(1.5), "computes sub(@0,1.5)"),
        ("UnaryOp 0=4", np.abs(X), "computes abs(@0), the file square(@0)"),
    ],
    ids=["constant", "exchanged", "function"],
)
def test_arithmetic_with_a_number(tmp_path, layer, expected, text):
    assert text in first_reason(tmp_path, layer, expected)[1]


def test_an_operand_of_fewer_axes(tmp_path):
    """ncnn broadcasts a number for each channel from the front."""
    gate = X.max((2, 3), keepdims=True)
    path = write_pair(
        tmp_path,
        (
            "Input in0 0 1 in0", "Split two 1 2 in0 1 2", "Pooling pool 1 1 1 3 0=0 4=1",
            "BinaryOp it 2 1 2 3 4 0=0", "TanH end 1 1 4 out0",
        ),
    )  # fmt: skip
    made = X * gate
    arrays = {"in": X, "pool": gate, "made": made, "tanh": np.tanh(made)}
    calls = (
        ("amax", ("in",), "pool", {}), ("mul", ("in", "pool"), "made", {}),
        ("tanh", ("made",), "tanh", {}),
    )  # fmt: skip
    found = compare(path, reference_of(arrays, calls), X[0])
    (origin,) = found.origins
    assert origin.operator.name == "it"
    assert "computes mul(@0,@1), the file add(@0,@1)" in origin.reasons[0].text


def test_parameters_in_words_of_ncnn(tmp_path):
    """A layer that PyTorch does not have is tried with its own parameters."""
    shuffled = X.reshape(1, 2, 3, 8, 9).swapaxes(1, 2).reshape(X.shape)
    kind, text = first_reason(tmp_path, "ShuffleChannel 0=3", shuffled)
    assert kind == "parameter"
    assert "Set group=2." in text
    clipped = np.clip(X, -1, 0.25)
    assert "Set max=0.25." in first_reason(tmp_path, "Clip 0=-1.0 1=1.0", clipped)[1]


WEIGHT, BIAS = normal(1, 4, 6, 3, 3), normal(3, 4)
CONV = "Convolution 0=4 1=3 5=1 6=216"


def test_the_border_of_a_convolution(tmp_path):
    """An uneven border, and one of other numbers than zero, which PyTorch's layer lacks."""
    weights = tagged(WEIGHT) + f32(BIAS)
    made = conv3x3(SHORT, WEIGHT, BIAS).astype(np.float32)
    kind, text = first_reason(tmp_path, f"{CONV} 4=2 15=0 14=2 16=0", made, weights, x=SHORT)
    assert (kind, "Set padding=(1, 1, 1, 1)." in text) == ("padding", True)
    kind, text = first_reason(tmp_path, f"{CONV} 4=1 18=0.75", made, weights, x=SHORT)
    assert (kind, "Set pad_value=0." in text) == ("padding", True)


def test_a_linear_layer_that_flattens(tmp_path):
    """It reads all elements of an image as one row."""
    small = X[:, :2, :2, :2]
    weight = normal(4, 5, 8)
    made = (small.reshape(1, -1).astype(np.float64) @ weight.T + BIAS[0]).astype(np.float32)
    weights = tagged(weight * 4) + f32(np.full(5, BIAS[0]))
    kind, text = first_reason(tmp_path, "InnerProduct 0=5 1=1 2=40", made, weights, x=small)
    assert (kind, "1/4 of ours before the bias" in text) == ("scale", True)


FUSED = {
    "relu": ("9=1", lambda x: np.maximum(x, 0)),
    "leaky": ("9=2 -23310=1,0.1", lambda x: np.where(x > 0, x, x / 10)),
    "clip": ("9=3 -23310=2,-4.0,5.0", lambda x: np.clip(x, -4, 5)),
    "sigmoid": ("9=4", lambda x: 1 / (1 + np.exp(-x))),
}


def fused_reason(folder, name, weight=WEIGHT, bias=BIAS, size=1.0):
    """What is said of a wrong weight or bias of a convolution with a fused activation."""
    numbers, function = FUSED[name]
    made = function(conv3x3(SHORT, WEIGHT * size, BIAS)).astype(np.float32)
    weights = tagged(weight * size) + f32(bias)
    return first_reason(folder, f"{CONV} 4=1 {numbers}", made, weights, x=SHORT)


def with_one(array, index, number):
    array = array.copy()
    array[index] = number
    return array


# A sigmoid of large numbers is 0 or 1 and tells nothing.
SIZES = {"relu": 1, "leaky": 1, "clip": 0.5, "sigmoid": 0.25}


@pytest.mark.parametrize("name", FUSED)
def test_a_wrong_number_before_a_fused_activation(tmp_path, name):
    """Only the elements that the activation does not lose are asked."""
    size = SIZES[name]
    kind, text = fused_reason(tmp_path, name, with_one(WEIGHT, (2, 4, 1, 0), 2), size=size)
    was = WEIGHT[2, 4, 1, 0] * size
    assert kind == "weight_values"
    assert text.startswith(f"weight[2, 4, 1, 0] is {was:.3g}"[:-1])
    assert f"{2 * size:g} in the file" in text
    kind, text = fused_reason(tmp_path, name, bias=with_one(BIAS, 1, 3), size=size)
    assert kind == "bias"
    assert text.startswith(f"The bias of channel 1 is {BIAS[1]:.4g}"[:-1])


def test_a_factor_of_the_weight_before_a_fused_relu(tmp_path):
    kind, text = fused_reason(tmp_path, "relu", WEIGHT / 4)
    assert (kind, "4 times ours before the bias" in text) == ("scale", True)


def test_a_factor_of_one_channel_before_a_fused_relu(tmp_path):
    """64 places, half of them closed, are too few for 54 weights, but not for a factor."""
    wrong = with_one(WEIGHT, 1, WEIGHT[1] / 4)
    kind, text = fused_reason(tmp_path, "relu", wrong)
    assert kind == "weight_values"
    assert text.startswith("The weight of channel 1 of the reference is 4 times ours.")


def test_a_channel_that_the_relu_closes(tmp_path):
    """Nothing is known of its bias but that it is small enough."""
    made = np.maximum(conv3x3(SHORT, WEIGHT, with_one(BIAS, 3, -1e3)), 0).astype(np.float32)
    weights = tagged(WEIGHT) + f32(BIAS)
    kind, text = first_reason(tmp_path, f"{CONV} 4=1 9=1", made, weights, x=SHORT)
    assert made[:, 3].max() == 0
    assert kind == "bias"
    assert "The bias of channel 3 is -" in text


def test_too_few_open_elements(tmp_path):
    """A channel that is open in two places tells nothing of 54 weights."""
    whole = conv3x3(SHORT, WEIGHT, BIAS)
    low = BIAS - np.array([0, 0, np.sort(whole[0, 2].ravel())[-3], 0])
    made = np.maximum(conv3x3(SHORT, WEIGHT, low), 0).astype(np.float32)
    assert (made[0, 2] > 0).sum() == 2
    lines = ("Input in0 0 1 in0", f"{CONV.replace(' ', ' it 1 1 in0 out0 ', 1)} 4=1 9=1")
    weights = tagged(with_one(WEIGHT, 2, -WEIGHT[2])) + f32(low)
    operator = engine.load(write_pair(tmp_path, lines, weights)).operator("it")
    reasons = explain(operator, [SHORT[0]], made[0])
    assert not any(change.name == "weight" for reason in reasons for change in reason.changes)


def test_an_order_of_outputs_of_which_an_activation_clears_some(tmp_path):
    """Cleared channels are all alike; the others tell the order, but not the weights.

    A kernel reads more numbers than there are positions.
    """
    weight, bias = normal(31, 12, 6, 3, 3), np.zeros(12, np.float32)
    bias[[2, 5, 6]] = -1000
    x = X[:, :, :6, :6]
    expected = np.maximum(conv3x3(x, weight, bias), 0).astype(np.float32)
    layer = "Convolution 0=12 1=3 4=1 5=1 6=648 9=1"
    data = tagged(np.roll(weight, 1, 0)) + f32(np.roll(bias, 1))
    kind, text = first_reason(tmp_path, layer, expected, data, x)
    assert kind == "weight_layout"
    order = text.partition("order (")[2].partition(")")[0].split(", ")
    known = [place for place in range(12) if bias[place] == 0]
    assert [int(order[place]) for place in known] == [(place + 1) % 12 for place in known]


def recurrent(rows, weight, bias, state_weight):
    """An LSTM in one direction by its definition; gates are i, f, o and g as in ncnn."""
    width = state_weight.shape[1]
    h = c = np.zeros(width)
    made = []
    for row in rows.astype(np.float64):
        gates = weight @ row + bias + state_weight @ h
        i, f, o = (1 / (1 + np.exp(-gates[n * width : (n + 1) * width])) for n in range(3))
        c = f * c + i * np.tanh(gates[3 * width :])
        h = o * np.tanh(c)
        made.append(h)
    return np.float32(made)


@pytest.mark.parametrize("tag", [0, F16], ids=["float32", "float16"])
def test_a_wrong_bias_of_a_gate(tmp_path, tag):
    """ncnn stores the biases of all gates as one array of three axes."""
    rows, weight, bias, state_weight = (
        normal(40 + n, *shape) / 2 for n, shape in enumerate(((12, 6), (16, 6), (16,), (16, 4)))
    )
    stored = np.float16 if tag else np.float32
    wrong = with_one(bias, 9, 1.5)
    data = b"".join(tagged(each.astype(stored), tag) for each in (weight, wrong, state_weight))
    made = recurrent(rows, weight, bias, state_weight)
    lines = ("Input in0 0 1 in0", "LSTM it 1 1 in0 1 0=4 1=96 2=0", "TanH end 1 1 1 out0")
    path = write_pair(tmp_path, lines, data)
    arrays = {"in": rows, "made": made, "tanh": np.tanh(made)}
    calls = (("lstm", ("in",), "made", {}), ("tanh", ("made",), "tanh", {}))
    (origin,) = compare(path, reference_of(arrays, calls), rows).origins
    assert (origin.operator.name, origin.reasons[0].kind) == ("it", "bias")
    assert origin.reasons[0].text.startswith("1 of 16 numbers of bias_ih_l0 differ.")
    (change,) = origin.reasons[0].changes
    in_torch = bias.reshape(4, 4)[[0, 1, 3, 2]].reshape(-1)  # i, f, g and o
    assert np.abs(change.value - in_torch).max() < 1e-2


def attended(query, key, w, heads):
    """Attention by its definition, head by head; keys are values as well."""
    q, k, v = (
        x @ w[f"{n}_weight"].T + w[f"{n}_bias"]
        for n, x in zip("qkv", (query, key, key), strict=True)
    )
    mixed = []
    for own in np.split(np.arange(len(w["q_bias"])), heads):
        scores = np.exp(q[:, own] @ k[:, own].T / np.sqrt(len(own)))
        mixed.append(scores / scores.sum(1, keepdims=True) @ v[:, own])
    return np.float32(np.concatenate(mixed, 1) @ w["out_weight"].T + w["out_bias"])


ATTENTION_FAULTS = [
    pytest.param({"q_bias": (5, 2.0)}, "bias", "1 of 24 numbers of in_proj_bias", id="query"),
    pytest.param({"out_bias": (5, 2.0)}, "bias", "The bias of channel 5", id="last bias"),
    pytest.param(
        {"out_weight": ((2, 3), 4.0)}, "weight_values", "out_proj.weight[2, 3]", id="last"
    ),
    pytest.param(
        {f"{a}_{key}": f"{b}_{key}" for a, b in ("kv", "vk") for key in ("weight", "bias")},
        "weight_layout", "The projections of the file are in the order qvk", id="order",
    ),
]  # fmt: skip


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("tag", [0, F16], ids=["float32", "float16"])
@pytest.mark.parametrize(("wrong", "kind", "text"), ATTENTION_FAULTS)
def test_an_attention(tmp_path, wrong, kind, text, tag, inputs):
    parts = ("q", "k", "v", "out")
    w = {f"{n}_weight": normal(60 + place, 8, 8) for place, n in enumerate(parts)}
    w |= {f"{n}_bias": normal(70 + place, 8) for place, n in enumerate(parts)}
    rows = [normal(80, 24, 8), normal(81, 20, 8)][:inputs]
    stored = {
        name: w[change] if isinstance(change, str) else with_one(w[name], *change)
        for name, change in wrong.items()
    }
    stored = w | stored
    dtype = np.float16 if tag else np.float32
    data = b"".join(
        tagged(stored[f"{n}_weight"].astype(dtype), tag) + f32(stored[f"{n}_bias"])
        for n in parts
    )
    names = [f"in{place}" for place in range(inputs)]
    lines = [f"Input {name} 0 1 {name}" for name in names]
    lines.append(f"MultiHeadAttention it {inputs} 1 {' '.join(names)} out0 0=8 1=2 2=64")
    made = attended(rows[0], rows[-1], w, 2)
    operator = engine.load(write_pair(tmp_path, lines, data)).operator("it")
    (reason, *_) = explain(operator, rows, made)
    assert (reason.kind, reason.text[: len(text)]) == (kind, text)


GATE_FAULTS = {
    # ncnn's order is i, f, o, g; PyTorch's i, f, g, o.
    "order": ([0, 1, 3, 2], "The gates of the file are in the order"),
    "two": ([1, 0, 2, 3], "The gates of the file are in the order fi"),
}


@pytest.mark.parametrize("tag", [0, F16], ids=["float32", "float16"])
@pytest.mark.parametrize(("order", "text"), GATE_FAULTS.values(), ids=GATE_FAULTS)
def test_gates_of_both_directions_in_another_order(tmp_path, order, text, tag):
    shapes = ((2, 16, 6), (2, 16), (2, 16, 4))
    right = [normal(50 + place, *shape) / 2 for place, shape in enumerate(shapes)]
    rows = normal(59, 12, 6)
    ahead, back = (
        recurrent(given, *(array[place] for array in right))
        for place, given in enumerate((rows, rows[::-1]))
    )
    dtype = np.float16 if tag else np.float32
    data = b"".join(tagged(a.reshape(2, 4, -1)[:, order].astype(dtype), tag) for a in right)
    lines = ("Input in0 0 1 in0", "LSTM it 1 1 in0 out0 0=4 1=192 2=2")
    operator = engine.load(write_pair(tmp_path, lines, data)).operator("it")
    (reason, *_) = explain(operator, [rows], np.concatenate([ahead, back[::-1]], 1))
    assert (reason.kind, reason.text[: len(text)]) == ("weight_layout", text)


def test_the_second_bias_of_a_new_gate(tmp_path):
    """That of a GRU which the reset gate multiplies."""
    weight, bias, state_weight = normal(90, 12, 6) / 2, normal(91, 4, 4), normal(92, 12, 4) / 2
    rows, h, made = normal(93, 12, 6), np.zeros(4), []
    for row in rows:
        x, own = (weight @ row).reshape(3, 4) + bias[:3], (state_weight @ h).reshape(3, 4)
        r, z = 1 / (1 + np.exp(-x[:2] - own[:2]))
        h = (1 - z) * np.tanh(x[2] + r * (own[2] + bias[3])) + z * h
        made.append(h)
    wrong = with_one(bias, (3, 1), 1.5)
    data = b"".join(map(tagged, (weight, wrong, state_weight)))
    lines = ("Input in0 0 1 in0", "GRU it 1 1 in0 out0 0=4 1=72")
    operator = engine.load(write_pair(tmp_path, lines, data)).operator("it")
    (reason, *_) = explain(operator, [rows], np.float32(made))
    assert reason.text.startswith("1 of 12 numbers of bias_hh_l0 differ.")
    assert reason.changes[0].value[9] == pytest.approx(bias[3, 1], abs=1e-3)


SQUARE = normal(100, 1, 6, 8, 8)
KERNEL, SHIFT = normal(101, 6, 6, 3, 3) / 4, normal(102, 6)


@pytest.mark.parametrize(
    ("numbers", "kind", "text"),
    [("3=2 4=1", "stride", "Set stride=(1, 1)."), ("4=0", "padding", "Set padding=(1, 1).")],
    ids=["stride", "padding"],
)
def test_windows_of_which_only_the_sum_behind_tells_the_size(tmp_path, numbers, kind, text):
    """ncnn's files have no shapes, and the sum with the wrong size fails."""
    lines = (
        "Input in0 0 1 in0", "Split two 1 2 in0 1 2",
        f"Convolution it 1 1 1 3 0=6 1=3 5=1 6=324 {numbers}",
        "BinaryOp sum 2 1 3 2 4 0=0", "TanH end 1 1 4 out0",
    )  # fmt: skip
    path = write_pair(tmp_path, lines, tagged(KERNEL) + f32(SHIFT))
    total = (conv3x3(SQUARE, KERNEL, SHIFT) + SQUARE).astype(np.float32)
    arrays = {"in": SQUARE, "sum": total, "tanh": np.tanh(total)}
    calls = (("fused", ("in",), "sum", {}), ("tanh", ("sum",), "tanh", {}))
    (origin,) = compare(path, reference_of(arrays, calls), SQUARE[0]).origins
    assert (origin.operator.name, origin.reasons[0].kind) == ("it", kind)
    assert text in origin.reasons[0].text


def test_a_gate_that_hardly_depends_on_it_clears_nothing(tmp_path):
    """Averages of a wrong size are almost the right ones, and so is a gate of them."""
    lines = (
        "Input in0 0 1 in0", "Split two 1 2 in0 1 2",
        "Convolution it 1 1 1 3 0=6 1=3 3=2 4=1 5=1 6=324", "Split both 1 2 3 3a 3b",
        "Pooling pool 1 1 3a 4 0=1 4=1", "InnerProduct fc 1 1 4 5 0=6 1=1 2=36",
        "HardSigmoid gate 1 1 5 6", "BinaryOp mul 2 1 3b 6 7 0=2",
        "BinaryOp sum 2 1 7 2 8 0=0", "TanH end 1 1 8 out0",
    )  # fmt: skip
    weight, bias = normal(103, 6, 6) * 1e-3, normal(104, 6) / 10
    path = write_pair(tmp_path, lines, tagged(KERNEL) + f32(SHIFT) + tagged(weight) + f32(bias))
    conv = conv3x3(SQUARE, KERNEL, SHIFT).astype(np.float32)
    pool = conv.mean((2, 3), keepdims=True)
    fc = (pool.reshape(1, 6) @ weight.T + bias).reshape(1, 6, 1, 1).astype(np.float32)
    gate = np.clip(fc * np.float32(0.2) + np.float32(0.5), 0, 1)
    total = conv * gate + SQUARE
    arrays = {
        "in": SQUARE, "conv": conv, "pool": pool, "fc": fc, "gate": gate, "mul": conv * gate,
        "sum": total, "tanh": np.tanh(total),
    }  # fmt: skip
    calls = (
        ("conv", ("in",), "conv", {}), ("mean", ("conv",), "pool", {}),
        ("linear", ("pool",), "fc", {}), ("hardsigmoid", ("fc",), "gate", {}),
        ("mul", ("conv", "gate"), "mul", {}), ("add", ("mul", "in"), "sum", {}),
        ("tanh", ("sum",), "tanh", {}),
    )  # fmt: skip
    (origin,) = compare(path, reference_of(arrays, calls), SQUARE[0]).origins
    assert (origin.operator.name, origin.reasons[0].kind) == ("it", "stride")


def test_a_permutation_is_named_instead_of_a_reader_that_fails(tmp_path):
    """What it leaves in place has the elements of the reference before it, and after it."""
    lines = (
        "Input in0 0 1 in0", "MemoryData pos 0 1 0 0=6 1=9",
        "Convolution conv 1 1 in0 1 0=6 1=1 6=36", "Reshape flat 1 1 1 2 0=9 1=6",
        "Permute it 1 1 2 3 0=0", "BinaryOp sum 2 1 3 0 4 0=0", "TanH end 1 1 4 out0",
    )  # fmt: skip
    x, pos = normal(110, 1, 6, 3, 3), normal(111, 1, 9, 6)
    weight = normal(112, 6, 6)
    made = np.einsum("oi,nihw->nohw", weight, x)
    moved = made.reshape(1, 6, 9).swapaxes(1, 2)
    arrays = {"in": x, "made": made, "moved": moved, "pos": pos, "sum": moved + pos}
    arrays["tanh"] = np.tanh(arrays["sum"])
    calls = (
        ("conv", ("in",), "made", {"weight": weight}), ("transpose", ("made",), "moved", {}),
        ("add", ("moved", "pos"), "sum", {}), ("tanh", ("sum",), "tanh", {}),
    )  # fmt: skip
    path = write_pair(tmp_path, lines, f32(pos) + tagged(weight))
    (origin,) = compare(path, reference_of(arrays, calls), x[0]).origins
    assert origin.operator.name == "it"
    assert "Set order_type=1." in origin.reasons[0].text


def spread3x3(x, weight, bias, groups):
    """A transposed convolution by its definition: stride 2, a row and a column cut off."""
    channels, outputs = weight.shape[:2]
    height, width = x.shape[2:]
    made = np.zeros((1, outputs * groups, 2 * height + 1, 2 * width + 1))
    for c in range(channels):
        first = c // (channels // groups) * outputs
        for o in range(outputs):
            for i, j in np.ndindex(height, width):
                kernel = x[0, c, i, j].astype(np.float64) * weight[c, o]
                made[0, first + o, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += kernel
    return np.float32(made[:, :, 1:, 1:] + bias.reshape(1, -1, 1, 1))


SPREAD_FAULTS = [
    pytest.param(
        {"weight": ((2, 1, 0, 1), 9.0)}, "weight_values", "weight[2, 1, 0, 1]", id="1"
    ),
    pytest.param({"bias": (3, 9.0)}, "bias", "The bias of channel 3", id="bias"),
    pytest.param({"weight": None}, "weight_layout", "The weight of the reference", id="turned"),
]


@pytest.mark.parametrize("tag", [0, F16], ids=["float32", "float16"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("wrong", "kind", "text"), SPREAD_FAULTS)
def test_a_transposed_convolution(tmp_path, wrong, kind, text, groups, tag):
    """ncnn has its output channels first, PyTorch its input channels."""
    weight, bias = normal(130, 6, 4 // groups, 3, 3), normal(131, 4)
    right = {"weight": weight, "bias": bias}
    stored = right | {
        name: with_one(right[name], *change) if change else np.swapaxes(right[name], 2, 3)
        for name, change in wrong.items()
    }
    parts = stored["weight"].reshape(groups, 6 // groups, 4 // groups, 3, 3).swapaxes(1, 2)
    data = tagged(parts.astype(np.float16 if tag else np.float32), tag) + f32(stored["bias"])
    kind_of_layer = "DeconvolutionDepthWise" if groups > 1 else "Deconvolution"
    layer = f"{kind_of_layer} 0=4 1=3 3=2 4=1 18=1 5=1 6={weight.size} 7={groups}"
    made = spread3x3(X, weight, bias, groups)
    found = first_reason(tmp_path, layer, made, data)
    assert (found[0], found[1][: len(text)]) == (kind, text)


def test_a_row_of_a_table(tmp_path):
    table, index = normal(132, 9, 5), np.array([3, 8, 0, 3, 5])
    lines = ("Input in0 0 1 in0", "Embed it 1 1 in0 out0 0=5 1=9 2=0 3=45")
    operator = engine.load(write_pair(tmp_path, lines, tagged(with_one(table, (8, 2), 7))))
    (reason, *_) = explain(operator.operator("it"), [index], table[index])
    assert reason.text.startswith("weight[8, 2] is ")


@pytest.mark.parametrize(
    "layer", ["-23309=2,1,3 -23310=2,5,9 -23311=2,1,2", "0=3 1=1 3=6 4=4 5=6"]
)
@pytest.mark.parametrize(
    ("rows", "columns", "text"),
    [
        ((2, 6), (1, 7), "Set starts=(2, 1), ends=(6, 7) and axes=(1, 2)."),
        ((2, 6), (0, 9), "Set starts=(2, 0), ends=(6, 9) and axes=(1, 2)."),
        ((0, 8), (0, 9), "Set starts=(0, 0), ends=(8, 9) and axes=(1, 2)."),
    ],
)
def test_another_region(tmp_path, layer, rows, columns, text):
    """Of 8 rows and 9 columns, with the axes: a file may state other ones, or offsets."""
    found = first_reason(tmp_path, f"Crop {layer}", X[:, :, slice(*rows), slice(*columns)])
    assert found[0] == "parameter"
    assert text in found[1]


def test_a_reshape_whose_size_only_what_follows_tells(tmp_path):
    """The product of a matrix with itself; both readers get it from a copy."""
    lines = (
        "Input in0 0 1 in0", "Sigmoid act 1 1 in0 1", "Reshape it 1 1 1 2 0=6 1=72",
        "Split two 1 2 2 3 4", "MatMul product 2 1 3 4 5 0=1",
        "BinaryOp less 1 1 5 6 0=2 1=1 2=0.25", "TanH end 1 1 6 out0",
    )  # fmt: skip
    act = np.float32(1 / (1 + np.exp(-X)))
    rows = act.reshape(1, 6, 72)
    product = (rows.astype(np.float64) @ rows.swapaxes(1, 2)).astype(np.float32)
    arrays = {"in": X, "act": act, "product": product, "less": product / 4}
    arrays["tanh"] = np.tanh(product / 4)
    calls = (
        ("sigmoid", ("in",), "act", {}), ("bmm", ("act", "act"), "product", {}),
        ("mul", ("product",), "less", {}), ("tanh", ("less",), "tanh", {}),
    )  # fmt: skip
    path = write_pair(tmp_path, lines)
    (origin,) = compare(path, reference_of(arrays, calls), X[0]).origins
    assert origin.operator.name == "it"
    assert "Set w=72, h=6." in origin.reasons[0].text


def test_a_transposed_kernel_of_an_image_that_hardly_varies(tmp_path):
    """Its result is nearly the reference's with rows and columns exchanged."""
    x = 1 + normal(140, 1, 6, 8, 8) / 100
    depth, shift = normal(141, 6, 1, 3, 3), normal(142, 6)
    whole = np.zeros((6, 6, 3, 3))
    whole[range(6), range(6)] = depth[:, 0]
    made = conv3x3(x, whole, shift).astype(np.float32)
    whole[range(6), range(6)] = depth[:, 0].swapaxes(1, 2)
    turned = conv3x3(x, whole, shift).swapaxes(2, 3)
    assert np.abs(turned - made).max() < 0.05 * np.abs(made).max()
    weights = tagged(np.ascontiguousarray(depth.swapaxes(2, 3))) + f32(shift)
    layer = "ConvolutionDepthWise 0=6 1=3 4=1 5=1 6=54 7=6"
    kind, text = first_reason(tmp_path, layer, made, weights, x)
    assert kind == "weight_layout"
    assert "The weight of the reference is the file's" in text
