"""Alternatives of an operator before a large layer, of which a few channels are tried first."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.comparison.reasons import Tail, explain

RNG = np.random.default_rng(5)
CHANNELS, SIDE = 64, 12  # 64 · 64 · 9 · 144 multiply-accumulates


@pytest.fixture
def network(make_pair):
    """A ReLU before a convolution that is large."""
    weight = RNG.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32)
    size = f"1,{CHANNELS},{SIDE},{SIDE}"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0=({size})f32",
        f"F.relu act 1 1 0 1 $input=0 #0=({size})f32 #1=({size})f32",
        f"nn.Conv2d conv 1 1 1 2 bias=False dilation=(1,1) groups=1 in_channels={CHANNELS} "
        f"kernel_size=(3,3) out_channels={CHANNELS} padding=(1,1) padding_mode=zeros "
        f"stride=(1,1) @weight=({CHANNELS},{CHANNELS},3,3)f32 #1=({size})f32 #2=({size})f32",
        "pnnx.Output out 1 0 2",
        weights={"conv.weight": weight},
    )
    return engine.load(path)


def softsign(x):
    return x / (1 + np.abs(x))


@pytest.mark.parametrize("shown_as", [None, (CHANNELS * SIDE, SIDE)])
def test_a_function_before_a_large_layer_is_named(network, monkeypatch, shown_as):
    """The whole layer is computed for few of some forty functions, unless it is reshaped."""
    act, conv = network.operator("act"), network.operator("conv")
    tail = Tail([act.outputs[0]], [conv], conv.outputs[0], {}, shown_as)
    x = RNG.standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32)
    expected = tail(softsign(x))
    whole = []
    compute = Tail.__call__
    monkeypatch.setattr(
        Tail, "__call__", lambda self, value: whole.append(self) or compute(self, value)
    )
    first = explain(act, [x], expected, tail=tail)[0]
    assert first.kind == "activation_missing"
    assert "softsign" in first.text
    assert first.explains > 0.9999
    computed = sum(each is tail for each in whole)
    assert (computed < 20) is (shown_as is None)
