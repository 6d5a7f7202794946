"""Graphs that the exporter writes in a peculiar way, and that can be run all the same."""

from __future__ import annotations

import numpy as np
import pytest

import engine

NAMES = [
    "as_strided_view",
    "index_1000", "index_2d", "index_mask", "index_negative", "index_slice", "index_two",
    "tensor_index_1001",
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
