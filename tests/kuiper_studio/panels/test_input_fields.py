from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.inputs import ImageOptions, InputSource
from kuiper_studio.panels.input_fields import (
    PRESETS,
    numbers_text,
    parse_numbers,
    parse_scale,
    preset_of,
    scale_text,
    source_title,
)


@pytest.mark.parametrize(
    ("scale", "text"),
    [(1 / 255, "1/255"), (1.0, "1"), (0.5, "1/2"), (0.3, "0.3"), (2.5, "2.5")],
)
def test_scale(scale: float, text: str) -> None:
    assert scale_text(scale) == text
    assert parse_scale(text) == pytest.approx(scale, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.485 0.456 0.406", (0.485, 0.456, 0.406)),
        ("[0.485, 0.456, 0.406]", (0.485, 0.456, 0.406)),
        ("1;2;3", (1, 2, 3)),
        ("0.5", (0.5,)),
        ("1/2", (0.5,)),
    ],
)
def test_numbers(text: str, numbers: tuple[float, ...]) -> None:
    assert parse_numbers(text, "mean") == numbers


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("", "mean", "mean needs one number"),
        ("1 2", "mean", "mean needs one number"),
        ("1 x 3", "mean", "'x' is not a number"),
        ("nan", "mean", "not finite"),
        ("0.2 0 0.2", "std", "std must not be 0"),
    ],
)
def test_wrong_numbers_are_explained(text: str, name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_numbers(text, name)


def test_a_scale_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="every pixel 0"):
        parse_scale("0")
    with pytest.raises(ValueError, match="not a number"):
        parse_scale("1/x")


@given(st.lists(st.sampled_from([0.0, 0.5, 0.485, 127.5, -1.25]), min_size=3, max_size=3))
def test_numbers_survive_writing(numbers) -> None:
    assert parse_numbers(numbers_text(numbers), "mean") == tuple(numbers)


def test_presets_are_recognised() -> None:
    for preset in PRESETS:
        options = ImageOptions(scale=preset.scale, mean=preset.mean, std=preset.std)
        assert preset_of(options) is preset
    assert preset_of(ImageOptions(scale=0.1)) is None
    by_channel = ImageOptions(scale=1 / 255, mean=(0.5,) * 3, std=(0.5,) * 3)
    assert preset_of(by_channel) is PRESETS[2]


@pytest.mark.parametrize(
    ("source", "title"),
    [
        (None, "No input yet"),
        (InputSource("image", path=Path("/a/car.jpg")), "car.jpg"),
        (InputSource("npz", path=Path("/a/x.npz"), member="y"), "x.npz:y"),
        (InputSource("random", seed=3), "random, seed 3"),
        (InputSource("constant", value=1.0), "ones"),
        (InputSource("constant", value=0.5), "constant 0.5"),
        (InputSource("array"), "array"),
    ],
)
def test_titles(source, title: str) -> None:
    assert source_title(source) == title
