"""What the log says of a model that was opened."""

from __future__ import annotations

import numpy as np

import engine
from kuiper_studio.session.opening_log import describe_opened, describe_unsupported

NET = (
    "pnnx.Input in 0 1 0 #0=(2,3)f32",
    "nn.Linear fc 1 1 0 1 bias=False in_features=3 out_features=4 @weight=(4,3)f32",
    "strange.One a 1 1 1 2",
    "strange.One b 1 1 2 3",
    "strange.Two c 1 1 3 4",
    "pnnx.Output out 1 0 4",
)


def test_a_pair_and_a_structure(make_pair):
    pair = make_pair(*NET, weights={"fc.weight": np.zeros((4, 3), np.float32)})
    text = describe_opened(engine.load(pair), 0.25)
    assert text.startswith("opened m.pnnx.param and m.pnnx.bin: 6 operators in ")
    pair.with_suffix(".bin").unlink()
    text = describe_opened(engine.load(pair), 0.25)
    assert text.startswith("opened m.pnnx.param, structure only: 6 operators in ")


def test_operators_that_cannot_run_are_told_by_reason(make_pair):
    pair = make_pair(*NET, weights={"fc.weight": np.zeros((4, 3), np.float32)})
    assert describe_unsupported(engine.load(pair)) == [
        "2 operators: no layer for operator type strange.One",
        "'c': no layer for operator type strange.Two",
    ]
