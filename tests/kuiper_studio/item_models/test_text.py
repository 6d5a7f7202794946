from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import capitalized
from kuiper_studio.item_models.text import (
    count_text,
    dtype_text,
    elided,
    ms_text,
    number_text,
    param_text,
    shape_text,
)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 64, 56, 56), "1×64×56×56"),
        ((64,), "64"),
        ((), "scalar"),
        (None, ""),
        ((None, 3, "%h", "%w"), "?×3×%h×%w"),
    ],
)
def test_shape(shape, expected: str) -> None:
    assert shape_text(shape) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 64, 56, 56), "64×56×56"),
        ((2, 64), "2×64"),
        ((1,), "1"),
        ((1, 1), "1"),
        ((None, 64), "?×64"),
    ],
)
def test_shape_without_batch(shape, expected: str) -> None:
    assert shape_text(shape, drop_batch=True) == expected


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.dtype(np.float32), "f32"),
        (np.dtype(np.float16), "f16"),
        (np.dtype(np.int64), "i64"),
        (np.dtype(np.uint8), "u8"),
        (np.dtype(np.bool_), "bool"),
        (np.dtype(np.complex64), "c64"),
        ("bf16", "bf16"),
        (None, ""),
    ],
)
def test_dtype(dtype, expected: str) -> None:
    assert dtype_text(dtype) == expected


def test_count() -> None:
    assert count_text(36928).split() == ["36", "928"]
    assert count_text(7) == "7"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, ""),
        (0.0, "—"),
        (0.00140, "1.40"),
        (0.00005, "0.05"),
        (0.01234, "12.3"),
        (0.5, "500"),
    ],
)
def test_ms(seconds, expected: str) -> None:
    assert ms_text(seconds) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0.0000"),
        (0.3047, "0.3047"),
        (-0.3059, "−0.3059"),
        (0.00053, "0.00053"),
        (-0.000531, "−0.00053"),
        (1234.5, "1234.5000"),
        (1e-7, "1.000e−07"),
        (2.5e9, "2.500e+09"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "−Inf"),
    ],
)
def test_number(value: float, expected: str) -> None:
    assert number_text(value) == expected


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
