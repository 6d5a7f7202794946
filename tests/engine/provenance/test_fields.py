"""Receptive fields: what lies outside has no influence, and boxes of windows are tight."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import engine
from engine.errors import InferenceError

SIZE = 14


def conv(rng, at, channels, *, gaps=True):
    kernel, dilation = int(rng.integers(1, 4)), int(rng.integers(1, 3)) if gaps else 1
    stride, padding = (
        int(rng.integers(1, 3 if gaps else min(kernel, 2) + 1)),
        int(rng.integers(0, 3)),
    )
    groups = int(rng.choice([1, 2]))
    line = (
        f"nn.Conv2d op{at} 1 1 {at} {at + 1} stride=({stride},1) padding=({padding},{padding}) "
        f"dilation=({dilation},{dilation}) groups={groups} "
        f"@weight=(4,{channels // groups},{kernel},{kernel})f32"
    )
    weight = rng.uniform(0.5, 1.5, (4, channels // groups, kernel, kernel)).astype(np.float32)
    return line, {f"op{at}.weight": weight}


def plain(text):
    def make(rng, at, channels):
        kind, _, arguments = text.partition(" ")
        return f"{kind} op{at} 1 1 {at} {at + 1} {arguments}", {}

    return make


def transposed(rng, at, channels):
    stride = int(rng.integers(1, 3))
    line = (
        f"nn.ConvTranspose2d op{at} 1 1 {at} {at + 1} stride=({stride},{stride}) "
        f"padding=(1,0) @weight=({channels},4,3,2)f32"
    )
    weight = rng.uniform(0.5, 1.5, (channels, 4, 3, 2)).astype(np.float32)
    return line, {f"op{at}.weight": weight}


def skip(rng, at, channels):
    return f"pnnx.Expression op{at} 2 1 {at} {at} {at + 1} expr=add(mul(@0,0.5),tanh(@1))", {}


def softmax(rng, at, channels):
    return f"torch.softmax op{at} 1 1 {at} {at + 1} dim={int(rng.integers(1, 4))}", {}


def conv_without_gaps(rng, at, channels):
    return conv(rng, at, channels, gaps=False)


WINDOWS = (
    conv_without_gaps,
    plain("nn.MaxPool2d kernel_size=(2,3) stride=(1,2) padding=(1,1)"),
    plain("nn.AvgPool2d kernel_size=(3,2) stride=(2,1) padding=(1,0)"),
)
OTHERS = (
    skip, transposed, softmax,
    plain("nn.ReLU"),
    plain("nn.GELU"),
    plain("nn.ReflectionPad2d padding=(1,2,0,1)"),
    plain("F.interpolate scale_factor=(1.5,2.0) mode=bilinear align_corners=False"),
    plain("F.interpolate size=(9,7) mode=nearest"),
    plain("nn.AdaptiveAvgPool2d output_size=(5,6)"),
    plain("torch.permute dims=(0,1,3,2)"),
    plain("Tensor.slice dim=2 start=1 end=-1 step=2"),
    plain("torch.roll shifts=(2,1) dims=(2,3)"),
    plain("torch.flip dims=(2)"),
    plain("nn.ChannelShuffle groups=2"),
    plain("torch.cumsum dim=3"),
    plain("torch.diff dim=3 n=2"),
    plain("nn.GroupNorm num_groups=2 eps=1e-5"),
    plain("nn.LocalResponseNorm size=3 alpha=0.5 beta=0.75 k=1.0"),
    plain("nn.InstanceNorm2d eps=1e-5 affine=False track_running_stats=False"),
    plain("F.glu dim=2"),
    plain("nn.LPPool2d norm_type=2 kernel_size=(2,2) stride=(1,1)"),
    plain("nn.ReplicationPad2d padding=(2,1,0,2)"),
    plain("F.pad pad=(1,2,2,1) mode=circular"),
    plain("F.pad pad=(1,0,-1,2) mode=constant value=0.5"),
    plain("F.interpolate size=(8,11) mode=bicubic align_corners=True"),
    plain("F.interpolate size=(5,6) mode=bilinear align_corners=False antialias=True"),
    plain("F.interpolate size=(7,5) mode=area"),
    plain("nn.AdaptiveMaxPool2d output_size=(4,7)"),
    plain("torch.mean dim=(2) keepdim=True"),
    plain("torch.std dim=(3) unbiased=False keepdim=True"),
    plain("torch.amax dim=(1) keepdim=True"),
    plain("torch.logsumexp dim=(2) keepdim=True"),
    plain("torch.norm p=2 dim=(3) keepdim=True"),
    plain("torch.cummax dim=2"),
    plain("F.normalize p=2 dim=1 eps=1e-12"),
    plain("F.softmin dim=2"),
    plain("torch.tril diagonal=1"),
    plain("torch.repeat_interleave dim=2 repeats=2"),
    plain("nn.LayerNorm normalized_shape=(3) eps=1e-5 elementwise_affine=False"),
)  # fmt: skip


def self_product(rng, at, channels):
    """Attention of the picture's rows."""
    return (
        f"F.scaled_dot_product_attention op{at} 3 1 {at} {at} {at} {at + 1} dropout_p=0.0 "
        f"is_causal={bool(rng.integers(2))} $query={at} $key={at} $value={at}"
    ), {}


def windows(rng, at, channels):
    """A picture cut into windows of one row, each normalised, and put together again."""
    size = 2
    return [
        f"F.pad pad{at} 1 1 {at} {at}a pad=(0,1,0,1) mode=replicate",
        f"torch.roll roll{at} 1 1 {at}a {at}b shifts=(-1,-1) dims=(2,3)",
        f"nn.Unfold cut{at} 1 1 {at}b {at}c kernel_size=({size},{size}) stride=({size},{size})",
        f"torch.softmax op{at} 1 1 {at}c {at}d dim=1",
        f"torch.unsqueeze up{at} 1 1 {at}d {at + 1} dim=1",
    ], {}


def tokens(rng, at, channels):
    """The rows and columns as tokens, that attend to each other by a module."""
    shapes = {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4),
              "out_proj.bias": (4,)}  # fmt: skip
    texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in shapes.items())
    weights = {f"op{at}.{k}": rng.normal(size=v).astype(np.float32) for k, v in shapes.items()}
    return [
        f"torch.flatten flat{at} 1 1 {at} {at}a start_dim=2 end_dim=3",
        f"torch.permute turn{at} 1 1 {at}a {at}b dims=(0,2,1)",
        (
            f"nn.MultiheadAttention op{at} 1 1 {at}b {at}c num_heads=2 embed_dim=4 "
            f"batch_first=True {texts}"
        ),
        f"torch.unsqueeze up{at} 1 1 {at}c {at + 1} dim=1",
    ], weights


def gathered(rng, at, channels):
    """Rows in another order, by indices from a weight."""
    index = rng.integers(0, 5, 6)
    return [
        f"pnnx.Attribute at{at} 0 1 {at}a @data=(6)i64",
        f"torch.index_select op{at} 2 1 {at} {at}a {at + 1} dim=2 $input={at} $index={at}a",
    ], {f"at{at}.data": index}


def normed(rng, at, channels):
    """A picture divided by a mean that is computed from it."""
    return [
        f"torch.mean mean{at} 1 1 {at} {at}a dim=({int(rng.integers(1, 4))}) keepdim=True",
        f"pnnx.Expression op{at} 2 1 {at} {at}a {at + 1} expr=div(@0,add(@1,2.0))",
    ], {}


MIXED = (windows, tokens, gathered, normed, conv, conv, *WINDOWS, *OTHERS, self_product)


def draw_net(make_pair, seed, choices):
    """A chain of random operators on a picture of 4 channels, as far as it runs."""
    rng = np.random.default_rng(seed)
    lines, weights = ["pnnx.Input in 0 1 0 #0=(1,4,14,14)f32"], {}
    for at in range(int(rng.integers(2, 6))):
        line, own = choices[int(rng.integers(len(choices)))](rng, at, 4)
        lines += [line] if isinstance(line, str) else line
        weights |= own
        last = at + 1
    path = make_pair(*lines, f"pnnx.Output out 1 0 {last}", weights=weights)
    session = engine.Session(engine.load(path), "numpy")
    session.feed([rng.uniform(0.5, 1.5, (1, 4, SIZE, SIZE)).astype(np.float32)])
    with suppress(InferenceError):  # of a picture that became too small
        session.run()
    computed = [name for name in map(str, range(last + 1)) if session.has_value(name)]
    computed = [name for name in computed if session.value(name).size]
    return session, computed[-1], rng


@pytest.mark.parametrize("seed", range(60))
def test_what_lies_outside_has_no_influence(make_pair, seed):
    session, operand, rng = draw_net(make_pair, seed, MIXED)
    value = session.value(operand)
    index = tuple(int(rng.integers(size)) for size in value.shape)
    field = engine.receptive_field(session, operand, index)
    assert field.guessed == ()
    x = session.value("0").copy()
    noise = rng.normal(size=x.shape).astype(np.float32) * 3
    for source in field.inputs:
        noise[source.slices] = x[source.slices]
    other = session.fork("numpy")
    other.feed([noise])
    with np.errstate(all="ignore"):
        while not other.has_value(operand):
            other.step()
    assert other.value(operand)[index] == value[index]


@pytest.mark.parametrize("seed", range(25))
def test_boxes_of_windows_are_tight(make_pair, seed):
    """Each side of the box has a position that has an influence."""
    session, operand, rng = draw_net(make_pair, 1000 + seed, WINDOWS)
    value = session.value(operand)
    index = tuple(int(rng.integers(size)) for size in value.shape)
    field = engine.receptive_field(session, operand, index)
    x = session.value("0")
    sides = []
    for source in field.inputs:
        for axis in (1, 2, 3):
            for place in (source.box[axis].start, source.box[axis].stop - 1):
                part = list(source.slices)
                part[axis] = slice(place, place + 1)
                sides.append(tuple(part))
    for part in sides:
        changed = x.copy()
        changed[part] += 1000  # positive weights: no maximum and no sum hides it
        other = session.fork("numpy")
        other.feed([changed])
        while not other.has_value(operand):
            other.step()
        assert other.value(operand)[index] != value[index], part


def test_stride_and_offset(make_pair):
    """Two convolutions of stride 2 and a pooling: by the formulas, by hand."""
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,1,64,64)f32",
        "nn.Conv2d a 1 1 0 1 stride=(2,2) padding=(3,3) @weight=(1,1,7,7)f32",
        "nn.MaxPool2d b 1 1 1 2 kernel_size=(3,3) stride=(2,2) padding=(1,1)",
        "nn.Conv2d c 1 1 2 3 stride=(1,1) padding=(1,1) @weight=(1,1,3,3)f32",
        "pnnx.Output out 1 0 3",
    )
    weights = {
        "a.weight": np.ones((1, 1, 7, 7), np.float32),
        "c.weight": np.ones((1, 1, 3, 3), np.float32),
    }
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    session.feed([np.zeros((1, 1, 64, 64), np.float32)])
    session.run()
    (source,) = engine.receptive_field(session, "3", (0, 0, 8, 0)).inputs
    # c reads 3 of b: extent 3; b 3 at stride 2: 7; a 7 at stride 2: 19. The stride is 4.
    # The first row is ((8 - 1) * 2 - 1) * 2 - 3 = 23; that of row 0 is 23 - 32 = -9.
    assert source.slices[2:] == (slice(23, 42), slice(0, 10))
    assert source.stride == (None, None, 4, 4)
    assert source.offset == (None, None, -9, -9)
    assert source.size == 19 * 10


@pytest.mark.parametrize(
    "operators",
    [
        # Rows of the result are columns of the input, which are no axis in the same place.
        ["torch.transpose t 1 1 0 a dim0=2 dim1=3"],
        # The sum's regions grow and shrink with the distance from the diagonal.
        [
            "torch.transpose t 1 1 0 b dim0=2 dim1=3",
            "pnnx.Expression e 2 1 0 b a expr=add(@0,@1)",
        ],
    ],
)
def test_what_follows_another_axis_has_no_stride(make_pair, operators):
    lines = [
        "pnnx.Input x 0 1 0 #0=(1,1,8,8)f32",
        *operators,
        "nn.AvgPool2d p 1 1 a 1 kernel_size=(3,3) stride=(1,1) padding=(1,1)",
        "pnnx.Output y 1 0 1",
    ]
    session = engine.Session(engine.load(make_pair(*lines)))
    session.feed([np.zeros((1, 1, 8, 8), np.float32)])
    session.run()
    (source,) = engine.receptive_field(session, "1", (0, 0, 4, 3)).inputs
    assert source.stride == source.offset == (None, None, None, None)


def test_an_unknown_operator_counts_as_a_whole(make_pair):
    lines = (
        "pnnx.Input in 0 1 0 #0=(2,8)f32",
        "torch.sort s 1 2 0 1 2 dim=1 descending=False",
        "torch.fft.fft f 1 1 1 3 dim=-1 norm=backward",
        "torch.real r 1 1 3 4",
        "pnnx.Output out 1 0 4",
    )
    session = engine.Session(engine.load(make_pair(*lines)))
    session.feed([np.arange(16, dtype=np.float32).reshape(2, 8)])
    session.run()
    sorted_field = engine.receptive_field(session, "1", (1, 3))
    assert sorted_field.inputs[0].slices == (slice(1, 2), slice(0, 8))
    assert sorted_field.guessed == ()
    field = engine.receptive_field(session, "4", (1, 3))
    assert field.inputs[0].is_whole
    assert "torch.fft.fft" in {each.type for each in field.guessed}


def test_sizes_have_no_influence(make_pair):
    """A reshape by computed sizes depends on its elements only."""
    lines = (
        "pnnx.Input a 0 1 0 #0=(2,6)f32",
        "pnnx.Input b 0 1 1 #1=(3,4)f32",
        "Tensor.size s 1 1 1 2 dim=0",
        "pnnx.Expression e 1 1 2 3 expr=[@0,4]",
        "Tensor.reshape r 2 1 0 3 4 $input=0 $shape=3",
        "pnnx.Output out 1 0 4",
    )
    session = engine.Session(engine.load(make_pair(*lines)))
    session.feed([np.zeros((2, 6), np.float32), np.zeros((3, 4), np.float32)])
    session.run()
    field = engine.receptive_field(session, "4", (2, 1))
    assert [each.operand for each in field.inputs] == ["0"]
    assert field.inputs[0].slices == (slice(1, 2), slice(3, 4))


def test_recurrent_layers_read_what_came_before(make_pair):
    rng = np.random.default_rng(0)
    shapes = {"weight_ih_l0": (12, 2), "weight_hh_l0": (12, 3), "bias_ih_l0": (12,),
              "bias_hh_l0": (12,)}  # fmt: skip
    texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in shapes.items())
    lines = (
        "pnnx.Input in 0 1 0 #0=(2,5,2)f32",
        "nn.LSTM l 1 1 0 1 batch_first=True bidirectional=False hidden_size=3 " + texts,
        "pnnx.Output out 1 0 1",
    )
    weights = {f"l.{k}": rng.normal(size=v).astype(np.float32) for k, v in shapes.items()}
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    session.feed([rng.normal(size=(2, 5, 2)).astype(np.float32)])
    session.run()
    field = engine.receptive_field(session, "1", (1, 2, 0))
    assert field.inputs[0].slices == (slice(1, 2), slice(0, 3), slice(0, 2))
    assert field.guessed == ()


def test_a_sequence_that_is_query_and_key_counts_as_a_whole(make_pair):
    """Also beside a mask, which is no key."""
    shapes = {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4),
              "out_proj.bias": (4,)}  # fmt: skip
    texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in shapes.items())
    lines = (
        "pnnx.Input in 0 1 0 #0=(2,5,4)f32",
        "pnnx.Input mask 0 1 1 #1=(5,5)f32",
        (
            "nn.MultiheadAttention a 2 1 0 1 2 num_heads=2 embed_dim=4 batch_first=True "
            f"$input=0 $attn_mask=1 {texts}"
        ),
        "pnnx.Output out 1 0 2",
    )
    rng = np.random.default_rng(0)
    weights = {f"a.{k}": rng.normal(size=v).astype(np.float32) for k, v in shapes.items()}
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    session.feed([rng.normal(size=(2, 5, 4)).astype(np.float32), np.eye(5, dtype=np.float32)])
    session.run()
    field = engine.receptive_field(session, "2", (1, 2, 0))
    assert field.inputs[0].slices == (slice(1, 2), slice(0, 5), slice(0, 4))
    assert engine.check_field(session, "2", (1, 2, 0)).is_same


def test_states_of_recurrent_layers_count_for_their_sample(make_pair):
    rng = np.random.default_rng(0)
    shapes = {"weight_ih_l0": (9, 2), "weight_hh_l0": (9, 3), "weight_ih_l1": (9, 3),
              "weight_hh_l1": (9, 3)}  # fmt: skip
    texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in shapes.items())
    lines = (
        "pnnx.Input in 0 1 0 #0=(5,4,2)f32",
        "pnnx.Input state 0 1 h #h=(2,4,3)f32",
        "nn.GRU g 2 2 0 h 1 2 bias=False num_layers=2 hidden_size=3 " + texts,
        "pnnx.Output out 2 0 1 2",
    )
    weights = {f"g.{k}": rng.normal(size=v).astype(np.float32) for k, v in shapes.items()}
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    session.feed([rng.normal(size=each).astype(np.float32) for each in ((5, 4, 2), (2, 4, 3))])
    session.run()
    for name, index, steps in (("1", (2, 3, 0), 3), ("2", (1, 3, 0), 5)):
        x, state = engine.receptive_field(session, name, index).inputs
        assert x.slices == (slice(0, steps), slice(3, 4), slice(0, 2))
        assert state.slices == (slice(0, 2), slice(3, 4), slice(0, 3))
        assert engine.check_field(session, name, index).is_same


def test_offsets_choose_the_pixels_of_a_deformable_convolution(make_pair):
    lines = (
        "pnnx.Input image 0 1 x #x=(1,2,9,9)f32",
        "pnnx.Input offsets 0 1 o #o=(1,18,9,9)f32",
        (
            "torchvision.ops.DeformConv2d d 2 1 x o y padding=(1,1) $input=x $offset=o "
            "@weight=(3,2,3,3)f32"
        ),
        "pnnx.Output out 1 0 y",
    )
    rng = np.random.default_rng(0)
    weights = {"d.weight": rng.normal(size=(3, 2, 3, 3)).astype(np.float32)}
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    offsets = np.zeros((1, 18, 9, 9), np.float32)
    offsets[0, ::2] = 1.5  # all taps down
    offsets[0, 1, 4, 4] = -2.25  # the first one to the left
    session.feed([rng.normal(size=(1, 2, 9, 9)).astype(np.float32), offsets])
    session.run()
    image, moved = engine.receptive_field(session, "y", (0, 1, 4, 4)).inputs
    # Taps of rows 3 to 5 read between rows 4.5 and 6.5; those of columns 3 to 5 from 0.75 to 5.
    assert image.slices == (slice(0, 1), slice(0, 2), slice(4, 8), slice(0, 7))
    assert moved.slices == (slice(0, 1), slice(0, 18), slice(4, 5), slice(4, 5))
    assert engine.check_field(session, "y", (0, 1, 4, 4)).is_same


def test_a_long_chain(make_pair):
    lines = ["pnnx.Input in 0 1 0 #0=(1,1,6,6)f32"]
    lines += [f"nn.ReLU r{at} 1 1 {at} {at + 1}" for at in range(2000)]
    session = engine.Session(engine.load(make_pair(*lines, "pnnx.Output out 1 0 2000")))
    session.feed([np.ones((1, 1, 6, 6), np.float32)])
    session.run()
    field = engine.receptive_field(session, "2000", (0, 0, 2, 3))
    assert field.operators == 2000
    assert field.inputs[0].slices == (
        slice(0, 1), slice(0, 1), slice(2, 3), slice(3, 4)
    )  # fmt: skip


def test_a_region_that_depends_on_values_is_found_anew(make_pair):
    path = make_pair(
        "pnnx.Input a 0 1 x #x=(6,2)f32",
        "pnnx.Input b 0 1 i #i=(2)i64",
        "torch.index_select op 2 1 x i y dim=0",
        "pnnx.Output out 1 0 y",
    )
    session = engine.Session(engine.load(path), "numpy")
    for rows, start in (([1, 2], 1), ([4, 5], 4), ([1, 2], 1)):
        session.feed([np.ones((6, 2), np.float32), np.array(rows)])
        session.run()
        for _ in range(2):  # the second one is remembered
            field = engine.receptive_field(session, "y", (0, 1))
            box = next(each.box for each in field.inputs if each.operand == "x")
            assert [(each.start, each.stop) for each in box] == [(start, start + 1), (1, 2)]


@pytest.mark.parametrize(
    "line",
    [
        "Tensor.permute op 1 1 x y dims=(2,0,1)",
        "Tensor.reshape op 1 1 x y shape=(4,6)",
        "torch.roll op 1 1 x y shifts=(1) dims=(0)",
        "torch.flip op 1 1 x y dims=(0)",
    ],
)
def test_all_of_what_is_put_into_another_order(make_pair, line):
    path = make_pair(
        "pnnx.Input a 0 1 x #x=(2,3,4)f32",
        line,
        "torch.sum sum 1 1 y z dim=(0) keepdim=False",
        "torch.sum last 1 1 z w dim=(0,1) keepdim=False" if "(4,6)" not in line
        else "torch.sum last 1 1 z w dim=(0) keepdim=False",
        "pnnx.Output out 1 0 w",
    )  # fmt: skip
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.ones((2, 3, 4), np.float32)])
    session.run()
    field = engine.receptive_field(session, "w", ())
    assert [(each.start, each.stop) for each in field.inputs[0].box] == [(0, 2), (0, 3), (0, 4)]
    assert not field.guessed


MOVES = {
    "windows": ("Tensor.reshape shape=(2,3,2,4,5)", lambda x: x.reshape(2, 3, 2, 4, 5)),
    "tokens": ("Tensor.reshape shape=(48,5)", lambda x: x.reshape(48, 5)),
    "rows that do not divide": ("Tensor.reshape shape=(4,60)", lambda x: x.reshape(4, 60)),
    "another order": ("Tensor.permute dims=(2,0,1)", lambda x: x.transpose(2, 0, 1)),
    "a part": ("Tensor.slice dim=1 start=2 end=8 step=3", lambda x: x[:, 2:8:3]),
    "repeated": (
        "Tensor.expand sizes=(2,6,8,5)",
        lambda x: np.broadcast_to(x, (2, 6, 8, 5)),
    ),
    "strides": (
        "torch.as_strided size=(4,3) stride=(7,2) storage_offset=3",
        lambda x: np.lib.stride_tricks.as_strided(x.ravel()[3:], (4, 3), (56, 16)),
    ),
    "rolled": (
        "torch.roll shifts=(2,-3) dims=(0,1)",
        lambda x: np.roll(x, (2, -3), (0, 1)),
    ),
    "backwards": ("torch.flip dims=(0,2)", lambda x: x[::-1, :, ::-1]),
}


@pytest.mark.parametrize("name", MOVES)
def test_boxes_of_what_is_moved_are_tight(make_pair, name):
    """Of parts of the result, by listing their elements: a convolution reads each part."""
    (line, move), shape = MOVES[name], (6, 8, 5)
    kind, _, arguments = line.partition(" ")
    numbers = move(np.arange(int(np.prod(shape))).reshape(shape))
    ends = ",".join(map(str, numbers.shape))
    rng = np.random.default_rng(7)
    for _ in range(8):
        starts = [int(rng.integers(size)) for size in numbers.shape]
        stops = [
            int(rng.integers(a, size)) + 1
            for a, size in zip(starts, numbers.shape, strict=True)
        ]
        lines = [
            f"pnnx.Input in 0 1 a #a=({','.join(map(str, shape))})f32",
            f"{kind} op 1 1 a b0 {arguments} $input=a #b0=({ends})f32",
        ]
        for axis, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            lines.append(
                f"Tensor.slice cut{axis} 1 1 b{axis} b{axis + 1} dim={axis} start={start} "
                f"end={stop} step=1 $input=b{axis}"
            )
        last = len(starts)
        lines += [f"torch.sum all 1 1 b{last} y $input=b{last}", "pnnx.Output out 1 0 y"]
        session = engine.Session(engine.load(make_pair(*lines)), "numpy")
        session.feed([rng.normal(size=shape).astype(np.float32)])
        session.run()
        part = numbers[tuple(map(slice, starts, stops))].ravel()
        places = np.unravel_index(part, shape)
        field = engine.receptive_field(session, "y", ())
        assert field.guessed == ()
        assert field.inputs[0].slices == tuple([slice(p.min(), p.max() + 1) for p in places])


# Which of five keys each of five tokens may attend to, as rows of digits, and the token's mask.
CAUSAL = "10000 11000 11100 11110 11111"
BAND = "11000 11100 01110 00111 00011"
WIDTH, HEADS = 4, 2
PROJECTIONS = {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4),
               "out_proj.bias": (4,)}  # fmt: skip


def allowed_keys(text):
    return np.array([[digit == "1" for digit in row] for row in text.split()])


def make_masked(make_pair, kind, allowed):
    """A model of one attention of five tokens by itself, with a mask of a kind."""
    rng = np.random.default_rng(3)
    lowest = np.finfo(np.float32).min
    mask = {
        "bool": allowed,
        "infinity": np.where(allowed, 0, -np.inf).astype(np.float32),
        "lowest": np.where(allowed, 0.5, lowest).astype(np.float32),
        "module": ~allowed,
        "first": np.where(allowed, 0, -np.inf).astype(np.float32),
        "heads": np.repeat(np.where(allowed, 0, -np.inf)[None], 2 * HEADS, 0).astype("f4"),
    }[kind]
    dtype = "bool" if mask.dtype == np.bool_ else "f32"
    shape = ",".join(map(str, mask.shape))
    weights = {"m.data": mask}
    if kind in {"module", "heads", "first"}:
        texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in PROJECTIONS.items())
        weights |= {f"a.{k}": rng.normal(size=v).astype("f4") for k, v in PROJECTIONS.items()}
        operands, name = ("m x", "") if kind == "first" else ("x m", "$attn_mask=m")
        line = (
            f"nn.MultiheadAttention a 2 1 {operands} y num_heads={HEADS} embed_dim={WIDTH} "
            f"batch_first=True {texts} {name}"
        )
    else:
        line = (
            "F.scaled_dot_product_attention a 4 1 x x x m y $query=x $key=x $value=x "
            "$attn_mask=m"
        )
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(2,5,4)f32",
        f"pnnx.Attribute m 0 1 m @data=({shape}){dtype} #m=({shape}){dtype}",
        line,
        "pnnx.Output out 1 0 y",
        weights=weights,
    )
    session = engine.Session(engine.load(path), "numpy")
    session.feed([rng.normal(size=(2, 5, WIDTH)).astype(np.float32)])
    session.run()
    return session


@pytest.mark.parametrize("kind", ["bool", "infinity", "lowest", "module", "heads", "first"])
@pytest.mark.parametrize("text", [CAUSAL, BAND])
def test_keys_that_a_mask_hides_are_outside(make_pair, kind, text):
    allowed = allowed_keys(text)
    session = make_masked(make_pair, kind, allowed)
    x = session.value("x")
    for row in range(5):
        keys = np.flatnonzero(allowed[row])
        (source,) = engine.receptive_field(session, "y", (1, row, 2)).inputs
        assert source.slices[:2] == (slice(1, 2), slice(keys[0], keys[-1] + 1))
        found = engine.explain_element(session, "y", (1, row, 2))
        assert found.agrees
        noise = x + 3
        noise[source.slices] = x[source.slices]
        other = session.fork("numpy")
        other.feed([noise])
        other.run()
        assert other.value("y")[1, row, 2] == session.value("y")[1, row, 2]


def test_a_query_that_sees_no_key(make_pair):
    """Of equal scores every key has its share; of none by infinities the result is 0."""
    session = make_masked(make_pair, "lowest", allowed_keys("00000 11000 00100 00010 00001"))
    (source,) = engine.receptive_field(session, "y", (0, 0, 1)).inputs
    assert source.slices[1] == slice(0, 5)
    (source,) = engine.receptive_field(session, "y", (0, 1, 1)).inputs
    assert source.slices[1] == slice(0, 2)


def test_padding_hides_keys_of_its_sample(make_pair):
    texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in PROJECTIONS.items())
    rng = np.random.default_rng(5)
    weights = {f"a.{k}": rng.normal(size=v).astype("f4") for k, v in PROJECTIONS.items()}
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(2,5,4)f32",
        "pnnx.Input padding 0 1 m #m=(2,5)bool",
        f"nn.MultiheadAttention a 2 1 x m y num_heads={HEADS} embed_dim={WIDTH} "
        f"batch_first=True {texts} $key_padding_mask=m",
        "pnnx.Output out 1 0 y",
        weights=weights,
    )  # fmt: skip
    session = engine.Session(engine.load(path), "numpy")
    session.feed([
        rng.normal(size=(2, 5, WIDTH)).astype(np.float32), ~allowed_keys("11111 11100"),
    ])  # fmt: skip
    session.run()
    tokens, mask = engine.receptive_field(session, "y", (1, 1, 0)).inputs
    assert tokens.slices[:2] == (slice(1, 2), slice(0, 3))
    assert mask.slices == (slice(1, 2), slice(0, 5))
    tokens, mask = engine.receptive_field(session, "y", (0, 1, 0)).inputs
    assert tokens.slices[:2] == (slice(0, 1), slice(0, 5))


@pytest.mark.parametrize("text", [CAUSAL, BAND])
@pytest.mark.parametrize("kind", ["add", "where", "fill"])
def test_keys_that_a_mask_hides_from_attention_of_several_operators(make_pair, kind, text):
    """Scores, mask, softmax and values, as transformers write them without a fused operator."""
    allowed = allowed_keys(text)
    lowest = np.finfo(np.float32).min
    mask, line = {
        "add": (
            np.where(allowed, 0, lowest).astype(np.float32),
            "pnnx.Expression k 2 1 s m t expr=add(div(@0,2.0),@1)",
        ),
        "where": (
            allowed,
            f"torch.where k 2 1 m s t other={lowest:.8e} $condition=m $input=s",
        ),
        "fill": (
            ~allowed,
            f"Tensor.masked_fill k 2 1 s m t value={lowest:.8e} $input=s $mask=m",
        ),
    }[kind]
    dtype = "f32" if kind == "add" else "bool"
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(2,5,4)f32",
        f"pnnx.Attribute m 0 1 m @data=(5,5){dtype} #m=(5,5){dtype}",
        "torch.transpose h 1 1 x h dim0=1 dim1=2 $input=x",
        "torch.matmul q 2 1 x h s $input=x $other=h",
        line,
        "F.softmax p 1 1 t p dim=-1 $input=t",
        "torch.matmul v 2 1 p x y $input=p $other=x",
        "pnnx.Output out 1 0 y",
        weights={"m.data": mask},
    )
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.random.default_rng(1).normal(size=(2, 5, 4)).astype(np.float32)])
    session.run()
    x = session.value("x")
    for row in range(5):
        keys = np.flatnonzero(allowed[row])
        (source,) = engine.receptive_field(session, "y", (1, row, 2)).inputs
        assert source.slices == (slice(1, 2), slice(keys[0], keys[-1] + 1), slice(0, 4))
        noise = x + 3
        noise[source.slices] = x[source.slices]
        other = session.fork("numpy")
        other.feed([noise])
        other.run()
        assert other.value("y")[1, row, 2] == session.value("y")[1, row, 2]


def test_a_mask_that_is_given_counts_as_a_whole(make_pair):
    """It may hide other keys the next time."""
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(5,4)f32",
        "pnnx.Input mask 0 1 m #m=(5,5)f32",
        "torch.transpose h 1 1 x h dim0=0 dim1=1 $input=x",
        "torch.matmul q 2 1 x h s $input=x $other=h",
        "pnnx.Expression k 2 1 s m t expr=add(@0,@1)",
        "F.softmax p 1 1 t p dim=-1 $input=t",
        "torch.matmul v 2 1 p x y $input=p $other=x",
        "pnnx.Output out 1 0 y",
    )
    session = engine.Session(engine.load(path), "numpy")
    mask = np.where(allowed_keys(CAUSAL), 0, -np.inf).astype(np.float32)
    session.feed([np.ones((5, 4), np.float32), mask])
    session.run()
    tokens, given = engine.receptive_field(session, "y", (1, 2)).inputs
    assert tokens.slices[0] == slice(0, 5)
    assert given.slices == (slice(1, 2), slice(0, 5))
