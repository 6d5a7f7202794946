"""Graphs that pnnx made from ONNX: sizes and constants are tensors there."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.runtime.layer_source import LayerSource


def run(make_pair, *lines, inputs):
    session = engine.Session(engine.load(make_pair(*lines)), backend="numpy")
    session.feed(inputs)
    session.run()
    return session


IMAGE = np.arange(2 * 3 * 5 * 7, dtype=np.float32).reshape(2, 3, 5, 7)
INPUT = "pnnx.Input in0 0 1 0 #0=(?,3,?,?)f32"


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (("in0", "in1", "out0"), True),
        (("pnnx_input_0", "pnnx_input_1", "pnnx_output_0"), False),
        (("in0", "in1", "out"), False),
        (("in0", "x", "out0"), False),
    ],
)
def test_names_of_inputs_and_outputs_identify_onnx(make_pair, ends, expected):
    graph = engine.load(
        make_pair(
            f"pnnx.Input {ends[0]} 0 1 0",
            f"pnnx.Input {ends[1]} 0 1 1",
            "torch.add add 2 1 0 1 2",
            f"pnnx.Output {ends[2]} 1 0 2",
        )
    )
    assert LayerSource(graph.file, graph.param_path, None).from_onnx is expected


@pytest.mark.parametrize(
    ("source", "quotient"), [("in0 out0", 2), ("pnnx_input_0 pnnx_output_0", 2.5)]
)
def test_a_quotient_of_integers_is_one_in_onnx(make_pair, source, quotient):
    begin, end = source.split()
    session = run(
        make_pair,
        f"pnnx.Input {begin} 0 1 0",
        "pnnx.Expression half 1 1 0 1 expr=div(size(@0,2),2)",
        f"pnnx.Output {end} 1 0 1",
        inputs=[IMAGE],
    )
    assert session.value("1") == quotient


def test_quotients_are_rounded_towards_zero(make_pair):
    session = run(
        make_pair,
        "pnnx.Input in0 0 1 0 #0=(4)i32",
        "pnnx.Expression y 0 1 1 expr=[2,2,-2,-2]",
        "pnnx.Expression q 2 1 0 1 2 expr=div(@0,@1) #0=(4)i32 #2=(4)i32",
        "pnnx.Expression p 1 1 0 3 expr=pow(@0,0.5) #0=(4)i32 #3=(4)i32",
        "aten::div d 2 1 0 1 4 #0=(4)i32 #4=(4)i32",
        "aten::max m 2 1 0 1 5 #0=(4)i32 #5=(4)i32",
        "pnnx.Output out0 1 0 2",
        "pnnx.Output out1 1 0 3",
        inputs=[np.array([7, -7, 9, -9], np.int32)],
    )
    quotients, roots = session.outputs()
    np.testing.assert_array_equal(quotients, np.array([3, -3, -4, 4], np.int32), strict=True)
    np.testing.assert_array_equal(session.value("4"), quotients, strict=True)
    np.testing.assert_array_equal(session.value("5"), np.array([7, 2, 9, -2], np.int32))
    assert roots.dtype == np.int32
    assert roots[[0, 2]].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("x", "stated", "expected"),
    [
        (IMAGE, 4, [2, 3, 5, 7]),
        (np.float32([4]), 1, [1]),
        (np.array([8, 9]), 1, [2]),
        (np.array([8, 9]), 2, [8, 9]),
    ],
)
def test_an_operand_alone_may_represent_its_sizes(make_pair, x, stated, expected):
    session = run(
        make_pair,
        "pnnx.Input in0 0 1 0",
        f"pnnx.Expression s 1 1 0 1 expr=@0 #1=({stated})i64",
        "pnnx.Output out0 1 0 1",
        inputs=[x],
    )
    assert session.outputs()[0].tolist() == expected
    assert session.graph.export_faults == ()


def test_a_list_of_sizes_may_have_those_of_a_tensor(make_pair):
    """As behind a Concat of the sizes of one tensor, and of a part of those of another."""
    session = run(
        make_pair,
        "pnnx.Input in0 0 1 0 #0=(?,3,?,?)f32",
        "pnnx.Expression s 1 1 0 1 expr=@0 #0=(?,3,?,?)f32 #1=(4)i64",
        "Tensor.slice p 1 1 1 2 dim=0 end=2 start=0 step=1 $input=1 #1=(4)i64 #2=(2)i64",
        "pnnx.Expression l 1 1 2 3 expr=[@0,-1] #2=(2)i64",
        "Tensor.reshape r 2 1 0 3 4 $input=0 $shape=3 #0=(?,3,?,?)f32 #4=(?,3,?)f32",
        "pnnx.Expression m 1 1 0 5 expr=[@0] #0=(?,3,?,?)f32",
        "Tensor.reshape b 2 1 4 5 6 $input=4 $shape=5 #4=(?,3,?)f32 #6=(?,3,?,?)f32",
        "pnnx.Output out0 1 0 4",
        "pnnx.Output out1 1 0 6",
        inputs=[IMAGE],
    )
    flat, again = session.outputs()
    np.testing.assert_array_equal(flat, IMAGE.reshape(2, 3, 35))
    np.testing.assert_array_equal(again, IMAGE)


def test_sizes_are_tensors(make_pair):
    session = run(
        make_pair,
        INPUT,
        "pnnx.Expression h 1 1 0 1 expr=size(@0,2) #1=(1)i64",
        "torch.squeeze s 1 1 1 2 $input=1 #1=(1)i64",
        "pnnx.Expression w 1 1 0 3 expr=size(@0,3)",
        "torch.unsqueeze u 1 1 3 4 dim=0 $input=3 #4=(1)i64",
        "pnnx.Expression all 3 1 0 2 4 5 expr=[size(@0,0),3,mul(@1,@2)]",
        "Tensor.reshape r 2 1 0 5 6 $input=0 $shape=5 #6=(?,3,?)f32",
        "pnnx.Output out0 1 0 6",
        inputs=[IMAGE],
    )
    assert session.value("2").shape == ()
    np.testing.assert_array_equal(session.value("4"), np.array([7], np.int64), strict=True)
    np.testing.assert_array_equal(session.value("5"), [2, 3, 35])
    np.testing.assert_array_equal(session.outputs()[0], IMAGE.reshape(2, 3, 35))


def test_other_lists_stay_unchanged(make_pair):
    session = run(
        make_pair,
        INPUT,
        "pnnx.Expression i 0 1 1 expr=[None,[1,0]]",
        "Tensor.index x 2 1 0 1 2 #2=(?,2,?,?)f32",
        "pnnx.Output out0 1 0 2",
        inputs=[IMAGE],
    )
    np.testing.assert_array_equal(session.outputs()[0], IMAGE[:, [1, 0]])


def test_a_tensor_of_one_number_has_its_dtype_from_the_annotation(make_pair):
    session = run(
        make_pair,
        "pnnx.Input in0 0 1 0 #0=(2)i64",
        "torch.zeros z 1 1 0 1 dtype=None $size=0 #0=(2)i64 #1=(?,?)i32",
        "pnnx.Output out0 1 0 1",
        inputs=[np.array([2, 3])],
    )
    zeros = session.outputs()[0]
    np.testing.assert_array_equal(zeros, np.zeros((2, 3), np.int32), strict=True)


def test_tensors_stand_for_their_sizes(make_pair):
    """pnnx drops ``Shape`` before what works on a list of sizes."""
    session = run(
        make_pair,
        INPUT,
        "Slice two 1 1 0 1 starts=2 ends=4 #0=(?,3,?,?)f32 #1=(2)i64",
        "torch.cat four 2 1 0 1 2 dim=0 #0=(?,3,?,?)f32 #1=(2)i64 #2=(4)i64",
        "pnnx.Expression one 0 1 3 expr=1",
        "torch.cat more 3 1 3 3 1 4 dim=0 #1=(2)i64 #4=(4)i64",
        "Tensor.reshape_as flat 2 1 0 0 5 $input=0 $other=0 #5=(?,3,?,?)f32",
        "Tensor.reshape same 2 1 5 0 6 $input=5 $shape=0 #6=(?,3,?,?)f32",
        "pnnx.Output out0 1 0 2",
        "pnnx.Output out1 1 0 4",
        "pnnx.Output out2 1 0 6",
        inputs=[IMAGE],
    )
    four, more, same = session.outputs()
    assert session.value("1").tolist() == [5, 7]
    assert four.tolist() == [2, 3, 5, 7]
    assert more.tolist() == [1, 1, 5, 7]
    np.testing.assert_array_equal(same, IMAGE)


def test_vectors_stand_for_their_sizes_if_they_do_not_fit(make_pair):
    session = run(
        make_pair,
        "pnnx.Input in0 0 1 0 #0=(?)f32",
        "pnnx.Input in1 0 1 1 #1=(?)f32",
        "torch.cat sizes 2 1 0 1 2 dim=0 #0=(?)f32 #1=(?)f32 #2=(2)i64",
        "torch.cat joined 2 1 0 1 3 dim=0 #0=(?)f32 #1=(?)f32 #3=(?)f32",
        "pnnx.Output out0 1 0 2",
        "pnnx.Output out1 1 0 3",
        inputs=[np.zeros(3, np.float32), np.zeros(5, np.float32)],
    )
    sizes, joined = session.outputs()
    assert sizes.tolist() == [3, 5]
    assert joined.shape == (8,)


@pytest.mark.parametrize(
    ("producer", "annotation"),
    [("expr=[2,3,10,14]", "(4)i64"), ("expr=[10,14]", "(2)i64")],
    ids=["all axes", "spatial axes"],
)
def test_sizes_of_an_image_that_is_resized(make_pair, producer, annotation):
    session = run(
        make_pair,
        INPUT,
        f"pnnx.Expression size 0 1 1 {producer} #1={annotation}",
        "F.interpolate up 2 1 0 1 2 mode=nearest $input=0 $size=1 #2=(?,3,?,?)f32",
        "pnnx.Output out0 1 0 2",
        inputs=[IMAGE],
    )
    np.testing.assert_array_equal(
        session.outputs()[0], IMAGE.repeat(2, 2).repeat(2, 3), strict=True
    )


def test_scales_that_are_called_sizes(make_pair):
    session = run(
        make_pair,
        INPUT,
        "pnnx.Input in1 0 1 1 #1=(4)f32",
        "F.interpolate up 2 1 0 1 2 mode=nearest $input=0 $size=1 #2=(?,3,?,?)f32",
        "pnnx.Output out0 1 0 2",
        inputs=[IMAGE, np.array([1, 1, 1, 2], np.float32)],
    )
    np.testing.assert_array_equal(session.outputs()[0], IMAGE.repeat(2, 3), strict=True)


@pytest.mark.parametrize(
    ("operator", "shape"),
    [
        ("Tensor.select one 1 1 0 1 dim=1 index=2 $input=0", "(?,?,?)"),
        ("Tensor.select one 1 1 0 1 dim=1 index=2 $input=0", "(?,1,?,?)"),
        ("Tensor.select one 1 1 0 1 dim=1 index=2 $input=0", "(?,1,1,?,?)"),
        ("torch.unbind one 1 1 9 1 dim=1 $input=9", "(?,1,?,?)"),
    ],
)
def test_an_index_may_have_dimensions(make_pair, operator, shape):
    session = run(
        make_pair,
        INPUT,
        "Tensor.slice last 1 1 0 9 dim=1 start=2 end=3 step=1 $input=0 #9=(?,1,?,?)f32",
        f"{operator} #1={shape}f32",
        "pnnx.Output out0 1 0 1",
        inputs=[IMAGE],
    )
    ones = shape.count("1")
    np.testing.assert_array_equal(
        session.outputs()[0], IMAGE[:, 2].reshape(2, *(1,) * ones, 5, 7), strict=True
    )
