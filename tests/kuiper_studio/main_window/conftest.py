"""A main window with a short chain and its input."""

from __future__ import annotations

import numpy as np
import pytest
from driving import CHAIN


@pytest.fixture
def image():
    return np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4)


@pytest.fixture
def window(open_window, make_pair, image):
    return open_window(make_pair(*CHAIN), [image])
