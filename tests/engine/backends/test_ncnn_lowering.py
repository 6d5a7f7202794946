"""The text of ncnn's networks."""

from __future__ import annotations

import numpy as np
import pytest

from engine.backends.ncnn_layers import format_number


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (0, 0.0),
        (-1, -1.0),
        (0.1, 0.1),
        (-0.2, -0.2),
        (1 / 6, 1 / 6),
        (-1.2345678e-20, -1.2345678e-20),
        (-np.inf, -3.4028234663852886e38),
        (np.inf, 3.4028234663852886e38),
        (1e300, 3.4028234663852886e38),
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_are_whole_float32_and_short(value, read):
    """Releases of ncnn before 2026 read 15 characters and refuse, or end with, longer ones."""
    word = format_number(value)
    assert len(word) <= 15
    assert "." in word
    assert np.float32(word) == np.float32(read)
