"""Origins among operators that the reference does not show."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import engine
from array_reference import compare, reference_of
from engine.comparison import Status
from engine.comparison.computing import Computing
from engine.comparison.references import Reference, ReferenceOperator, ReferenceTensor
from engine.comparison.references.reference import hash_weight
from engine.errors import EngineError
from engine.inputs import ImageOptions, InputSource, SourceImage, load_input

RNG = np.random.default_rng(8)
SIZE = "(1,4,6,6)f32"
POINTWISE = (
    "bias=True dilation=(1,1) groups=1 in_channels=4 kernel_size=(1,1) out_channels=4 "
    "padding=(0,0) padding_mode=zeros stride=(1,1) @bias=(4)f32 @weight=(4,4,1,1)f32"
)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def pointwise(x, weight, bias):
    mixed = np.einsum("oc,nchw->nohw", weight[:, :, 0, 0], x.astype(np.float64))
    return (mixed + bias[:, None, None]).astype(np.float32)


def silu(x):
    return x / (1 + np.exp(-x))


def shown(arrays, inputs=("in0x",), operators=()):
    """A reference with some tensors, named like operators as outputs of modules are."""
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    return Reference("theirs", tensors, operators, inputs, list(arrays)[-1:])


@pytest.fixture
def run(make_pair):
    def make(x, *lines, **weights):
        path = make_pair(*lines, weights={k.replace("__", "."): w for k, w in weights.items()})
        session = engine.Session(engine.load(path), backend="numpy")
        if x is not None:
            session.feed([x])
        return session

    return make


def blamed(comparison):
    return [
        (o.operator.name, [each.name for each in o.among], [r.kind for r in o.reasons][:1])
        for o in comparison.origins
    ]


@pytest.mark.parametrize(
    ("name", "index", "kind"), [("bias", 2, "bias"), ("weight", (1, 3), "weight_values")]
)
def test_a_number_before_an_activation_that_is_fused(run, name, index, kind):
    """The ReLU loses half of the numbers; those that are left tell the wrong one."""
    x, weight, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4)
    right = {"weight": weight, "bias": bias}
    wrong = {key: array.copy() for key, array in right.items()}
    wrong[name][index] += 0.5
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"F.relu act 1 1 1 2 $input=1 #2={SIZE}",
        "pnnx.Output out0 1 0 2",
        conv__weight=wrong["weight"],
        conv__bias=wrong["bias"],
    )
    theirs = shown({"in0x": x, "fused": np.maximum(pointwise(x, weight, bias), 0)})
    found = engine.compare(session, theirs)
    assert blamed(found) == [("conv", [], [kind])]
    (change,) = found.origins[0].reasons[0].changes
    assert change.name == name
    np.testing.assert_allclose(change.value, right[name], atol=1e-4)
    assert "seen at F.relu 'act'" in found.origins[0].text


def test_an_activation_that_is_fused_with_what_reads_it(run):
    """Only the softmax is shown; ours has another activation before it."""
    x = normal(5, 7)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(5,7)f32",
        "F.gelu act 1 1 0 1 $input=0 #1=(5,7)f32",
        "F.softmax last 1 1 1 2 dim=1 $input=1 #2=(5,7)f32",
        "pnnx.Output out0 1 0 2",
    )
    powers = np.exp(silu(x))
    theirs = shown({"in0x": x, "soft": powers / powers.sum(1, keepdims=True)})
    assert blamed(engine.compare(session, theirs)) == [("act", [], ["activation_missing"])]


def test_a_lost_activation_is_named_at_the_operator_that_does_nothing(run):
    x, weight, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"nn.Identity act 1 1 1 2 #2={SIZE}",
        f"nn.Conv2d next 1 1 2 3 {POINTWISE} #3={SIZE}",
        "pnnx.Output out0 1 0 3",
        conv__weight=weight, conv__bias=bias, next__weight=weight, next__bias=bias,
    )  # fmt: skip
    first = pointwise(x, weight, bias)
    theirs = shown({"in0x": x, "conv": first, "next": pointwise(silu(first), weight, bias)})
    assert blamed(engine.compare(session, theirs)) == [("act", [], ["activation_missing"])]


def two_readers(run, x, middle, weights):
    return run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        middle,
        f"nn.Conv2d left 1 1 2 3 {POINTWISE} #3={SIZE}",
        f"nn.Conv2d right 1 1 2 4 {POINTWISE} #4={SIZE}",
        f"pnnx.Expression sum 2 1 3 4 5 expr=add(@0,@1) #5={SIZE}",
        "pnnx.Output out0 1 0 5",
        **{f"{name}__{key}": array for name, pair in weights.items()
           for key, array in zip(("weight", "bias"), pair, strict=True)},
    )  # fmt: skip


def test_one_operator_explains_all_that_read_it(run):
    x = normal(1, 4, 6, 6)
    weights = {name: (normal(4, 4, 1, 1), normal(4)) for name in ("conv", "left", "right")}
    middle = f"pnnx.Expression mid 2 1 1 0 2 expr=sub(@0,@1) #2={SIZE}"
    first = pointwise(x, *weights["conv"])
    left, right = (pointwise(first + x, *weights[name]) for name in ("left", "right"))
    theirs = shown(
        {"in0x": x, "conv": first, "left": left, "right": right, "sum": left + right}
    )
    found = engine.compare(two_readers(run, x, middle, weights), theirs)
    assert blamed(found) == [("mid", [], ["expression"])]
    rows = {row.operand: row for row in found.rows}
    assert rows["4"].status is Status.INHERITED
    assert "once pnnx.Expression 'mid' is corrected" in rows["4"].reason


def test_the_span_is_named_where_nothing_explains(run):
    x = normal(1, 4, 6, 6)
    weight, bias = normal(4, 4, 1, 1), normal(4)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"pnnx.Expression one 1 1 1 2 expr=sin(@0) #2={SIZE}",
        f"pnnx.Expression two 1 1 2 3 expr=cos(@0) #3={SIZE}",
        f"nn.Conv2d next 1 1 3 4 {POINTWISE} #4={SIZE}",
        "pnnx.Output out0 1 0 4",
        conv__weight=weight, conv__bias=bias, next__weight=weight, next__bias=bias,
    )  # fmt: skip
    theirs = shown({"in0x": x, "conv": pointwise(x, weight, bias), "next": normal(1, 4, 6, 6)})
    (origin,) = engine.compare(session, theirs).origins
    assert (origin.operator.name, origin.reasons) == ("next", ())
    assert [each.name for each in origin.among] == ["one", "two"]
    assert origin.text.endswith(
        "the reference shows nothing between conv and it, so one of 3 operators differs: this "
        "one, one, two"
    )


STEM = (
    "bias=True dilation=(1,1) groups=1 in_channels=3 kernel_size=(1,1) out_channels=4 "
    "padding=(0,0) padding_mode=zeros stride=(1,1) @bias=(4)f32 @weight=(4,3,1,1)f32"
)


@pytest.mark.parametrize("fused", [False, True])
def test_the_input_is_told_from_the_first_activations(run, fused):
    """The reference has no input, and all that read ours differ."""
    x = RNG.random((1, 3, 8, 8), np.float32)
    weights = [(normal(4, 3, 1, 1), normal(4)) for _ in range(2)]
    size = "(1,4,8,8)f32"
    lines = [
        "pnnx.Input in0 0 1 0 #0=(1,3,8,8)f32",
        f"nn.Conv2d one 1 1 0 1 {STEM} #1={size}",
        f"nn.Conv2d two 1 1 0 2 {STEM} #2={size}",
        f"F.leaky_relu act 1 1 1 3 negative_slope=0.1 $input=1 #3={size}",
        f"pnnx.Expression sum 2 1 3 2 4 expr=add(@0,@1) #4={size}",
        "pnnx.Output out0 1 0 4",
    ]
    session = run(
        x, *lines, one__weight=weights[0][0], one__bias=weights[0][1],
        two__weight=weights[1][0], two__bias=weights[1][1],
    )  # fmt: skip
    one, two = (pointwise(x[:, ::-1], *pair) for pair in weights)
    act = np.where(one > 0, one, np.float32(0.1) * one)
    arrays = {"one": one, "two": two, "act": act, "sum": act + two}
    if fused:
        del arrays["one"]
    found = engine.compare(session, shown(arrays, inputs=()))
    (origin,) = found.origins
    assert (origin.operator.name, origin.reasons[0].kind) == ("in0", "channel_order")
    assert "BGR" in origin.reasons[0].text


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ("bicubic", "stretched to 24×24, bicubic as in Pillow. Set resampling=bicubic."),
        ("bilinear", "until its shorter side is 26, then cut to 24×24; bilinear"),
        ("letterbox", "letterboxed: .* in the centre; .*; the border is 0. Set fit=letter"),
    ],
)
@pytest.mark.parametrize("fused", [False, True])
def test_resizing_is_told_from_the_first_activations(run, tmp_path, method, named, fused):
    """The reference has no input; ours is made from an image."""
    picture = pytest.importorskip("PIL.Image")
    rows, columns = np.mgrid[:60, :90]
    wave = np.stack([np.sin(rows / 3) + np.cos(columns / 5), rows / 30, np.sin(columns / 4)])
    grain = np.random.default_rng(5).normal(0, 12, (60, 90, 3))
    image = picture.fromarray(
        np.clip(wave.transpose(1, 2, 0) * 60 + 100 + grain, 0, 255).astype(np.uint8)
    )
    path = tmp_path / "photo.png"
    weight, second, bias = normal(4, 3, 1, 1), normal(4, 4, 1, 1), normal(4)
    image.save(path)
    size = "(1,4,24,24)f32"
    session = run(
        None,
        "pnnx.Input in0 0 1 0 #0=(1,3,24,24)f32",
        f"nn.Conv2d one 1 1 0 1 {STEM} #1={size}",
        f"F.relu act 1 1 1 2 $input=1 #2={size}",
        f"nn.Conv2d two 1 1 2 3 {POINTWISE} #3={size}",
        "pnnx.Output out0 1 0 3",
        one__weight=weight, one__bias=bias, two__weight=second, two__bias=bias,
    )  # fmt: skip
    source = SourceImage(path, ImageOptions())
    operand = session.graph.operand("0")
    session.feed([load_input(InputSource("image", path=path), operand, source.options)])
    if method == "bicubic":
        theirs = image.resize((24, 24), picture.Resampling.BICUBIC)
    elif method == "bilinear":
        theirs = image.resize((39, 26), picture.Resampling.BILINEAR).crop((7, 1, 31, 25))
    else:
        theirs = picture.new("RGB", (24, 24))
        theirs.paste(image.resize((24, 16), picture.Resampling.BILINEAR), (0, 4))
    pixels = np.asarray(theirs, np.float32).transpose(2, 0, 1)[None] / 255
    one = pointwise(pixels, weight, bias)
    act = np.maximum(one, 0)
    arrays = {"one": one, "act": act, "two": pointwise(act, second, bias)}
    if fused:
        del arrays["one"]
    found = engine.compare(session, shown(arrays, inputs=()), images={operand.name: source})
    (origin,) = found.origins
    assert (origin.operator.name, origin.reasons[0].kind) == ("in0", "resizing")
    assert re.search(named, origin.reasons[0].text)


LINEAR = "bias=True in_features=30 out_features=6 @bias=(6)f32 @weight=(6,30)f32"


@pytest.fixture
def linear(run):
    """A linear layer of few rows, whose weights the data cannot tell; and its truth."""
    x, weight, bias = normal(4, 30), normal(6, 30), normal(6)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(4,30)f32",
        f"nn.Linear fc 1 1 0 1 {LINEAR} #1=(4,6)f32",
        "F.tanh act 1 1 1 2 $input=1 #2=(4,6)f32",
        "pnnx.Output out0 1 0 2",
        fc__weight=weight * (1 + 0.2 * normal(6, 30)),
        fc__bias=bias,
    )
    made = (x.astype(np.float64) @ weight.T + bias).astype(np.float32)
    return session, {"in0x": x, "fc": made, "act": np.tanh(made)}, weight, bias


def test_without_its_weights_nothing_is_claimed(linear):
    session, arrays, _, _ = linear
    assert blamed(engine.compare(session, shown(arrays))) == [("fc", [], [])]


def test_weights_among_the_arrays_are_evidence(linear, tmp_path):
    session, arrays, weight, bias = linear
    np.savez(tmp_path / "theirs.npz", **arrays, **{"fc.weight": weight, "fc.bias": bias})
    found = engine.compare(session, tmp_path / "theirs.npz")
    assert blamed(found) == [("fc", [], ["weight_values"])]
    np.testing.assert_array_equal(found.origins[0].reasons[0].changes[0].value, weight)


@pytest.mark.parametrize("kind", ["aten::addmm", "aten::native_layer_norm"])
def test_hashes_of_weights_are_evidence_for_the_same_kind(linear, kind):
    session, arrays, weight, bias = linear
    hashes = {"net.fc.weight": hash_weight(weight * 1), "net.fc.bias": hash_weight(bias + 1)}
    if kind == "aten::addmm":
        hashes["net.fc.bias"] = hash_weight(bias)
    call = ReferenceOperator("addmm", kind, ("in0x",), ("fc",), lambda: hashes)
    found = engine.compare(session, shown(arrays, operators=(call,)))
    wanted = ["weight_values"] if kind == "aten::addmm" else []
    assert blamed(found) == [("fc", [], wanted)]


def test_a_failure_before_the_next_module_is_a_difference(run):
    """The product cannot be computed; the reference has what reads it."""
    x, weights = normal(1, 3, 4), [(normal(4, 4), normal(4)), (normal(3, 3), normal(3))]
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,3,4)f32",
        "nn.Linear one 1 1 0 1 bias=True in_features=4 out_features=4 @bias=(4)f32 "
        "@weight=(4,4)f32 #1=(1,3,4)f32",
        "Tensor.permute turn 1 1 1 2 dims=(0,1,2) $input=1 #2=(1,4,3)f32",
        "torch.matmul product 2 1 1 2 3 $input=1 $other=2 #3=(1,3,3)f32",
        "nn.Linear two 1 1 3 4 bias=True in_features=3 out_features=3 @bias=(3)f32 "
        "@weight=(3,3)f32 #4=(1,3,3)f32",
        "pnnx.Output out0 1 0 4",
        one__weight=weights[0][0], one__bias=weights[0][1],
        two__weight=weights[1][0], two__bias=weights[1][1],
    )  # fmt: skip
    one = x @ weights[0][0].T + weights[0][1]
    two = one @ one.transpose(0, 2, 1) @ weights[1][0].T + weights[1][1]
    with pytest.raises(EngineError):
        session.run()
    found = engine.compare(session, shown({"in0x": x, "one": one, "two": two}))
    assert found.verdict == "differs"
    (origin,) = found.origins
    assert (origin.operator.name, origin.reasons[0].kind) == ("turn", "axis")


def test_an_order_of_axes_before_several_results(run):
    """The parts have the right elements; only what is computed of them differs."""
    x = normal(1, 4, 2, 6)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,4,2,6)f32",
        "Tensor.permute order 1 1 0 1 dims=(2,0,3,1) $input=0 #0=(1,4,2,6)f32 #1=(2,1,4,6)f32",
        "torch.unbind parts 1 2 1 2 3 dim=0 $input=1 #2=(1,4,6)f32 #3=(1,4,6)f32",
        "F.softmax soft 1 1 2 4 dim=-1 $input=2 #2=(1,4,6)f32 #4=(1,4,6)f32",
        "pnnx.Expression product 2 1 4 3 5 expr=mul(@0,@1) #4=(1,4,6)f32 #5=(1,4,6)f32",
        "Tensor.reshape last 1 1 5 6 shape=(1,24) $input=5 #5=(1,4,6)f32 #6=(1,24)f32",
        "pnnx.Output out0 1 0 6 #6=(1,24)f32",
    )
    one, other = x.transpose(2, 0, 1, 3)
    powers = np.exp(one.astype(np.float64))
    product = (powers / powers.sum(-1, keepdims=True) * other).astype(np.float32)
    theirs = {"in0x": x, "one": one, "other": other, "made": product.reshape(1, 24)}
    found = engine.compare(session, shown(theirs))
    assert blamed(found) == [("order", [], ["axis"])]
    assert "dims=(2, 0, 1, 3)" in found.origins[0].reasons[0].text


def test_what_is_fused_with_an_operator_that_does_nothing(run):
    """The reference shows one tensor for both; the lost activation belongs to the second."""
    x, weight, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"nn.Identity act 1 1 1 2 #2={SIZE}",
        f"nn.Conv2d next 1 1 2 3 {POINTWISE} #3={SIZE}",
        "pnnx.Output out0 1 0 3",
        conv__weight=weight, conv__bias=bias, next__weight=weight, next__bias=bias,
    )  # fmt: skip
    first = np.maximum(pointwise(x, weight, bias), 0)
    theirs = shown({"in0x": x, "fused": first, "last": pointwise(first, weight, bias)})
    assert blamed(engine.compare(session, theirs)) == [("act", [], ["activation_missing"])]


def test_a_layer_that_refuses_its_own_weights_is_an_origin(run):
    """It is so even where nothing else of the model can be compared."""
    x, weight, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4)
    refused = POINTWISE.replace("groups=1", "groups=2")
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {refused} #1={SIZE}",
        f"F.relu act 1 1 1 2 $input=1 #2={SIZE}",
        "pnnx.Output out0 1 0 2",
        conv__weight=weight,
        conv__bias=bias,
    )
    theirs = shown({"in0x": x, "fused": np.maximum(pointwise(x, weight, bias), 0)})
    found = engine.compare(session, theirs)
    assert (found.verdict, [o.operator.name for o in found.origins]) == ("differs", ["conv"])
    assert found.origins[0].text == (
        "nn.Conv2d 'conv' cannot run: in_channels=4, but the weight has 8"
    )


def test_a_network_that_amplifies_rounding_has_no_origin(run):
    """A sigmoid of large numbers turns the last digits of its input into a visible difference.

    On the reference's own input it agrees.
    """
    steps = RNG.integers(-8, 8, (1, 4, 6, 6))
    x = (40 + steps * np.spacing(np.float32(40))).astype(np.float32)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"pnnx.Expression large 1 1 0 1 expr=mul(@0,3.000000e+05) #1={SIZE}",
        f"pnnx.Expression small 1 1 1 2 expr=sub(@0,1.200000e+07) #2={SIZE}",
        f"F.sigmoid act 1 1 2 3 $input=2 #3={SIZE}",
        "pnnx.Output out0 1 0 3",
    )
    shifted = np.nextafter(x * np.float32(3e5), np.float32(np.inf))  # the last digit differs
    small = shifted - np.float32(1.2e7)
    theirs = {"in0x": x, "large": shifted, "small": small, "act": 1 / (1 + np.exp(-small))}
    found = engine.compare(session, shown({k: v.astype("f4") for k, v in theirs.items()}))
    assert (found.verdict, found.origins) == ("same", ())


@pytest.mark.parametrize(
    ("offset", "expected"), [(4.0, "same"), (16.0, "differs")], ids=["rounding", "a fault"]
)
def test_what_rounding_makes_of_operators_that_the_reference_fuses(run, offset, expected):
    """Large numbers that cancel within them: the last digit of the product is visible."""
    steps = RNG.integers(-8, 8, (1, 4, 6, 6))
    x = (40 + steps * np.spacing(np.float32(40))).astype(np.float32)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"pnnx.Expression small 1 1 0 1 expr=sub(mul(@0,3.000000e+05),1.200000e+07) #1={SIZE}",
        f"pnnx.Expression scaled 1 1 1 2 expr=mul(@0,1.000000e-05) #2={SIZE}",
        f"F.sigmoid act 1 1 2 3 $input=2 #3={SIZE}",
        f"pnnx.Expression centred 1 1 3 4 expr=sub(@0,5.000000e-01) #4={SIZE}",
        "pnnx.Output out0 1 0 4",
    )
    small = x * np.float32(3e5) - np.float32(1.2e7) + np.float32(offset)
    act = 1 / (1 + np.exp(-small * np.float32(1e-5)))
    theirs = {"in0x": x, "act": act, "centred": act - np.float32(0.5)}
    found = engine.compare(session, shown({k: v.astype("f4") for k, v in theirs.items()}))
    # A small part of the sigmoid's largest element, 0.5, and a large one of what is left.
    assert 0 < found.rows[1].measures.relative < 1e-4 < found.rows[2].measures.relative
    assert found.verdict == expected


def test_a_layer_is_not_matched_with_the_end_of_its_residual_block(run):
    """A ReLU follows there as well, so what reads the layer seems to agree."""
    x, one, other, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4, 4, 1, 1), normal(4)
    lines = [
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d first 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"F.relu inner 1 1 1 2 $input=1 #2={SIZE}",
        f"nn.Conv2d second 1 1 2 3 {POINTWISE} #3={SIZE}",
        f"pnnx.Expression sum 2 1 3 0 4 expr=add(@0,@1) #4={SIZE}",
        f"F.relu outer 1 1 4 5 $input=4 #5={SIZE}",
        "pnnx.Output out0 1 0 5",
    ]
    session = run(
        x, *lines, first__weight=one + 0.3 * normal(4, 4, 1, 1), first__bias=bias,
        second__weight=other, second__bias=bias,
    )  # fmt: skip
    inner = np.maximum(pointwise(x, one, bias), 0)
    second = pointwise(inner, other, bias)
    arrays = {
        "in": x, "a": inner, "b": second, "s": second + x, "r": np.maximum(second + x, 0)
    }  # fmt: skip
    calls = [
        ReferenceOperator("a", "Convolution", ("in",), ("a",)),
        ReferenceOperator("b", "Convolution", ("a",), ("b",)),
        ReferenceOperator("s", "BinaryOp", ("b", "in"), ("s",)),
        ReferenceOperator("r", "ReLU", ("s",), ("r",)),
    ]
    found = engine.compare(session, shown(arrays, ("in",), calls))
    (origin,) = found.origins
    assert {origin.operator.name, *(each.name for each in origin.among)} <= {"first", "inner"}
    assert {row.operand: row.reference for row in found.rows}["3"] == "b"


def test_a_permutation_is_not_blamed_for_a_changed_expression(run):
    """Where a product is far smaller than what is added, a sum with it is the same."""
    x, small = normal(1, 4, 6, 6), np.full((4, 1, 1), 1e-6, np.float32)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        "pnnx.Attribute factor 0 1 1 @data=(4,1,1)f32 #1=(4,1,1)f32",
        f"Tensor.permute turn 1 1 0 2 dims=(0,1,3,2) $input=0 #2={SIZE}",
        f"pnnx.Expression sum 3 1 1 2 0 3 expr=add(add(@0,@1),@2) #3={SIZE}",
        "pnnx.Output out0 1 0 3",
        factor__data=small,
    )
    turned = x.swapaxes(2, 3)
    calls = [
        ReferenceOperator("turn", "aten::permute", ("in0x",), ("turn",)),
        ReferenceOperator("mul", "aten::mul", ("factor", "turn"), ("mul",)),
        ReferenceOperator("add", "aten::add", ("mul", "in0x"), ("add",)),
    ]
    arrays = {"in0x": x, "factor": small, "turn": turned}
    arrays |= {"mul": turned * small, "add": turned * small + x}
    found = engine.compare(session, shown(arrays, operators=calls))
    assert blamed(found) == [("sum", [], ["expression"])]


def test_a_small_fault_is_not_confirmed_by_what_dilutes_it(run):
    """Results so far agree to seven digits, so one that agrees to three is no rounding."""
    x, weight = normal(1, 4, 6, 6), normal(4, 4, 1, 1)
    bias = np.float32([2, 1, 3, 2])  # so that the ReLU hides nothing of it
    names = [f"s{place}" for place in range(6)]
    chain = [
        f"F.sigmoid {name} 1 1 {place} {place + 1} $input={place} #{place + 1}={SIZE}"
        for place, name in enumerate(names)
    ]
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        *chain,
        f"nn.Conv2d conv 1 1 6 7 {POINTWISE} #7={SIZE}",
        f"F.relu act 1 1 7 8 $input=7 #8={SIZE}",
        f"pnnx.Expression sum 2 1 8 0 9 expr=add(mul(@0,0.02),@1) #9={SIZE}",
        "pnnx.Output out0 1 0 9",
        conv__weight=weight,
        conv__bias=bias + np.float32([0.3, 0, 0, 0]),
    )
    arrays = {"in0x": x}
    value = x
    for name in names:
        value = arrays[name] = (1 / (1 + np.exp(-value.astype(np.float64)))).astype(np.float32)
    fused = arrays["fused"] = np.maximum(pointwise(value, weight, bias), 0)
    arrays["sum"] = fused * np.float32(0.02) + x
    found = engine.compare(session, shown(arrays))
    assert blamed(found) == [("conv", [], ["bias"])]
    assert {row.operand: row.reference for row in found.rows}["8"] == "fused"


def test_float16_weights_confirm_though_other_operators_agree_exactly(run):
    """The reference has copies of what it fuses, as ncnn for several consumers."""
    rng = np.random.default_rng(0)
    shapes = (1, 4, 6, 6), (4, 4, 1, 1), (4, 4, 1, 1)
    x, one, other = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    halves = other.astype(np.float16)
    other = halves + np.float32(0.25) * np.spacing(halves).astype(np.float32)
    bias = np.float32([2, 1, 3, 2])
    chain = [
        f"pnnx.Expression s{i} 1 1 {i} {i + 1} expr=mul(@0,-2) #{i + 1}={SIZE}"
        for i in range(6)
    ]
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        *chain,
        f"nn.Conv2d shown 1 1 6 7 {POINTWISE} #7={SIZE}",
        f"nn.Conv2d conv 1 1 7 8 {POINTWISE} #8={SIZE}",
        f"F.relu act 1 1 8 9 $input=8 #9={SIZE}",
        f"F.sigmoid gate 1 1 9 10 $input=9 #10={SIZE}",
        f"pnnx.Expression product 2 1 9 10 11 expr=mul(@0,@1) #11={SIZE}",
        "pnnx.Output out0 1 0 11",
        shown__weight=one, shown__bias=bias, conv__weight=other, conv__bias=bias,
    )  # fmt: skip
    one, other = (each.astype(np.float16).astype(np.float32) for each in (one, other))
    arrays = {"in0x": x}
    value = x
    for place in range(6):
        value = arrays[f"s{place}"] = -2 * value
    value = arrays["convolved"] = pointwise(value, one, bias)
    fused = np.maximum(pointwise(value, other, bias), 0)
    gate = 1 / (1 + np.exp(-fused))
    arrays |= {"fused": fused, "again": fused, "gate": gate, "product": fused * gate}
    found = engine.compare(session, shown({k: v.astype("f4") for k, v in arrays.items()}))
    assert (found.verdict, blamed(found)) == ("same", [])
    assert {row.operand: row for row in found.rows}["9"].born > 1e-4
    assert {row.operand for row in found.rows} >= {"9", "10", "11"}
    assert "8" not in {row.operand for row in found.rows}


def test_another_axis_behind_a_product_that_the_reference_flattens(run):
    """In the reference's shape of the product the wrong axis would be the right one."""
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal(s).astype(np.float32) for s in ((1, 30, 8), (11, 8)))
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,30,8)f32",
        "nn.Linear head 1 1 0 1 bias=False in_features=8 out_features=11 @weight=(11,8)f32",
        "F.softmax last 1 1 1 2 dim=1 $input=1 #2=(1,30,11)f32",
        "pnnx.Output out0 1 0 2",
        head__weight=weight,
    )
    product = (x[0].astype(np.float64) @ weight.T).astype(np.float32)
    powers = np.exp(product.astype(np.float64))
    last = (powers / powers.sum(1, keepdims=True)).astype(np.float32)[np.newaxis]
    calls = [
        ReferenceOperator("mm", "aten::mm", ("in",), ("product",)),
        ReferenceOperator("softmax", "aten::_softmax", ("product",), ("last",)),
    ]
    arrays = {"in": x, "product": product, "last": last}
    found = engine.compare(session, shown(arrays, ("in",), calls))
    assert blamed(found) == [("last", [], ["axis"])]


def test_an_activation_too_many_before_another_one(run):
    """A ReLU in its place would be right as well, but there is one behind it."""
    x, weight, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"F.tanh added 1 1 1 2 $input=1 #2={SIZE}",
        f"F.relu act 1 1 2 3 $input=2 #3={SIZE}",
        f"nn.Conv2d next 1 1 3 4 {POINTWISE} #4={SIZE}",
        "pnnx.Output out0 1 0 4",
        conv__weight=weight, conv__bias=bias, next__weight=weight, next__bias=bias,
    )  # fmt: skip
    first = pointwise(x, weight, bias)
    inner = np.maximum(first, 0)
    arrays = {"in": x, "a": first, "r": inner, "b": pointwise(inner, weight, bias)}
    calls = [
        ReferenceOperator("a", "aten::convolution", ("in",), ("a",)),
        ReferenceOperator("r", "aten::relu", ("a",), ("r",)),
        ReferenceOperator("b", "aten::convolution", ("r",), ("b",)),
    ]
    found = engine.compare(session, shown(arrays, ("in",), calls))
    assert blamed(found) == [("added", [], ["activation_extra"])]


@pytest.mark.parametrize("seed", range(8))
def test_a_layer_is_its_sum_with_the_bias(run, seed):
    """Though the product alone has the weights, and is as near: the bias is what is wrong."""
    draw = np.random.default_rng(seed).standard_normal
    x, weight, bias = (draw(shape, np.float32) for shape in ((1, 5, 4), (4, 4), 4))
    bias /= 10
    linear = "bias=True in_features=4 out_features=4 @bias=(4)f32 @weight=(4,4)f32"
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,5,4)f32",
        f"nn.Linear q 1 1 0 1 {linear} #0=(1,5,4)f32 #1=(1,5,4)f32",
        "torch.transpose swap 1 1 1 2 dim0=1 dim1=2 $input=1 #1=(1,5,4)f32 #2=(1,4,5)f32",
        "F.softmax soft 1 1 2 3 dim=-1 $input=2 #2=(1,4,5)f32 #3=(1,4,5)f32",
        "pnnx.Output out0 1 0 3 #3=(1,4,5)f32",
        q__weight=weight,
        q__bias=-bias,
    )
    product = (x[0].astype(np.float64) @ weight.T.astype(np.float64)).astype(np.float32)
    made = (product + bias)[np.newaxis]
    moved = made.swapaxes(1, 2)
    powers = np.exp(moved.astype(np.float64))
    soft = (powers / powers.sum(-1, keepdims=True)).astype(np.float32)
    calls = [
        call("mm", "aten.mm", "in0x", "product", {"q.weight": weight}),
        call("add", "aten.add", "product", "made", {"q.bias": bias}),
        call("transpose", "aten.transpose", "made", "moved", {}),
        call("softmax", "aten._softmax", "moved", "soft", {}),
    ]
    theirs = {"in0x": x, "product": product, "made": made, "moved": moved, "soft": soft}
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("q", [], ["bias"])]
    assert found.origins[0].reference == "made"


def call(name, type_, source, result, weights):
    return ReferenceOperator(
        name, type_, (source,), (result,),
        lambda: {key: hash_weight(array) for key, array in weights.items()},
    )  # fmt: skip


def test_what_reads_a_wrong_shape_is_no_origin(run):
    """What works on rows does so in either shape, and returns the wrong one."""
    x, scale, shift = normal(1, 8, 4, 6), normal(8), normal(8)
    norm = "elementwise_affine=True eps=1e-5 normalized_shape=(8) @bias=(8)f32 @weight=(8)f32"
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,8,4,6)f32",
        "torch.transpose swap 1 1 0 1 dim0=1 dim1=3 $input=0 #0=(1,8,4,6)f32 #1=(1,6,4,8)f32",
        "Tensor.reshape fold 1 1 1 2 shape=(4,-1,8) $input=1 #1=(1,6,4,8)f32 #2=(6,4,8)f32",
        f"nn.LayerNorm norm 1 1 2 3 {norm} #2=(6,4,8)f32 #3=(6,4,8)f32",
        "F.softmax soft 1 1 3 4 dim=1 $input=3 #3=(6,4,8)f32 #4=(6,4,8)f32",
        "pnnx.Output out0 1 0 4 #4=(6,4,8)f32",
        norm__weight=scale,
        norm__bias=shift,
    )
    swapped = x.swapaxes(1, 3)
    rows = swapped[0].astype(np.float64)
    centred = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(
        rows.var(-1, keepdims=True) + 1e-5
    )
    normed = (centred * scale + shift).astype(np.float32)
    weights = {"norm.weight": scale, "norm.bias": shift}
    calls = [
        call("swap", "aten.transpose", "in0x", "a", {}),
        call("norm", "aten.native_layer_norm", "a", "b", weights),
        call("soft", "aten._softmax", "b", "c", {}),
    ]
    theirs = {"in0x": x, "a": swapped, "b": normed, "c": softmax(normed, 1)}
    found = engine.compare(session, shown(theirs, operators=calls))
    origins = [origin.operator.name for origin in found.origins]
    assert origins[0] == "fold"
    assert "norm" not in origins


def softmax(x, axis):
    powers = np.exp(x.astype(np.float64))
    return (powers / powers.sum(axis, keepdims=True)).astype(np.float32)


def test_an_axis_of_an_operator_whose_first_result_is_not_shown(run):
    """A permutation before it would explain it as well, but that one agrees."""
    x = normal(1, 6, 4)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,6,4)f32",
        "Tensor.permute order 1 1 0 1 dims=(0,2,1) $input=0 #0=(1,6,4)f32 #1=(1,4,6)f32",
        "torch.chunk parts 1 2 1 2 3 chunks=2 dim=1 $input=1 #1=(1,4,6)f32 #2=(1,4,3)f32 "
        "#3=(1,4,3)f32",
        "F.softmax one 1 1 2 4 dim=2 $input=2 #2=(1,4,3)f32 #4=(1,4,3)f32",
        "F.softmax other 1 1 3 5 dim=2 $input=3 #3=(1,4,3)f32 #5=(1,4,3)f32",
        "pnnx.Output out0 2 0 4 5",
    )
    moved = x.swapaxes(1, 2)
    part = moved[:, :, 3:]
    theirs = {"in0x": x, "order": moved, "3": part, "other": softmax(part, 2)}
    found = engine.compare(session, shown(theirs))
    assert blamed(found)[:1] == [("parts", [], ["axis"])]


def test_a_lost_axis_of_size_1_beside_names_that_agree(run):
    """Two operators refuse what a mean gives, and the mean is what is wrong."""
    x = normal(1, 3, 5)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,3,5)f32",
        "torch.mean mean 1 1 0 1 dim=(-1) keepdim=False $input=0 #0=(1,3,5)f32 #1=(1,3,1)f32",
        "pnnx.Expression apart 2 1 0 1 2 expr=sub(@0,@1) #2=(1,3,5)f32",
        "pnnx.Expression back 2 1 2 1 3 expr=mul(@0,@1) #3=(1,3,5)f32",
        "pnnx.Output out0 1 0 3 #3=(1,3,5)f32",
    )
    mean = x.mean(-1, keepdims=True)
    theirs = {"in0x": x, "mean": mean, "apart": x - mean, "back": (x - mean) * mean}
    found = engine.compare(session, shown(theirs))
    assert blamed(found) == [("mean", [], ["parameter"])]


def test_a_lost_gate_of_channels(run):
    x = normal(1, 4, 6, 6)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        "torch.mean pool 1 1 0 1 dim=(2,3) keepdim=True $input=0 #1=(1,4,1,1)f32",
        "F.sigmoid gate 1 1 1 2 $input=1 #1=(1,4,1,1)f32 #2=(1,4,1,1)f32",
        f"nn.Identity gated 1 1 0 3 #0={SIZE} #3={SIZE}",
        f"pnnx.Expression both 2 1 3 2 4 expr=add(@0,@1) #3={SIZE} #4={SIZE}",
        "pnnx.Output out0 1 0 4",
    )
    pooled = x.mean((2, 3), keepdims=True)
    gate = 1 / (1 + np.exp(-pooled))
    gated = x * gate
    theirs = {"in0x": x, "pool": pooled, "gate": gate, "gated": gated, "both": gated + gate}
    found = engine.compare(session, shown(theirs))
    assert blamed(found) == [("gated", [], ["expression"])]
    assert "multiplies with the result of 'gate'" in found.origins[0].reasons[0].text


@pytest.mark.parametrize("together", [True, False], ids=["one call", "slices"])
def test_parts_along_an_axis_that_has_none(run, together):
    """One part less than the file has, so that nothing downstream can run."""
    x = normal(1, 6, 4)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,6,4)f32",
        "torch.chunk parts 1 2 0 1 2 chunks=2 dim=0 $input=0 #1=(1,3,4)f32 #2=(1,3,4)f32",
        "pnnx.Expression gated 2 1 1 2 3 expr=mul(@0,tanh(@1)) #3=(1,3,4)f32",
        "F.tanh act 1 1 3 4 $input=3 #4=(1,3,4)f32",
        "pnnx.Output out0 1 0 4",
    )
    one, two = x[:, :3], x[:, 3:]
    gated = one * np.tanh(two)
    theirs = {"in0x": x, "a": one, "b": two, "c": gated, "d": np.tanh(gated)}
    calls = [
        ReferenceOperator("split", "aten.split", ("in0x",), ("a", "b"), dict)
    ] if together else [call(key, "Slice", "in0x", key, {}) for key in "ab"]  # fmt: skip
    calls += [
        ReferenceOperator("glu", "mul", ("a", "b"), ("c",), dict),
        call("tanh", "tanh", "c", "d", {}),
    ]
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("parts", [], ["axis"])]
    assert "the layer gave 1 results" in found.origins[0].text


def test_an_operator_that_fails_where_the_reference_goes_on(run):
    """Nothing of what follows is comparable, and still the models are not the same."""
    x = normal(1, 6, 4)
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,6,4)f32",
        "torch.chunk parts 1 2 0 1 2 chunks=2 dim=0 $input=0 #1=(1,3,4)f32 #2=(1,3,4)f32",
        "pnnx.Expression gated 2 1 1 2 3 expr=mul(@0,tanh(@1)) #3=(1,3,4)f32",
        "pnnx.Output out0 1 0 3",
    )
    gated = x[:, :3] * np.tanh(x[:, 3:])
    found = engine.compare(run(x, *lines), shown({"in0x": x, "gated sum": gated.sum(1)}))
    assert (found.verdict, blamed(found)) == ("differs", [("parts", [], [])])
    same = run(x, *lines)
    with pytest.raises(EngineError):
        same.run()
    assert engine.compare(same, shown({"in0x": x})).verdict == "same"


def test_an_operator_fails_that_the_reference_joins_with_the_next(run):
    """The tensor behind the next operator tells what it should give."""
    x, weight = normal(1, 4, 6), normal(6, 6)
    joined = "(1,6,6)f32"
    session = run(
        x,
        "pnnx.Input in0 0 1 x #x=(1,4,6)f32",
        "Tensor.slice part 1 1 x a dim=1 end=2 start=0 step=1 $input=x #a=(1,2,6)f32",
        f"torch.cat inner 2 1 x a b dim=0 #b={joined}",
        "F.tanh act 1 1 x c $input=x #c=(1,4,6)f32",
        "torch.cat outer 2 1 c b d dim=1 #d=(1,10,6)f32",
        "nn.Linear fc 1 1 d y bias=False in_features=6 out_features=6 @weight=(6,6)f32 "
        "#y=(1,10,6)f32",
        "pnnx.Output out 1 0 y",
        fc__weight=weight,
    )
    with pytest.raises(EngineError):
        session.run()
    arrays = {"in0x": x, "part": x[:, :2], "tanh": np.tanh(x)}
    arrays["cat"] = np.concatenate([arrays["tanh"], x, arrays["part"]], 1)
    arrays["fc"] = arrays["cat"] @ weight.T
    calls = (
        ("slice", ("in0x",), "part", {}), ("tanh", ("in0x",), "tanh", {}),
        ("cat", ("tanh", "in0x", "part"), "cat", {}),
        ("mm", ("cat",), "fc", {"fc.weight": weight}),
    )  # fmt: skip
    comparison = engine.compare(session, reference_of(arrays, calls))
    (origin,) = comparison.origins
    assert origin.operator.name == "inner"
    assert [reason.text for reason in origin.reasons] == [
        "The reference has dim=1, the file 0. Set dim=1."
    ]


def test_a_bias_of_an_attention_that_a_normalization_hides(run):
    """The reference computes the attention in more calls than are looked at elsewhere."""
    x, weight, out = normal(1, 5, 8), normal(24, 8), normal(8, 8)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,5,8)f32",
        "nn.MultiheadAttention mix 1 1 0 1 add_bias_kv=False add_zero_attn=False "
        "batch_first=True bias=True embed_dim=8 kdim=8 num_heads=1 vdim=8 "
        "@in_proj_bias=(24)f32 @in_proj_weight=(24,8)f32 @out_proj.bias=(8)f32 "
        "@out_proj.weight=(8,8)f32 #1=(1,5,8)f32",
        "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1) #2=(1,5,8)f32",
        "nn.LayerNorm norm 1 1 2 3 elementwise_affine=False eps=0.0 normalized_shape=(8) "
        "#3=(1,5,8)f32",
        "F.tanh act 1 1 3 4 $input=3 #4=(1,5,8)f32",
        "pnnx.Output out0 1 0 4",
        mix__in_proj_weight=weight,
        mix__in_proj_bias=np.zeros(24, np.float32),
        **{"mix__out_proj.weight": out, "mix__out_proj.bias": np.full(8, 0.5, np.float32)},
    )
    q, k, v = np.split(x @ weight.T, 3, -1)
    scores = q @ k.swapaxes(1, 2) / np.float32(8**0.5)
    weights = softmax(scores, -1)
    mixed = weights @ v
    made = mixed @ out.T
    sums = x + made
    norm = (sums - sums.mean(-1, keepdims=True)) / sums.std(-1, keepdims=True)
    theirs = {"in0x": x, "qkv": x @ weight.T, "q": q, "k": k, "v": v, "scores": scores,
              "weights": weights, "mixed": mixed, "made": made, "sums": sums, "norm": norm,
              "act": np.tanh(norm)}  # fmt: skip
    rows = (
        ("mm", ("in0x",), "qkv"), ("slice", ("qkv",), "q"), ("slice", ("qkv",), "k"),
        ("slice", ("qkv",), "v"), ("bmm", ("q", "k"), "scores"),
        ("softmax", ("scores",), "weights"), ("bmm", ("weights", "v"), "mixed"),
        ("mm", ("mixed",), "made"), ("add", ("in0x", "made"), "sums"),
        ("layer_norm", ("sums",), "norm"), ("tanh", ("norm",), "act"),
    )  # fmt: skip
    calls = [ReferenceOperator(made, kind, given, (made,), dict) for kind, given, made in rows]
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("mix", [], ["bias"])]


NORM = "affine={} eps=1e-5 num_channels=6 num_groups=1 {}#{}=(1,6,9)f32"


def normalization_of(x, scale, shift):
    """A reference that normalizes, reshapes back, scales and shifts in calls of their own."""
    flat = x.reshape(1, 1, -1).astype(np.float64)
    normed = ((flat - flat.mean()) / np.sqrt(flat.var() + 1e-5)).astype(np.float32)
    back = normed.reshape(x.shape)
    scaled = back * scale[:, None]
    return {
        "normed": normed,
        "back": back,
        "scaled": scaled,
        "shifted": scaled + shift[:, None],
    }


NORM_CALLS = (
    ("InstanceNormalization", ("{}",), "normed"), ("Shape", ("{}",), "sizes"),
    ("Reshape", ("normed", "sizes"), "back"), ("Mul", ("back",), "scaled"),
    ("Add", ("scaled",), "shifted"),
)  # fmt: skip


def operators_of(*rows):
    return [ReferenceOperator(made, kind, given, (made,), dict) for kind, given, made in rows]


@pytest.mark.parametrize("lost", ["activation", "affine"])
def test_a_normalization_that_the_reference_computes_in_steps(run, lost):
    """It does not change its own first step, which is no result of what comes before it."""
    x, weight = normal(1, 6, 9), normal(5, 6)
    scale, shift = 1 + normal(6) / 4, normal(6)
    first = "nn.Identity act 1 1 0 1" if lost == "activation" else "F.relu act 1 1 0 1 $input=0"
    kept = lost == "activation"
    attributes = "@bias=(6)f32 @weight=(6)f32 " if kept else ""
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,6,9)f32",
        f"{first} #1=(1,6,9)f32",
        f"nn.GroupNorm norm 1 1 1 2 {NORM.format(kept, attributes, 2)}",
        "nn.Conv1d fc 1 1 2 3 bias=False dilation=(1) groups=1 in_channels=6 kernel_size=(1) "
        "out_channels=5 padding=(0) padding_mode=zeros stride=(1) @weight=(5,6,1)f32 "
        "#3=(1,5,9)f32",
        "F.tanh end 1 1 3 4 $input=3 #4=(1,5,9)f32",
        "pnnx.Output out0 1 0 4",
        fc__weight=weight[..., np.newaxis],
        **({"norm__weight": scale, "norm__bias": shift} if kept else {}),
    )
    act = np.maximum(x, 0)
    steps = normalization_of(act, scale, shift)
    made = weight @ steps["shifted"]
    theirs = {"in0x": x, "a": act, "sizes": np.array(x.shape), **steps, "fc": made,
              "tanh": np.tanh(made)}  # fmt: skip
    before = [
        (kind, tuple(g.format("a") for g in given), key) for kind, given, key in NORM_CALLS
    ]
    calls = operators_of(
        ("Relu", ("in0x",), "a"), *before, ("Conv", ("shifted",), "fc"),
        ("Tanh", ("fc",), "tanh"),
    )  # fmt: skip
    expected = ("act", "activation_missing") if kept else ("norm", "normalization")
    (found,) = blamed(engine.compare(session, shown(theirs, operators=calls)))
    assert (found[0], *found[2]) == expected


def test_a_reshape_whose_elements_keep_their_order(run):
    """Two sizes are exchanged; what the reference shows behind it differs in its shape only."""
    x = normal(1, 24, 5)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,24,5)f32",
        "Tensor.reshape heads 1 1 0 1 shape=(1,2,3,4,5) $input=0 #1=(1,3,2,4,5)f32",
        "torch.transpose turn 1 1 1 2 dim0=3 dim1=4 $input=1 #2=(1,3,2,5,4)f32",
        "F.softmax soft 1 1 2 3 dim=1 $input=2 #3=(1,3,2,5,4)f32",
        "pnnx.Output out0 1 0 3",
    )
    turned = np.ascontiguousarray(x.reshape(1, 3, 2, 4, 5).swapaxes(3, 4))
    theirs = {"in0x": x, "t": turned, "s": softmax(turned, 1)}
    calls = [call("t", "aten.transpose", "in0x", "t", {}), call("s", "_softmax", "t", "s", {})]
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("heads", [], ["parameter"])]


@pytest.mark.parametrize("wrong", ["tied.data", "fc.weight"])
@pytest.mark.parametrize("kind", ["scale", "weight_layout", "weight_values"])
def test_copies_of_a_weight_that_two_layers_share_differ(run, wrong, kind):
    """pnnx passes the weight to the second layer, too; where they differ, it cannot run."""
    x, weight = normal(3, 4), normal(2, 4)
    changed = {"scale": 2 * weight, "weight_layout": weight[::-1]}.get(kind, weight + normal(4))
    weights = {"tied.data": weight, "fc.weight": weight, wrong: changed}
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(3,4)f32",
        "pnnx.Attribute tied 0 1 1 @data=(2,4)f32 #1=(2,4)f32",
        "nn.Linear fc 2 1 1 0 2 bias=False in_features=4 out_features=2 @weight=(2,4)f32 "
        "#2=(3,2)f32",
        "pnnx.Output out0 1 0 2",
        **weights,
    )
    assert "2 operands are more" in session.graph.operator("fc").reason
    session.run()
    compared = engine.compare(session, shown({"in0x": x, "fc": x @ weight.T}))
    ((reason, *_),) = (origin.reasons for origin in compared.origins)
    assert reason.kind == kind
    right = "the layer's weight" if wrong == "tied.data" else "'tied'"
    assert f"The reference has the numbers of {right}." in reason.text


def test_a_layer_is_wrong_before_a_fused_function_that_changes_its_own_result(run):
    """What follows agrees with the tensor in place of the layer's and of the function's result.

    The function is no second origin: applied once more it would change the tensor.
    """
    x, one, two, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4, 4, 1, 1), normal(4)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d one 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"F.leaky_relu act 1 1 1 2 $input=1 negative_slope=0.5 #2={SIZE}",
        f"nn.Conv2d two 1 1 2 3 {POINTWISE} #3={SIZE}",
        "pnnx.Output out0 1 0 3",
        one__weight=one + normal(4, 4, 1, 1) * np.float32(0.5),
        one__bias=bias,
        two__weight=two,
        two__bias=bias,
    )
    session.run()
    mixed = pointwise(x, one, bias)
    fused = np.where(mixed < 0, np.float32(0.5) * mixed, mixed)
    compared = engine.compare(
        session,
        shown(
            {"a": x, "b": fused, "c": pointwise(fused, two, bias)},
            inputs=("a",),
            operators=(
                ReferenceOperator("first", "Convolution", ("a",), ("b",)),
                ReferenceOperator("last", "Convolution", ("b",), ("c",)),
            ),
        ),
    )
    assert blamed(compared) == [("one", [], ["weight_values"])]


@pytest.mark.parametrize("seconds", [0.0, 1e6], ids=["quiet", "busy"])
def test_reasons_do_not_depend_on_the_clock(run, monkeypatch, seconds):
    """However long an alternative takes; only what is computed for it counts."""
    x, weight, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        "pnnx.Output out0 1 0 1",
        conv__weight=weight,
        conv__bias=bias + 1,
    )
    theirs = shown({"in0x": x, "conv": pointwise(x, weight, bias)})
    now = itertools.count(0.0, seconds)
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    assert blamed(engine.compare(session, theirs)) == [("conv", [], ["bias"])]
    monkeypatch.setattr("engine.comparison.explaining._MOST_WORK", 1e5)
    assert blamed(engine.compare(session, theirs)) == [("conv", [], [])]


def test_a_line_that_contradicts_itself_is_to_blame_for_what_fails_behind_it(run):
    """As of MobileViT v2: pnnx writes a fold of patches as a shuffle of pixels."""
    x, weight = normal(1, 4, 6, 6), normal(4, 4, 1, 1)
    turned = np.maximum(x, 0)
    folded = turned[:, :, ::-1]  # what the model did between them
    session = run(
        x,
        f"pnnx.Input in0 0 1 in0x #in0x={SIZE}",
        f"nn.ReLU act 1 1 in0x a #in0x={SIZE} #a={SIZE}",
        f"nn.PixelShuffle fold 1 1 a b upscale_factor=2 $input=a #a={SIZE} #b={SIZE}",
        f"nn.Conv2d mix 1 1 b c {POINTWISE} $input=b #b={SIZE} #c={SIZE}",
        "pnnx.Output out 1 0 c",
        mix__weight=weight,
        mix__bias=np.zeros(4, np.float32),
    )
    mixed = pointwise(folded, weight, np.zeros(4, np.float32))
    comparison = engine.compare(session, shown({"in0x": x, "act": turned, "mix": mixed}))
    assert blamed(comparison) == [("fold", [], [])]
    (origin,) = comparison.origins
    assert "seen at" not in origin.text
    assert "nn.Conv2d 'mix' failed on inputs 1×1×12×12" in origin.text
    assert "it turns 1×4×6×6 into 1×1×12×12, but its line states 1×4×6×6" in origin.text
    assert "optlevel=0" in origin.text


def test_what_the_reference_is_known_to_read_is_not_tried_again(run):
    """Its own graph says that no function lies between the ReLU and what differs."""
    x, weight, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"F.relu act 1 1 1 2 $input=1 #2={SIZE}",
        f"nn.Conv2d next 1 1 2 3 {POINTWISE} #3={SIZE}",
        "pnnx.Output out0 1 0 3",
        conv__weight=weight, conv__bias=bias, next__weight=weight, next__bias=bias,
    )  # fmt: skip
    first = pointwise(x, weight, bias)
    after = np.maximum(first, 0)
    tensors = {"in0x": x, "conv": first, "act": after, "next": normal(1, 4, 6, 6)}
    pairs = itertools.pairwise(tensors)
    calls = [ReferenceOperator(out, "call", (given,), (out,)) for given, out in pairs]
    tried = []
    for operators in ((), calls):
        beats = []
        found = engine.compare(
            session,
            shown(tensors, operators=operators),
            progress=lambda *_, b=beats: b.append(1),
        )
        assert blamed(found) == [("next", [], [])]
        tried.append(len(beats))
    assert tried[1] < tried[0]


def test_copies_of_a_weight_are_not_tried_in_its_place(run, monkeypatch):
    """A reference copies a weight for each reader; ours is wrong, and agrees with none."""
    x, weight = normal(1, 4, 6, 6), normal(1, 4, 6, 6)
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"pnnx.Attribute scale 0 1 1 @data={SIZE} #1={SIZE}",
        f"torch.mul mul 2 1 0 1 2 #0={SIZE} #1={SIZE} #2={SIZE}",
        "pnnx.Output out0 1 0 2",
        scale__data=weight,
    )
    computed = []
    compute = Computing.compute

    def count(self, operator, arguments):
        computed.append(operator.name)
        return compute(self, operator, arguments)

    monkeypatch.setattr(Computing, "compute", count)
    counts = []
    for copies in ((), ("first", "second", "third")):
        arrays = {"in0x": x, "scale": weight} | dict.fromkeys(copies, weight)
        tensors = [
            ReferenceTensor(k, lambda a=a: a, role="constant" if k == "scale" else "")
            for k, a in {**arrays, "out": normal(1, 4, 6, 6)}.items()
        ]
        calls = [ReferenceOperator(k, "Split", ("scale",), (k,)) for k in copies]
        calls.append(ReferenceOperator("out", "Mul", ("in0x", "scale"), ("out",)))
        computed.clear()
        engine.compare(session, Reference("theirs", tensors, calls, ["in0x"], ["out"]))
        counts.append(computed.count("mul"))
    assert counts[1] <= counts[0]


def test_a_join_along_a_wrong_axis_of_one_sample(run):
    """It has the elements of the reference's tensor in the same order, but not its shape."""
    x = normal(1, 2, 3)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,2,3)f32",
        "F.relu left 1 1 0 1 $input=0 #0=(1,2,3)f32 #1=(1,2,3)f32",
        "F.sigmoid right 1 1 0 2 $input=0 #0=(1,2,3)f32 #2=(1,2,3)f32",
        "torch.cat join 2 1 1 2 3 dim=0 #1=(1,2,3)f32 #2=(1,2,3)f32 #3=(1,4,3)f32",
        "pnnx.Output out0 1 0 3 #3=(1,4,3)f32",
    )
    left, right = np.maximum(x, 0), 1 / (1 + np.exp(-x))
    joined = np.concatenate([left, right], 1)
    found = engine.compare(
        session, shown({"in0x": x, "left": left, "right": right, "joined": joined})
    )
    assert blamed(found) == [("join", [], ["axis"])]
    assert "2×2×3 instead of 1×4×3" in found.origins[0].text


def test_a_maximum_hides_a_lost_activation(run):
    """The largest numbers are positive, so what follows is the same without the ReLU."""
    x, weight, bias = normal(1, 4, 6, 6), normal(4, 4, 1, 1), normal(4)
    mixed = pointwise(x, weight, bias)
    largest = mixed.max((2, 3), keepdims=True)
    assert (largest > 0).all()
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={SIZE}",
        f"nn.Conv2d conv 1 1 0 1 {POINTWISE} #1={SIZE}",
        f"nn.Identity act 1 1 1 2 #1={SIZE} #2={SIZE}",
        f"torch.amax most 1 1 2 3 dim=(2,3) keepdim=True #2={SIZE} #3=(1,4,1,1)f32",
        "pnnx.Output out0 1 0 3 #3=(1,4,1,1)f32",
        conv__weight=weight,
        conv__bias=bias,
    )
    calls = [
        call("conv", "aten._convolution", "in0x", "mixed", {"conv.weight": weight}),
        call("act", "aten.relu", "mixed", "positive", {}),
        call("most", "aten.amax", "positive", "largest", {}),
    ]
    theirs = {"in0x": x, "mixed": mixed, "positive": np.maximum(mixed, 0), "largest": largest}
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("act", [], ["activation_missing"])]


def test_the_sum_with_a_bias_is_a_linear_layers_own_tensor(run):
    """A layer with other weights is told by its name, which two calls have."""
    x, weight, bias = normal(1, 40, 4), normal(4, 4), normal(4)
    linear = "bias=True in_features=4 out_features=4 @bias=(4)f32 @weight=(4,4)f32"
    size = "(1,40,4)f32"
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={size}",
        f"nn.Linear v 1 1 0 1 {linear} #0={size} #1={size}",
        f"Tensor.reshape heads 1 1 1 2 shape=(1,40,2,2) #1={size} #2=(1,40,2,2)f32",
        "Tensor.permute turned 1 1 2 3 dims=(0,2,3,1) #2=(1,40,2,2)f32 #3=(1,2,2,40)f32",
        "Tensor.reshape image 1 1 3 4 shape=(2,2,5,8) #3=(1,2,2,40)f32 #4=(2,2,5,8)f32",
        "F.softmax soft 1 1 4 5 dim=-1 #4=(2,2,5,8)f32 #5=(2,2,5,8)f32",
        "pnnx.Output out0 1 0 5 #5=(2,2,5,8)f32",
        v__weight=weight[[2, 0, 3, 1]],
        v__bias=bias[[2, 0, 3, 1]],
    )
    product = (x.astype(np.float64) @ weight.T).astype(np.float32)
    full = product + bias
    turned = full.reshape(1, 40, 2, 2).transpose(0, 2, 3, 1)
    soft = softmax(turned.reshape(2, 2, 5, 8), -1)
    calls = [
        call("product", "aten.mm", "in0x", "product", {"v.weight": weight}),
        call("full", "aten.add", "product", "full", {"v.bias": bias}),
        call("soft", "aten._softmax", "full", "soft", {}),
    ]
    theirs = {"in0x": x, "product": product, "full": full, "soft": soft}
    found = engine.compare(session, shown(theirs, operators=calls))
    assert [(o.operator.name, o.reference) for o in found.origins] == [("v", "full")]
    assert found.origins[0].reasons[0].kind == "weight_layout"


def test_a_join_reads_a_tensor_that_the_reference_makes_later(run):
    """Caches of two layers are exchanged; the right join comes before what ours reads."""
    caches, x = normal(2, 1, 3, 4), normal(1, 2, 4)
    whole = np.concatenate([caches.reshape(1, 6, 4), x], 1)
    session = run(
        whole,
        "pnnx.Input in0 0 1 0 #0=(1,8,4)f32",
        "torch.split parts 1 3 0 1 2 3 dim=1 split_size_or_sections=(3,3,2) #0=(1,8,4)f32 "
        "#1=(1,3,4)f32 #2=(1,3,4)f32 #3=(1,2,4)f32",
        "torch.cat first 2 1 2 3 4 dim=1 #2=(1,3,4)f32 #3=(1,2,4)f32 #4=(1,5,4)f32",
        "F.softmax soft 1 1 4 5 dim=1 #4=(1,5,4)f32 #5=(1,5,4)f32",
        "F.relu act 1 1 3 9 #3=(1,2,4)f32 #9=(1,2,4)f32",
        "torch.cat second 2 1 1 9 6 dim=1 #1=(1,3,4)f32 #9=(1,2,4)f32 #6=(1,5,4)f32",
        "F.sigmoid gate 1 1 6 7 #6=(1,5,4)f32 #7=(1,5,4)f32",
        "pnnx.Expression sum 2 1 5 7 8 expr=add(@0,@1) #5=(1,5,4)f32 #7=(1,5,4)f32 "
        "#8=(1,5,4)f32",
        "pnnx.Output out0 1 0 8 #8=(1,5,4)f32",
    )
    positive = np.maximum(x, 0)
    first, second = np.concatenate([caches[0], x], 1), np.concatenate([caches[1], positive], 1)
    soft, gate = softmax(first, 1), (1 / (1 + np.exp(-second))).astype(np.float32)
    theirs = {
        "in0x": whole, "early": caches[0], "new": x, "first": first, "soft": soft,
        "late": caches[1], "positive": positive, "second": second, "gate": gate,
        "sum": soft + gate,
    }  # fmt: skip
    calls = [
        call("early", "aten.select", "in0x", "early", {}),
        call("new", "aten.select", "in0x", "new", {}),
        ReferenceOperator("first", "aten.cat", ("early", "new"), ("first",), dict),
        call("soft", "aten._softmax", "first", "soft", {}),
        call("late", "aten.select", "in0x", "late", {}),
        call("act", "aten.relu", "new", "positive", {}),
        ReferenceOperator("second", "aten.cat", ("late", "positive"), ("second",), dict),
        call("gate", "aten.sigmoid", "second", "gate", {}),
        ReferenceOperator("sum", "aten.add", ("soft", "gate"), ("sum",), dict),
    ]
    found = engine.compare(session, shown(theirs, operators=calls))
    assert [o.operator.name for o in found.origins] == ["first", "second"]
    assert {o.reference for o in found.origins} == {"first", "second"}


def test_a_line_that_contradicts_itself_is_named_instead_of_what_fails_behind_it(run):
    """The reference shows a normalization behind both, which is told by its weights."""
    x, scale, shift = normal(1, 5, 6), normal(3), normal(3)
    norm = "elementwise_affine=True eps=1e-5 normalized_shape=(3) @bias=(3)f32 @weight=(3)f32"
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,5,6)f32",
        "torch.chunk parts 1 2 0 1 2 chunks=2 dim=1 #0=(1,5,6)f32 #1=(1,5,3)f32 #2=(1,5,3)f32",
        "Tensor.reshape rows 1 1 1 3 shape=(1,5,3,1) #1=(1,5,3)f32 #3=(1,5,3,1)f32",
        "Tensor.reshape columns 1 1 2 4 shape=(1,5,1,3) #2=(1,5,3)f32 #4=(1,5,1,3)f32",
        "torch.matmul product 2 1 3 4 5 #3=(1,5,3,1)f32 #4=(1,5,1,3)f32 #5=(1,5,3,3)f32",
        "F.softmax soft 1 1 5 6 dim=-1 #5=(1,5,3,3)f32 #6=(1,5,3,3)f32",
        "torch.sum total 1 1 6 7 dim=(2) keepdim=False #6=(1,5,3,3)f32 #7=(1,5,3)f32",
        f"nn.LayerNorm norm 1 1 7 8 {norm} #7=(1,5,3)f32 #8=(1,5,3)f32",
        "pnnx.Output out0 1 0 8 #8=(1,5,3)f32",
        norm__weight=scale,
        norm__bias=shift,
    )
    total = softmax(x[:, :, :3, None] * x[:, :, None, 3:], -1).sum(2).astype(np.float64)
    centred = total - total.mean(-1, keepdims=True)
    normed = centred / np.sqrt(total.var(-1, keepdims=True) + 1e-5) * scale + shift
    weights = {"norm.weight": scale, "norm.bias": shift}
    calls = [call("norm", "aten.native_layer_norm", "total", "normed", weights)]
    theirs = {"in0x": x, "total": total, "normed": normed}
    theirs = {key: array.astype(np.float32) for key, array in theirs.items()}
    found = engine.compare(session, shown(theirs, operators=calls))
    assert [o.operator.name for o in found.origins] == ["parts"]
    assert "so Tensor.reshape 'rows' failed" in found.origins[0].text


def test_parts_are_joined_again_along_a_wrong_axis(run):
    """The result has the elements of what was split, in order, and the layer refuses it."""
    x, weight, bias = normal(2, 3, 4), normal(5, 8), normal(5)
    linear = "bias=True in_features=8 out_features=5 @bias=(5)f32 @weight=(5,8)f32"
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(2,3,4)f32",
        "torch.unbind parts 1 2 0 1 2 dim=0 #0=(2,3,4)f32 #1=(3,4)f32 #2=(3,4)f32",
        "torch.cat join 2 1 1 2 3 dim=0 #1=(3,4)f32 #2=(3,4)f32 #3=(3,8)f32",
        f"nn.Linear mix 1 1 3 4 {linear} #3=(3,8)f32 #4=(3,5)f32",
        "pnnx.Output out0 1 0 4 #4=(3,5)f32",
        mix__weight=weight,
        mix__bias=bias,
    )
    joined = np.concatenate([x[0], x[1]], 1)
    mixed = (joined.astype(np.float64) @ weight.T + bias).astype(np.float32)
    theirs = {"in0x": x, "one": x[0], "two": x[1], "joined": joined, "mixed": mixed}
    calls = [
        call("one", "aten.select", "in0x", "one", {}),
        call("two", "aten.select", "in0x", "two", {}),
        ReferenceOperator("join", "aten.cat", ("one", "two"), ("joined",), dict),
        call("mix", "aten.addmm", "joined", "mixed", {"mix.weight": weight}),
    ]
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("join", [], ["axis"])]
    assert "it gives 6×4 instead of 3×8" in found.origins[0].text


def test_a_constant_of_zeros_has_lost_its_numbers(run):
    """The sum agrees as well if what it reads first had the constant already."""
    x, table, constant, place = normal(1, 5, 8), normal(8, 8), normal(1, 5, 8), normal(1, 5, 8)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,5,8)f32",
        "nn.Linear fc 1 1 0 1 bias=False in_features=8 out_features=8 @weight=(8,8)f32 "
        "#1=(1,5,8)f32",
        "pnnx.Attribute kind 0 1 2 @data=(1,5,8)f32 #2=(1,5,8)f32",
        "pnnx.Attribute place 0 1 3 @data=(1,5,8)f32 #3=(1,5,8)f32",
        "pnnx.Expression sum 3 1 1 2 3 4 expr=add(add(@0,@1),@2) #4=(1,5,8)f32",
        "F.tanh act 1 1 4 5 $input=4 #5=(1,5,8)f32",
        "pnnx.Output out0 1 0 5",
        fc__weight=table,
        kind__data=0 * constant,
        place__data=place,
    )
    made = x @ table.T
    theirs = {"in0x": x, "made": made, "kind": constant, "first": made + constant,
              "place": place, "second": made + constant + place,
              "act": np.tanh(made + constant + place)}  # fmt: skip
    calls = operators_of(
        ("linear", ("in0x",), "made"), ("embedding", (), "kind"),
        ("add", ("made", "kind"), "first"), ("embedding", (), "place"),
        ("add", ("first", "place"), "second"), ("tanh", ("second",), "act"),
    )  # fmt: skip
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("kind", [], ["weight_values"])]


def test_a_large_epsilon_is_no_reason_where_the_weight_is_known_to_differ(make_pair):
    """Where all rows have the same variance, it gives what a factor of the weight gives."""
    x = normal(1, 5, 8)
    x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    weight = np.linspace(1, 1.5, 8, dtype=np.float32)
    path = make_pair(
        "pnnx.Input in0 0 1 0 #0=(1,5,8)f32",
        "nn.LayerNorm norm 1 1 0 1 elementwise_affine=True eps=0.0 normalized_shape=(8) "
        "@bias=(8)f32 @weight=(8)f32 #1=(1,5,8)f32",
        "pnnx.Output out0 1 0 1",
        weights={"norm.weight": 2 * weight, "norm.bias": np.zeros(8, np.float32)},
    )
    right = {"weight": weight, "bias": np.zeros(8, np.float32)}
    reference = reference_of(
        {"x": x, "y": (x * weight).astype("f4")}, [("layer_norm", ("x",), "y", right)]
    )
    (origin,) = compare(path, reference, x).origins
    assert origin.reasons[0].kind in {"weight_values", "scale"}


def test_a_number_that_an_expression_has_lost_is_its_own_fault(run):
    """Half of x times one more than its tanh: the rest of a written-out GELU."""
    x = normal(1, 5, 8)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,5,8)f32",
        "F.tanh act 1 1 0 1 $input=0 #1=(1,5,8)f32",
        "pnnx.Expression half 2 1 0 1 2 expr=mul(mul(@0,0.5),@1) #2=(1,5,8)f32",
        "F.relu end 1 1 2 3 $input=2 #3=(1,5,8)f32",
        "pnnx.Output out0 1 0 3",
    )
    gate = np.tanh(x)
    theirs = {"in0x": x, "gate": gate, "more": gate + 1, "scaled": x / 2,
              "made": x / 2 * (gate + 1), "end": np.maximum(x / 2 * (gate + 1), 0)}  # fmt: skip
    calls = operators_of(
        ("tanh", ("in0x",), "gate"), ("add", ("gate",), "more"), ("mul", ("in0x",), "scaled"),
        ("mul", ("scaled", "more"), "made"), ("relu", ("made",), "end"),
    )  # fmt: skip
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("half", [], ["expression"])]
    (change,) = found.origins[0].reasons[0].changes
    assert change.value == "mul(mul(@0,0.5),add(@1,1.0))"


def test_a_hash_names_the_weight_of_a_layer_whose_bias_is_computed(make_pair):
    """The reference joins the bias of three parts, so it has a hash of the matrix alone."""
    x, weight, bias = normal(3, 8), normal(6, 8), normal(6)
    path = make_pair(
        "pnnx.Input in0 0 1 0 #0=(3,8)f32",
        "nn.Linear qkv 1 1 0 1 bias=True in_features=8 out_features=6 @bias=(6)f32 "
        "@weight=(6,8)f32 #1=(3,6)f32",
        "F.tanh act 1 1 1 2 $input=1 #2=(3,6)f32",
        "pnnx.Output out0 1 0 2",
        weights={"qkv.weight": normal(6, 8), "qkv.bias": bias},
    )
    made = x @ weight.T + bias
    arrays = {"x": x, "joined": bias, "made": made, "act": np.tanh(made)}
    calls = [
        ("aten::addmm", ("joined", "x"), "made", {"attn.qkv.weight": weight}),
        ("aten::tanh", ("made",), "act", {}),
    ]
    (origin,) = compare(path, reference_of(arrays, calls), x).origins
    assert origin.operator.name == "qkv"
    assert [reason.kind for reason in origin.reasons] == ["weight_values"]
    assert "as its hash tells" in origin.reasons[0].text


def test_an_added_activation_before_residual_blocks_before_training(run):
    """The weights of norms do not tell them apart then, and its sums are much alike."""
    x = 0.02 * normal(1, 6, 16)
    first, second, third = (normal(16, 16) / 4 for _ in range(3))
    second = second / 40
    norm = "eps=1e-12 normalized_shape=(16) @bias=(16)f32 @weight=(16)f32"
    ones, zeros = np.ones(16, np.float32), np.zeros(16, np.float32)
    layer = "bias=False in_features=16 out_features=16 @weight=(16,16)f32"
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,6,16)f32",
        f"nn.Linear first 1 1 0 1 {layer} #1=(1,6,16)f32",
        "F.silu added 1 1 1 2 $input=1 #2=(1,6,16)f32",
        f"nn.LayerNorm norm 1 1 2 3 {norm} #3=(1,6,16)f32",
        f"nn.Linear second 1 1 3 4 {layer} #4=(1,6,16)f32",
        "pnnx.Expression sum 2 1 4 2 5 expr=add(@0,@1) #5=(1,6,16)f32",
        f"nn.LayerNorm norm2 1 1 5 6 {norm} #6=(1,6,16)f32",
        f"nn.Linear third 1 1 6 7 {layer} #7=(1,6,16)f32",
        "pnnx.Output out0 1 0 7",
        first__weight=first,
        second__weight=second,
        third__weight=third,
        norm__weight=ones,
        norm__bias=zeros,
        norm2__weight=ones,
        norm2__bias=zeros,
    )

    def normed(values):
        values = values - values.mean(-1, keepdims=True)
        return values / values.std(-1, keepdims=True)

    made = x @ first.T
    block = normed(made) @ second.T
    sums = block + made
    theirs = {"in0x": x, "made": made, "norm": normed(made), "block": block, "sums": sums,
              "norm2": normed(sums), "out": normed(sums) @ third.T}  # fmt: skip
    calls = operators_of(
        ("linear", ("in0x",), "made"), ("layer_norm", ("made",), "norm"),
        ("linear", ("norm",), "block"), ("add", ("block", "made"), "sums"),
        ("layer_norm", ("sums",), "norm2"), ("linear", ("norm2",), "out"),
    )  # fmt: skip
    found = engine.compare(session, shown(theirs, operators=calls))
    assert blamed(found) == [("added", [], ["activation_extra"])]


def test_a_join_in_a_wrong_order_that_the_reference_makes_with_the_next(run):
    """An order of all channels of the outer join explains as much, but says less."""
    x = normal(1, 6, 5, 5)
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,6,5,5)f32",
        "F.tanh one 1 1 0 1 $input=0 #1=(1,6,5,5)f32",
        "Tensor.slice part 1 1 1 2 dim=1 start=0 end=2 step=1 $input=1 #2=(1,2,5,5)f32",
        "torch.cat inner 2 1 2 1 3 dim=1 #3=(1,8,5,5)f32",
        "torch.cat outer 2 1 0 3 4 dim=1 #4=(1,14,5,5)f32",
        "pnnx.Output out0 1 0 4",
    )
    y = np.tanh(x)
    arrays = {"in0x": x, "tanh": y, "slice": y[:, :2],
              "cat": np.concatenate([x, y, y[:, :2]], 1)}  # fmt: skip
    calls = (
        ReferenceOperator("tanh", "tanh", ("in0x",), ("tanh",)),
        ReferenceOperator("slice", "slice", ("tanh",), ("slice",)),
        ReferenceOperator("cat", "cat", ("in0x", "tanh", "slice"), ("cat",)),
    )
    found = engine.compare(session, shown(arrays, operators=calls))
    assert blamed(found) == [("inner", [], ["channel_order"])]
    assert "in the order (1, 0)" in found.origins[0].reasons[0].text


def test_a_function_too_many_is_likelier_than_a_number_that_leaves_a_little(run):
    """A factor of the sum comes near to what the function changes."""
    x = normal(1, 8, 40) / 40
    size = "(1,8,40)f32"
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={size}",
        f"F.silu more 1 1 0 1 $input=0 #1={size}",
        f"F.relu half 1 1 0 8 $input=0 #8={size}",
        f"pnnx.Expression sum 2 1 1 8 2 expr=add(@0,@1) #2={size}",
        f"F.tanh one 1 1 2 3 $input=2 #3={size}",
        f"F.tanh two 1 1 3 4 $input=3 #4={size}",
        f"F.tanh three 1 1 4 5 $input=4 #5={size}",
        f"F.tanh four 1 1 5 6 $input=5 #6={size}",
        f"F.softmax last 1 1 6 7 dim=2 $input=6 #7={size}",
        "pnnx.Output out0 1 0 7",
    )
    y = x + np.maximum(x, 0).astype(np.float64)
    powers = np.exp(np.tanh(np.tanh(np.tanh(np.tanh(y)))))
    share = (powers / powers.sum(2, keepdims=True)).astype(np.float32)
    found = engine.compare(session, shown({"in0x": x, "share": share}))
    assert blamed(found) == [("more", [], ["activation_extra"])]


def test_parts_along_a_wrong_axis_have_the_shape_of_the_file(run):
    """The elements of each would fit the wrong shape, too, but that is not what it is."""
    x, weight = normal(2, 6, 5), normal(8, 5)
    part = "(2,6,4)f32"
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(2,6,5)f32",
        "nn.Linear fc 1 1 0 1 bias=False in_features=5 out_features=8 @weight=(8,5)f32 "
        "#1=(2,6,8)f32",
        f"torch.chunk parts 1 2 1 2 3 chunks=2 dim=1 $input=1 #2={part} #3={part}",
        f"F.tanh one 1 1 2 4 $input=2 #4={part}",
        f"F.sigmoid other 1 1 3 5 $input=3 #5={part}",
        "pnnx.Output out0 2 0 4 5",
        fc__weight=weight,
    )
    rows = x.reshape(12, 5) @ weight.T
    first, second = np.split(rows.reshape(2, 6, 8), 2, axis=2)
    arrays = {"in0x": x, "mm": rows, "first": first, "second": second,
              "tanh": np.tanh(first), "sigmoid": 1 / (1 + np.exp(-second))}  # fmt: skip
    calls = (
        ReferenceOperator("mm", "mm", ("in0x",), ("mm",)),
        ReferenceOperator("split", "split", ("mm",), ("first", "second")),
        ReferenceOperator("tanh", "tanh", ("first",), ("tanh",)),
        ReferenceOperator("sigmoid", "sigmoid", ("second",), ("sigmoid",)),
    )
    found = engine.compare(session, shown(arrays, operators=calls))
    assert blamed(found) == [("parts", [], ["axis"])]
    assert "Set dim=2" in found.origins[0].reasons[0].text


def test_an_operator_has_a_reason_though_another_one_fails_behind_it(run):
    """The parts have other sizes, so nothing behind them computes."""
    x, weight = normal(1, 5, 12), normal(3, 4)
    part, split = "(1,5,4)f32", "(1,5,2,2)f32"
    session = run(
        x,
        "pnnx.Input in0 0 1 0 #0=(1,5,12)f32",
        "F.tanh start 1 1 0 1 $input=0 #1=(1,5,12)f32",
        f"torch.chunk parts 1 3 1 2 3 4 chunks=3 dim=1 $input=1 #2={part} #3={part} #4={part}",
        f"Tensor.reshape rows 1 1 2 5 shape=(1,5,2,2) $input=2 #5={split}",
        f"F.sigmoid one 1 1 5 6 $input=5 #6={split}",
        f"Tensor.reshape back 1 1 6 7 shape=(1,5,4) $input=6 #7={part}",
        f"pnnx.Expression sum 3 1 7 3 4 8 expr=add(add(@0,@1),@2) #8={part}",
        "nn.Linear fc 1 1 8 9 bias=False in_features=4 out_features=3 @weight=(3,4)f32 "
        "#9=(1,5,3)f32",
        "pnnx.Output out0 1 0 9",
        fc__weight=weight,
    )
    first, second, third = np.split(np.tanh(x), 3, axis=2)
    gate = 1 / (1 + np.exp(-first.reshape(1, 5, 2, 2)))
    total = gate.reshape(1, 5, 4) + second + third
    arrays = {"in0x": x, "tanh": np.tanh(x), "sigmoid": gate, "sum": total,
              "mm": total @ weight.T}  # fmt: skip
    calls = (
        ("tanh", ("in0x",), "tanh", {}), ("sigmoid", ("tanh",), "sigmoid", {}),
        ("add", ("sigmoid", "tanh"), "sum", {}), ("mm", ("sum",), "mm", {"fc.weight": weight}),
    )  # fmt: skip
    with pytest.raises(EngineError):
        session.run()
    (origin,) = engine.compare(session, reference_of(arrays, calls)).origins
    assert origin.operator.name == "parts"
    assert [reason.kind for reason in origin.reasons] == ["axis"]


def test_a_lost_activation_before_a_sum_that_is_activated_again(run):
    """The ReLU behind the sum gives the lost one's tensor of what the lost one reads."""
    x, weight = normal(2, 6, 8), normal(8, 8)
    size = "(2,6,8)f32"
    session = run(
        x,
        f"pnnx.Input in0 0 1 0 #0={size}",
        "nn.Linear fc 1 1 0 1 bias=False in_features=8 out_features=8 @weight=(8,8)f32 "
        f"#1={size}",
        f"F.tanh other 1 1 0 2 $input=0 #2={size}",
        f"pnnx.Expression sum 2 1 1 2 3 expr=add(@0,@1) #3={size}",
        f"F.relu last 1 1 3 4 $input=3 #4={size}",
        f"F.sigmoid end 1 1 4 5 $input=4 #5={size}",
        "pnnx.Output out0 1 0 5",
        fc__weight=weight,
    )
    product = x @ weight.T
    relu = np.maximum(product, 0)
    total = relu + np.tanh(x)
    last = np.maximum(total, 0)
    arrays = {"in0x": x, "mm": product, "relu": relu, "tanh": np.tanh(x), "add": total,
              "last": last, "sigmoid": 1 / (1 + np.exp(-last))}  # fmt: skip
    calls = (
        ("mm", ("in0x",), "mm", {"fc.weight": weight}), ("relu", ("mm",), "relu", {}),
        ("tanh", ("in0x",), "tanh", {}), ("add", ("relu", "tanh"), "add", {}),
        ("relu", ("add",), "last", {}), ("sigmoid", ("last",), "sigmoid", {}),
    )  # fmt: skip
    found = engine.compare(session, reference_of(arrays, calls))
    assert blamed(found) == [("fc", [], ["activation_missing"])]
