"""PyTorch's type promotion, against torch.result_type of PyTorch 2.13 typed here."""

from __future__ import annotations

import numpy as np
import pytest

from engine.promotion import (
    as_operand,
    category,
    float_dtype,
    is_scalar,
    promote,
    promote_types,
    result_dtype,
)

SHORT = {"b": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32",
         "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64",
         "c64": "complex64", "c128": "complex128"}  # fmt: skip
DTYPES = list(SHORT.values())

# Row: one dtype; column: the other, in the order of DTYPES. PyTorch's complex32 (float16
# with a complex number) is complex64 here.
BOTH_WITH_DIMENSIONS = """
b    u8   i8   i16  i32  i64  f16  f32  f64  c64  c128
u8   u8   i16  i16  i32  i64  f16  f32  f64  c64  c128
i8   i16  i8   i16  i32  i64  f16  f32  f64  c64  c128
i16  i16  i16  i16  i32  i64  f16  f32  f64  c64  c128
i32  i32  i32  i32  i32  i64  f16  f32  f64  c64  c128
i64  i64  i64  i64  i64  i64  f16  f32  f64  c64  c128
f16  f16  f16  f16  f16  f16  f16  f32  f64  c64  c128
f32  f32  f32  f32  f32  f32  f32  f32  f64  c64  c128
f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128
c64  c64  c64  c64  c64  c64  c64  c64  c128 c64  c128
c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""
# Row: with dimensions; column: 0-d.
SECOND_ZERO_DIMENSIONAL = """
b    u8   i8   i16  i32  i64  f16  f32  f64  c64  c128
u8   u8   u8   u8   u8   u8   f16  f32  f64  c64  c128
i8   i8   i8   i8   i8   i8   f16  f32  f64  c64  c128
i16  i16  i16  i16  i16  i16  f16  f32  f64  c64  c128
i32  i32  i32  i32  i32  i32  f16  f32  f64  c64  c128
i64  i64  i64  i64  i64  i64  f16  f32  f64  c64  c128
f16  f16  f16  f16  f16  f16  f16  f16  f16  c64  c64
f32  f32  f32  f32  f32  f32  f32  f32  f32  c64  c64
f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128
c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64
c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""
# Column: True, 1, 1.5, 1j; the same for 0-d tensors.
WITH_SCALARS = """
b    i64  f32  c64
u8   u8   f32  c64
i8   i8   f32  c64
i16  i16  f32  c64
i32  i32  f32  c64
i64  i64  f32  c64
f16  f16  f16  c64
f32  f32  f32  c64
f64  f64  f64  c128
c64  c64  c64  c64
c128 c128 c128 c128
"""
SCALARS = (True, 1, 1.5, 1j)


def rows(table):
    return [
        (dtype, [SHORT[name] for name in line.split()])
        for dtype, line in zip(DTYPES, table.strip().splitlines(), strict=True)
    ]


@pytest.mark.parametrize(("dtype", "expected"), rows(BOTH_WITH_DIMENSIONS))
def test_equal_ranks(dtype, expected):
    a = np.ones(2, dtype)
    assert [result_dtype(a, np.ones(2, other)).name for other in DTYPES] == expected
    assert [result_dtype(np.ones(2, other), a).name for other in DTYPES] == expected
    scalar = np.array(1, dtype)
    assert [result_dtype(scalar, np.array(1, other)).name for other in DTYPES] == expected
    assert [promote_types(a.dtype, np.dtype(other)).name for other in DTYPES] == expected


@pytest.mark.parametrize(("dtype", "expected"), rows(SECOND_ZERO_DIMENSIONAL))
def test_a_zero_dimensional_tensor_is_weak(dtype, expected):
    a = np.ones(2, dtype)
    assert [result_dtype(a, np.array(1, other)).name for other in DTYPES] == expected
    assert [result_dtype(np.dtype(other).type(1), a).name for other in DTYPES] == expected


@pytest.mark.parametrize(("dtype", "expected"), rows(WITH_SCALARS))
def test_a_python_scalar_is_weaker(dtype, expected):
    a, zero_d = np.ones(2, dtype), np.array(1, dtype)
    assert [result_dtype(a, scalar).name for scalar in SCALARS] == expected
    assert [result_dtype(scalar, zero_d).name for scalar in SCALARS] == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((True,), "bool"),
        ((True, 1), "int64"),
        ((1, 2.0), "float32"),
        ((1.0, 2j), "complex64"),
        ((np.ones(2, np.int8), np.array(1, np.int64), 1.0), "float32"),
        ((np.ones(2, np.float16), np.array(1.0, np.float64), 1), "float16"),
        ((np.ones(2, np.int8), np.array(1.0, np.float16), 1j), "complex64"),
    ],
)
def test_more_or_fewer_values(values, expected):
    assert result_dtype(*values).name == expected


def test_live_against_pytorch():
    torch = pytest.importorskip("torch")
    for a in DTYPES:
        for b in DTYPES:
            for shape in ((1,), ()):
                x = torch.ones(1, dtype=getattr(torch, a))
                y = torch.ones(shape, dtype=getattr(torch, b))
                name = str(torch.result_type(x, y)).removeprefix("torch.")
                expected = "complex64" if name == "complex32" else name
                assert result_dtype(x.numpy(), y.numpy()).name == expected


def test_unsigned_beside_signed():
    assert promote_types(np.dtype(np.uint64), np.dtype(np.int8)) == np.int64
    assert promote_types(np.dtype(np.uint16), np.dtype(np.int8)) == np.int32


def test_what_holds_no_numbers():
    with pytest.raises(TypeError, match="dtype object holds no numbers"):
        category(np.dtype(object))
    with pytest.raises(TypeError, match="str is neither a tensor nor a number"):
        result_dtype(np.ones(1), "1")
    with pytest.raises(TypeError, match="at least one value"):
        result_dtype()


def test_floats():
    names = [float_dtype(np.dtype(dtype)).name for dtype in DTYPES]
    assert names == ["float32"] * 6 + ["float16", "float32", "float64"] + DTYPES[-2:]


def test_is_scalar():
    assert all(map(is_scalar, SCALARS))
    assert not any(map(is_scalar, (np.float64(1), np.array(1), None, "1", (1,))))


def test_as_operand():
    x = np.ones(3, np.float32)
    assert as_operand(x, x.dtype) is x
    for value in (True, 3, 2.5, 1 + 2j, np.int8(4)):
        array = as_operand(value, np.dtype(np.complex128))
        assert isinstance(array, np.ndarray)
        assert (array.shape, array.dtype) == ((), np.complex128)
        assert array == value
    assert as_operand(-2, np.dtype(np.uint8)) == 254
    assert as_operand(np.array([1e10]), np.dtype(np.float16)) == np.inf
    assert as_operand(1e300, np.dtype(np.float32)) == np.inf


def test_promote():
    x = np.ones((2, 3), np.float32)
    a, b = promote(x, 2.5)
    assert a is x
    assert (b.dtype, b.shape, b.item()) == (np.float32, (), 2.5)
