"""File names from names that may hold anything."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dump.names import UniqueNames, archive_name, clean_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("conv1.weight", "conv1.weight", id="good already"),
        pytest.param("../../x", "_._.._x", id="out of the folder"),
        pytest.param("/etc/passwd", "_etc_passwd", id="absolute"),
        pytest.param(r"..\..\x", "_._.._x", id="out of the folder, Windows"),
        pytest.param("C:\\x", "C__x", id="drive"),
        pytest.param("x:stream", "x_stream", id="stream"),
        pytest.param("..", "_", id="parent"),
        pytest.param(".", "_", id="here"),
        pytest.param("", "_", id="empty"),
        pytest.param(".hidden", "_hidden", id="hidden"),
        pytest.param("-rf", "_rf", id="like an option"),
        pytest.param("x...", "x", id="dots at the end"),
        pytest.param("CON", "_CON", id="device"),
        pytest.param("con.weight", "_con.weight", id="device with suffix"),
        pytest.param("lpt9", "_lpt9", id="numbered device"),
        pytest.param("lpt0", "lpt0", id="no device"),
        pytest.param("console", "console", id="beginning like a device"),
        pytest.param("aten::add", "aten__add", id="colons"),
        pytest.param("входной", "_______", id="other letters"),
        pytest.param("é\u202ecod.exe", "__cod.exe", id="right to left"),
        pytest.param("a\tb\x1b[31m", "a_b__31m", id="control characters"),
        pytest.param("\udcff", "_", id="surrogate"),
        pytest.param("a" * 80, "a" * 80, id="as long as may be"),
    ],
)
def test_clean_name(text, expected):
    assert clean_name(text) == expected


def test_long_names_are_cut_and_stay_different():
    one, two = clean_name("a" * 299 + "b"), clean_name("a" * 299 + "c")
    assert one != two
    assert re.fullmatch(r"a{71}-[0-9a-f]{8}", one)


@given(st.text(max_size=120))
def test_clean_names_are_harmless(text):
    name = clean_name(text)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}", name)
    assert not name.endswith(".")
    assert name.split(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt1"}


@given(st.lists(st.text("aAbB._/é", max_size=4), max_size=30))
def test_no_two_names_are_equal_where_case_does_not_count(texts):
    names = UniqueNames()
    claimed = [names.claim(text).lower() for text in texts]
    assert len(set(claimed)) == len(texts)


@given(st.lists(st.text(max_size=100), max_size=20))
def test_no_two_names_in_an_archive_are_equal(texts):
    names = UniqueNames(archive_name, str)
    claimed = [names.claim(text) for text in texts]
    assert len(set(claimed)) == len(texts)
    assert not any(set(name) & set('/\\:*?"<>|\0') or name.startswith(".") for name in claimed)
    assert "__metadata__" not in claimed


def test_the_first_keeps_its_name():
    names = UniqueNames()
    assert names.claim("Conv") == "Conv"
    assert re.fullmatch(r"conv-[0-9a-f]{8}", names.claim("conv"))
    assert re.fullmatch(r"CONV-[0-9a-f]{8}", names.claim("CONV"))


def test_thousands_of_equal_names():
    names = UniqueNames()
    assert len({names.claim("x") for _ in range(3000)}) == 3000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("7", "7", id="number"),
        pytest.param("aux", "aux", id="no file, so no device"),
        pytest.param("a" * 300, "a" * 300, id="long"),
        pytest.param("Eingang.größe-2", "Eingang.größe-2", id="letters of all languages"),
        pytest.param("__metadata__", "__metadata__-", id="taken by safetensors"),
        pytest.param("../x", "_._x-", id="path"),
        pytest.param(".x", "_x-", id="hidden"),
    ],
)
def test_archive_name(text, expected):
    assert re.fullmatch(re.escape(expected) + r"([0-9a-f]{8})?", archive_name(text))
    assert (archive_name(text) == text) == (not expected.endswith("-"))
