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
        ("F.interpolate", (ONE[np.newaxis],), {"size": 1 << 40}),
        ("F.pad", (ONE,), {"pad": (0, 1 << 40), "mode": "replicate"}),
        ("Expand", (ONE,), {"shape": (MILLION, MILLION)}),
        ("Tile", (ONE,), {"repeats": (MILLION, MILLION)}),
        ("torch.meshgrid", ((np.ones(MILLION), np.ones(MILLION)),), {}),
        (
            "Tensor.unfold",
            (np.ones(2 * MILLION),),
            {"dimension": 0, "size": MILLION, "step": 1},
        ),
        # NumPy adds these up in 64 bits, and writes behind what it took for the sum.
        ("torch.repeat_interleave", (np.ones(4), np.array([(1 << 63) - 1] * 2 + [4, 0])), {}),
        ("torch.repeat_interleave", (np.ones((4, 2)), 1 << 62), {"dim": 0}),
        ("torch.repeat_interleave", (np.array([(1 << 63) - 1] * 2 + [4, 0]),), {}),
    ],
)
def test_refused(run, operator_type, inputs, params):
    with pytest.raises(LayerError, match=r"would take \S+ [GTE]B; the memory bound is"):
        run(operator_type, *inputs, **params)
