"""What JSON can hold."""

from __future__ import annotations

import json
import math
from pathlib import PurePosixPath

import numpy as np
import pytest

from engine.plain import plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, None, id="none"),
        pytest.param(True, True, id="bool"),
        pytest.param(1 << 80, 1 << 80, id="long int"),
        pytest.param(0.5, 0.5, id="float"),
        pytest.param(math.inf, "inf", id="inf"),
        pytest.param(-math.inf, "-inf", id="minus inf"),
        pytest.param(math.nan, "nan", id="nan"),
        pytest.param(1 + 2j, "(1+2j)", id="complex"),
        pytest.param("%batch", "%batch", id="symbol"),
        pytest.param((1, (2.0, math.inf)), [1, [2.0, "inf"]], id="nested"),
        pytest.param({"a": (None,), 3: math.nan}, {"a": [None], "3": "nan"}, id="mapping"),
        pytest.param(np.float32(0.25), 0.25, id="numpy float"),
        pytest.param(np.float32(np.inf), "inf", id="numpy inf"),
        pytest.param(np.bool_(True), True, id="numpy bool"),
        pytest.param(PurePosixPath("a/b"), "a/b", id="anything else"),
    ],
)
def test_plain(value, expected):
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
    json.dumps(found, allow_nan=False)
