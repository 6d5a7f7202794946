"""Terms of one element: against the engine's values, by perturbation, and by slow loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import engine
from engine.errors import TensorError, ValueNotComputedError
from engine.provenance.records import Kind

SUM, MOVE, FUNCTION, ACTIVATED = Kind.SUM, Kind.MOVE, Kind.FUNCTION, Kind.ACTIVATED


def net(line, *shapes):
    """Operator lines of a model with one operator, between its inputs and the output."""
    kind, name, arguments = line.partition(" ")[0], "op", line.partition(" ")[2]
    inputs = [
        f"pnnx.Input in{at} 0 1 x{at} #x{at}=({','.join(map(str, shape))})f32"
        for at, shape in enumerate(shapes)
    ]
    operands = " ".join(f"x{at}" for at in range(len(shapes)))
    return [*inputs, f"{kind} {name} {len(shapes)} 1 {operands} y {arguments}",
            "pnnx.Output out 1 0 y"]  # fmt: skip


_ATTENTION = {
    "in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4),
    "out_proj.bias": (4,),
}  # fmt: skip


def _recurrent(gates, layers=1, directions=1, projected=0):
    """Shapes of the weights of layers of 3 units that read 4 numbers."""
    given = projected or 3
    found = {}
    for number in range(layers):
        for suffix in ("", "_reverse")[:directions]:
            end = f"_l{number}{suffix}"
            found |= {
                f"weight_ih{end}": (gates * 3, directions * given if number else 4),
                f"weight_hh{end}": (gates * 3, given),
                f"bias_ih{end}": (gates * 3,),
                f"bias_hh{end}": (gates * 3,),
            }
            if projected:
                found[f"weight_hr{end}"] = (projected, 3)
    return found


# Operator, shapes of its operands, shapes of its weights, kind of the breakdown
CASES = {
    "conv1d": (
        "nn.Conv1d stride=(2) padding=(1)",
        [(1, 3, 9)],
        {"weight": (4, 3, 3), "bias": (4,)},
        SUM,
    ),
    "conv2d": (
        "nn.Conv2d padding=(1,1)",
        [(2, 3, 6, 7)],
        {"weight": (4, 3, 3, 3), "bias": (4,)},
        SUM,
    ),
    "conv2d-strided-dilated": (
        "nn.Conv2d stride=(2,1) dilation=(1,2) padding=(2,1)",
        [(1, 2, 8, 9)],
        {"weight": (3, 2, 3, 2)},
        SUM,
    ),
    "conv2d-grouped": (
        "nn.Conv2d groups=2",
        [(1, 4, 5, 5)],
        {"weight": (6, 2, 3, 3), "bias": (6,)},
        SUM,
    ),
    "conv2d-depthwise": (
        "nn.Conv2d groups=4 padding=(1,1)",
        [(1, 4, 5, 5)],
        {"weight": (4, 1, 3, 3), "bias": (4,)},
        SUM,
    ),
    "conv2d-reflect": (
        "nn.Conv2d padding=(1,1,1,1) padding_mode=reflect",
        [(1, 2, 5, 6)],
        {"weight": (3, 2, 3, 3)},
        SUM,
    ),
    "conv2d-circular": (
        "nn.Conv2d padding=(1,1,1,1) padding_mode=circular",
        [(1, 2, 5, 6)],
        {"weight": (3, 2, 3, 3)},
        SUM,
    ),
    "conv3d": (
        "nn.Conv3d padding=(1,0,1)",
        [(1, 2, 4, 5, 4)],
        {"weight": (3, 2, 2, 3, 2), "bias": (3,)},
        SUM,
    ),
    "conv-without-batch": ("nn.Conv2d", [(2, 5, 5)], {"weight": (3, 2, 3, 3)}, SUM),
    "convtranspose1d": (
        "nn.ConvTranspose1d stride=(2)",
        [(1, 3, 5)],
        {"weight": (3, 2, 4), "bias": (2,)},
        SUM,
    ),
    "convtranspose2d": (
        "nn.ConvTranspose2d stride=(2,3) padding=(1,0) output_padding=(1,0)",
        [(1, 4, 4, 3)],
        {"weight": (4, 3, 3, 2), "bias": (3,)},
        SUM,
    ),
    "convtranspose2d-grouped": (
        "nn.ConvTranspose2d groups=2 dilation=(2,1)",
        [(1, 4, 3, 3)],
        {"weight": (4, 2, 2, 3)},
        SUM,
    ),
    "deformable": (
        (
            "torchvision.ops.DeformConv2d stride=(1,2) padding=(1,1) dilation=(2,1) groups=2 "
            "$input=x0 $offset=x1 $mask=x2"
        ),
        [(2, 4, 7, 6), (2, 24, 5, 4), (2, 12, 5, 4)],
        {"weight": (4, 2, 3, 2), "bias": (4,)},
        SUM,
    ),
    "deformable-without-mask": (
        "torchvision.ops.DeformConv2d padding=(1,1) $input=x0 $offset=x1",
        [(1, 2, 5, 6), (1, 18, 5, 6)],
        {"weight": (3, 2, 3, 3)},
        SUM,
    ),
    "F.conv2d": (
        ("F.conv2d stride=(1,1) padding=(1,1) dilation=(1,1) groups=1 $input=x0 $weight=x1"),
        [(1, 2, 5, 5), (3, 2, 3, 3)],
        {},
        SUM,
    ),
    "F.conv_transpose2d": (
        (
            "F.conv_transpose2d stride=(2,2) padding=(0,0) output_padding=(0,0) "
            "dilation=(1,1) groups=1 $input=x0 $weight=x1"
        ),
        [(1, 2, 3, 3), (2, 3, 2, 2)],
        {},
        SUM,
    ),
    "linear": ("nn.Linear", [(2, 3, 5)], {"weight": (4, 5), "bias": (4,)}, SUM),
    "F.linear": ("F.linear $input=x0 $weight=x1", [(2, 5), (4, 5)], {}, SUM),
    "F.linear-row": ("F.linear $input=x0 $weight=x1", [(2, 3, 5), (5,)], {}, SUM),
    "matmul": ("torch.matmul $input=x0 $other=x1", [(2, 3, 4, 5), (3, 5, 2)], {}, SUM),
    "matmul-vector": ("torch.matmul $input=x0 $other=x1", [(3, 4), (4,)], {}, SUM),
    "mm": ("torch.mm $input=x0 $mat2=x1", [(3, 4), (4, 2)], {}, SUM),
    "bmm": ("torch.bmm $input=x0 $mat2=x1", [(2, 3, 4), (2, 4, 2)], {}, SUM),
    "addmm": (
        "torch.addmm alpha=0.5 beta=2.0 $input=x0 $mat1=x1 $mat2=x2",
        [(2,), (3, 4), (4, 2)],
        {},
        SUM,
    ),
    "baddbmm": (
        "torch.baddbmm alpha=1 beta=1 $input=x0 $batch1=x1 $batch2=x2",
        [(2, 3, 2), (2, 3, 4), (2, 4, 2)],
        {},
        SUM,
    ),
    "einsum": ("torch.einsum equation=bij,bkj->bik", [(2, 3, 4), (2, 5, 4)], {}, SUM),
    "einsum-implicit": ("torch.einsum equation=ij,jk", [(3, 4), (4, 2)], {}, SUM),
    "einsum-three": ("torch.einsum equation=...i,ij,j->...", [(2, 3), (3, 4), (4,)], {}, SUM),
    "maxpool": (
        "nn.MaxPool2d kernel_size=(3,3) stride=(2,2) padding=(1,1)",
        [(1, 2, 7, 7)],
        {},
        Kind.CHOICE,
    ),
    "maxpool1d-dilated": (
        "nn.MaxPool1d kernel_size=3 stride=1 dilation=2",
        [(1, 2, 9)],
        {},
        Kind.CHOICE,
    ),
    "avgpool": (
        "nn.AvgPool2d kernel_size=(3,2) stride=(2,2) padding=(1,1)",
        [(1, 2, 7, 8)],
        {},
        SUM,
    ),
    "avgpool-ceil": (
        (
            "nn.AvgPool2d kernel_size=(3,3) stride=(2,2) padding=(1,1) ceil_mode=True "
            "count_include_pad=False"
        ),
        [(1, 2, 8, 8)],
        {},
        SUM,
    ),
    "avgpool-divisor": (
        "nn.AvgPool2d kernel_size=(2,2) divisor_override=3",
        [(1, 2, 4, 4)],
        {},
        SUM,
    ),
    "adaptive-avg": ("nn.AdaptiveAvgPool2d output_size=(3,4)", [(1, 2, 7, 9)], {}, SUM),
    "adaptive-max": ("nn.AdaptiveMaxPool2d output_size=(3,4)", [(1, 2, 7, 9)], {}, Kind.CHOICE),
    "batchnorm": (
        "nn.BatchNorm2d eps=1e-5",
        [(2, 3, 4, 4)],
        {"running_mean": (3,), "running_var": (3,), "weight": (3,), "bias": (3,)},
        Kind.NORMALISED,
    ),
    "layernorm": (
        "nn.LayerNorm normalized_shape=(6) eps=1e-5",
        [(2, 3, 6)],
        {"weight": (6,), "bias": (6,)},
        Kind.NORMALISED,
    ),
    "groupnorm": (
        "nn.GroupNorm num_groups=2 eps=1e-5",
        [(2, 4, 3, 3)],
        {"weight": (4,), "bias": (4,)},
        Kind.NORMALISED,
    ),
    "instancenorm": (
        "nn.InstanceNorm2d eps=1e-5 affine=False track_running_stats=False",
        [(2, 3, 4, 5)],
        {},
        Kind.NORMALISED,
    ),
    "rmsnorm": (
        "nn.RMSNorm normalized_shape=(6) eps=1e-6",
        [(2, 3, 6)],
        {"weight": (6,)},
        Kind.NORMALISED,
    ),
    "nearest": ("F.interpolate scale_factor=(2.0,1.5) mode=nearest", [(1, 2, 4, 6)], {}, SUM),
    "bilinear": (
        "F.interpolate size=(7,9) mode=bilinear align_corners=False",
        [(1, 2, 4, 6)],
        {},
        SUM,
    ),
    "bilinear-corners": (
        "nn.UpsamplingBilinear2d scale_factor=(2.0,2.0)",
        [(1, 2, 4, 6)],
        {},
        SUM,
    ),
    "bicubic": (
        "F.interpolate size=(7,9) mode=bicubic align_corners=False",
        [(1, 2, 4, 6)],
        {},
        SUM,
    ),
    "antialias": (
        ("F.interpolate size=(3,3) mode=bilinear align_corners=False antialias=True"),
        [(1, 2, 7, 8)],
        {},
        SUM,
    ),
    "linear1d": ("F.interpolate size=(9) mode=linear align_corners=True", [(1, 2, 4)], {}, SUM),
    "resize-by-raw-scales": (
        (
            "aten::upsample_bilinear2d output_size=None align_corners=False scales_h=1.6 "
            "scales_w=1.7"
        ),
        [(1, 2, 4, 5)],
        {},
        SUM,
    ),
    "area": ("F.interpolate size=(3,4) mode=area", [(1, 2, 7, 9)], {}, SUM),
    "softmax": ("nn.Softmax dim=1", [(2, 5, 3)], {}, Kind.SHARE),
    "softmin": ("nn.Softmin dim=-1", [(2, 5)], {}, Kind.SHARE),
    "log_softmax": ("F.log_softmax dim=1", [(2, 5)], {}, Kind.NORMALISED),
    "sdpa": (
        (
            "F.scaled_dot_product_attention dropout_p=0.0 is_causal=False $query=x0 "
            "$key=x1 $value=x2"
        ),
        [(1, 2, 4, 3), (1, 2, 5, 3), (1, 2, 5, 6)],
        {},
        SUM,
    ),
    "sdpa-causal": (
        (
            "F.scaled_dot_product_attention dropout_p=0.0 is_causal=True $query=x0 "
            "$key=x1 $value=x2"
        ),
        [(1, 2, 5, 3), (1, 2, 5, 3), (1, 2, 5, 6)],
        {},
        SUM,
    ),
    "sdpa-mask": (
        (
            "F.scaled_dot_product_attention dropout_p=0.0 is_causal=False scale=0.3 "
            "$query=x0 $key=x1 $value=x2 $attn_mask=x3"
        ),
        [(1, 2, 4, 3), (1, 2, 5, 3), (1, 2, 5, 6), (4, 5)],
        {},
        SUM,
    ),
    "multihead": (
        "nn.MultiheadAttention num_heads=2 embed_dim=4 batch_first=True",
        [(2, 5, 4)],
        _ATTENTION,
        SUM,
    ),
    "multihead-cross": (
        "nn.MultiheadAttention num_heads=2 embed_dim=4 batch_first=False",
        [(5, 2, 4), (3, 2, 4), (3, 2, 4)],
        _ATTENTION,
        SUM,
    ),
    "multihead-mask": (
        (
            "nn.MultiheadAttention num_heads=2 embed_dim=4 batch_first=True $input=x0 "
            "$attn_mask=x1"
        ),
        [(2, 5, 4), (4, 5, 5)],
        _ATTENTION,
        SUM,
    ),
    "multihead-more-keys": (
        (
            "nn.MultiheadAttention num_heads=2 embed_dim=4 batch_first=True add_bias_kv=True "
            "add_zero_attn=True"
        ),
        [(2, 5, 4)],
        {**_ATTENTION, "bias_k": (1, 1, 4), "bias_v": (1, 1, 4)},
        SUM,
    ),
    "multihead-without-batch": (
        "nn.MultiheadAttention num_heads=2 embed_dim=4",
        [(5, 4), (3, 4), (3, 4)],
        _ATTENTION,
        SUM,
    ),
    "lp_pool": ("nn.LPPool2d norm_type=2 kernel_size=(2,3)", [(1, 2, 6, 7)], {}, ACTIVATED),
    "lrn": (
        "nn.LocalResponseNorm size=3 alpha=0.5 beta=0.75 k=1.0",
        [(1, 5, 3, 3)],
        {},
        Kind.NORMALISED,
    ),
    "normalize": ("F.normalize p=2 dim=1 eps=1e-12", [(2, 5, 3)], {}, Kind.NORMALISED),
    "grid_sample": (
        (
            "F.grid_sample mode=bilinear padding_mode=reflection align_corners=False "
            "$input=x0 $grid=x1"
        ),
        [(1, 2, 5, 6), (1, 3, 4, 2)],
        {},
        SUM,
    ),
    "fold": (
        "nn.Fold output_size=(5,6) kernel_size=(3,2) stride=(2,1) padding=(1,0)",
        [(2, 12, 15)],
        {},
        SUM,
    ),
    "linalg-norm": ("torch.linalg.norm dim=(1) keepdim=False", [(2, 5)], {}, ACTIVATED),
    "norm": ("torch.norm p=3 dim=(1) keepdim=False", [(2, 5)], {}, ACTIVATED),
    "prod": ("torch.prod dim=1 keepdim=False", [(2, 5)], {}, FUNCTION),
    "logsumexp": ("torch.logsumexp dim=(1) keepdim=False", [(2, 5)], {}, ACTIVATED),
    "var": ("torch.var dim=(1) unbiased=True keepdim=False", [(2, 5)], {}, SUM),
    "std": ("torch.std dim=(1) unbiased=False keepdim=False", [(2, 5)], {}, ACTIVATED),
    "argmax": ("torch.argmax dim=1 keepdim=False", [(2, 5)], {}, FUNCTION),
    "cumprod": ("torch.cumprod dim=1", [(2, 5)], {}, FUNCTION),
    "cosine": ("F.cosine_similarity dim=1 eps=1e-8", [(2, 5, 3), (2, 5, 3)], {}, SUM),
    "cdist": ("torch.cdist p=2.0 $x1=x0 $x2=x1", [(2, 4, 3), (2, 5, 3)], {}, ACTIVATED),
    "bilinear product": (
        "nn.Bilinear",
        [(2, 3), (2, 4)],
        {"weight": (5, 3, 4), "bias": (5,)},
        SUM,
    ),
    "outer": ("torch.outer $input=x0 $vec2=x1", [(3,), (4,)], {}, SUM),
    "cross": ("torch.cross dim=1", [(2, 3, 4), (2, 3, 4)], {}, SUM),
    "lstm": ("nn.LSTM hidden_size=3 batch_first=True", [(2, 6, 4)], _recurrent(4), Kind.GATES),
    "gru": ("nn.GRU hidden_size=3 batch_first=False", [(6, 2, 4)], _recurrent(3), Kind.GATES),
    "rnn": ("nn.RNN hidden_size=3 batch_first=True", [(2, 6, 4)], _recurrent(1), Kind.GATES),
    "rnn-relu": (
        "nn.RNN hidden_size=3 nonlinearity=relu batch_first=True",
        [(2, 6, 4)],
        _recurrent(1),
        Kind.GATES,
    ),
    "lstm-bidirectional": (
        "nn.LSTM hidden_size=3 bidirectional=True batch_first=True",
        [(2, 6, 4)],
        _recurrent(4, directions=2),
        Kind.GATES,
    ),
    "lstm-stacked": (
        "nn.LSTM hidden_size=3 num_layers=3 batch_first=True",
        [(2, 6, 4)],
        _recurrent(4, layers=3),
        Kind.GATES,
    ),
    "gru-stacked-bidirectional": (
        "nn.GRU hidden_size=3 num_layers=2 bidirectional=True batch_first=False",
        [(6, 2, 4)],
        _recurrent(3, layers=2, directions=2),
        Kind.GATES,
    ),
    "rnn-without-batch": (
        "nn.RNN hidden_size=3 num_layers=2 bidirectional=True",
        [(6, 4)],
        _recurrent(1, layers=2, directions=2),
        Kind.GATES,
    ),
    "lstm-projected": (
        "nn.LSTM hidden_size=3 proj_size=2 num_layers=2 batch_first=True",
        [(2, 6, 4)],
        _recurrent(4, layers=2, projected=2),
        SUM,
    ),
    "lstm-states": (
        "nn.LSTM hidden_size=3 num_layers=2 batch_first=True",
        [(2, 6, 4), (2, 2, 3), (2, 2, 3)],
        _recurrent(4, layers=2),
        Kind.GATES,
    ),
    "gru-learnt-states-first": (
        "nn.GRU hidden_size=3 bidirectional=True batch_first=True",
        [(2, 2, 3), (2, 6, 4)],
        _recurrent(3, directions=2),
        Kind.GATES,
    ),
    "glu": ("F.glu dim=1", [(2, 6)], {}, FUNCTION),
    "sum": ("torch.sum dim=(1) keepdim=False", [(2, 5, 3)], {}, SUM),
    "mean": ("torch.mean dim=(2,3) keepdim=True", [(2, 3, 4, 5)], {}, SUM),
    "amax": ("torch.amax dim=(1) keepdim=False", [(2, 5, 3)], {}, Kind.CHOICE),
    "amin": ("torch.amin dim=(1) keepdim=True", [(2, 5, 3)], {}, Kind.CHOICE),
    "cumsum": ("torch.cumsum dim=1", [(2, 5)], {}, SUM),
    "diff": ("torch.diff dim=1 n=1", [(2, 5, 3)], {}, SUM),
    "diff-of-diff": ("torch.diff dim=-1 n=2", [(2, 3, 7)], {}, SUM),
    "relu": ("nn.ReLU", [(2, 5)], {}, FUNCTION),
    "gelu": ("nn.GELU", [(2, 5)], {}, FUNCTION),
    "silu": ("F.silu", [(2, 5)], {}, FUNCTION),
    "prelu": ("nn.PReLU num_parameters=3", [(2, 3, 4)], {"weight": (3,)}, FUNCTION),
    "add": ("torch.add alpha=2 $input=x0 $other=x1", [(2, 3, 4), (3, 1)], {}, FUNCTION),
    "atan2": ("torch.atan2 $input=x0 $other=x1", [(2, 3), (3,)], {}, FUNCTION),
    "clamp": ("torch.clamp min=-0.5 max=0.5", [(2, 5)], {}, FUNCTION),
    "expression": (
        "pnnx.Expression expr=div(add(@0,mul(@1,2.5)),sqrt(add(mul(@0,@0),1)))",
        [(2, 3, 4), (3, 1)],
        {},
        FUNCTION,
    ),
    "expression-size": ("pnnx.Expression expr=div(@0,size(@0,1))", [(2, 3)], {}, FUNCTION),
    "dropout": ("nn.Dropout p=0.5", [(2, 5)], {}, FUNCTION),
    "reshape": ("Tensor.reshape shape=(3,8)", [(2, 3, 4)], {}, MOVE),
    "permute": ("torch.permute dims=(2,0,1)", [(2, 3, 4)], {}, MOVE),
    "transpose": ("torch.transpose dim0=0 dim1=2", [(2, 3, 4)], {}, MOVE),
    "flatten": ("torch.flatten start_dim=1 end_dim=-1", [(2, 3, 4)], {}, MOVE),
    "slice": ("Tensor.slice dim=1 start=1 end=5 step=2", [(2, 6, 3)], {}, MOVE),
    "select": ("Tensor.select dim=1 index=-2", [(2, 6, 3)], {}, MOVE),
    "cat": ("torch.cat dim=1", [(2, 3), (2, 1), (2, 4)], {}, MOVE),
    "stack": ("torch.stack dim=1", [(2, 3), (2, 3)], {}, MOVE),
    "pad": ("F.pad pad=(1,2) mode=constant value=7.5", [(2, 3)], {}, MOVE),
    "pad-reflect": ("nn.ReflectionPad2d padding=(1,1,2,0)", [(1, 2, 4, 4)], {}, MOVE),
    "pixelshuffle": ("nn.PixelShuffle upscale_factor=2", [(1, 8, 3, 3)], {}, MOVE),
    "channelshuffle": ("nn.ChannelShuffle groups=2", [(1, 6, 2, 2)], {}, MOVE),
    "unfold": ("nn.Unfold kernel_size=(2,2) padding=(1,1)", [(1, 2, 4, 4)], {}, MOVE),
    "roll": ("torch.roll shifts=(2,1) dims=(0,1)", [(4, 5)], {}, MOVE),
    "flip": ("torch.flip dims=(1)", [(2, 5)], {}, MOVE),
    "expand": ("Tensor.expand sizes=(4,2,3)", [(2, 3)], {}, MOVE),
    "repeat": ("Tensor.repeat sizes=(2,2)", [(2, 3)], {}, MOVE),
    "tril": ("torch.tril diagonal=0", [(4, 4)], {}, MOVE),
    "squeeze": ("torch.squeeze dim=1", [(2, 1, 3)], {}, MOVE),
    "unsqueeze": ("torch.unsqueeze dim=1", [(2, 3)], {}, MOVE),
}


@pytest.fixture
def run(make_pair):
    """Runs a model of one operator on seeded numbers; gives the session and all numbers."""

    def make(line, shapes, weights, seed=0):
        rng = np.random.default_rng(seed)
        given = {
            f"op.{name}": rng.normal(size=shape).astype(np.float32)
            for name, shape in weights.items()
        }
        if "op.running_var" in given:
            given["op.running_var"] = np.abs(given["op.running_var"]) + 0.5
        texts = [f"@{name}=({','.join(map(str, shape))})f32" for name, shape in weights.items()]
        path = make_pair(*net(" ".join([line, *texts]), *shapes), weights=given)
        session = engine.Session(engine.load(path), "numpy")
        session.feed([rng.normal(size=shape).astype(np.float32) for shape in shapes])
        session.run()
        return session, given

    return make


def draw_index(rng, shape):
    return tuple(int(rng.integers(size)) for size in shape)


def check_factors(found, session, weights):
    """Every number of the terms is the one at its index, and 0 in the padding."""
    for factor in found.breakdown.terms.factors:
        array = weights.get(f"op.{factor.name}")
        if factor.is_operand:
            array = session.value(factor.name)
        if array is None:
            continue
        for index, value in zip(factor.indices.tolist(), factor.values.tolist(), strict=True):
            expected = 0.0 if -1 in index else array[tuple(index)]
            assert value == np.float64(expected)


@pytest.mark.parametrize(("line", "shapes", "weights", "kind"), CASES.values(), ids=CASES)
def test_an_element_is_what_its_terms_say(run, line, shapes, weights, kind):
    session, given = run(line, shapes, weights)
    rng = np.random.default_rng(1)
    value = session.value("y")
    for _ in range(6):
        index = draw_index(rng, value.shape)
        found = engine.explain_element(session, "y", index)
        assert found.reason == ""
        assert found.kind is kind
        assert found.value == value[index]
        assert found.agrees, (index, found.difference, found.breakdown.error)
        assert found.breakdown.error <= 1e-3 * (1 + abs(found.value))
        check_factors(found, session, given)
        terms = found.breakdown.terms
        assert terms.products.shape == (int(np.prod(terms.shape)),)
        if kind is SUM:
            whole = terms.products.sum() + (found.breakdown.offset or 0)
            assert whole == pytest.approx(found.breakdown.total, abs=1e-12)


LINEAR = [
    name
    for name, case in CASES.items()
    if case[3] is SUM and not name.startswith(("sdpa", "multihead", "lstm", "var", "cosine"))
]


@pytest.mark.parametrize("name", LINEAR)
def test_changing_an_input_changes_the_element_by_its_weight(run, name):
    line, shapes, weights, _ = CASES[name]
    session, _ = run(line, shapes, weights)
    fed = {f"x{at}": session.value(f"x{at}").copy() for at in range(len(shapes))}
    rng = np.random.default_rng(2)
    index = draw_index(rng, session.value("y").shape)
    before = engine.explain_element(session, "y", index)
    terms = before.breakdown.terms
    inside = np.flatnonzero((terms.factors[0].indices >= 0).all(axis=1))
    term = int(rng.choice(inside))
    name, place = terms.factors[0].name, terms.factors[0].indices[term]
    same = (terms.factors[0].indices == place).all(axis=1)
    slope = (terms.products[same] / terms.factors[0].values[same]).sum()
    fed[name][tuple(place)] += 2
    session.feed([fed[f"x{at}"] for at in range(len(shapes))])
    session.run()
    moved = float(session.value("y")[index]) - before.value
    assert moved == pytest.approx(2 * slope, abs=1e-4)


def test_all_terms_of_a_convolution(run):
    """The windows of a strided, padded, grouped convolution, by loops."""
    shapes, weights = [(1, 4, 6, 5)], {"weight": (2, 2, 3, 3), "bias": (2,)}
    session, given = run("nn.Conv2d groups=2 stride=(2,1) padding=(1,1)", shapes, weights)
    x, w = session.value("x0"), given["op.weight"]
    for channel, row, column in product(range(2), range(3), range(5)):
        expected = {}
        for c, i, j in product(range(2), range(3), range(3)):
            at = row * 2 + i - 1, column + j - 1
            if 0 <= at[0] < 6 and 0 <= at[1] < 5:
                place = (0, channel * 2 + c, *at)
                expected[place] = float(x[place]) * float(w[channel, c, i, j])
        found = engine.explain_element(session, "y", (0, channel, row, column))
        terms = found.breakdown.terms
        inside = (terms.factors[0].indices >= 0).all(axis=1)
        places = [tuple(each) for each in terms.factors[0].indices[inside].tolist()]
        assert dict(zip(places, terms.products[inside].tolist(), strict=True)) == expected
        assert terms.products[~inside].tolist() == [0.0] * int((~inside).sum())
        assert terms.shape == (2, 3, 3)
        assert terms.partial_sums[1] == pytest.approx(
            sum(value for place, value in expected.items() if place[1] == channel * 2 + 1)
        )


def test_all_terms_of_a_transposed_convolution(run):
    shapes, weights = [(1, 2, 3, 4)], {"weight": (2, 3, 3, 2)}
    session, given = run("nn.ConvTranspose2d stride=(2,1) padding=(1,0)", shapes, weights)
    x, w = session.value("x0"), given["op.weight"]
    for channel, row, column in product(range(3), range(5), range(5)):
        expected = {}
        for c, r, s, i, j in product(range(2), range(3), range(4), range(3), range(2)):
            if r * 2 + i - 1 == row and s + j == column:
                expected[0, c, r, s] = float(x[0, c, r, s]) * float(w[c, channel, i, j])
        found = engine.explain_element(session, "y", (0, channel, row, column))
        terms = found.breakdown.terms
        inside = (terms.factors[0].indices >= 0).all(axis=1)
        places = [tuple(each) for each in terms.factors[0].indices[inside].tolist()]
        assert dict(zip(places, terms.products[inside].tolist(), strict=True)) == expected


def test_a_stacked_layer_reads_what_the_one_below_gives(run):
    torch = pytest.importorskip("torch")
    line, shapes, weights, _ = CASES["gru-stacked-bidirectional"]
    session, given = run(line, shapes, weights)
    below = torch.nn.GRU(4, 3, bidirectional=True)
    below.load_state_dict({
        name.removeprefix("op."): torch.from_numpy(array)
        for name, array in given.items()
        if "_l0" in name
    })  # fmt: skip
    with torch.no_grad():
        hidden = below(torch.from_numpy(session.value("x0").copy()))[0].numpy()
    found = engine.explain_element(session, "y", (2, 1, 4))  # unit 1, backwards
    inputs, kernel = found.breakdown.terms.factors
    assert inputs.name == "h of layer 0"
    np.testing.assert_allclose(inputs.values.reshape(3, 6), [hidden[2, 1]] * 3, atol=1e-6)
    assert kernel.name == "weight_ih_l1_reverse"
    np.testing.assert_array_equal(
        kernel.values.reshape(3, 6), given["op.weight_ih_l1_reverse"][[1, 4, 7]]
    )
    assert found.breakdown.formula.endswith("; layer 1 backwards")


@pytest.mark.parametrize("swapped", [False, True])
def test_the_last_states_of_an_lstm(make_pair, swapped):
    rng = np.random.default_rng(4)
    shapes = _recurrent(4, layers=2, directions=2)
    texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in shapes.items())
    names = "h c y" if swapped else "y h c"
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(2,6,4)f32",
        f"nn.LSTM l 1 3 x {names} batch_first=True num_layers=2 bidirectional=True "
        f"hidden_size=3 {'pnnx_rnn_output_swapped=1 ' if swapped else ''}{texts}",
        "pnnx.Output out 3 0 y h c",
        weights={f"l.{k}": rng.normal(size=v).astype(np.float32) for k, v in shapes.items()},
    )
    session = engine.Session(engine.load(path), "numpy")
    session.feed([rng.normal(size=(2, 6, 4)).astype(np.float32)])
    session.run()
    for name in "hcy":
        for _ in range(8):
            index = draw_index(rng, session.value(name).shape)
            found = engine.explain_element(session, name, index)
            assert found.kind is Kind.GATES
            assert found.agrees, (name, index, found.difference, found.breakdown.error)
            assert engine.receptive_field(session, name, index).guessed == ()


def test_the_formula_has_the_indices(run):
    shapes, weights = [(1, 2, 6, 6)], {"weight": (3, 2, 3, 3), "bias": (3,)}
    session, _ = run("nn.Conv2d stride=(2,2) padding=(1,1)", shapes, weights)
    found = engine.explain_element(session, "y", (0, 2, 1, -1))
    assert found.index == (0, 2, 1, 2)
    assert found.breakdown.formula == (
        "y[0, 2, 1, 2] = bias[2] + Σ weight[2, c, i, j] · x0[0, c, 1 + i, 3 + j]"
    )
    assert found.breakdown.offset_name == "bias[2]"


def test_a_query_that_may_attend_to_nothing(make_pair):
    """An exporter turned the mask of a decoder around; such rows are the bias alone."""
    line = (
        "nn.MultiheadAttention a 2 1 0 1 2 embed_dim=4 num_heads=2 batch_first=True "
        "$input=0 $attn_mask=1 @in_proj_weight=(12,4)f32 @in_proj_bias=(12)f32 "
        "@out_proj.weight=(4,4)f32 @out_proj.bias=(4)f32 #2=(1,3,4)f32"
    )
    weights = {
        "a.in_proj_weight": np.ones((12, 4), np.float32),
        "a.in_proj_bias": np.ones(12, np.float32),
        "a.out_proj.weight": np.ones((4, 4), np.float32),
        "a.out_proj.bias": np.array([1, 2, 3, 4], np.float32),
    }
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,4)f32", "pnnx.Input mask 0 1 1 #1=(3,3)bool", line,
        "pnnx.Output out 1 0 2", weights=weights,
    )  # fmt: skip
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.ones((1, 3, 4), np.float32), np.tri(3, dtype=bool)])
    session.run()
    found = engine.explain_element(session, "2", (0, 2, 1))
    assert (found.value, found.breakdown.total, found.breakdown.offset) == (2.0, 2.0, 2.0)
    assert not found.breakdown.terms.products.any()
    # One key is left for the query before: every feature of its value is 5.
    assert engine.explain_element(session, "2", (0, 1, 1)).breakdown.total == 4 * 5 + 2


def test_not_finite_numbers(run):
    session, _ = run("torch.sum dim=(1) keepdim=False", [(2, 3)], {})
    session.feed([np.array([[1, np.nan, 2], [1, np.inf, 2]], np.float32)])
    session.run()
    assert engine.explain_element(session, "y", (0,)).agrees
    found = engine.explain_element(session, "y", (1,))
    assert found.breakdown.total == np.inf
    assert found.agrees


@pytest.mark.parametrize(
    ("line", "given"),
    [
        # 1e-25 squared is no float32, and 1.1e-40 is one of few digits.
        ("pnnx.Expression expr=mul(@0,@0)", [1e-25, 1, 1]),
        ("pnnx.Expression expr=mul(@0,1.1)", [1e-40, 1, 1]),
        ("torch.sum dim=(0) keepdim=True", [1e-40, 1e-42, 1e-44]),
    ],
)
def test_numbers_near_0_lose_digits(run, line, given):
    session, _ = run(line, [(3,)], {})
    session.feed([np.array(given, np.float32)])
    session.run()
    found = engine.explain_element(session, "y", (0,))
    assert found.breakdown.total != 0
    assert found.agrees
    assert found.breakdown.error < 1e-37


def test_inputs_and_overrides_are_the_end(run):
    session, _ = run("nn.ReLU", [(2, 3)], {})
    assert engine.explain_element(session, "x0", (1, 2)).kind is Kind.INPUT
    session.override("y", np.full((2, 3), 5, np.float32))
    session.run()
    found = engine.explain_element(session, "y", (1, 2))
    assert (found.kind, found.value, found.breakdown) == (Kind.SUPPLIED, 5.0, None)


def test_weights_are_the_end(make_pair):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = make_pair(
        "pnnx.Attribute table 0 1 0 @data=(2,3)f32 #0=(2,3)f32", "pnnx.Output out 1 0 0",
        weights={"table.data": array},
    )  # fmt: skip
    session = engine.Session(engine.load(path))
    session.run()
    found = engine.explain_element(session, "0", (1, 0))
    assert (found.kind, found.value) == (Kind.WEIGHT, 3.0)


def test_an_embedding_leads_to_its_row(make_pair):
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(2)i64",
        "nn.Embedding e 1 1 0 1 embedding_dim=3 num_embeddings=4 @weight=(4,3)f32",
        "pnnx.Output out 1 0 1",
        weights={"e.weight": table},
    )
    session = engine.Session(engine.load(path))
    session.feed([np.array([2, 1])])
    session.run()
    found = engine.explain_element(session, "1", (0, 1))
    assert found.kind is MOVE
    assert found.breakdown.terms.factors[0].indices.tolist() == [[2, 1]]
    assert found.value == found.breakdown.total == 7.0


@pytest.mark.parametrize(
    ("line", "index", "expected", "chosen"),
    [
        ("torch.topk k=2 dim=1 largest=True sorted=True", (0, 1), 5.0, 3),
        ("torch.sort dim=1 descending=False", (1, 0), -4.0, 1),
        ("torch.kthvalue k=2 dim=1 keepdim=False", (0,), 2.0, 0),
        ("torch.cummax dim=1", (1, 2), 3.0, 0),
    ],
)
def test_a_choice_names_the_element_that_was_chosen(make_pair, line, index, expected, chosen):
    kind, _, arguments = line.partition(" ")
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(2,4)f32", f"{kind} op 1 2 x y at {arguments}",
        "pnnx.Output out 2 0 y at",
    )  # fmt: skip
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.array([[2, 9, -1, 5], [3, -4, 0, 7]], np.float32)])
    session.run()
    found = engine.explain_element(session, "y", index)
    assert (found.kind, found.breakdown.total, found.value) == (
        Kind.CHOICE, expected, expected,
    )  # fmt: skip
    assert found.breakdown.chosen == chosen
    where = engine.explain_element(session, "at", index)
    assert (where.kind, where.breakdown.total) == (FUNCTION, chosen)
    assert where.breakdown.formula.startswith(f"y[{', '.join(map(str, index))}] = position")


def test_places_of_largest_elements_are_counted_over_the_image(make_pair):
    """Windows of 2 by 3 elements, two apart, with one column of padding at the left."""
    session = engine.Session(
        engine.load(
            make_pair(
                "pnnx.Input in 0 1 x #x=(1,2,5,6)f32",
                "F.max_pool2d pool 1 2 x y i kernel_size=(2,3) stride=(2,2) padding=(0,1) "
                "dilation=(1,1) ceil_mode=False return_indices=True $input=x "
                "#y=(1,2,2,3)f32 #i=(1,2,2,3)i64",
                "pnnx.Output out 2 0 y i",
            )
        ),
        "numpy",
    )
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 6)).astype(np.float32)
    session.feed([x])
    session.run()
    for channel, row, column in np.ndindex(2, 2, 3):
        window = [
            (r, c)
            for r in range(2 * row, 2 * row + 2)
            for c in range(2 * column - 1, 2 * column + 2)
            if c >= 0
        ]
        largest = max(window, key=lambda place: x[0, channel, *place])
        found = engine.explain_element(session, "i", (0, channel, row, column))
        assert found.breakdown.total == found.value == 6 * largest[0] + largest[1]
        assert len(found.breakdown.terms.factors[0].indices) == len(window)


def test_zeros_depend_on_nothing(make_pair):
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(2,3)f32", "torch.zeros_like z 1 1 x z dtype=None",
        "pnnx.Expression e 2 1 x z y expr=add(@0,@1)", "pnnx.Output out 1 0 y",
    )  # fmt: skip
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.ones((2, 3), np.float32)])
    session.run()
    found = engine.explain_element(session, "z", (1, 2))
    assert (found.kind, found.breakdown.total, found.sources) == (MOVE, 0.0, ())
    assert engine.receptive_field(session, "y", (1, 2)).guessed == ()


def test_an_operator_without_a_rule_says_so(run):
    session, _ = run("torch.renorm p=2 dim=0 maxnorm=1", [(2, 3)], {})
    found = engine.explain_element(session, "y", (1, 0))
    assert found.kind is Kind.UNKNOWN
    assert found.reason == "There is no breakdown for torch.renorm yet."
    assert [(each.operand, each.is_whole) for each in found.sources] == [("x0", True)]


@pytest.mark.parametrize("index", [(2, 0), (0, 3), (0,), (0, 0, 0), (-3, 0)])
def test_wrong_indices_are_refused(run, index):
    session, _ = run("nn.ReLU", [(2, 3)], {})
    with pytest.raises(TensorError, match="there is no element"):
        engine.explain_element(session, "y", index)
    with pytest.raises(TensorError, match="there is no element"):
        engine.receptive_field(session, "y", index)


def test_nothing_is_explained_before_it_is_computed(run):
    session, _ = run("nn.ReLU", [(2, 3)], {})
    session.restart()
    with pytest.raises(ValueNotComputedError):
        engine.explain_element(session, "y", (0, 0))
    with pytest.raises(ValueNotComputedError):
        engine.receptive_field(session, "y", (0, 0))


def test_too_many_terms_are_refused(run):
    session, _ = run("torch.sum dim=(0,1) keepdim=False", [(1100, 1000)], {})
    found = engine.explain_element(session, "y", ())
    assert found.kind is Kind.UNKNOWN
    assert "1100000 terms" in found.reason


def test_weights_beyond_floats_are_refused(run):
    session, _ = run("torch.diff dim=0 n=1030", [(1031,)], {})
    found = engine.explain_element(session, "y", (0,))
    assert found.kind is Kind.UNKNOWN
    assert "1030 differences" in found.reason


@pytest.mark.parametrize("backend", ["onnxruntime", "ncnn"])
@pytest.mark.parametrize(
    "name", ["conv2d", "conv2d-depthwise", "linear", "layernorm", "softmax"]
)
def test_libraries_agree_too(run, make_pair, name, backend):
    pytest.importorskip(backend)
    line, shapes, weights, _ = CASES[name]
    numpy, _ = run(line, shapes, weights)
    session = numpy.fork(backend)
    session.run()
    rng = np.random.default_rng(3)
    for _ in range(5):
        index = draw_index(rng, session.value("y").shape)
        assert engine.explain_element(session, "y", index).agrees


def test_an_empty_cache_is_left_out(make_pair):
    """Exports of transformers join keys to an empty list, the cache before the first token."""
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(2,3)f32",
        "pnnx.Attribute cache 0 1 c @data=(0)f32 #c=(0)f32",
        "torch.cat j 2 1 c x y dim=-2 #y=(2,3)f32",
        "pnnx.Output out 1 0 y",
        weights={"cache.data": np.zeros(0, np.float32)},
    )
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.arange(6, dtype=np.float32).reshape(2, 3)])
    session.run()
    found = engine.explain_element(session, "y", (1, 2))
    assert (found.kind, found.value, found.breakdown.total) == (MOVE, 5.0, 5.0)
    field = engine.receptive_field(session, "y", (1, 2))
    assert field.inputs[0].slices == (slice(1, 2), slice(2, 3))
    assert field.guessed == ()
    gradient = engine.effective_weight(session, "y", (1, 2), "x").gradient
    np.testing.assert_array_equal(gradient, [[0, 0, 0], [0, 0, 1]])


def test_a_share_that_is_hidden(make_pair):
    """A mask of minus infinity leaves exactly nothing."""
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(1,3)f32",
        "F.softmax s 1 1 x y dim=1",
        "pnnx.Output out 1 0 y",
    )
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.array([[1, -np.inf, 1]], np.float32)])
    session.run()
    hidden, half = (engine.explain_element(session, "y", (0, at)) for at in (1, 2))
    assert (hidden.value, hidden.breakdown.total, hidden.agrees) == (0.0, 0.0, True)
    assert (half.value, half.breakdown.total, half.agrees) == (0.5, 0.5, True)


def test_the_error_of_attention_with_a_mask_of_the_smallest_number(make_pair):
    """Scores of hidden keys are huge, and count for nothing."""
    rng = np.random.default_rng(2)
    weights = {f"a.{k}": rng.normal(size=v).astype("f4") for k, v in _ATTENTION.items()}
    weights["m.data"] = np.triu(np.full((5, 5), np.finfo(np.float32).min), 1)
    texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in _ATTENTION.items())
    path = make_pair(
        "pnnx.Input in 0 1 x #x=(1,5,4)f32",
        "pnnx.Attribute m 0 1 m @data=(5,5)f32 #m=(5,5)f32",
        f"nn.MultiheadAttention a 2 1 x m y num_heads=2 embed_dim=4 batch_first=True {texts} "
        "$attn_mask=m",
        "pnnx.Output out 1 0 y",
        weights=weights,
    )
    session = engine.Session(engine.load(path), "numpy")
    session.feed([rng.normal(size=(1, 5, 4)).astype(np.float32)])
    session.run()
    for row in range(5):
        found = engine.explain_element(session, "y", (0, row, 1))
        assert found.agrees
        assert found.breakdown.error < 0.01
