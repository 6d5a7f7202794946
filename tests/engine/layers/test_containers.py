"""Constants, tuples and lists."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers import OperatorCall, build_layer

A, B = np.ones(2), np.zeros((3, 1))


def unpack(value, outputs, operator_type="prim::TupleUnpack"):
    call = OperatorCall("u", operator_type, {}, input_names=("",), output_count=outputs)
    return build_layer(call).forward(value)


def test_attribute_gives_the_weight_itself():
    data = np.arange(3.0)
    layer = build_layer(OperatorCall("c", "pnnx.Attribute", {}, {"data": data}))
    assert layer.forward() is data


@pytest.mark.parametrize("value", [None, 3, 1.5, True, "mean", (1, 2)])
def test_constants(run, value):
    assert run("prim::Constant", value=value) == value


def test_attribute_of_any_name(run):
    np.testing.assert_array_equal(run("pnnx.Attribute", weights={"weight.x": A}), A)


def test_attribute_without_data():
    with pytest.raises(ParameterError, match="'c': it has no attribute") as caught:
        build_layer(OperatorCall("c", "pnnx.Attribute", {}))
    assert caught.value.parameter == "data"


@pytest.mark.parametrize("operator_type", ["prim::TupleConstruct", "prim::ListConstruct"])
@pytest.mark.parametrize("members", [(), (A,), (A, A), (A, (B, 1)), (1, 2, None)], ids=len)
def test_construct(operator_type, members):
    call = OperatorCall("t", operator_type, {}, input_names=("",) * len(members))
    assert build_layer(call).forward(*members) == members


def test_the_values_of_a_dictionary_are_packed():
    call = OperatorCall("d", "prim::DictConstruct", {}, input_names=("",) * 4)
    assert build_layer(call).forward("b", A, "a", (B, 1)) == (A, (B, 1))
    with pytest.raises(LayerError, match="has no value"):
        build_layer(call).forward("b", A, "a")


@pytest.mark.parametrize("operator_type", ["prim::TupleUnpack", "prim::ListUnpack"])
@pytest.mark.parametrize("members", [(A,), (A, B), (A, (B, B), 3)], ids=len)
def test_unpack(operator_type, members):
    assert unpack(members, len(members), operator_type) == members


def test_unpack_of_a_tensor_goes_along_its_first_dimension():
    rows = unpack(np.arange(6).reshape(3, 2), 3)
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("outputs", [1, 3])
def test_unpack_of_another_count(outputs):
    with pytest.raises(
        LayerError, match=f"input has 2 members, the operator {outputs} outputs"
    ):
        unpack((A, B), outputs)


@pytest.mark.parametrize("value", [3, None, "word", np.array(1.0)])
def test_unpack_of_what_has_no_members(value):
    with pytest.raises(LayerError, match="cannot be unpacked"):
        unpack(value, 1)


@pytest.mark.parametrize("operator_type", ["prim::TupleIndex", "aten::__getitem__"])
@pytest.mark.parametrize(("index", "expected"), [(0, A), (-1, 3), (np.array(1), B)])
def test_member(run, operator_type, index, expected):
    assert np.array_equal(run(operator_type, (A, B, 3), index), expected)


@pytest.mark.parametrize(
    ("value", "index", "sentence"),
    [
        ((1, 2), 2, "there is no member 2 among 2"),
        ((1, 2), -3, "there is no member -3 among 2"),
        (5, 0, "cannot be unpacked"),
    ],
)
def test_no_member(run, value, index, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("prim::TupleIndex", value, index)
