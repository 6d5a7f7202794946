"""Graphs that the exporter writes in a peculiar way, and that can be run all the same."""

from __future__ import annotations

import numpy as np
import pytest

import engine

NAMES = [
    "as_strided_view", "grouped_mm",
    "index_1000", "index_2d", "index_mask", "index_negative", "index_slice", "index_two",
    "tensor_index_1001",
    "tied_conv2d", "tied_conv2d_both", "tied_groupnorm", "tied_gru", "tied_layernorm",
    "tied_lstm", "tied_prelu", "tied_rmsnorm", "tied_weights", "tied_weights_2",
]  # fmt: skip


@pytest.mark.shared
@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("name", NAMES)
def test_equals_pytorch(shared, name, backend):
    folder = shared / "exporter_quirks" / name
    if not folder.is_dir():
        pytest.skip("reference data has no such case")
    session = engine.Session(engine.load(folder / "model.pnnx.param"), backend=backend)
    inputs, expected = (np.load(folder / f"{what}.npz") for what in ("inputs", "expected"))
    session.feed([inputs[f"in{place}"] for place in range(len(inputs.files))])
    session.run()
    for place, result in enumerate(session.outputs()):
        np.testing.assert_allclose(result, expected[f"out{place}"], rtol=1e-5, atol=1e-6)


def test_lists_of_indices_come_as_operands(make_pair):
    """None, a table, a mask and several of them, of more elements than NumPy prints."""
    param = make_pair(
        "pnnx.Input a 0 1 0 #0=(60,40)f32",
        "pnnx.Input b 0 1 1 #1=(1500)i64",
        "pnnx.Input c 0 1 2 #2=(60,40)bool",
        "pnnx.Expression d 1 1 1 3 expr=[None,@0]",
        "Tensor.index e 2 1 0 3 4 $input=0 $expr=3",
        "pnnx.Expression f 1 1 2 5 expr=[@0]",
        "Tensor.index g 2 1 0 5 6 $input=0 $expr=5",
        "pnnx.Expression h 1 1 1 7 expr=[@0,@0]",
        "Tensor.index i 2 1 0 7 8 $input=0 $expr=7",
        "pnnx.Output j 1 0 4",
        "pnnx.Output k 1 0 6",
        "pnnx.Output l 1 0 8",
    )
    image = np.arange(2400, dtype=np.float32).reshape(60, 40)
    table = np.arange(1500) * 7 % 80 - 40  # of places from either end
    session = engine.Session(engine.load(param))
    session.feed([image, table, image % 2 == 1])
    session.run()
    columns, odd, both = session.outputs()
    assert columns[3].tolist() == [120 + place % 40 for place in table.tolist()]
    assert odd.tolist() == list(range(1, 2400, 2))
    expected = [p * 41 if p >= 0 else (60 + p) * 40 + 40 + p for p in table.tolist()]
    assert both.tolist() == expected


def test_a_tensor_of_one_constant_is_written_as_a_number(make_pair):
    """What ``x[:, [1]]`` becomes without pnnx's optimisation."""
    param = make_pair(
        "pnnx.Input a 0 1 0 #0=(3,2)f32",
        "pnnx.Expression b 0 1 1 expr=1 #1=(1)i64",
        "pnnx.Expression c 1 1 1 2 expr=[None,@0]",
        "Tensor.index d 2 1 0 2 3 $input=0 $expr=2 #3=(3,1)f32",
        "pnnx.Output e 1 0 3",
    )
    (column,) = engine.load(param).forward([np.arange(6, dtype=np.float32).reshape(3, 2)])
    assert column.tolist() == [[1], [3], [5]]


# A second matrix product that shares its weight with the first, as pnnx writes it.
SHARING = (
    "pnnx.Input x 0 1 0 #0=(2,2)f32",
    "pnnx.Attribute a 0 1 1 @data=(2,2)f32 #1=(2,2)f32",
    "nn.Linear b 2 1 1 0 2 @bias=(2)f32 @weight=(2,2)f32 #1=(2,2)f32 #0=(2,2)f32 #2=(2,2)f32",
    "pnnx.Output y 1 0 2",
)
WEIGHT = np.array([[1, 2], [3, 4]], np.float32)
BIAS = np.array([10, 20], np.float32)


def test_a_weight_in_front_of_the_input_is_left_out(make_pair):
    param = make_pair(*SHARING, weights={"a.data": WEIGHT, "b.weight": WEIGHT, "b.bias": BIAS})
    graph = engine.load(param)
    operator = graph.operator("b")
    assert [o.name for o in operator.inputs] == ["0"]
    assert [o.name for o in operator.tied_inputs] == ["1"]
    assert operator.input_names == ("",)
    assert graph.operand("1").consumers == ()
    (result,) = graph.forward([np.array([[1, 0], [1, 1]], np.float32)])
    assert result.tolist() == [[11, 23], [13, 27]]


def test_the_last_input_stays_though_it_is_the_weight_itself(make_pair):
    lines = [line.replace(" 2 1 1 0 2 ", " 2 1 1 1 2 ") for line in SHARING]
    param = make_pair(*lines, weights={"a.data": WEIGHT, "b.weight": WEIGHT, "b.bias": BIAS})
    (result,) = engine.load(param).forward([np.zeros((2, 2), np.float32)])
    assert result.tolist() == [[1 + 4 + 10, 3 + 8 + 20], [3 + 8 + 10, 9 + 16 + 20]]


def test_what_only_has_the_shape_of_a_weight_is_an_input(make_pair):
    """A learnt query; of what the weights hold only the checksums are looked at."""
    lines = [line.replace(" 2 1 1 0 2 ", " 2 1 3 1 2 ") for line in SHARING]
    lines.insert(2, "pnnx.Attribute c 0 1 3 @data=(2,2)f32 #3=(2,2)f32")
    weights = {"a.data": 2 * WEIGHT, "b.weight": WEIGHT, "b.bias": BIAS, "c.data": WEIGHT}
    graph = engine.load(make_pair(*lines, weights=weights))
    assert [o.name for o in graph.operator("b").inputs] == ["1"]
    assert [o.name for o in graph.operator("b").tied_inputs] == ["3"]
    (result,) = graph.forward([np.zeros((2, 2), np.float32)])
    assert result.tolist() == [[2 + 8 + 10, 6 + 16 + 20], [6 + 16 + 10, 18 + 32 + 20]]


@pytest.mark.parametrize("fed", ["other values", "another operator"])
def test_an_input_that_is_no_weight_is_too_many(make_pair, fed):
    lines = list(SHARING)
    if fed == "another operator":
        lines[1] = "F.relu a 1 1 0 1 $input=0 #0=(2,2)f32 #1=(2,2)f32"
    weights = {"a.data": 2 * WEIGHT, "b.weight": WEIGHT, "b.bias": BIAS}
    if fed == "another operator":
        del weights["a.data"]
    operator = engine.load(make_pair(*lines, weights=weights)).operator("b")
    assert "2 operands are more than this layer takes" in operator.reason


def test_a_structure_without_weights_goes_by_shapes(make_pair):
    param = make_pair(*SHARING)
    param.with_suffix(".bin").unlink()
    assert [o.name for o in engine.load(param).operator("b").inputs] == ["0"]


def test_an_operator_that_lost_its_input_says_so(make_pair):
    """PyTorch's result depends on a bias that the exporter dropped."""
    param = make_pair(
        "pnnx.Input x 0 1 0 #0=(1,1,2,2)f32",
        "pnnx.Attribute a 0 1 1 @data=(1,1,2,2)f32 #1=(1,1,2,2)f32",
        "nn.ConvTranspose2d b 1 1 1 2 bias=False dilation=(1,1) groups=1 in_channels=1 "
        "kernel_size=(2,2) out_channels=1 output_padding=(0,0) padding=(0,0) stride=(1,1) "
        "@weight=(1,1,2,2)f32 #1=(1,1,2,2)f32 #2=(1,1,4,4)f32",
        "pnnx.Output y 1 0 2",
        weights={"a.data": WEIGHT, "b.weight": WEIGHT},
    )
    operator = engine.load(param).operator("b")
    assert operator.reason == (
        "nn.ConvTranspose2d 'b': the export is at fault, not the model: m.pnnx.param:5: pnnx "
        "replaced its input by its weight, which another module shares; give the module a "
        "copy of the weight before the export: "
        "module.weight = torch.nn.Parameter(module.weight.detach().clone())"
    )
