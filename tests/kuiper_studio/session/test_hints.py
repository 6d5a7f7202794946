"""Sentences about the cause of a failure, as the banner shows them below its reason."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import InferenceError
from kuiper_studio.session.hints import hint_for


def test_contradiction_of_the_export_does_not_repeat_the_reason(make_pair):
    pair = make_pair(
        "pnnx.Input in 0 1 x #x=(1,3,8,8)f32",
        "Tensor.view v 1 1 x y shape=(1,100) #x=(1,3,8,8)f32 #y=(1,100)f32",
        "pnnx.Output out 1 0 y",
    )
    graph = engine.load(pair)
    session = engine.Session(graph)
    session.feed([np.zeros((1, 3, 8, 8), "f4")])
    with pytest.raises(InferenceError) as caught:
        session.run()
    assert "192 elements" in caught.value.reason
    assert caught.value.reason in caught.value.diagnosis
    hint = hint_for(graph, caught.value)
    assert hint.startswith("The export is at fault, not the model: ")
    assert "the line contradicts itself; export the model with optlevel=0" in hint
    assert "192 elements" not in hint
