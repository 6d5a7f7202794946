"""What a result owes to the shape that the file annotates."""

from __future__ import annotations

import numpy as np
import pytest

import engine


@pytest.mark.parametrize(
    ("annotation", "shape"), [("", ()), (" #1=(1,1)f32", (1, 1)), (" #1=(?,1)f32", ())]
)
def test_dimensions_that_a_full_reduction_keeps(make_pair, annotation, shape):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(2,2)f32",
        f"torch.max max 1 1 0 1 $input=0{annotation}",
        "pnnx.Output out 1 0 1",
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([np.array([[3.0, 1.0], [2.0, 5.0]], np.float32)])
    session.run()
    (largest,) = session.outputs()
    assert largest.shape == shape
    assert largest.item() == 5
