"""Operators that read PyTorch's memory behind their input by steps."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import InferenceError

X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.fixture
def strided(make_pair):
    """A function that runs operators between an input of 4×6 and ``as_strided``."""

    def run(*lines, size, stride, read="v", dims="4,6", operator="torch.as_strided"):
        param = make_pair(
            f"pnnx.Input in 0 1 x #x=({dims})f32",
            *lines,
            f"{operator} op 1 1 {read} y size={size} stride={stride} $input={read}",
            "pnnx.Output out 1 0 y",
        )
        return engine.load(param)

    return run


def result(graph, value=X):
    (outputs,) = graph.forward([value])
    session = engine.Session(graph)
    session.feed([value])
    session.run()
    np.testing.assert_array_equal(session.outputs()[0], outputs)
    return outputs.tolist()


@pytest.mark.parametrize(
    ("lines", "size", "stride", "expected"),
    [
        pytest.param(
            ["Tensor.permute p 1 1 x v dims=(1,0) $input=x #v=(6,4)f32"],
            "(2,2,2)", "(1,1,6)", [[[0, 6], [1, 7]], [[1, 7], [2, 8]]], id="permuted",
        ),
        pytest.param(
            ["Tensor.permute p 1 1 x v dims=(1,0) $input=x #v=(6,4)f32"],
            "(2,2,2)", "(4,4,1)", [[[0, 6], [1, 7]], [[1, 7], [2, 8]]],
            id="permuted and made contiguous, which pnnx drops",
        ),
        pytest.param(
            [
                "Tensor.permute p 1 1 x a dims=(1,0) $input=x #a=(6,4)f32",
                "Tensor.contiguous c 1 1 a v $input=a #v=(6,4)f32",
            ],
            "(3)", "(5)", [0, 7, 14], id="contiguous in the file",
        ),
        pytest.param(
            ["Tensor.select s 1 1 x v dim=0 index=1 $input=x #v=(6)f32"],
            "(3,2)", "(6,1)", [[6, 7], [12, 13], [18, 19]], id="beyond a row",
        ),
        pytest.param(
            ["Tensor.slice s 1 1 x v dim=1 start=1 end=4 step=1 $input=x #v=(4,3)f32"],
            "(4,2)", "(6,2)", [[1, 3], [7, 9], [13, 15], [19, 21]], id="columns",
        ),
        pytest.param(
            ["torch.chunk c 1 2 x a v chunks=2 dim=1 $input=x #a=(4,3)f32 #v=(4,3)f32"],
            "(2,2)", "(6,1)", [[3, 4], [9, 10]], id="the second chunk",
        ),
        pytest.param(
            ["torch.unbind u 1 4 x a b v c dim=0 $input=x #v=(6)f32"],
            "(2,3)", "(6,1)", [[12, 13, 14], [18, 19, 20]], id="the third row",
        ),
        pytest.param(
            [
                "Tensor.slice s 1 1 x a dim=0 start=2 end=3 step=1 $input=x #a=(1,6)f32",
                "Tensor.expand e 1 1 a v sizes=(3,6) $input=a #v=(3,6)f32",
            ],
            "(2,2)", "(0,1)", [[12, 13], [12, 13]], id="expanded",
        ),
        pytest.param(
            [
                "Tensor.permute p 1 1 x a dims=(1,0) $input=x #a=(6,4)f32",
                "Tensor.reshape r 1 1 a v shape=(24) $input=a #v=(24)f32",
            ],
            "(2,2)", "(4,1)", [[0, 6], [1, 7]], id="copied by a reshape",
        ),
        pytest.param(
            [
                "Tensor.permute p 1 1 x a dims=(1,0) $input=x #a=(6,4)f32",
                "Tensor.reshape r 1 1 a v shape=(2,3,4) $input=a #v=(2,3,4)f32",
            ],
            "(3,3,2)", "(1,1,6)",
            [[[0, 6], [1, 7], [2, 8]], [[1, 7], [2, 8], [3, 9]], [[2, 8], [3, 9], [4, 10]]],
            id="not copied by a reshape",
        ),
        pytest.param(
            [
                "Tensor.select s 1 1 x a dim=0 index=1 $input=x #a=(6)f32",
                "torch.as_strided b 1 1 a v size=(2,3) stride=(6,2) $input=a #v=(2,3)f32",
            ],
            "(2,2)", "(9,1)", [[6, 7], [15, 16]], id="of another one",
        ),
        pytest.param(
            [
                "F.relu f 1 1 x a $input=x #a=(4,6)f32",
                "pnnx.Expression m 1 1 a b expr=neg(@0) #b=(4,6)f32",
                "Tensor.select s 1 1 b v dim=0 index=2 $input=b #v=(6)f32",
            ],
            "(2)", "(7)", [-12, -19], id="behind arithmetic",
        ),
    ],
)  # fmt: skip
def test_the_memory_behind_a_view_is_read(strided, lines, size, stride, expected):
    assert result(strided(*lines, size=size, stride=stride)) == expected


def test_a_tensor_with_its_own_storage_needs_no_sizes(strided):
    graph = strided(read="x", size="(2,2)", stride="(6,1)", dims="?,?")
    assert result(graph) == [[0, 1], [6, 7]]
    assert [operand.name for operand in graph.operator("op").inputs] == ["x"]


def test_the_base_of_a_view_is_an_input(strided):
    line = "Tensor.select s 1 1 x v dim=0 index=1 $input=x #v=(6)f32"
    graph = strided(line, size="(2)", stride="(1)")
    operator = graph.operator("op")
    assert [operand.name for operand in operator.inputs] == ["v", "x"]
    assert operator.input_names == ("input", "base")
    assert graph.operand("x").consumers == (graph.operator("s"), operator)


@pytest.mark.parametrize(
    ("lines", "stride", "dims", "said"),
    [
        pytest.param(
            ["Tensor.permute p 1 1 x v dims=(1,0) $input=x #v=(6,4)f32"],
            "(3,2)", "4,6",
            r"a view in PyTorch, of strides \(1, 6\), and whether the model made it contiguous",
            id="copied or not",
        ),
        pytest.param(
            [
                "Tensor.permute p 1 1 x a dims=(1,0) $input=x #a=(6,4)f32",
                "F.relu f 1 1 a v $input=a #v=(6,4)f32",
            ],
            "(4,1)", "4,6", "how PyTorch lays out what F.relu 'f' gives is not known",
            id="elements of a view",
        ),
        pytest.param(
            [
                "nn.Strange n 1 1 x a",
                "Tensor.select s 1 1 a v dim=0 index=1 $input=a #v=(6)f32",
            ],
            "(1,1)", "4,6", "how PyTorch lays out what nn.Strange 'n' gives is not known",
            id="of what is not known",
        ),
        pytest.param(
            ["Tensor.select s 1 1 x v dim=0 index=1 $input=x"],
            "(1,1)", "?,6", "the file does not tell the size of x", id="of any size",
        ),
        pytest.param(
            ["Tensor.select s 1 1 x v dim=0 index=1 $input=x #v=(6)f32"],
            "(18,1)", "4,6", "element 25 is beyond the input's 24", id="beyond the memory",
        ),
    ],
)  # fmt: skip
def test_uncertain_strides_are_refused(strided, lines, stride, dims, said):
    graph = strided(*lines, size="(2,2)", stride=stride, dims=dims)
    values = {"x": X, "a": X, "v": X[1] if "select" in lines[-1] else X.T}
    operator = graph.operator("op")
    with pytest.raises(InferenceError, match=said):
        operator.forward([values[operand.name] for operand in operator.inputs])


@pytest.mark.parametrize(
    ("size", "stride", "said"),
    [
        ("(2)", "(9223372036854775807)", "is beyond the input's 24"),
        ("(1000000,1000000)", "(0,0)", "the memory bound is"),
        ("(2)", "(-1)", "do not belong together"),
    ],
)
def test_absurd_steps(strided, size, stride, said):
    graph = strided(read="x", size=size, stride=stride)
    with pytest.raises(InferenceError, match=said):
        graph.forward([X])


def test_a_dimension_of_one_may_have_any_stride(strided):
    graph = strided(read="x", size="(1,2)", stride="(9223372036854775807,3)")
    assert result(graph) == [[0, 3]]


def test_elements_are_replaced_in_the_base_of_a_view(make_pair):
    param = make_pair(
        "pnnx.Input in 0 1 x #x=(4,6)f32",
        "pnnx.Input new 0 1 n #n=(2,2)f32",
        "Tensor.permute p 1 1 x v dims=(1,0) $input=x #v=(6,4)f32",
        "torch.as_strided_scatter op 2 1 v n y size=(2,2) stride=(1,6) $input=v $src=n",
        "pnnx.Output out 1 0 y",
    )
    new = np.array([[-1, -2], [-3, -4]], np.float32)
    (changed,) = engine.load(param).forward([X, new])
    expected = X.T.copy()
    expected[0, 0], expected[0, 1], expected[1, 0], expected[1, 1] = -1, -2, -3, -4
    np.testing.assert_array_equal(changed, expected)


VIEWS = {
    "windows of a row": lambda x: x[1].as_strided((3, 4), (2, x.stride(1))),
    "windows of columns": lambda x: x.t().as_strided(
        (2, 3, 4), (x.stride(1), x.stride(1), x.stride(0))
    ),
    "halves": lambda x: x[:, 3:].as_strided((4, 2), (x.stride(0), x.stride(1))),
    "diagonal": lambda x: x.unsqueeze(0).transpose(1, 2).as_strided((4,), (7,)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_against_pytorch(strided, name):
    torch = pytest.importorskip("torch")
    lines = {
        "windows of a row": "Tensor.select s 1 1 x v dim=0 index=1 $input=x #v=(6)f32",
        "windows of columns": "torch.t t 1 1 x v $input=x #v=(6,4)f32",
        "halves": "Tensor.slice s 1 1 x v dim=1 start=3 end=6 step=1 $input=x #v=(4,3)f32",
        "diagonal": "torch.unsqueeze u 1 1 x v dim=0 $input=x #v=(1,4,6)f32",
    }
    expected = VIEWS[name](torch.from_numpy(X))
    size, stride = (
        f"({','.join(map(str, numbers))})" for numbers in (expected.shape, expected.stride())
    )
    assert result(strided(lines[name], size=size, stride=stride)) == expected.tolist()
