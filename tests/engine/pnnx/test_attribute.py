"""Attributes: what bytes mean, byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.pnnx import DTYPES, Attribute
from engine.pnnx.attribute import ITEMSIZES, MissingWeights


@pytest.mark.parametrize(
    ("dtype", "data", "expected", "numpy_name"),
    [
        ("f32", struct.pack("<2f", 1.5, -2), [1.5, -2], "float32"),
        ("f64", struct.pack("<2d", 1.5, -2), [1.5, -2], "float64"),
        ("f16", b"\x00\x3e\x00\xc0", [1.5, -2], "float16"),
        ("i32", struct.pack("<2i", 7, -8), [7, -8], "int32"),
        ("i64", struct.pack("<2q", 7, -8), [7, -8], "int64"),
        ("i16", struct.pack("<2h", 7, -8), [7, -8], "int16"),
        ("i8", b"\x07\xf8", [7, -8], "int8"),
        ("u8", b"\x07\xf8", [7, 248], "uint8"),
        ("bool", b"\x01\x00", [True, False], "bool"),
        ("bool", b"\x02\x00", [True, False], "bool"),
        ("c64", struct.pack("<4f", 1, 2, 3, 4), [1 + 2j, 3 + 4j], "complex64"),
        ("c128", struct.pack("<4d", 1, 2, 3, 4), [1 + 2j, 3 + 4j], "complex128"),
        ("c32", b"\x00\x3c\x00\x40\x00\x42\x00\x44", [1 + 2j, 3 + 4j], "complex64"),
        ("bf16", b"\xc0\x3f\x00\xc0", [1.5, -2], "float32"),
    ],
)
def test_dtypes(dtype, data, expected, numpy_name):
    attribute = Attribute.from_bytes(data, (2, 1), dtype)
    array = attribute.array
    assert array.tolist() == [[value] for value in expected]
    assert array.dtype == DTYPES[dtype] == np.dtype(numpy_name)
    assert not array.flags.writeable
    assert attribute.nbytes == len(data) == 2 * ITEMSIZES[dtype]
    assert attribute.data.tobytes() == data
    assert attribute.array is array  # converted once


def test_every_dtype_is_tested_and_sized():
    assert ITEMSIZES.keys() == DTYPES.keys()
    assert len(DTYPES) == 14


def test_scalar_and_empty():
    scalar = Attribute.from_bytes(struct.pack("<f", 2.5), (), "f32")
    assert scalar.array.shape == ()
    assert scalar.array == 2.5
    for dtype in DTYPES.keys() - {"null"}:
        empty = Attribute.from_bytes(b"", (0, 3), dtype)
        assert empty.array.shape == (0, 3)
        assert empty.array.dtype == DTYPES[dtype]


def test_null_dtype_has_no_array():
    attribute = Attribute.from_bytes(b"", (64, 3), "null")
    assert attribute.nbytes == 0
    with pytest.raises(ModelFileError, match="pnnx does not know the dtype of this weight"):
        _ = attribute.array


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.float32(1), "f32"),
        (np.zeros((2, 3), "f2"), "f16"),
        (np.zeros((2, 3), ">f8"), "f64"),
        (np.array([True]), "bool"),
        (np.arange(6, dtype=np.int64).reshape(2, 3).T, "i64"),
        (np.zeros(2, np.complex64), "c64"),
        (np.zeros((0, 2), np.uint8), "u8"),
    ],
)
def test_from_array(array, dtype):
    attribute = Attribute.from_array(array)
    assert (attribute.dtype, attribute.shape) == (dtype, array.shape)
    np.testing.assert_array_equal(attribute.array, array)


def test_from_array_copies():
    array = np.zeros(2, np.float32)
    attribute = Attribute.from_array(array)
    array[0] = 1
    assert attribute.array.tolist() == [0, 0]


def test_refused():
    with pytest.raises(TypeError, match=r"^PNNX has no attributes of dtype uint32$"):
        Attribute.from_array(np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match=r"^\(2,\) of f32 takes 8 bytes, 4 were given$"):
        Attribute.from_bytes(b"\0" * 4, (2,), "f32")


def test_missing():
    attribute = Attribute("f32", (2,), MissingWeights(Path("m.param")))
    assert attribute.nbytes == 8
    with pytest.raises(ModelFileError) as caught:
        _ = attribute.array
    assert str(caught.value) == (
        "m.param: its weights are missing, because the model was opened without its .bin; "
        "open it together with the .bin file"
    )
    assert repr(attribute) == "Attribute(f32, (2,))"


def test_same_as():
    one = Attribute.from_array(np.float32([1, 2]))
    assert one.same_as(Attribute.from_array(np.float32([1, 2])))
    assert not one.same_as(Attribute.from_array(np.float32([1, 3])))
    assert not one.same_as(Attribute.from_array(np.float32([[1, 2]])))
    assert not one.same_as(Attribute.from_array(np.float64([1, 2])))
    missing = Attribute("f32", (2,), MissingWeights(Path("m.param")))
    assert missing.same_as(Attribute("f32", (2,), MissingWeights(Path("n.param"))))
    assert not missing.same_as(one)
    assert not one.same_as(missing)


def test_same_as_beyond_one_piece():
    size = (1 << 24) + 1
    one, other = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    other[-1] = 1
    assert Attribute.from_array(one).same_as(Attribute.from_array(one))
    assert not Attribute.from_array(one).same_as(Attribute.from_array(other))
