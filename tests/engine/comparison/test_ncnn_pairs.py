"""Faults in pairs of ncnn, whose files state no shapes, beside references with a batch axis."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import f32, tagged, write_pair

from array_reference import compare, reference_of
from comparison_network import conv3x3


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
