"""Amounts of memory as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.byte_sizes import bytes_text, parse_bytes, spell_bytes


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
def test_amounts(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    "text", ["", "MB", "-1", "1e9", "1,5 GB", "5 M", "five", "1.GB", "٣", "9" * 21, "nan"]
)
def test_what_is_no_amount(text):
    with pytest.raises(ValueError, match="is no amount of memory, such as 500MB, 2GiB"):
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
def test_spelling(count, text):
    assert spell_bytes(count) == text


@given(st.integers(0, 10**18))
def test_what_is_spelt_is_read(count):
    assert parse_bytes(spell_bytes(count)) == count


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (147_712, "144.2 KiB"),
        (3 << 20, "3.0 MiB"),
        (5 << 30, "5.0 GiB"),
        (2 << 40, "2.0 TiB"),
        (3 << 60, "3.0 EiB"),
        (1 << 80, "1048576.0 EiB"),
        (5 << 4000, "more than 2^4002 B"),
    ],
)
def test_rounded(count, text):
    assert bytes_text(count) == text
