"""Short texts."""

from __future__ import annotations

import pytest

from kuiper_studio.graph_view.text import format_range, split_expression


@pytest.mark.parametrize(
    ("low", "high", "room", "text"),
    [
        pytest.param(0.0, 2.5747, 9, "0…2.57", id="fits"),
        pytest.param(-2.71, 2.59, 9, "−2.7…2.6", id="fewer-digits"),
        pytest.param(-2.71, 2.59, 12, "−2.71…2.59", id="more-room"),
        pytest.param(-0.001234, 0.00567, 4, "−0.001…0.006", id="no-room-at-all"),
    ],
)
def test_range(low, high, room, text):
    assert format_range(low, high, room) == text


@pytest.mark.parametrize(
    ("expression", "parts"),
    [("add(@0,mul(@1,2))", ("add", "(@0,mul(@1,2))")), ("@0", ("@0", "")), ("", ("", ""))],
)
def test_split_expression(expression, parts):
    assert split_expression(expression) == parts
