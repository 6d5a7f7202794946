"""What an operator's note says of its arguments, beside the values of the model."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.layers.notes import note
from kuiper_studio.item_models import ParametersModel, explained_arguments


@pytest.fixture
def explain(make_pair):
    """A function that gives names and values of the explained arguments of an operator."""

    def explain(line, inputs=1, weights=None):
        feeds = [f"pnnx.Input in{i} 0 1 {i} #{i}=(1,4,8,8)f32" for i in range(inputs)]
        graph = engine.load(make_pair(*feeds, line, weights=weights))
        operator = graph.operators[-1]
        explained = explained_arguments(operator, note(operator.type))
        return {item.note.name: (item.name, item.value) for item in explained}

    return explain


def test_parameters_attributes_and_the_operand(explain):
    found = explain(
        "nn.Conv2d c 1 1 0 9 kernel_size=(3,3) stride=(2,2) @weight=(2,4,3,3)f32",
        weights={"c.weight": np.zeros((2, 4, 3, 3), np.float32)},
    )
    assert found["kernel_size"] == ("kernel_size", "(3, 3)")
    assert found["stride"] == ("stride", "(2, 2)")
    assert found["weight"] == ("weight", "@weight 2×4×3×3")
    assert found["bias"] == ("bias", "")
    assert found["groups"] == ("groups", "")
    assert found["input"] == ("input", "operand 0")


def test_dots_in_the_name_of_an_attribute(explain):
    found = explain(
        "nn.MultiheadAttention a 1 1 0 9 num_heads=1 @out_proj.weight=(4,4)f32",
        weights={"a.out_proj.weight": np.zeros((4, 4), np.float32)},
    )
    assert found["out_proj_weight"] == ("out_proj.weight", "@out_proj.weight 4×4")


def test_operands_by_name_and_by_place(explain):
    found = explain("torch.where w 3 1 2 0 1 9 $input=0", inputs=3)
    assert found["input"] == ("input", "operand 0")
    assert found["condition"] == ("condition", "operand 2")
    assert found["other"] == ("other", "operand 1")


def test_a_parameter_that_is_an_operand(explain):
    found = explain("torch.sum s 2 1 0 1 9 $input=0 $dim=1 keepdim=True", inputs=2)
    assert found["dim"] == ("dim", "operand 1")
    assert found["keepdim"] == ("keepdim", "True")


def test_one_argument_takes_all_operands(explain):
    assert explain("torch.cat c 3 1 2 0 1 9 dim=1", inputs=3) == {
        "tensors": ("tensors", "operands 2, 0, 1"),
        "dim": ("dim", "1"),
    }


def test_arguments_by_number(explain):
    found = explain(
        "pnnx.custom_op.torchvision.roi_align r 2 1 0 1 9 arg_2=0.5 arg_3=7 $arg_0=0 $arg_1=1",
        inputs=2,
    )
    assert found["input"] == ("input", "operand 0")
    assert found["rois"] == ("rois", "operand 1")
    assert found["spatial_scale"] == ("arg_2", "0.5")
    assert found["pooled_height"] == ("arg_3", "7")


def test_an_unknown_type_has_none(explain):
    assert explain("my.Strange s 1 1 0 9 size=3") == {}


def test_tool_tips_say_what_a_parameter_means(make_pair):
    graph = engine.load(
        make_pair(
            "pnnx.Input in 0 1 0",
            "nn.MaxPool2d p 1 1 0 1 kernel_size=(2,2) ceil_mode=True",
            "my.Strange s 1 1 1 2 size=3",
        )
    )
    model = ParametersModel()
    model.show_operator(graph.operator("p"))
    tips = [model.index(row, 0).data(3) for row in range(model.rowCount())]  # ToolTipRole
    (tip,) = [tip for tip in tips if tip.startswith("ceil_mode")]
    assert tip == ("ceil_mode = True\nbool\nWhether a last window may extend beyond the image.")
    model.show_operator(graph.operator("s"))
    assert model.index(0, 0).data(3) == "size = 3\nint"
