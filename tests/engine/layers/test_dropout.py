"""Dropout at inference."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

TYPES = [
    "nn.Dropout",
    "nn.Dropout2d",
    "nn.AlphaDropout",
    "F.dropout",
    "F.dropout3d",
    "F.feature_alpha_dropout",
]


@pytest.mark.parametrize("operator_type", TYPES)
def test_hands_the_input_on(run, operator_type):
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    params = {"p": 0.5, "training": False} if operator_type.startswith("F.") else {}
    np.testing.assert_array_equal(run(operator_type, x, **params), x)


def test_training_is_refused(run):
    with pytest.raises(LayerError, match="dropout with training=True is random"):
        run("F.dropout", np.zeros(2, "f4"), p=0.5, training=True)


def test_training_without_dropping(run):
    assert run("F.dropout", np.ones(2, "f4"), p=0.0, training=True).tolist() == [1, 1]
