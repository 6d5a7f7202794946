"""Rounding to formats, against slow loops and against numbers worked out by hand."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from engine.errors import EngineError
from engine.precision.formats import FORMATS, format_of, round_to, round_value

SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 65504.0, 65520.0, 1e-8, 6e-8, 3e38, 1e-40]


def numbers():
    drawn = np.random.default_rng(3).standard_normal(400) * 10.0 ** np.arange(-200, 200).clip(
        -37, 37
    )
    return np.concatenate([drawn, SPECIAL]).astype(np.float32)


def slow_bfloat16(number):
    """Bits cut off after the sixteenth, rounded to the nearest, ties to the even."""
    if math.isnan(number):
        return number
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    kept, rest = divmod(bits, 1 << 16)
    if rest > 1 << 15 or (rest == 1 << 15 and kept % 2 == 1):
        kept += 1
    return struct.unpack("<f", struct.pack("<I", kept << 16))[0]


def slow_int8(members):
    finite = [abs(m) for m in members if math.isfinite(m)]
    scale = max(finite, default=0.0) / 127 or 1.0
    rounded = []
    for member in members:
        if math.isnan(member):
            rounded.append(member)
            continue
        size = 127 if math.isinf(member) else math.floor(abs(member) / scale + 0.5)
        rounded.append(math.copysign(min(size, 127) * scale, member))
    return rounded


def test_bfloat16():
    found = round_to(numbers(), format_of("bfloat16"))
    expected = np.array([slow_bfloat16(float(n)) for n in numbers()], np.float32)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1 + 2**-8, 1.0),  # half between 1 and the next: to the even
        (1 + 3 * 2**-8, 1 + 2**-6),
        (1 + 2**-8 + 2**-20, 1 + 2**-7),
        (3.4028235e38, math.inf),
    ],
)
def test_bfloat16_by_hand(number, expected):
    assert round_to(np.float32(number).reshape(()), format_of("bfloat16")) == expected


def test_float16():
    with np.errstate(over="ignore"):
        expected = numbers().astype(np.float16).astype(np.float32)
    found = round_to(numbers(), format_of("float16"))
    np.testing.assert_array_equal(found, expected)
    by_hand = round_to(np.array([2049.0, 65519.0, 65520.0], np.float32), format_of("float16"))
    assert by_hand.tolist() == [2048.0, 65504.0, math.inf]


def test_int8_by_hand():
    members = np.array([-127.0, 63.5, 0.5, -0.49, 0.0], np.float32)
    assert round_to(members, format_of("int8")).tolist() == [-127.0, 64.0, 1.0, -0.0, 0.0]


def test_int8():
    drawn = np.random.default_rng(4).standard_normal(300).astype(np.float32)
    drawn[:3] = math.inf, -math.inf, math.nan
    found = round_to(drawn, format_of("int8"))
    np.testing.assert_allclose(found, slow_int8(drawn.tolist()), rtol=1e-6)
    assert not round_to(np.zeros(4, np.float32), format_of("int8")).any()


def test_int8_per_channel():
    drawn = np.random.default_rng(5).standard_normal((3, 4, 2)).astype(np.float32)
    drawn[1] *= 100
    found = round_to(drawn, format_of("int8-per-channel"), 0)
    for channel in range(3):
        expected = slow_int8(drawn[channel].ravel().tolist())
        np.testing.assert_allclose(found[channel].ravel(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", FORMATS)
def test_shape_dtype_and_empty(name):
    chosen = format_of(name)
    for array in (np.float32(1.5).reshape(()), np.zeros((0, 3), np.float32), np.ones(2)):
        found = round_to(array, chosen)
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
    whole = np.arange(3)
    assert round_value((whole, 7, "text"), chosen) == (whole, 7, "text")


def test_unknown_format():
    with pytest.raises(EngineError, match="there is no format 'int4'; choose float16"):
        format_of("int4")
