"""Faults in pairs of ncnn, whose files state no shapes, beside references with a batch axis."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import f32, tagged, write_pair

from array_reference import compare, reference_of
from comparison_network import conv3x3
from engine.comparison.fingerprints import positions_of


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X = normal(0, 1, 3, 8, 8)
WEIGHTS = {name: normal(seed, 4, count, 3, 3) for seed, (name, count) in
           enumerate((("first", 3), ("second", 4)), 1)}  # fmt: skip
BIAS = normal(3, 4)


def conv(name, source, made, pad, count):
    numbers = f"0=4 1=3 2=1 3=1 4={pad} 5=1 6={4 * count * 9}"
    return f"Convolution {name} 1 1 {source} {made} {numbers}"


def write(folder, first_pad=1, second_pad=1):
    lines = (
        "Input in0 0 1 in0", conv("first", "in0", 1, first_pad, 3), "ReLU act 1 1 1 2",
        conv("second", 2, 3, second_pad, 4), "TanH act2 1 1 3 out0",
    )  # fmt: skip
    data = b"".join(tagged(weight) + f32(BIAS) for weight in WEIGHTS.values())
    return write_pair(folder, lines, data)


def theirs(*, hashes):
    """A reference that, without hashes, normalizes behind each of its convolutions."""
    first = conv3x3(X, WEIGHTS["first"], BIAS).astype(np.float32)
    relu = np.maximum(first, 0)
    second = conv3x3(relu, WEIGHTS["second"], BIAS).astype(np.float32)
    arrays, calls, source = {"in": X}, [], "in"
    for name, made, after, result in (
        ("first", first, "relu", relu), ("second", second, "tanh", np.tanh(second))
    ):  # fmt: skip
        given, weights = source, {"weight": WEIGHTS[name]} if hashes else {}
        if not hashes:  # the weights are folded into ours
            arrays[f"{name} raw"] = 3 * made + 1
            calls.append(("convolution", (given,), f"{name} raw", {"weight": normal(9, 4, 3)}))
            given = f"{name} raw"
        arrays[name] = made
        kind = "convolution" if hashes else "batch_norm"
        calls.append((kind, (given,), name, weights))
        arrays[after] = result
        calls.append((after, (name,), after, {}))
        source = after
    return reference_of(arrays, calls)


@pytest.mark.parametrize("hashes", [True, False], ids=["weights", "folded weights"])
@pytest.mark.parametrize("wrong", ["first", "second"])
def test_a_wrong_size_is_an_origin(tmp_path, hashes, wrong):
    """The file states no shape that the reference's tensor could fit."""
    path = write(tmp_path, **{f"{wrong}_pad": 2})
    found = compare(path, theirs(hashes=hashes), X[0])
    assert found.verdict == "differs"
    assert [origin.operator.name for origin in found.origins] == [wrong]
    assert "it gives 4×10×10, the reference 1×4×8×8" in found.origins[0].text


@pytest.mark.parametrize("hashes", [True, False], ids=["weights", "folded weights"])
def test_a_right_pair_has_no_origins(tmp_path, hashes):
    found = compare(write(tmp_path), theirs(hashes=hashes), X[0])
    assert (found.verdict, found.origins) == ("same", ())


def test_an_output_of_another_size_differs(tmp_path):
    """Even if nothing else tells where: outputs have their place."""
    path = write_pair(
        tmp_path, ("Input in0 0 1 in0", "Softmax all 1 1 in0 1 0=0 1=1",
                   "Interp out 1 1 1 out0 0=1 1=2.0 2=2.0"),
    )  # fmt: skip
    powers = np.exp(X)
    soft = powers / powers.sum(1, keepdims=True)
    arrays = {"in": X, "softmax": soft, "up": soft.repeat(3, 2).repeat(3, 3)}
    calls = (("softmax", ("in",), "softmax", {}), ("upsample", ("softmax",), "up", {}))
    found = compare(path, reference_of(arrays, calls), X[0])
    assert [origin.operator.name for origin in found.origins] == ["out"]


def reasons(found):
    return [(o.operator.name, o.reasons[0].kind) for o in found.origins if o.reasons]


@pytest.mark.parametrize(
    ("lines", "wrong", "kind"),
    [
        ("Convolution conv 1 1 in0 1 0=4 1=3 2=1 3=1 4={} 5=1 6=108 9=1", (1, 0), "padding"),
        ("Convolution conv 1 1 in0 1 0=4 1=3 2={} 3=1 4=1 5=1 6=108 9=1", (1, 2), "dilation"),
    ],
)
def test_a_parameter_of_a_convolution_with_its_activation(tmp_path, lines, wrong, kind):
    """PyTorch's words name it; the layer's own ReLU is applied to each alternative."""
    weight = WEIGHTS["first"]
    path = write_pair(
        tmp_path, ("Input in0 0 1 in0", lines.format(wrong[1]), "TanH end 1 1 1 out0"),
        tagged(weight) + f32(BIAS),
    )  # fmt: skip
    relu = np.maximum(conv3x3(X, weight, BIAS), 0).astype(np.float32)
    arrays = {"in": X, "conv": relu, "tanh": np.tanh(relu)}
    calls = (("convolution", ("in",), "conv", {"weight": weight}),
             ("tanh", ("conv",), "tanh", {}))  # fmt: skip
    found = compare(path, reference_of(arrays, calls), X[0])
    assert reasons(found) == [("conv", kind)]


@pytest.mark.parametrize("fused", [False, True], ids=["alone", "with a ReLU"])
def test_kernels_are_rotated(tmp_path, fused):
    weight = WEIGHTS["first"]
    line = f"{conv('conv', 'in0', 1, 1, 3)} 9={int(fused)}"
    path = write_pair(
        tmp_path, ("Input in0 0 1 in0", line, "TanH end 1 1 1 out0"),
        tagged(weight[..., ::-1, ::-1]) + f32(BIAS),
    )  # fmt: skip
    made = conv3x3(X, weight, BIAS).astype(np.float32)
    made = np.maximum(made, 0) if fused else made
    arrays = {"in": X, "conv": made, "tanh": np.tanh(made)}
    calls = (("convolution", ("in",), "conv", {}), ("tanh", ("conv",), "tanh", {}))
    found = compare(path, reference_of(arrays, calls), X[0])
    assert reasons(found) == [("conv", "weight_layout")]


def test_numbers_and_axes_of_small_layers(tmp_path):
    """Another epsilon, slope and axis, each on the reference's own inputs."""
    gain, shift = normal(5, 8) + 2, normal(6, 8)
    path = write_pair(
        tmp_path,
        (
            "Input in0 0 1 in0", "LayerNorm norm 1 1 in0 1 0=8 1=0.5 2=1",
            "ReLU leaky 1 1 1 2 0=0.3", "Softmax soft 1 1 2 3 0=1 1=1", "TanH end 1 1 3 out0",
        ),
        f32(gain) + f32(shift),
    )  # fmt: skip
    centred = X - X.mean(-1, keepdims=True)
    norm = centred / np.sqrt(X.var(-1, keepdims=True) + 1e-5) * gain + shift
    leaky = np.where(norm > 0, norm, 0.1 * norm).astype(np.float32)
    powers = np.exp(leaky - leaky.max())
    soft = powers / powers.sum(-1, keepdims=True)
    arrays = {"in": X, "norm": norm, "leaky": leaky, "soft": soft, "tanh": np.tanh(soft)}
    calls = (
        ("layer_norm", ("in",), "norm", {}), ("leaky_relu", ("norm",), "leaky", {}),
        ("softmax", ("leaky",), "soft", {}), ("tanh", ("soft",), "tanh", {}),
    )  # fmt: skip
    found = compare(path, reference_of(arrays, calls), X[0])
    assert reasons(found) == [("norm", "eps"), ("leaky", "parameter"), ("soft", "axis")]


@pytest.mark.parametrize(
    ("numbers", "kind"), [("3=1 6=1", "count_include_pad"), ("3=0 6=0", "padding")]
)
def test_windows_of_a_pooling(tmp_path, numbers, kind):
    """The reference pads by 1 and divides by the numbers that are inside."""
    line = f"Pooling pool 1 1 in0 1 0=1 1=3 2=1 5=1 {numbers}"
    path = write_pair(tmp_path, ("Input in0 0 1 in0", line, "TanH end 1 1 1 out0"))
    pooled = np.empty_like(X)
    for row in range(8):
        for column in range(8):
            part = X[..., max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
            pooled[..., row, column] = part.mean((2, 3))
    arrays = {"in": X, "pool": pooled, "tanh": np.tanh(pooled)}
    calls = (("avg_pool2d", ("in",), "pool", {}), ("tanh", ("pool",), "tanh", {}))
    found = compare(path, reference_of(arrays, calls), X[0])
    assert reasons(found) == [("pool", kind)]


def test_a_copy_takes_no_tensor_of_another_size(tmp_path):
    """A pooling that is not global gives the image; what copies it is not to blame."""
    path = write_pair(
        tmp_path,
        (
            "Input in0 0 1 in0", "TanH first 1 1 in0 1", "Split two 1 2 1 2 3",
            "Pooling pool 1 1 3 4 0=0 4=0 1=1", "BinaryOp end 2 1 2 4 out0 0=2",
        ),
    )  # fmt: skip
    first = np.tanh(X)
    pooled = first.max((2, 3), keepdims=True)
    arrays = {"in": X, "tanh": first, "pool": pooled, "mul": first * pooled}
    calls = (
        ("tanh", ("in",), "tanh", {}), ("adaptive_max_pool2d", ("tanh",), "pool", {}),
        ("mul", ("tanh", "pool"), "mul", {}),
    )  # fmt: skip
    found = compare(path, reference_of(arrays, calls), X[0])
    assert [origin.operator.name for origin in found.origins] == ["pool"]


def test_a_clip_of_few_elements_in_thousands(tmp_path):
    """Its input and its result agree wherever a fingerprint looks."""
    path = write_pair(
        tmp_path,
        (
            "Input in0 0 1 in0", "TanH first 1 1 in0 1", "Split two 1 2 1 2 3",
            "Clip clip 1 1 2 4 0=-1.0 1=0.95", "BinaryOp end 2 1 3 4 out0 0=0",
        ),
    )  # fmt: skip
    large = np.random.default_rng(3).uniform(-1, 0.9, (1, 3, 40, 40)).astype(np.float32)
    for place in positions_free(large.size)[:3]:
        large.reshape(-1)[place] = 4
    first = np.tanh(large)
    clipped = np.minimum(first, np.float32(0.95))
    arrays = {"in": large, "tanh": first, "clamp": clipped, "add": first + clipped}
    calls = (
        ("tanh", ("in",), "tanh", {}), ("clamp", ("tanh",), "clamp", {}),
        ("add", ("tanh", "clamp"), "add", {}),
    )  # fmt: skip
    found = compare(path, reference_of(arrays, calls), large[0])
    rows = {row.operator.name: row.reference for row in found.rows}
    assert rows["clip"] == "clamp"
    assert (found.verdict, found.origins) == ("same", ())


def positions_free(size):
    """Positions at which a fingerprint does not look."""
    return np.setdiff1d(np.arange(size), positions_of(size))
