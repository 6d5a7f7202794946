"""A size that a file claims is refused before memory is taken for it, and views are too."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

ONE = np.ones((1, 1), np.float32)
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("operator_type", "inputs", "params"),
    [
        ("Tensor.expand", (ONE,), {"sizes": (MILLION, MILLION)}),
        ("torch.broadcast_tensors", ((np.ones((MILLION, 1)), np.ones(MILLION)),), {}),
        ("torch.tile", (ONE,), {"dims": (MILLION, MILLION)}),
        ("torch.as_strided", (ONE,), {"size": (MILLION, MILLION), "stride": (0, 0)}),
        ("torch.zeros", (), {"size": (MILLION, MILLION)}),
        ("torch.full", (), {"size": (MILLION, MILLION), "fill_value": 2.0}),
        ("torch.arange", (), {"end": 10**12}),
        ("torch.linspace", (), {"start": 0, "end": 1, "steps": 10**12}),
        ("torch.eye", (), {"n": MILLION}),
    ],
)
def test_refused(run, operator_type, inputs, params):
    with pytest.raises(LayerError, match=r"would take \d+ GiB; the limit is 16 GiB"):
        run(operator_type, *inputs, **params)
