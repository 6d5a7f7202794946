"""How shapes, numbers, counts, sizes and times are written."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text import (
    format_aligned,
    format_amount,
    format_brief,
    format_bytes,
    format_complex,
    format_count,
    format_dtype,
    format_duration,
    format_exact_bytes,
    format_milliseconds,
    format_number,
    format_shape,
    format_short_count,
    parse_bytes,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1000000", 1_000_000),
        ("12 B", 12),
        ("500MB", 500_000_000),
        ("500 mb", 500_000_000),
        (" 2GiB ", 2_147_483_648),
        ("1.5 kB", 1500),
        ("0.5KiB", 512),
        ("3 TB", 3_000_000_000_000),
        ("1 MiB", 1_048_576),
        ("0.3333 kB", 333),
    ],
)
def test_bytes_are_read(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    "text", ["", "MB", "-1", "1e9", "1,5 GB", "5 M", "five", "1.GB", "٣", "9" * 21, "nan"]
)
def test_invalid_sizes_are_refused(text):
    with pytest.raises(ValueError, match="is not an amount of memory, such as 500MB, 2GiB"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (500_000_000, "500 MB"),
        (2**31, "2 GiB"),
        (1_500_000, "1500 kB"),
        (3 * 2**20, "3 MiB"),
        (10**12, "1 TB"),
    ],
)
def test_exact_bytes(count, text):
    assert format_exact_bytes(count) == text


@given(st.integers(0, 10**18))
def test_exact_bytes_are_read_back(count):
    assert parse_bytes(format_exact_bytes(count)) == count


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (147_712, "147.7 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (3 << 20, "3.1 MB"),
        (5 * 10**9, "5.0 GB"),
        (2 * 10**12, "2.0 TB"),
        (3 * 10**18, "3.0 EB"),
        (10**24, "1000000.0 EB"),
        (5 * 10**4000, "more than 1e4000 B"),
    ],
)
def test_rounded_bytes(count, text):
    assert format_bytes(count) == text


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
    assert format_shape(shape) == expected


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
    assert format_shape(shape, drop_batch=True) == expected


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
    assert format_dtype(dtype) == expected


def test_count() -> None:
    assert format_count(36928).split() == ["36", "928"]
    assert format_count(7) == "7"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, ""),
        (0.0, "—"),
        (0.00140, "1.40"),
        (0.00005, "0.05"),
        (0.01234, "12.3"),
        (0.5, "500"),
        (9.9994, "9999"),
        (9.9996, "10k"),
        (13.917, "14k"),
    ],
)
def test_ms(seconds, expected: str) -> None:
    assert format_milliseconds(seconds) == expected


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
    assert format_number(value) == expected


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        pytest.param(0.0, 3, "0", id="zero"),
        pytest.param(-0.0, 3, "0", id="minus-zero"),
        pytest.param(2.5749, 3, "2.57", id="rounded"),
        pytest.param(-2.5749, 2, "−2.6", id="minus"),
        pytest.param(0.0005, 3, "0.0005", id="below-one"),
        pytest.param(12345.0, 2, "12345", id="written-out"),
        pytest.param(-12345.6, 3, "−12346", id="written-out-rounded"),
        pytest.param(1234567.0, 3, "1.23e6", id="large"),
        pytest.param(1e5, 3, "1e5", id="power"),
        pytest.param(0.0000123, 2, "1.2e−5", id="small"),
        pytest.param(1.3e-7, 3, "1.3e−7", id="smaller"),
        pytest.param(float("nan"), 3, "NaN", id="nan"),
        pytest.param(float("inf"), 3, "+Inf", id="inf"),
        pytest.param(float("-inf"), 3, "−Inf", id="minus-inf"),
    ],
)
def test_brief_number(value: float, digits: int, text: str) -> None:
    assert format_brief(value, digits) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        pytest.param([4.4048, 3.07, -0.5], ["4.405", "3.070", "−0.500"], id="decimals"),
        pytest.param([8.25, 3.0, 0.0], ["8.25", "3.00", "0.00"], id="needless-zeros"),
        pytest.param([12.0, 7.0], ["12", "7"], id="whole"),
        pytest.param([9.99996, 1.0], ["10", "1"], id="rounded-up"),
        pytest.param([12345.6, 1.5], ["12346", "2"], id="many-digits"),
        pytest.param([float("nan"), 0.25], ["NaN", "0.25"], id="nan"),
        pytest.param([2e6, 1e-7], ["2e6", "1e−7"], id="large"),
        pytest.param([0.0, 0.0], ["0", "0"], id="zeros"),
        pytest.param([], [], id="none"),
    ],
)
def test_aligned_numbers(values, texts):
    assert format_aligned(values, 4) == texts


@pytest.mark.parametrize(
    ("count", "nouns", "text"),
    [
        (0, ("operator",), "0 operators"),
        (1, ("operator",), "1 operator"),
        (2, ("index", "indices"), "2 indices"),
        (1, ("input was", "inputs were"), "1 input was"),
        (36928, ("value",), "36\N{NO-BREAK SPACE}928 values"),
    ],
)
def test_counted_nouns(count: int, nouns: tuple[str, ...], text: str) -> None:
    assert format_count(count, *nouns) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 MAC"),
        (480, "480 MAC"),
        (999, "999 MAC"),
        (6912, "6.912 KMAC"),
        (999_949, "999.9 KMAC"),
        (999_960, "1 MMAC"),
        (115_605_504, "115.6 MMAC"),
        (1_814_073_344, "1.814 GMAC"),
        (12_345_678_900_000_000, "12\N{NO-BREAK SPACE}345.7 TMAC"),
    ],
)
def test_amount(count: int, text: str) -> None:
    assert format_amount(count, "MAC") == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (7, "7"),
        (99_999, "99999"),
        (100_000, "100k"),
        (10**8, "100M"),
        (10**11, "100G"),
    ],
)
def test_short_count(count: int, text: str) -> None:
    assert format_short_count(count) == text
    assert len(text) <= 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (83e-9, "0.1 µs"),
        (8.3e-6, "8.3 µs"),
        (99.94e-6, "99.9 µs"),
        (0.0001, "0.10 ms"),
        (0.00086, "0.86 ms"),
        (0.01234, "12.3 ms"),
        (0.5, "500 ms"),
        (0.9994, "999 ms"),
        (1.0, "1.00 s"),
        (83.456, "83.46 s"),
        (1234.5, "1\N{NO-BREAK SPACE}234 s"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5 - 2j, "1.5−2j"),
        (complex(-0.25, 1e-6), "−0.25+1e−6j"),
        (complex(1, math.inf), "1+Infj"),
        (2.5, "2.5"),
    ],
)
def test_complex(value: complex, text: str) -> None:
    assert format_complex(value) == text
