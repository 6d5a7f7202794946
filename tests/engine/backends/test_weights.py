"""Weights are in memory once, in the layout of the kernel that uses them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import engine
from engine.backends import missing_packages
from engine.layers.binding import FunctionLayer

CONVOLUTION = (
    "nn.Conv2d conv 1 1 x y bias=True dilation=(1,1) groups=1 in_channels=512 "
    "kernel_size=(3,3) out_channels=512 padding=(1,1) padding_mode=zeros stride=(1,1) "
    "@bias=(512)f32 @weight=(512,512,3,3)f32"
)


@pytest.fixture
def pair(make_pair):
    """A convolution whose weight begins at an odd byte of the file, as half of them do."""
    rng = np.random.default_rng(0)
    return make_pair(
        "pnnx.Input in 0 1 x #x=(1,512,7,7)f32",
        CONVOLUTION,
        "pnnx.Output out 1 0 y",
        weights={
            "conv.weight": rng.standard_normal((512, 512, 3, 3)).astype(np.float32),
            "conv.bias": rng.standard_normal(512).astype(np.float32),
        },
    )


@pytest.mark.parametrize("backend", ["auto", "onnxruntime", "ncnn"])
def test_libraries_have_the_only_copy(pair, backend, monkeypatch):
    if missing_packages(backend) or missing_packages("onnxruntime"):
        pytest.skip("the library is not installed")
    monkeypatch.setattr("engine.backends._tuning_cache", _NothingKnown)

    def fed():
        session = engine.Session(engine.load(pair), backend=backend)
        session.feed([np.ones((1, 512, 7, 7), np.float32)])
        return session

    fed().run()  # imports what is needed
    session = fed()
    weight = session.graph.operator("conv").attributes["weight"].array
    assert not weight.flags.aligned  # or nobody would have had to copy it
    tracemalloc.start()
    try:
        session.run()
        ours = tracemalloc.get_traced_memory()[0]  # libraries' own memory is not traced
    finally:
        tracemalloc.stop()
    if backend == "auto" and session.records[1].kernel.startswith("numpy"):
        pytest.skip("NumPy is the fastest here")
    assert not session.records[1].kernel.startswith("numpy")
    assert ours < weight.nbytes / 2


class _NothingKnown:
    """TuningCache of a user who starts for the first time; nothing is remembered."""

    def get(self, _key):
        return None

    def put(self, key, backend, seconds=None):
        pass

    def expect(self, _key):
        return None


def test_released_layers_prepare_again(pair):
    operator = engine.load(pair).operator("conv")
    image = np.random.default_rng(1).standard_normal((1, 512, 7, 7)).astype(np.float32)
    before = operator.forward([image])[0]
    operator.layer.release()
    np.testing.assert_array_equal(operator.forward([image])[0], before)


def test_weights_are_released_with_operands_by_name(pair):
    """With operands by name, another object has the prepared weights."""
    layer = engine.load(pair).operator("conv").layer
    named = FunctionLayer(layer.forward, {}, ["input"], ())
    image = np.ones((1, 512, 7, 7), np.float32)
    prepared = 512 * 512 * 9 * 4
    named.forward(image)
    tracemalloc.start()
    try:
        named.release()
        named.forward(image)  # which prepares them again
        assert tracemalloc.get_traced_memory()[0] > prepared
        named.release()
        assert tracemalloc.get_traced_memory()[0] < prepared / 2
    finally:
        tracemalloc.stop()
