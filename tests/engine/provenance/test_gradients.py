"""The effective weight against difference quotients of whole passes, and the check by noise."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import TensorError
from engine.provenance.gradients import check_field, effective_weight

RNG = np.random.default_rng(11)
IN, OUT = "pnnx.Input in 0 1 0", "pnnx.Output out 1 0 {0}"
CONV = (
    "nn.Conv2d {0} 1 1 {1} {2} bias=True dilation=({8},{8}) groups={7} in_channels={3} "
    "kernel_size=(3,3) out_channels={4} padding=({5},{5}) padding_mode={9} stride=({6},{6}) "
    "@weight=({4},{10},3,3)f32 @bias=({4})f32"
)


def conv(name, source, target, into, out, *, padding=1, stride=1, groups=1, dilation=1,
         mode="zeros"):  # fmt: skip
    """A line of a convolution and its weights."""
    line = CONV.format(
        name, source, target, into, out, padding, stride, groups, dilation, mode, into // groups
    )
    weights = {
        f"{name}.weight": RNG.normal(size=(out, into // groups, 3, 3)).astype(np.float32),
        f"{name}.bias": RNG.normal(size=out).astype(np.float32),
    }
    return line, weights


PLAIN = conv("c", 0, 1, 2, 3, stride=2)
GROUPED = conv("c", 0, 1, 2, 4, groups=2, dilation=2)
REFLECTED = conv("c", 0, 1, 2, 3, mode="reflect")
ON = {
    "stride": ([PLAIN[0]], PLAIN[1], 1),
    "groups": ([GROUPED[0]], GROUPED[1], 1),
    "reflect": ([REFLECTED[0]], REFLECTED[1], 1),
    "silu": (["nn.SiLU a 1 1 0 1"], {}, 1),
    "residual": (
        ["nn.Hardswish a 1 1 0 1", "pnnx.Expression e 2 1 0 1 2 expr=add(mul(@0,0.5),@1)"],
        {},
        2,
    ),
    "max": (
        ["F.max_pool2d p 1 1 0 1 kernel_size=(3,3) padding=(1,1) stride=(2,2)"],
        {},
        1,
    ),
    "mean": (
        ["F.avg_pool2d p 1 1 0 1 kernel_size=(3,3) padding=(1,1) stride=(2,2)"],
        {},
        1,
    ),
    "adaptive": (["nn.AdaptiveAvgPool2d p 1 1 0 1 output_size=(3,2)"], {}, 1),
    "softmax": (["F.softmax s 1 1 0 1 dim=3"], {}, 1),
    "resize": (
        ["F.interpolate r 1 1 0 1 align_corners=False mode=bilinear size=(9,11)"],
        {},
        1,
    ),
    "reduce": (["torch.mean m 1 1 0 1 dim=(1,3) keepdim=False"], {}, 1),
    "moves": (
        [
            "torch.permute p 1 1 0 1 dims=(0,2,3,1)",
            "torch.flatten f 1 1 1 2 end_dim=2 start_dim=1",
            "torch.cat j 2 1 2 2 3 dim=2",
        ],
        {},
        3,
    ),
    "product": (
        ["torch.transpose t 1 1 0 1 dim0=2 dim1=3", "torch.matmul m 2 1 0 1 2"],
        {},
        2,
    ),
    "layer norm": (
        ["nn.LayerNorm n 1 1 0 1 normalized_shape=(6) @weight=(6)f32 @bias=(6)f32"],
        {
            "n.weight": RNG.normal(size=6).astype(np.float32),
            "n.bias": RNG.normal(size=6).astype(np.float32),
        },
        1,
    ),
    "group norm": (
        ["nn.GroupNorm n 1 1 0 1 num_channels=2 num_groups=2 @weight=(2)f32 @bias=(2)f32"],
        {
            "n.weight": RNG.normal(size=2).astype(np.float32),
            "n.bias": RNG.normal(size=2).astype(np.float32),
        },
        1,
    ),
    "attention": (
        ["F.scaled_dot_product_attention a 3 1 0 0 0 1 is_causal=True"],
        {},
        1,
    ),
    "attention with an additive mask": (
        ["F.scaled_dot_product_attention a 4 1 0 0 0 0 1"],
        {},
        1,
    ),
    "attention with shared heads": (
        [
            "Tensor.slice k 1 1 0 1 dim=1 start=0 end=1 step=1",
            "F.scaled_dot_product_attention a 3 1 0 1 1 2 enable_gqa=True",
        ],
        {},
        2,
    ),
    "computed kernel": (
        [
            "Tensor.slice k 1 1 0 1 dim=3 start=1 end=4 step=1",
            ("F.conv2d c 2 1 0 1 2 stride=(1,2) padding=(1,1) dilation=(1,1) groups=1 "
            "$input=0 $weight=1"),
        ],
        {},
        2,
    ),
    "computed factors": (
        [
            "torch.mean m 1 1 0 1 dim=(0,2,3) keepdim=False",
            "F.group_norm n 3 1 0 1 1 2 eps=1e-5 num_groups=1 $input=0 $weight=1 $bias=1",
        ],
        {},
        2,
    ),
    **{
        line.partition(" ")[0]: ([f"{line.replace(' ', ' op 1 1 0 1 ', 1)}"], {}, 1)
        for line in (
            "nn.LPPool2d norm_type=2 kernel_size=(2,2) stride=(1,2)",
            "nn.LocalResponseNorm size=2 alpha=0.5 beta=0.75 k=1.0",
            "F.normalize p=2 dim=3 eps=1e-12",
            "F.glu dim=2",
            "torch.amax dim=(2,3) keepdim=False",
            "torch.max dim=3 keepdim=False",  # files need not keep the positions
            "torch.min dim=2 keepdim=True",
            "torch.std dim=(2) unbiased=True keepdim=False",
            "torch.norm p=3 dim=(1,3) keepdim=True",
            "torch.logsumexp dim=(1) keepdim=False",
            "torch.prod dim=1 keepdim=True",
            "torch.cumsum dim=3",
            "torch.cumprod dim=2",
            "torch.diff dim=3 n=2",
        )
    },
    "deformable": (
        [
            "torch.tile o 1 1 0 1 dims=(1,9,1,1)",
            (
                "torchvision.ops.DeformConv2d d 2 1 0 1 2 padding=(1,1) $input=0 $offset=1 "
                "@weight=(3,2,3,3)f32"
            ),
        ],
        {"d.weight": RNG.normal(size=(3, 2, 3, 3)).astype(np.float32)},
        2,
    ),
    "sampled on a grid": (
        [
            "Tensor.permute p 1 1 0 1 dims=(0,2,3,1)",
            (
                "F.grid_sample s 2 1 0 1 2 mode=bilinear padding_mode=border "
                "align_corners=False $input=0 $grid=1"
            ),
        ],
        {},
        2,
    ),
    **{
        f"bags by {mode}": (
            [
                "Tensor.reshape r 1 1 0 1 shape=(12,6)",
                "pnnx.Attribute i 0 1 i @data=(6)i64",
                "pnnx.Attribute o 0 1 o @data=(3)i64",
                "torch.mean m 1 1 0 s dim=(0,1,2) keepdim=False",
                (
                    f"F.embedding_bag b {4 if mode == 'sum' else 3} 1 i 1 o "
                    f"{'s ' if mode == 'sum' else ''}2 mode={mode} $input=i $weight=1 "
                    f"$offsets=o {'$per_sample_weights=s' if mode == 'sum' else ''}"
                ),
            ],
            {"i.data": np.array([3, 7, 3, 0, 11, 7]), "o.data": np.array([0, 3, 4])},
            2,
        )
        for mode in ("sum", "mean", "max")
    },
    **{
        f"combined by {reduce}{'' if keeps else ' alone'}": (
            [
                "Tensor.slice l 1 1 0 1 dims=(2,3) starts=(0,1) ends=(4,6) steps=(1,1)",
                "pnnx.Attribute i 0 1 i @data=(1,2,4,5)i64",
                "pnnx.Expression d 0 1 d expr=3",
                f"pnnx.Expression r 0 1 r expr={reduce}",
                f"pnnx.Expression k 0 1 k expr={keeps}",
                "aten::scatter_reduce s 6 1 0 d i 1 r k 2",
            ],
            {"i.data": np.random.default_rng(9).integers(0, 6, (1, 2, 4, 5))},
            2,
        )
        for reduce in ("sum", "mean", "amax", "amin")
        for keeps in (True, False)
    },
    "multihead with a mask": (
        [
            "torch.mean q 1 1 0 1 dim=(0) keepdim=False",
            "Tensor.slice s 1 1 1 2 dim=2 start=0 end=4 step=1",
            "torch.mean m 1 1 0 3 dim=(0,1) keepdim=False",
            ("nn.MultiheadAttention a 2 1 2 3 4 num_heads=2 embed_dim=4 batch_first=True "
            "$input=2 $attn_mask=3 @in_proj_weight=(12,4)f32 @in_proj_bias=(12)f32 "
            "@out_proj.weight=(4,4)f32 @out_proj.bias=(4)f32"),
        ],
        {
            "a.in_proj_weight": RNG.normal(size=(12, 4)).astype(np.float32),
            "a.in_proj_bias": RNG.normal(size=12).astype(np.float32),
            "a.out_proj.weight": RNG.normal(size=(4, 4)).astype(np.float32),
            "a.out_proj.bias": RNG.normal(size=4).astype(np.float32),
        },
        4,
    ),
}  # fmt: skip


def make(make_pair, lines, weights, result, value):
    session = engine.Session(
        engine.load(make_pair(IN, *lines, OUT.format(result), weights=weights)), "numpy"
    )
    session.feed([value])
    session.run()
    return session


@pytest.mark.parametrize("name", ON)
def test_against_difference_quotients(make_pair, name) -> None:
    lines, weights, result = ON[name]
    # Distinct elements far apart, so that no step exchanges the largest of a window.
    value = RNG.permutation(72).reshape(1, 2, 6, 6).astype(np.float64) / 20 - 1.7
    value = value.astype(np.float32)
    session = make(make_pair, lines, weights, result, value)
    shape = session.value(str(result)).shape
    index = tuple([int(RNG.integers(0, size)) for size in shape])
    found = effective_weight(session, str(result), index, "0").gradient
    assert found.shape == value.shape
    step = 2.0**-7
    for place in map(tuple, RNG.permutation(list(np.ndindex(value.shape)))[:24]):
        ends = []
        for sign in (1, -1):
            moved = value.copy()
            moved[place] += sign * step
            session.feed([moved])
            session.run()
            ends.append(float(session.value(str(result))[index]))
        quotient = (ends[0] - ends[1]) / (2 * step)
        assert found[place] == pytest.approx(quotient, abs=2e-3 + 0.01 * abs(quotient))


def test_relu_at_zero_has_no_slope(make_pair) -> None:
    value = np.array([[[[-1.0, 0.0, 2.0]]]], np.float32)
    session = make(make_pair, ["F.relu a 1 1 0 1"], {}, 1, value)
    slopes = [
        effective_weight(session, "1", (0, 0, 0, i), "0").gradient.sum() for i in range(3)
    ]
    assert slopes == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("line", ["F.relu a", "nn.ReLU6 a", "pnnx.Expression a"])
def test_a_small_number_is_not_at_the_kink(make_pair, line) -> None:
    """As in a network with weights of its beginning, whose features are small."""
    small = [1e-8, -1e-8, 3e-13, -3e-13, 1e-18, -1e-18, 0.0, 0.7]
    value = np.array([[[small]]], np.float32)
    more = " expr=max(@0,0)" if "Expression" in line else ""
    session = make(make_pair, [f"{line} 1 1 0 1{more}"], {}, 1, value)
    slopes = [
        effective_weight(session, "1", (0, 0, 0, i), "0").gradient.sum() for i in range(8)
    ]
    assert slopes == pytest.approx([1, 0, 1, 0, 1, 0, 0, 1])


def test_a_kink_away_from_zero(make_pair) -> None:
    value = np.array([[[[3.0, 3 - 1e-6, 3 + 1e-6, -3 + 2e-6, 2.0]]]], np.float32)
    session = make(make_pair, ["nn.Hardswish a 1 1 0 1"], {}, 1, value)
    slopes = [
        effective_weight(session, "1", (0, 0, 0, i), "0").gradient.sum() for i in range(5)
    ]
    # (2 x + 3) / 6 within, 1 above; the smaller of both at the kink.
    assert slopes == pytest.approx([1, 1.5, 1, -0.5, 7 / 6], abs=1e-3)


def test_a_running_product_with_a_zero(make_pair) -> None:
    """By hand for 2, 0, 3: the slope of 0 at the end is 2 · 3, that of 2 and of 3 is 0."""
    value = np.array([[[[2.0, 0.0, 3.0]]]], np.float32)
    session = make(make_pair, ["torch.cumprod p 1 1 0 1 dim=3"], {}, 1, value)
    found = effective_weight(session, "1", (0, 0, 0, 2), "0").gradient
    assert found.reshape(-1).tolist() == [0, 6, 0]


def test_what_cannot_be_followed_is_named(make_pair) -> None:
    session = make(
        make_pair,
        ["torch.logcumsumexp odd 1 1 0 1 dim=3"],
        {},
        1,
        np.ones((1, 1, 2, 3), np.float32),
    )
    with pytest.raises(TensorError, match="odd"):
        effective_weight(session, "1", (0, 0, 0, 0), "0")


def test_it_can_be_cancelled(make_pair) -> None:
    session = make(make_pair, ["F.relu a 1 1 0 1"], {}, 1, np.ones((1, 1, 2, 3), np.float32))

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        effective_weight(session, "1", (0, 0, 0, 0), "0", stop)


@pytest.mark.parametrize("name", ["stride", "groups", "reflect", "max", "resize", "softmax"])
def test_noise_outside_changes_nothing(make_pair, name) -> None:
    lines, weights, result = ON[name]
    value = RNG.normal(size=(1, 2, 6, 6)).astype(np.float32)
    session = make(make_pair, lines, weights, result, value)
    index = tuple([size // 2 for size in session.value(str(result)).shape])
    check = check_field(session, str(result), index)
    assert check.is_same
    assert 0 < check.changed < value.size
    assert check.value == pytest.approx(float(session.value(str(result))[index]))
    np.testing.assert_array_equal(session.value("0"), value)


def test_the_slope_of_a_diagonal(make_pair):
    """An element of the diagonal counts, another does not."""
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(3,3)f32",
        "torch.einsum e 1 1 x y equation=ii->i $operands=x #y=(3)f32",
        "pnnx.Output out 1 0 y",
    )
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.ones((3, 3), np.float32)])
    session.run()
    weight = engine.effective_weight(session, "y", (1,), "x")
    assert weight.gradient.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
