"""Layouts of small graphs, of hostile ones, and by what the user says."""

from __future__ import annotations

import json
import time
from itertools import product
from typing import TYPE_CHECKING

import pytest

import engine
from engine.axes import Axis, Kind, Layout, infer_layouts
from engine.axes.registry import find_rule
from engine.layers import registered_types

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.runtime import RuntimeGraph

GRID = (Axis(Kind.ROW, 4), Axis(Kind.COLUMN, 4))
TOKENS = Axis(Kind.TOKEN, 17, segments=(Axis(Kind.CLASS_TOKEN, 1), Axis(Kind.TOKEN, 16, GRID)))


@pytest.fixture
def structure(make_pair: Callable[..., Path]) -> Callable[..., RuntimeGraph]:
    """Opens a graph from operator lines."""
    return lambda *lines: engine.load(make_pair(*lines))


def texts(graph: RuntimeGraph, **options: object) -> dict[str, str]:
    return {name: layout.text() for name, layout in infer_layouts(graph, **options).items()}


def test_a_convolution_names_axes_upstream(structure: Callable[..., RuntimeGraph]) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(1,8,8,3)f32",
        "Tensor.permute p 1 1 a b dims=(0,3,1,2) $input=a #b=(1,3,8,8)f32",
        "nn.Conv2d c 1 1 b c kernel_size=(3,3) #c=(1,4,6,6)f32",
        "pnnx.Output out 1 0 c",
    )
    found = texts(graph)
    assert found["a"] == "rows × columns × channels"
    assert found["c"] == "channels × rows × columns"


def test_unknown_stays_unknown(structure: Callable[..., RuntimeGraph]) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(3,5)f32",
        "F.relu r 1 1 a b #b=(3,5)f32",
        "pnnx.Output out 1 0 b",
    )
    layouts = infer_layouts(graph)
    assert layouts["b"].kinds == (Kind.UNKNOWN, Kind.UNKNOWN)
    assert layouts["b"].text() == ""
    assert not layouts["b"].is_named


def test_open_sizes_and_symbols_are_named(structure: Callable[..., RuntimeGraph]) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(?,3,%h,%w)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) #b=(?,8,%h,%w)f32",
        "nn.AdaptiveAvgPool2d p 1 1 b c output_size=(1,1) #c=(?,8,1,1)f32",
        "torch.flatten f 1 1 c d start_dim=1 end_dim=-1 $input=c #d=(?,8)f32",
        "pnnx.Output out 1 0 d",
    )
    found = texts(graph)
    assert found["a"] == found["b"] == "batch × channels × rows × columns"
    assert found["d"].endswith("× features")


def test_shapes_of_a_run_replace_those_of_the_file(
    structure: Callable[..., RuntimeGraph],
) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3)",
        "pnnx.Output out 1 0 b",
    )
    assert infer_layouts(graph) == {}
    found = texts(graph, shapes={"a": (2, 3, 9, 9), "b": (2, 4, 7, 7)})
    assert found["a"] == found["b"] == "batch × channels × rows × columns"


def test_user_layouts_spread(structure: Callable[..., RuntimeGraph]) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(1,17,48)f32",
        "nn.LayerNorm n 1 1 a b normalized_shape=(48) #b=(1,17,48)f32",
        "Tensor.slice s 1 1 b c dim=1 start=1 end=17 step=1 $input=b #c=(1,16,48)f32",
        "nn.Linear l 1 1 c d #d=(1,16,10)f32",
        "pnnx.Output out 1 0 d",
    )
    assert texts(graph)["d"] == "tokens × features"
    layout = Layout((Axis(Kind.BATCH, 1), TOKENS, Axis(Kind.FEATURE, 48)))
    found = texts(graph, overrides={"b": layout})
    assert found["a"] == found["b"] == "class + 4×4 tokens × features"
    assert found["d"] == "tokens × features"  # the file sliced before it was said


def test_user_layouts_override_operators(
    structure: Callable[..., RuntimeGraph],
) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(1,1,40,100)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) #b=(1,8,38,98)f32",
        "pnnx.Output out 1 0 b",
    )
    kinds = (Kind.BATCH, Kind.CHANNEL, Kind.ROW, Kind.TIME)
    axes = tuple(Axis(kind, size) for kind, size in zip(kinds, (1, 1, 40, 100), strict=True))
    found = texts(graph, overrides={"a": Layout(axes)})
    assert found["b"] == "channels × rows × time"


@pytest.mark.parametrize(
    "axes",
    [
        (),
        (Axis(Kind.TOKEN, 99),),
        (Axis(Kind.BATCH, 1), Axis(Kind.TOKEN, 17, GRID), Axis(Kind.FEATURE, 48)),
    ],
)
def test_a_layout_that_does_not_fit_changes_no_structure(
    structure: Callable[..., RuntimeGraph], axes: tuple[Axis, ...]
) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(1,17,48)f32",
        "nn.LayerNorm n 1 1 a b normalized_shape=(48) #b=(1,17,48)f32",
        "pnnx.Output out 1 0 b",
    )
    assert texts(graph, overrides={"b": Layout(axes)})["a"] == "tokens × features"


def test_a_flattened_dimension_accepts_the_user_layout(
    structure: Callable[..., RuntimeGraph],
) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(1,3,4,4)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) #b=(1,8,2,2)f32",
        "torch.flatten f 1 1 b c start_dim=2 end_dim=-1 $input=b #c=(1,8,4)f32",
        "pnnx.Output out 1 0 c",
    )
    assert texts(graph)["c"] == "features × 2×2 tokens"
    axes = (Axis(Kind.BATCH, 1), Axis(Kind.CHANNEL, 8), Axis(Kind.TIME, 4))
    found = texts(graph, overrides={"c": Layout(axes), "no operand": Layout(())})
    assert found["c"] == "channels × time"
    assert found["b"] == "channels × rows × columns"  # which the convolution declares


def test_queries_named_by_the_user_are_tokens_elsewhere(
    structure: Callable[..., RuntimeGraph],
) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(2,6,6)f32",
        "Tensor.slice s 1 1 a b dim=2 start=0 end=3 step=1 $input=a #b=(2,6,3)f32",
        "pnnx.Output out 1 0 b",
    )
    axes = (Axis(Kind.HEAD, 2), Axis(Kind.QUERY, 6), Axis(Kind.KEY, 6))
    found = texts(graph, overrides={"a": Layout(axes)})
    assert found["a"] == "heads × queries × keys"
    assert found["b"] == "heads × queries × keys"


def test_flattened_scores_are_queries_by_keys(structure: Callable[..., RuntimeGraph]) -> None:
    """Which of both an element belongs to is still known, each on its own grid."""
    graph = structure(
        "pnnx.Input in 0 1 a #a=(1,3,8,12)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(4,4) stride=(4,4) #b=(1,6,2,3)f32",
        "torch.flatten t 1 1 b d start_dim=2 end_dim=-1 $input=b #d=(1,6,6)f32",
        "torch.transpose p 1 1 d e dim0=1 dim1=2 $input=d #e=(1,6,6)f32",
        "torch.matmul s 2 1 e d f $input=e $other=d #f=(1,6,6)f32",
        "torch.flatten g 1 1 f h start_dim=1 end_dim=-1 $input=f #h=(1,36)f32",
        "pnnx.Output out 1 0 h",
    )
    layouts = infer_layouts(graph)
    assert layouts["f"].text() == "2×3 queries × 2×3 keys"
    batch, flattened = layouts["h"].axes
    assert (batch.size, flattened.size) == (1, 36)
    grids = [tuple((side.kind, side.size) for side in f.factors) for f in flattened.factors]
    assert [(f.kind, f.size) for f in flattened.factors] == [(Kind.QUERY, 6), (Kind.KEY, 6)]
    assert grids == [((Kind.ROW, 2), (Kind.COLUMN, 3))] * 2


@pytest.mark.parametrize(
    "axis", [TOKENS, Axis(Kind.WINDOW, None, (Axis(Kind.ROW, "%h"),), shift=2)]
)
def test_an_axis_survives_json(axis: Axis) -> None:
    assert Axis.from_plain(json.loads(json.dumps(axis.to_plain()))) == axis


def test_an_axis_of_a_foreign_file_is_refused() -> None:
    deep: dict[str, object] = Axis(Kind.ROW, 2).to_plain()
    for _ in range(9):
        deep = {**deep, "factors": [deep]}
    flat = {**deep, "factors": []}
    sizes = [{**flat, "size": size} for size in (1.5, -1, True)]
    for plain in (deep, {}, [], None, *sizes, {**flat, "shift": ""}, {"kind": "NO"}):
        with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
            Axis.from_plain(plain)


HOSTILE = [
    "Tensor.permute x 1 1 a b dims=(0,0,9) #b=(3,4)f32",
    "Tensor.permute x 1 1 a b #b=(3,4)f32",
    "torch.transpose x 1 1 a b dim0=7 dim1=-9 #b=(3,4)f32",
    "Tensor.reshape x 1 1 a b #b=(7,11)f32",
    "Tensor.slice x 1 1 a b dims=(5,6) starts=(0) ends=(1) #b=(3,4)f32",
    "Tensor.slice x 1 1 a b dim=0 start=-99 #b=(0,4)f32",
    "Tensor.select x 1 1 a b dim=9 #b=(3)f32",
    "torch.cat x 1 1 a b dim=99 #b=(3,4)f32",
    "torch.cat x 2 1 a a b dim=0 #b=(7)f32",
    "torch.roll x 1 1 a b shifts=(1,2,3) dims=(0) #b=(3,4)f32",
    "torch.roll x 1 1 a b shifts=word dims=None #b=(3,4)f32",
    "torch.einsum x 1 1 a b equation=...->zz #b=(3,4)f32",
    "torch.einsum x 1 1 a b equation=iii->i #b=(3)f32",
    "torch.matmul x 1 1 a b #b=(3,3)f32",
    "torch.matmul x 2 1 a a b #b=(3,4,5,6)f32",
    "torch.bmm x 2 1 a a b #b=()f32",
    "torch.baddbmm x 1 1 a b #b=(3)f32",
    "F.scaled_dot_product_attention x 3 1 a a a b #b=(3,4)f32",
    "nn.MultiheadAttention x 1 1 a b num_heads=0 #b=(3,4,5)f32",
    "nn.Conv2d x 1 1 a b kernel_size=(3,3) #b=(1)f32",
    "nn.Conv3d x 1 1 a b #b=(3,4)f32",
    "nn.Linear x 1 1 a b #b=()f32",
    "nn.LSTM x 1 1 a b #b=(3)f32",
    "torch.mean x 1 1 a b dim=(9) #b=(3)f32",
    "torch.stack x 1 1 a b dim=9 #b=(3,4,1)f32",
    "torch.split x 1 1 a b dim=-9 #b=(3,4)f32",
    "torch.unbind x 1 1 a b dim=1 #b=(3)f32",
    "torch.squeeze x 1 1 a b dim=9 #b=(3,4)f32",
    "torch.unsqueeze x 1 1 a b dim=9 #b=(3,4,1)f32",
    "Tensor.expand x 1 1 a b #b=(9,9,9)f32",
    "nn.Embedding x 1 1 a b #b=(3)f32",
    "Tensor.index x 1 1 a b expr=[[[ #b=(3)f32",
    "nn.PixelShuffle x 1 1 a b #b=(3)f32",
    "no.such.Type x 1 1 a b #b=(2147483647)f32",
]


@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: line.split(" #")[0])
@pytest.mark.parametrize("shape", ["(3,4)", "(3,4,5,6,7)", "()", "(0)", "(?,%n)"])
def test_operators_with_anything_wrong_are_harmless(
    structure: Callable[..., RuntimeGraph], line: str, shape: str
) -> None:
    graph = structure(f"pnnx.Input in 0 1 a #a={shape}f32", line, "pnnx.Output out 1 0 b")
    for name, layout in infer_layouts(graph).items():
        shape_of = graph.operand(name).shape
        assert shape_of is not None
        assert tuple(axis.size for axis in layout.axes) == shape_of
        layout.text()


def test_a_constant_of_unknown_shape(structure: Callable[..., RuntimeGraph]) -> None:
    graph = structure(
        "pnnx.Input in 0 1 a #a=(3,4)f32",
        "torch.zeros z 0 1 z",
        "F.relu r 1 1 z c",
        "torch.matmul m 2 1 a c b #b=(3,5)f32",
        "pnnx.Output out 1 0 b",
    )
    found = infer_layouts(graph)
    assert "c" not in found
    assert found["b"].shape == (3, 5)


def test_a_window_as_long_as_its_dimension_is_no_whole_of_itself(
    structure: Callable[..., RuntimeGraph],
) -> None:
    graph = structure(  # with shapes that no run gives
        "pnnx.Input in 0 1 x #x=(8)f32",
        "Tensor.unfold u 1 1 x y dimension=0 size=8 step=1 #y=(3,8)f32",
        "pnnx.Expression a 2 1 x y z expr=add(@0,@1) #z=(3,8)f32",
        "Tensor.reshape r 1 1 z v shape=(6,4) #v=(6,4)f32",
        "F.softmax s 1 1 v w dim=-1 #w=(6,4)f32",
        "pnnx.Output out 1 0 w",
    )
    layouts = infer_layouts(graph)
    assert layouts["z"].shape == (3, 8)
    assert layouts["w"].shape == (6, 4)


GIVEN = ("()", "(0)", "(3)", "(?,%n)", "(3,4,5)", "(2,3,4,5)", "(3,4,5,6,7)", "(1,2,3,1,2,3)")
MADE = ("()", "(3,4)", "(2,3,4,5)")


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_every_rule_takes_operands_of_any_rank(
    structure: Callable[..., RuntimeGraph], inputs: int
) -> None:
    # One type of each rule, and of each number of spatial dimensions.
    types = {(find_rule(type_), type_[-2:]): type_ for type_ in registered_types()}
    lines = []
    for number, (type_, given, made) in enumerate(product(types.values(), GIVEN, MADE)):
        names = " ".join([f"a{number}"] * inputs)
        lines += [
            f"pnnx.Input i{number} 0 1 a{number} #a{number}={given}f32",
            f"{type_} x{number} {inputs} 1 {names} b{number} #b{number}={made}f32",
        ]
    graph = structure(*lines)
    layouts = infer_layouts(graph)
    for name, operand in graph.operands.items():
        assert tuple(axis.size for axis in layouts[name].axes) == operand.shape


LACKING = [
    ("torch.matmul x 0 1 a", "torch.stack s 2 1 a a b #b=(2,3,4,5)f32"),
    ("torch.matmul x 2 0 i i",),
    ("torch.matmul x 2 1 i c a",),  # a constant of unknown shape
    ("torch.cat x 2 0 i i",),
    ("torch.topk x 1 0 i dim=-1 k=1",),
    ("F.grid_sample x 0 1 a #a=(3,4,5)f32", "torch.stack s 2 1 a a b #b=(2,3,4,5)f32"),
    ("F.grid_sample x 2 1 u u a", "torch.stack s 2 1 a a b #b=(2,3,4,5)f32"),
    ("F.softmax x 0 1 a dim=-1 #a=(3,4,5)f32", "torch.matmul m 2 1 a i b #b=(3,4,5)f32"),
    ("nn.Linear x 0 1 a #a=(3,4)f32", "F.softmax s 1 1 a b dim=-1 #b=(3,4)f32"),
    ("Tensor.index x 1 0 i",),
    ("torch.argmin x 1 1 i a dim=1 #a=(2,4)i64", "torch.flatten s 1 0 a"),
]


@pytest.mark.parametrize("lines", LACKING, ids=" ".join)
def test_operands_that_are_missing_or_unknown_are_harmless(
    structure: Callable[..., RuntimeGraph], lines: tuple[str, ...]
) -> None:
    last = "b" if " b" in lines[-1] else "a" if " a" in lines[0] else "i"
    graph = structure(
        "pnnx.Input in 0 1 i #i=(2,3,4)f32",
        "pnnx.Input unknown 0 1 u",
        "torch.zeros constant 0 1 c",
        *lines,
        f"pnnx.Output out 1 0 {last}",
    )
    layouts = infer_layouts(graph)
    for name, operand in graph.operands.items():
        if operand.shape is not None:
            assert tuple(axis.size for axis in layouts[name].axes) == operand.shape


@pytest.mark.parametrize(
    "line",
    [
        "F.relu r{0} 1 1 v{0} v{1} #v{1}=(1,17,48)f32",
        "pnnx.Expression e{0} 2 1 v{0} v{0} v{1} expr=add(@0,@1) #v{1}=(1,17,48)f32",
        "torch.roll t{0} 1 1 v{0} v{1} dims=(1) shifts=(1) $input=v{0} #v{1}=(1,17,48)f32",
        "torch.cat c{0} 2 1 v{0} v{0} v{1} dim=1 #v{1}=(1,17,48)f32",
    ],
)
@pytest.mark.slow
def test_time_is_linear_in_the_operators(
    structure: Callable[..., RuntimeGraph], line: str
) -> None:
    seconds = []
    for count in (5_000, 20_000):
        lines = [line.format(number, number + 1) for number in range(count)]
        graph = structure("pnnx.Input in 0 1 v0 #v0=(1,17,48)f32", *lines)
        assert len(graph.operators) == count + 1  # made before the clock runs
        start = time.thread_time()  # whatever else the machine does
        assert len(infer_layouts(graph)) == count + 1
        seconds.append(time.thread_time() - start)
    assert seconds[1] < 12 * seconds[0]  # 16 times would be the square
