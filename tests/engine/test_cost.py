"""Costs against counts worked out by hand and against published tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import engine
from engine.cost import Cost, Memory, cost, memory
from engine.layers import registered_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from engine.runtime import RuntimeGraph


@pytest.fixture
def structure(tmp_path: Path) -> Callable[..., RuntimeGraph]:
    """Opens a graph without weights from operator lines."""

    def write(lines: Iterable[str]) -> RuntimeGraph:
        listed = list(lines)
        outputs = sum(int(line.split()[3]) for line in listed)
        param = tmp_path / "net.pnnx.param"
        param.write_text("\n".join(["7767517", f"{len(listed)} {outputs}", *listed, ""]))
        return engine.load(param)

    return write


def total(graph: RuntimeGraph) -> Cost:
    costs = [cost(operator) for operator in graph.operators]
    return Cost(
        *(
            sum(getattr(c, name) for c in costs)
            for name in ("macs", "flops", "nbytes", "parameters")
        )
    )


def inputs(*shapes: str) -> Iterator[str]:
    for index, shape in enumerate(shapes):
        yield f"pnnx.Input in{index} 0 1 i{index} #i{index}=({shape})f32"


# What a single operator costs, worked out by hand

MACS = [
    # out 1*16*30*30 elements, each of 8 input channels times 3*3
    pytest.param(
        ["1,8,32,32"],
        "nn.Conv2d op 1 1 i0 o @weight=(16,8,3,3)f32 @bias=(16)f32 #o=(1,16,30,30)f32",
        1 * 16 * 30 * 30 * 8 * 9,
        16 * 8 * 9 + 16,
        id="convolution",
    ),
    # 4 groups: an output channel sees 2 of 8 channels
    pytest.param(
        ["1,8,32,32"],
        "nn.Conv2d op 1 1 i0 o groups=4 @weight=(16,2,3,3)f32 #o=(1,16,30,30)f32",
        16 * 900 * 2 * 9,
        16 * 2 * 9,
        id="groups",
    ),
    pytest.param(
        ["5,8,20"],
        "nn.Conv1d op 1 1 i0 o @weight=(6,8,3)f32 #o=(5,6,18)f32",
        5 * 6 * 18 * 8 * 3,
        144,
        id="batch of 5",
    ),
    pytest.param(
        ["1,2,4,5,6"],
        "nn.Conv3d op 1 1 i0 o @weight=(3,2,2,2,2)f32 #o=(1,3,3,4,5)f32",
        3 * 60 * 2 * 8,
        48,
        id="three dimensions",
    ),
    pytest.param(
        ["1,8,32,32", "16,8,3,3"],
        "F.conv2d op 2 1 i0 i1 o $input=i0 $weight=i1 #o=(1,16,30,30)f32",
        16 * 900 * 8 * 9,
        0,
        id="functional",
    ),
    # each of the 8*4*4 input elements is spread over 6 channels times 2*2
    pytest.param(
        ["1,8,4,4"],
        "nn.ConvTranspose2d op 1 1 i0 o @weight=(8,6,2,2)f32 #o=(1,6,8,8)f32",
        8 * 16 * 6 * 4,
        8 * 6 * 4,
        id="transposed",
    ),
    pytest.param(
        ["7,32"],
        "nn.Linear op 1 1 i0 o @weight=(10,32)f32 @bias=(10)f32 #o=(7,10)f32",
        7 * 10 * 32,
        330,
        id="linear",
    ),
    pytest.param(
        ["4,5,16", "10,16"],
        "F.linear op 2 1 i0 i1 o $input=i0 $weight=i1 #o=(4,5,10)f32",
        4 * 5 * 10 * 16,
        0,
        id="functional linear",
    ),
    pytest.param(
        ["2,3,4,5", "2,3,5,6"],
        "torch.matmul op 2 1 i0 i1 o $input=i0 $other=i1 #o=(2,3,4,6)f32",
        2 * 3 * 4 * 6 * 5,
        0,
        id="matmul",
    ),
    pytest.param(
        ["4,6", "4,5", "5,6"],
        "torch.addmm op 3 1 i0 i1 i2 o alpha=1 beta=1 $input=i0 $mat1=i1 $mat2=i2 #o=(4,6)f32",
        4 * 6 * 5,
        0,
        id="addmm",
    ),
    pytest.param(
        ["2,4,6", "2,4,5", "2,5,6"],
        "aten::baddbmm op 3 1 i0 i1 i2 o #o=(2,4,6)f32",
        2 * 4 * 6 * 5,
        0,
        id="baddbmm, unnamed inputs",
    ),
    pytest.param(
        ["4,5", "5"],
        "torch.mv op 2 1 i0 i1 o $input=i0 $vec=i1 #o=(4)f32",
        20,
        0,
        id="mv",
    ),
    # b h i j with d summed: 2*3*4*6*5
    pytest.param(
        ["2,3,4,5", "2,3,6,5"],
        "torch.einsum op 2 1 i0 i1 o equation=bhid,bhjd->bhij #o=(2,3,4,6)f32",
        2 * 3 * 4 * 6 * 5,
        0,
        id="einsum",
    ),
    pytest.param(
        ["2,3,4,5", "5,6"],
        "torch.einsum op 2 1 i0 i1 o equation=...d,de->...e #o=(2,3,4,6)f32",
        2 * 3 * 4 * 5 * 6,
        0,
        id="einsum with dots",
    ),
    pytest.param(
        ["4,5"],
        "torch.einsum op 1 1 i0 o equation=ij->ji #o=(5,4)f32",
        0,
        0,
        id="einsum of one",
    ),
    # 2 heads: 3 queries of 4 against 7 keys, then 7 weights against values of 5
    pytest.param(
        ["1,2,3,4", "1,2,7,4", "1,2,7,5"],
        "F.scaled_dot_product_attention op 3 1 i0 i1 i2 o $query=i0 $key=i1 $value=i2"
        " #o=(1,2,3,5)f32",
        2 * 3 * 7 * 4 + 2 * 3 * 7 * 5,
        0,
        id="attention",
    ),
    # self-attention over 50 tokens of 768: four projections, scores, weighted sum
    pytest.param(
        ["1,50,768"],
        "nn.MultiheadAttention op 1 1 i0 o batch_first=True embed_dim=768 num_heads=12"
        " @in_proj_weight=(2304,768)f32 @in_proj_bias=(2304)f32 @out_proj.weight=(768,768)f32"
        " @out_proj.bias=(768)f32 #o=(1,50,768)f32",
        4 * 50 * 768 * 768 + 2 * 50 * 50 * 768,
        2304 * 769 + 768 * 769,
        id="self-attention",
    ),
    # 3 queries of 4 against 6 keys of 8 and values of 10, sequence first, batch 2
    pytest.param(
        ["3,2,4", "6,2,8", "6,2,10", "3,6"],
        "nn.MultiheadAttention op 4 1 i0 i1 i2 i3 o $attn_mask=i3 batch_first=False embed_dim=4"
        " num_heads=2 @q_proj_weight=(4,4)f32 @k_proj_weight=(4,8)f32 @v_proj_weight=(4,10)f32"
        " @out_proj.weight=(4,4)f32 #o=(3,2,4)f32",
        6 * 4 * 4 + 12 * 8 * 4 + 12 * 10 * 4 + 6 * 4 * 4 + 2 * (6 * 6 * 4),
        16 + 32 + 40 + 16,
        id="cross-attention",
    ),
    # width 4, MLP 8, 5 tokens: 12x4, 4x4, 8x4 and 4x8, then scores and weighted sum
    pytest.param(
        ["1,5,4", "12,4", "12", "4,4", "4", "8,4", "8", "4,8", "4"],
        "aten::_transformer_encoder_layer_fwd op 9 1 i0 i1 i2 i3 i4 i5 i6 i7 i8 o"
        " #o=(1,5,4)f32",
        5 * (48 + 16 + 32 + 32) + 2 * 5 * 5 * 4,
        0,
        id="fused transformer layer",
    ),
    # 10 steps, 4 gates of 16: from 32 inputs and from 16 hidden
    pytest.param(
        ["10,1,32"],
        "nn.LSTM op 1 1 i0 o hidden_size=16 @weight_ih_l0=(64,32)f32 @weight_hh_l0=(64,16)f32"
        " @bias_ih_l0=(64)f32 @bias_hh_l0=(64)f32 #o=(10,1,16)f32",
        10 * 64 * (32 + 16),
        64 * (32 + 16 + 2),
        id="LSTM",
    ),
    pytest.param(
        ["1,4,8,8"],
        "nn.BatchNorm2d op 1 1 i0 o @weight=(4)f32 @bias=(4)f32 @running_mean=(4)f32"
        " @running_var=(4)f32 #o=(1,4,8,8)f32",
        0,
        8,
        id="running statistics are not learnt",
    ),
    pytest.param(
        ["1,3,4,4"],
        "models.Custom op 1 1 i0 o @pnnx_0=(1,3,4,4)f32 @table=(9)i64 #o=(1,3,4,4)f32",
        0,
        0,
        id="constants and integers are not learnt",
    ),
]


@pytest.mark.parametrize(("shapes", "line", "macs", "parameters"), MACS)
def test_macs_and_parameters(structure, shapes, line, macs, parameters):
    graph = structure([*inputs(*shapes), line])
    found = cost(graph.operator("op"))
    assert (found.macs, found.parameters) == (macs, parameters)


@pytest.mark.parametrize(
    ("shapes", "line", "flops"),
    [
        pytest.param(["2,3,4"], "nn.ReLU op 1 1 i0 o #o=(2,3,4)f32", 24, id="one an element"),
        pytest.param(
            ["1,3,8,8"], "nn.MaxPool2d op 1 1 i0 o #o=(1,3,4,4)f32", 192, id="of the input"
        ),
        pytest.param(
            ["1,3,4,4"], "nn.Upsample op 1 1 i0 o #o=(1,3,8,8)f32", 192, id="of the output"
        ),
        pytest.param(
            ["2,3", "2,3"],
            "pnnx.Expression op 2 1 i0 i1 o expr=add(@0,mul(@1,2)) #o=(2,3)f32",
            12,
            id="two calls",
        ),
        pytest.param(["2,6"], "torch.flatten op 1 1 i0 o #o=(12)f32", 0, id="free"),
        pytest.param(["2,6"], "prim::TupleConstruct op 1 1 i0 o", 0, id="no shape"),
        pytest.param(["2,?"], "nn.ReLU op 1 1 i0 o #o=(2,?)f32", 0, id="open dimension"),
        pytest.param(["2,%n"], "nn.ReLU op 1 1 i0 o #o=(2,%n)f32", 0, id="symbol"),
        pytest.param(
            ["7,32"],
            "nn.Linear op 1 1 i0 o @weight=(10,32)f32 #o=(7,10)f32",
            2 * 7 * 10 * 32,
            id="two a MAC",
        ),
    ],
)
def test_flops(structure, shapes, line, flops):
    graph = structure([*inputs(*shapes), line])
    assert cost(graph.operator("op")).flops == flops


def test_bytes_of_inputs_outputs_and_weights(structure):
    line = "nn.Linear op 1 1 i0 o @weight=(10,32)f16 #o=(7,10)f32"
    graph = structure([*inputs("7,32"), line])
    assert cost(graph.operator("op")).nbytes == 7 * 32 * 4 + 10 * 32 * 2 + 7 * 10 * 4


def test_missing_shapes_cost_nothing(structure):
    graph = structure(
        [
            "pnnx.Input in0 0 1 i0",
            "nn.Conv2d op 1 1 i0 o @weight=(16,8,3,3)f32",
            "nn.MultiheadAttention mha 1 1 o p @out_proj.weight=(4,4)f32",
            "torch.einsum ein 2 1 o p q equation=ij,jk->ik",
            "nn.ConvTranspose2d up 1 1 q r @weight=(16,8,3,3)f32",
            "F.scaled_dot_product_attention att 3 1 r r r s",
            "torch.matmul mm 2 1 r s t",
            "nn.LSTM rnn 1 1 t u @weight_ih_l0=(4,4)f32",
        ]
    )
    assert total(graph).macs == 0
    assert total(graph).flops == 0


def test_a_run_of_another_size_costs_more(make_pair):
    weight = np.zeros((2, 3, 1, 1), np.float32)
    param = make_pair(
        "pnnx.Input in 0 1 x #x=(1,3,4,4)f32",
        "nn.Conv2d conv 1 1 x y bias=False in_channels=3 out_channels=2 kernel_size=(1,1)"
        " stride=(1,1) padding=(0,0) dilation=(1,1) groups=1 padding_mode=zeros"
        " @weight=(2,3,1,1)f32 #x=(1,3,4,4)f32 #y=(1,2,4,4)f32",
        "nn.ReLU relu 1 1 y z #y=(1,2,4,4)f32 #z=(1,2,4,4)f32",
        "pnnx.Output out 1 0 z",
        weights={"conv.weight": weight},
    )
    session = engine.Session(engine.load(param))
    session.feed([np.zeros((1, 3, 8, 8), np.float32)])
    session.step()
    session.step()
    conv, relu = (session.graph.operator(name) for name in ("conv", "relu"))
    assert cost(conv).macs == 2 * 16 * 3
    assert cost(conv, session).macs == 2 * 64 * 3
    assert cost(conv, session).nbytes == 4 * (3 * 64 + 6 + 2 * 64)
    assert cost(relu, session).flops == 2 * 64  # its output is still the file's 4x4


def test_tuples_count_by_their_arrays(make_pair):
    param = make_pair(
        "pnnx.Input in 0 1 x #x=(4,6)f32",
        "torch.chunk halves 1 2 x a b chunks=2 dim=0 #x=(4,6)f32",
        "prim::TupleConstruct pair 2 1 a b c",
        "pnnx.Output out 1 0 c",
    )
    session = engine.Session(engine.load(param))
    session.feed([np.zeros((4, 6), np.float32)])
    session.run()
    assert cost(session.graph.operator("pair"), session).nbytes == 4 * (24 + 24)


# Whole networks, against published counts


def conv(name: str, source: str, target: str, weight: str, out: str, bias: int) -> str:
    return (
        f"nn.Conv2d {name} 1 1 {source} {target} @weight=({weight})f32 @bias=({bias})f32"
        f" #{target}=({out})f32"
    )


def mobilenet_v2() -> Iterator[str]:
    """Table 2 of Sandler et al. 2018, batch norms folded into biases as pnnx does."""
    yield from inputs("1,3,224,224")
    yield conv("stem", "i0", "s", "32,3,3,3", "1,32,112,112", 32)
    channels, size, last, count = 32, 112, "s", 0
    for expansion, out, repeats, stride in [
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
        (6, 160, 3, 2), (6, 320, 1, 1),
    ]:  # fmt: skip
        for repeat in range(repeats):
            wide, step = channels * expansion, stride if repeat == 0 else 1
            parts = [
                (f"{wide},{channels},1,1", wide, size),
                (f"{wide},1,3,3", wide, size // step),
                (f"{out},{wide},1,1", out, size // step),
            ]
            for weight, width, edge in parts if expansion > 1 else parts[1:]:
                name = f"c{count}"
                shape = f"1,{width},{edge},{edge}"
                yield conv(name, last, name, weight, shape, width)
                last, count = name, count + 1
            channels, size = out, size // step
    yield conv("head", last, "h", "1280,320,1,1", "1,1280,7,7", 1280)
    yield "nn.AdaptiveAvgPool2d pool 1 1 h p #p=(1,1280,1,1)f32"
    yield "torch.flatten flat 1 1 p f #f=(1,1280)f32"
    yield "nn.Linear fc 1 1 f o @weight=(1000,1280)f32 @bias=(1000)f32 #o=(1,1000)f32"


def vit_b_32() -> Iterator[str]:
    """Dosovitskiy et al. 2021, B/32: 12 layers, width 768, MLP 3072, 49 patches and a class."""
    yield from inputs("1,3,224,224")
    yield conv("patches", "i0", "t0", "768,3,32,32", "1,768,7,7", 768)
    tokens = "1,50,768"
    yield "pnnx.Attribute positions 0 1 pos @data=(1,50,768)f32 #pos=(1,50,768)f32"
    yield "pnnx.Attribute class_token 0 1 cls @data=(1,1,768)f32 #cls=(1,1,768)f32"
    yield f"models.Embed embed 3 1 t0 cls pos x0 #x0=({tokens})f32"
    norm = "@weight=(768)f32 @bias=(768)f32"
    for k in range(12):
        yield f"nn.LayerNorm n{k} 1 1 x{k} a{k} {norm} #a{k}=({tokens})f32"
        yield (
            f"nn.MultiheadAttention m{k} 1 1 a{k} b{k} batch_first=True"
            " @in_proj_weight=(2304,768)f32 @in_proj_bias=(2304)f32"
            f" @out_proj.weight=(768,768)f32 @out_proj.bias=(768)f32 #b{k}=({tokens})f32"
        )
        yield f"nn.LayerNorm o{k} 1 1 b{k} c{k} {norm} #c{k}=({tokens})f32"
        yield (
            f"nn.Linear p{k} 1 1 c{k} d{k} @weight=(3072,768)f32 @bias=(3072)f32"
            f" #d{k}=(1,50,3072)f32"
        )
        yield (
            f"nn.Linear q{k} 1 1 d{k} x{k + 1} @weight=(768,3072)f32 @bias=(768)f32"
            f" #x{k + 1}=({tokens})f32"
        )
    yield f"nn.LayerNorm n12 1 1 x12 y {norm} #y=({tokens})f32"
    yield "Tensor.select s 1 1 y z #z=(1,768)f32"
    yield "nn.Linear fc 1 1 z o @weight=(1000,768)f32 @bias=(1000)f32 #o=(1,1000)f32"


def test_mobilenet_v2_has_the_published_cost(structure):
    found = total(structure(mobilenet_v2()))
    assert found.macs == 300_774_272  # "300 M multiply-adds"
    # Published 3 504 872; each of the 17 056 channels with a folded batch norm has one bias
    # in the file, and a weight and a bias in PyTorch.
    assert found.parameters == 3_504_872 - 17_056


def test_vit_b_32_has_the_published_cost(structure):
    found = total(structure(vit_b_32()))
    assert found.macs == pytest.approx(4.409e9, abs=0.0005e9)
    assert found.parameters == 88_224_232


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "macs", "parameters"),
    [
        # 11 689 512 published; 4 800 folded channels have a bias instead of two numbers
        pytest.param("resnet18_batch1", 1_814_073_344, 11_689_512 - 4_800, id="resnet18"),
        # "16.5 GFLOPs, 7.2 M": with the three convolutions of the head, biases not counted
        pytest.param("yolov5s", 8_216_780_800, 7_225_885, id="yolov5s"),
    ],
)
def test_published_counts(shared, name, macs, parameters):
    found = total(engine.load(shared / "models" / f"{name}.pnnx.param"))
    assert (found.macs, found.parameters) == (macs, parameters)


def test_digits_sample(samples):
    # Nine convolutions; 16 and 32 and 48 channels at 32x32, 16x16 and 8x8.
    at32 = 1024 * 9 * (1 * 16 + 16 * 16 + 16 * 16)
    at16 = 256 * (9 * (16 * 32 + 32 * 32) + 16 * 32)
    at8 = 64 * (9 * (32 * 48 + 48 * 48) + 32 * 48)
    found = total(engine.load(samples / "digits" / "digits.pnnx.param"))
    assert found.macs == at32 + at16 + at8 + 48 * 10


@pytest.mark.parametrize("shape", ["", "3", "2,3", "0,4", "1,2,3,4"])
def test_any_type_and_shape_has_a_cost(structure, shape):
    types = [*registered_types(), "nn.LSTM", "nn.MultiheadAttention", "torch.einsum"]
    lines = [
        f"{name} op{i} 2 1 i0 i1 o{i} equation=ij,j->i @weight=()f32 @out_proj.weight=(2)f32"
        f" @weight_ih_l0=(2,3)f32 #o{i}=({shape})f32"
        for i, name in enumerate(types)
    ]
    graph = structure([*inputs(shape, shape), *lines])
    assert all(cost(operator).flops >= 0 for operator in graph.operators)


def test_memory_of_a_pass(make_pair):
    graph = engine.load(
        make_pair(
            "pnnx.Input in 0 1 x #x=(100)f32",
            "pnnx.Attribute w 0 1 w @data=(100)f32 #w=(100)f32",
            "pnnx.Expression a 2 1 x w a expr=add(@0,@1) #a=(100)f32",
            "nn.ReLU b 1 1 a b #b=(100)f32",
            "nn.ReLU unused 1 1 b c #c=(100)f32",
            "torch.cat d 2 1 a b d dim=0 #d=(200)f32",
            "nn.ReLU e 1 1 d e #e=(200)f32",
            "pnnx.Output out 2 0 b e",
            weights={"w.data": np.zeros(100, np.float32)},
        )
    )
    # All but the input and the weight: a, b, c of 400 bytes, d and e of 800. When d is computed
    # there are a, b and d; when e is, there are b, which the model gives, d and e.
    assert memory(graph) == Memory(total=2800, needed=2000)


def test_bytes_of_outputs_and_weights(structure):
    graph = structure(
        [
            "pnnx.Input in 0 1 x #x=(1,3)f32",
            "nn.Linear op 1 1 x y @weight=(5,3)f32 @bias=(5)f32 #y=(1,5)f32",
        ]
    )
    found = cost(graph.operator("op"))
    assert (found.output_nbytes, found.weight_nbytes) == (4 * 5, 4 * (5 * 3 + 5))
    assert found.nbytes == 4 * 3 + found.output_nbytes + found.weight_nbytes


def test_memory_of_another_size(make_pair):
    graph = engine.load(
        make_pair("pnnx.Input in 0 1 x #x=(4)f32", "nn.ReLU a 1 1 x a #a=(4)f32")
    )
    session = engine.Session(graph, "numpy")
    session.feed([np.zeros(50, np.float32)])
    session.run()
    assert memory(graph).total == 16
    assert memory(graph, session) == Memory(total=200, needed=200)
