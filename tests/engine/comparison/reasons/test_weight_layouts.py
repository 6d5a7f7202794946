"""Weights in another order, of which few channels are made."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.comparison.reasons.case import make_case
from engine.comparison.reasons.weight_layouts import layouts_of

SHAPE = (6, 4, 3, 2)


@pytest.fixture
def case(make_pair):
    """A convolution whose weight is numbered."""
    weight = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,4,5,5)f32",
        "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=4 "
        "kernel_size=(3,2) out_channels=6 padding=(0,0) padding_mode=zeros stride=(1,1) "
        f"@weight=({','.join(map(str, SHAPE))})f32 #0=(1,4,5,5)f32 #1=(1,6,3,4)f32",
        "pnnx.Output out 1 0 1",
        weights={"conv.weight": weight},
    )
    x = np.ones((1, 4, 5, 5), np.float32)
    return make_case(engine.load(path).operator("conv"), [x], np.zeros(1, np.float32))


def test_channels_of_a_weight_that_is_written_in_another_order_are_those_of_all(case):
    weight = case.weights["weight"]
    found = {
        words.split()[-1]: each
        for words, each in layouts_of(case, "weight", weight)
        if words.startswith("written as")
    }
    assert len(found) == 23
    for letters, other in found.items():
        whole = weight.transpose(["OIHW".index(each) for each in letters]).reshape(SHAPE)
        np.testing.assert_array_equal(other.read(), whole)
        for axis, few in ((0, [1, 2, 5]), (1, [0, 3])):
            chosen = np.take(other, np.array(few), axis)
            np.testing.assert_array_equal(chosen, whole.take(few, axis))
