"""Short texts."""

from __future__ import annotations

import numpy as np
import pytest

from kuiper_studio.graph_view.text import (
    dtype_text,
    number_text,
    range_text,
    shape_text,
    split_expression,
)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        pytest.param((1, 64, 56, 56), "64×56×56", id="batch-left-out"),
        pytest.param((8, 64, 56, 56), "8×64×56×56", id="real-batch"),
        pytest.param((1000,), "1000", id="vector"),
        pytest.param((1,), "1", id="one"),
        pytest.param((1, 1), "1", id="one-one"),
        pytest.param((), "scalar", id="scalar"),
        pytest.param((1, None, "width"), "?×width", id="unknown"),
        pytest.param(None, "", id="not-said"),
    ],
)
def test_shape(shape, text):
    assert shape_text(shape) == text


def test_shape_with_batch():
    assert shape_text((1, 3, 8), with_batch=True) == "1×3×8"


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("float32", "f32"),
        ("int64", "i64"),
        ("uint8", "u8"),
        ("bool", "bool"),
        ("complex64", "c64"),
    ],
)
def test_dtype(dtype, text):
    assert dtype_text(np.dtype(dtype)) == text


def test_no_dtype():
    assert dtype_text(None) == ""


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        pytest.param(0.0, 3, "0", id="zero"),
        pytest.param(2.5749, 3, "2.57", id="rounded"),
        pytest.param(-2.5749, 2, "−2.6", id="minus"),
        pytest.param(12345.0, 2, "12345", id="written-out"),
        pytest.param(1234567.0, 3, "1.23e6", id="large"),
        pytest.param(0.0000123, 2, "1.2e−5", id="small"),
        pytest.param(float("nan"), 3, "NaN", id="nan"),
        pytest.param(float("inf"), 3, "∞", id="inf"),
        pytest.param(float("-inf"), 3, "−∞", id="minus-inf"),
    ],
)
def test_number(value, digits, text):
    assert number_text(value, digits) == text


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
    assert range_text(low, high, room) == text


@pytest.mark.parametrize(
    ("expression", "parts"),
    [("add(@0,mul(@1,2))", ("add", "(@0,mul(@1,2))")), ("@0", ("@0", "")), ("", ("", ""))],
)
def test_split_expression(expression, parts):
    assert split_expression(expression) == parts
