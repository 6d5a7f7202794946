from __future__ import annotations

import pytest

from engine.errors import capitalized
from kuiper_studio.item_models.text import elided, param_text


def test_parameters_are_written_as_in_python() -> None:
    assert param_text((3, 3)) == "(3, 3)"
    assert param_text("zeros") == "'zeros'"
    assert param_text(None) == "None"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("short", 9, "short"), ("layer1.0.relu", 7, "lay…elu"), ("abcdefgh", 4, "ab…h")],
)
def test_the_middle_is_left_out(text: str, limit: int, expected: str) -> None:
    assert elided(text, limit) == expected
    assert len(elided(text, limit)) <= limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it fixes the size by shape=(1,4)", "It fixes the size by shape=(1,4)"),
        ("random, seed 7", "Random, seed 7"),
        ("in_channels says 3", "in_channels says 3"),
        ("net.param:3: too few words", "net.param:3: too few words"),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_a_capital_but_a_name_stays(text: str, expected: str) -> None:
    assert capitalized(text) == expected
