"""ONNX's own operators against the cases that its package brings for every one of them."""

from __future__ import annotations

import warnings
from collections import defaultdict

import numpy as np
import onnx
import pytest

from engine.layers import OperatorCall, Outputs, build_layer, registered_types, registration

pytestmark = pytest.mark.slow

# Types of ONNX's that a file of pnnx's holds under their own name
TYPES = [
    name
    for name in registered_types()
    if name.isalnum() and "onnx" in registration(name).target.__module__
]
# What is left out, by a part of the case's name
LEFT_OUT = {
    "Attention": "_bf16",
    "BatchNormalization": "_training_",  # its statistics are rounded otherwise
    "Cast": "BFLOAT16 FLOAT8 FLOAT4 INT4 UINT4 STRING E8M0 INT2 e8m0",
    "CastLike": "BFLOAT16 FLOAT8 FLOAT4 INT4 UINT4 STRING E8M0 INT2 e8m0",
    "BitCast": "bool uint4 int4 bfloat float8 2d",
    "Clip": "default_max default_int8_max",  # which end is left out cannot be told
    "ConstantOfShape": "int_shape_zero int_zeros",  # int32, which pnnx does not write
    "DequantizeLinear": "e4m3 e5m2 int4 float4 int2",
    "Identity": "sequence opt",
    "QuantizeLinear": "e4m3 e5m2 int4 float4 int2",
    "RoiAlign": "mode_max",  # not computed
}


@pytest.fixture(scope="module")
def cases():
    """Cases of a single node, by type."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    found = defaultdict(list)
    for case in collected:
        nodes = case.model.graph.node
        if len(nodes) == 1 and not nodes[0].domain and case.data_sets:
            found[nodes[0].op_type].append(case)
    return found


def plain(attribute):
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value).reshape(-1)[0].item()
    if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
        return tuple(v.decode() if isinstance(v, bytes) else v for v in value)
    return value


def results_of(node, operands, expected):
    """Compute a node as pnnx writes it: without the operands and outputs that it leaves out."""
    call = OperatorCall(
        "node",
        node.op_type,
        {a.name: plain(a) for a in node.attribute},
        input_names=("",) * len(operands),
        output_count=len(expected),
        output_shapes=tuple(np.shape(array) for array in expected),
    )
    with np.errstate(all="ignore"):
        result = build_layer(call).forward(*operands)
    return list(result) if isinstance(result, Outputs) else [result]


def is_plain(values):
    return all(
        np.isscalar(v) or (isinstance(v, np.ndarray) and v.dtype.kind in "fiubc")
        for v in values
    )


@pytest.mark.parametrize("operator_type", TYPES)
def test_cases(cases, operator_type):
    words = LEFT_OUT.get(operator_type, "").split()
    compared = 0
    for case in cases[operator_type]:
        if any(word in case.name for word in words):
            continue
        for inputs, outputs in case.data_sets:
            if not is_plain([*inputs, *outputs]):
                continue
            results = results_of(
                case.model.graph.node[0], list(map(np.asarray, inputs)), outputs
            )
            for found, wanted in zip(results, outputs, strict=False):
                assert np.shape(found) == np.shape(wanted), case.name
                assert np.asarray(found).dtype == np.asarray(wanted).dtype, case.name
                np.testing.assert_allclose(
                    found, wanted, rtol=max(case.rtol, 1e-3), atol=1e-3, err_msg=case.name
                )
            compared += 1
    if not compared:
        pytest.skip("the package has no case of plain tensors")
