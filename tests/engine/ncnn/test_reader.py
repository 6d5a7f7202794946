"""The text of ncnn's ``.param``."""

from __future__ import annotations

import pytest
from ncnn_files import write_pair

import engine
from engine.errors import ModelFileError
from engine.ncnn.reader import is_ncnn


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Convolution c 1 1 a b 0=64 1=3", True),
        ("Tensor.reshape r 1 1 a b 0=1", True),
        ("Crop c 1 1 a b -23309=1,0", True),
        ("Input in0 0 1 a", True),
        ("pnnx.Expression e 1 1 a b 3=1", True),
        ("nn.ReLU r 1 1 0 1 #0=(1,3)f32", False),
        ("nn.Linear l 1 1 0 1 bias=True", False),
        ("nn.Linear l 1 1 0 1 @weight=(2,2)f32", False),
        ("F.relu r 1 1 0 1 $input=0", False),
        ("pnnx.Input x 0 1 0", False),
    ],
)
def test_syntax_distinguishes_the_formats(line, expected):
    assert is_ncnn(f"7767517\n1 1\n{line}\n".encode()) is expected


def test_parameters_have_their_names_and_types(tmp_path):
    path = write_pair(
        tmp_path,
        [
            "Input in0 0 1 a 0=8 1=6 2=3",
            "Pooling pool 1 1 a b 0=1 1=2 11=3 5=1",
            "Crop crop 1 1 b c -23309=2,0,1 10=2,3 -23311=2,1,2",
            'Reshape reshape 1 1 c d 6="*(0w,2),-1" 31=4',
            "HardSigmoid act 1 1 d out 0=1.666667e-01 1=0.5 17=9",
        ],
    )
    graph = engine.load(path)
    assert [op.type for op in graph.operators] == [
        "ncnn.Input", "ncnn.Pooling", "ncnn.Crop", "ncnn.Reshape", "ncnn.HardSigmoid",
        "ncnn.Output",
    ]  # fmt: skip
    assert graph.operator("pool").params == {
        "pooling_type": 1, "kernel_w": 2, "kernel_h": 3, "pad_mode": 1,
    }  # fmt: skip
    assert graph.operator("crop").params == {
        "starts": (0, 1), "ends": (2, 3), "axes": (1, 2),
    }  # fmt: skip
    assert graph.operator("reshape").params == {"shape_expr": "*(0w,2),-1", "featmask": 4}
    assert graph.operator("act").params == {"alpha": 0.1666667, "beta": 0.5, "17": 9}
    assert graph.operand("a").shape == (3, 6, 8)
    assert [operand.name for operand in graph.output_operands] == ["out"]


def test_shape_hints_are_read_and_names_are_made_unique(tmp_path):
    path = write_pair(
        tmp_path,
        [
            "Input in0 0 1 a -23330=4,3,8,6,3",
            "Split s 1 2 a b c -23330=8,3,8,6,3,1,7,1,1",
            "ReLU r 1 1 b d",
            "ReLU r 1 1 c e",
        ],
    )
    graph = engine.load(path)
    assert graph.operand("a").shape == graph.operand("b").shape == (3, 6, 8)
    assert graph.operand("c").shape == (7,)
    assert [op.name for op in graph.operators if op.type == "ncnn.ReLU"] == ["r", "r.2"]
    assert graph.input_operands[0].name == "a"


def test_an_unknown_type_stays_unknown(tmp_path):
    path = write_pair(
        tmp_path, ["Input in0 0 1 a 0=4", "Tensor.reshape t 1 1 a b", "ReLU r 1 1 a c"]
    )
    graph = engine.load(path)
    assert [op.name for op in graph.unsupported] == ["t"]
    session = engine.Session(graph, backend="numpy")
    session.feed([[-1.0, 0.0, 2.0, 3.0]])
    session.run()
    assert session.value("c").tolist() == [0, 0, 2, 3]
    assert not session.has_value("b")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ReLU r 1 1 nowhere b", "no layer above produces blob 'nowhere'"),
        ("ReLU r 1 1 a a", "produces blob 'a' already"),
        ("ReLU r 1 1 a", "names 1 blobs"),
        ("ReLU r", "counts of its inputs"),
        ("ReLU r -1 1 a b", "not a number of blobs"),
        ("ReLU r 1 1 a b 0=1.2345678901234567", "at most 15 characters"),
        ("ReLU r 1 1 a b 0=99999999999", "does not fit in 32 bits"),
        ("ReLU r 1 1 a b 0=1.2.3", "is not a number"),
        ("ReLU r 1 1 a b 32=1", "no parameter of id 32"),
        ("ReLU r 1 1 a b -5=1", "no parameter of id -5"),
        ("ReLU r 1 1 a b 0=1 0=2", "appears twice"),
        ("ReLU r 1 1 a b slope=1", "is not of the form id=value"),
        ("Crop r 1 1 a b -23309=9999999,0", "a length and as many elements"),
        ("Crop r 1 1 a b -23309=-1", "a length and as many elements"),
        (f'Reshape r 1 1 a b 6="{"1" * 300}"', "not a text that ncnn reads"),
    ],
)
def test_a_wrong_line_is_reported(tmp_path, line, said):
    path = write_pair(tmp_path, ["Input in0 0 1 a 0=4", line], blobs=2)
    with pytest.raises(ModelFileError, match=said) as caught:
        engine.load(path)
    assert caught.value.line == 4


@pytest.mark.parametrize(
    ("header", "said"), [("3 9", "counts 3 layers"), ("2 1", "counts 2 layers|counts 1 blobs"),
                         ("two 2", "expected the counts"), ("", "expected the counts")],
)  # fmt: skip
def test_a_wrong_header_is_reported(tmp_path, header, said):
    path = tmp_path / "m.param"
    path.write_text(f"7767517\n{header}\nInput in0 0 1 a 0=4\nReLU r 1 1 a b 0=0.5\n")
    with pytest.raises(ModelFileError, match=said):
        engine.load(path)
