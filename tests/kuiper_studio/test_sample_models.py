"""The samples that the window offers, fed as the window feeds them."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import EngineError
from engine.inputs import load_inputs
from kuiper_studio import sample_models
from kuiper_studio.sample_models import default_sample, find_samples

NAMES = ["digits", "expressions", "gaze", "linear", "unet"]


def test_all_are_found_with_digits_first():
    assert [sample.name for sample in find_samples()] == NAMES
    assert default_sample().labels == tuple("0123456789")


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_the_golden_ones(name):
    sample = next(sample for sample in find_samples() if sample.name == name)
    graph = engine.load(sample.param)
    loaded = load_inputs(sample.sources, graph.input_operands, sample.options)
    with np.load(sample.param.parent / "golden.npz", allow_pickle=False) as golden:
        for operand, value in loaded.items():
            np.testing.assert_allclose(value, golden[operand], rtol=0, atol=1e-6)


def test_no_samples(monkeypatch, tmp_path):
    monkeypatch.setattr(sample_models, "samples", lambda: tmp_path)
    assert find_samples() == ()
    with pytest.raises(EngineError, match="no sample model is installed"):
        default_sample()
