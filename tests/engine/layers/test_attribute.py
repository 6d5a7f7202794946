"""A constant of the model as an operand."""

from __future__ import annotations

import numpy as np
import pytest

import engine

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("count", [8, 7])
def test_constant(make_pair, count):
    """Wherever its bytes begin in the file: names of two lengths shift them by one."""
    name = "t" * count
    pair = make_pair(
        "pnnx.Input in 0 1 0",
        f"pnnx.Attribute {name} 0 1 1 @data=(3,4)f32",
        "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1)",
        "pnnx.Output out 1 0 2",
        weights={f"{name}.data": TABLE},
    )
    graph = engine.load(pair)
    weight = graph.operator(name).attributes["data"].array
    session = engine.Session(graph, backend="numpy")
    session.feed([np.ones((3, 4), np.float32)])
    session.run()
    value = session.value("1")
    np.testing.assert_array_equal(value, TABLE, strict=True)
    np.testing.assert_array_equal(session.value("2"), TABLE + 1, strict=True)
    assert value.flags.aligned
    assert not value.flags.writeable
    assert np.may_share_memory(value, weight) == weight.flags.aligned
    session.restart()
    session.run()
    assert session.value("1") is value
