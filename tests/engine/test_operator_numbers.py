"""Files of numbers by operator: what is read, and what is said of a wrong one."""

from __future__ import annotations

import pytest

from engine.errors import NumbersFileError
from engine.operator_numbers import read_operator_numbers

KNOWN = ("conv1", "relu", "layer1.0, odd", "fc")


@pytest.fixture
def write(tmp_path):
    def write(text, name="numbers.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("text", "values", "unknown"),
    [
        pytest.param("conv1,1\nrelu,2.5\n", {"conv1": 1.0, "relu": 2.5}, (), id="lines"),
        pytest.param("Name,ms\nconv1,-3e2\n", {"conv1": -300.0}, (), id="titles"),
        pytest.param("\ufeffname,value\r\nfc,7\r\n\r\n", {"fc": 7.0}, (), id="spreadsheet"),
        pytest.param('"layer1.0, odd", 4\n', {"layer1.0, odd": 4.0}, (), id="quoted"),
        pytest.param("gone,1\nfc,0\nno,2\n", {"fc": 0.0}, ("gone", "no"), id="unknown"),
        pytest.param('{"conv1": 1, "fc": 2.5}', {"conv1": 1.0, "fc": 2.5}, (), id="json"),
        pytest.param(
            '\n {"gone": -1, "fc": 1e3}', {"fc": 1000.0}, ("gone",), id="json-unknown"
        ),
    ],
)
def test_what_is_read(write, text, values, unknown):
    numbers = read_operator_numbers(write(text), KNOWN)

    assert dict(numbers.values) == values
    assert numbers.unknown == unknown


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("conv1,1\nrelu,high\n", 2, "the value of 'relu' is 'high', not a number"),
        ("conv1,nan\n", 1, "the value of 'conv1' is 'nan', not a number"),
        ("conv1,1e999\n", 1, "the value of 'conv1' is '1e999', not a number"),
        ("conv1,1_0\n", 1, "the value of 'conv1' is '1_0', not a number"),
        ("conv1,__import__('os')\n", 1,
         "the value of 'conv1' is \"__import__('os')\", not a number"),
        ("conv1,1\n\nfc,2\nconv1,1\n", 4, "'conv1' has two numbers, the first on line 1"),
        ("conv1,1,2\n", 1, "it has 3 columns, not a name and a number"),
        ("conv1\n", 1, "it has 1 column, not a name and a number"),
        ('conv1,1\n"fc,2\n', 2, "it is not CSV: unexpected end of data"),
        ("", 0, "it has no lines of name,value"),
        ("name,value\n", 0, "it has no lines of name,value"),
        ("a,1\nb,2\n", 0, "none of its 2 names is an operator's: 'a', 'b'"),
        (b"conv1,\xff\n", 0, "it is not UTF-8 text"),
        ('{\n"conv1": 1,\n"fc": "2 ms"}', 3, "the value of 'fc' is '2 ms', not a number"),
        ('{"conv1": true}', 1, "the value of 'conv1' is true, not a number"),
        ('{"conv1": null}', 1, "the value of 'conv1' is null, not a number"),
        ('{"conv1": {"a": 1}}', 1, "the value of 'conv1' is an object, not a number"),
        ('{"conv1": Infinity}', 1, "the value of 'conv1' is inf, not a number"),
        ('{"conv1": ' + "9" * 5000 + "}", 1, "the value of 'conv1' is inf, not a number"),
        ('{"conv1": 1,\n"conv1": 2}', 2, "'conv1' has two numbers, the first on line 1"),
        ('{"\\u0063onv1": "x"}', 0, "the value of 'conv1' is 'x', not a number"),
        ('{"conv1": 1,\n"fc"}', 2, "it is not JSON: Expecting ':' delimiter"),
        ('{"a":' * 100_000, 0, "it is not an object of numbers by name"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, (str, bytes)) else None,
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_with_its_line(write, text, line, reason):
    path = write(text)
    with pytest.raises(NumbersFileError) as caught:
        read_operator_numbers(path, KNOWN)

    assert (caught.value.line, caught.value.reason) == (line, reason)
    place = f"{path}, line {line}" if line else str(path)
    assert str(caught.value) == f"{place}: {reason}"


def test_a_long_cell_is_shown_by_its_beginning(write):
    with pytest.raises(NumbersFileError) as caught:
        read_operator_numbers(write("conv1," + "x" * 1000), KNOWN)

    assert caught.value.reason == f"the value of 'conv1' is '{'x' * 39}…', not a number"


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(NumbersFileError, match=r"gone\.csv: "):
        read_operator_numbers(tmp_path / "gone.csv", KNOWN)
    with pytest.raises(NumbersFileError, match="folder"):
        read_operator_numbers(tmp_path, KNOWN)
    with (tmp_path / "huge.csv").open("wb") as file:
        file.truncate((4 << 20) + 1)
    with pytest.raises(NumbersFileError, match=r"huge\.csv: "):
        read_operator_numbers(tmp_path / "huge.csv", KNOWN)


def test_many_names_take_no_longer_than_reading_them(write):
    # Each of them would be looked for through the whole text.
    text = "{" + ",".join(f'"\\u0061{n}": {n}' for n in range(100_000)) + ', "fc": 1}'
    numbers = read_operator_numbers(write(text), KNOWN)

    assert (dict(numbers.values), len(numbers.unknown)) == ({"fc": 1.0}, 100_000)
