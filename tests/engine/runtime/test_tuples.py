"""Results that stand in one operand until they are taken apart."""

from __future__ import annotations

import numpy as np

import engine

X = np.array([[3.0, 1.0], [2.0, 5.0]], np.float32)


def run(path):
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([X])
    session.run()
    return session


def test_a_tuple_that_is_unpacked(make_pair):
    session = run(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(2,2)f32",
            "torch.max max 1 1 0 1 dim=1 keepdim=False",
            "prim::TupleUnpack parts 1 2 1 2 3 #2=(2)f32 #3=(2)i64",
            "prim::TupleConstruct all 2 1 3 2 4",
            "pnnx.Output out 1 0 4",
        )
    )
    indices, values = session.outputs()
    np.testing.assert_array_equal(indices, [0, 1])
    np.testing.assert_array_equal(values, [3, 5])
    assert len(session.value("1")) == 2


def test_a_result_that_is_not_unpacked(make_pair):
    session = run(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(2,2)f32",
            "torch.max max 1 1 0 1 dim=1 keepdim=False #1=(2)f32",
            "nn.ReLU relu 1 1 1 2 #2=(2)f32",
            "pnnx.Output out 1 0 2",
        )
    )
    np.testing.assert_array_equal(session.outputs()[0], [3, 5])
