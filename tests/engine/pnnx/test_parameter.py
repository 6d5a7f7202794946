"""Parameters; texts and values are typed by hand after pnnx's own encoder."""

from __future__ import annotations

import math
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pnnx import Parameter, ParameterType
from engine.pnnx.parameter import float_text

T = ParameterType
NAN = math.nan


class TestParse:
    @pytest.mark.parametrize(
        ("text", "kind", "value"),
        [
            ("None", T.NULL, None),
            ("()", T.NULL, None),
            ("[]", T.NULL, None),
            ("True", T.BOOL, True),
            ("False", T.BOOL, False),
            ("7", T.INT, 7),
            ("-3", T.INT, -3),
            ("2147483647", T.INT, 2147483647),
            ("9223372036854775807", T.INT, 9223372036854775807),
            ("-9223372036854775808", T.INT, -9223372036854775808),
            ("0.1", T.FLOAT, 0.1),
            ("1.", T.FLOAT, 1.0),
            ("1.000000e-7", T.FLOAT, 1e-7),
            ("1.000000e-05", T.FLOAT, 1e-5),
            ("1.000000e10", T.FLOAT, 1e10),
            ("1e+2", T.FLOAT, 100.0),
            ("-3.40282347e38", T.FLOAT, -3.40282347e38),
            ("inf", T.FLOAT, math.inf),
            ("-inf", T.FLOAT, -math.inf),
            ("nan", T.FLOAT, NAN),
            ("nan.0", T.FLOAT, NAN),
            ("-nan.0", T.FLOAT, NAN),
            ("same", T.STRING, "same"),
            ("torch.float", T.STRING, "torch.float"),
            ("ij,jk->ik", T.STRING, "ij,jk->ik"),
            ("", T.STRING, ""),
            ("-", T.STRING, "-"),
            (".5", T.STRING, ".5"),
            ("+5", T.STRING, "+5"),
            ("2d", T.STRING, "2d"),
            ("1_000", T.STRING, "1_000"),
            ("１２", T.STRING, "１２"),  # full-width digits, which int() would take
            ("add(@0,mul(@1,2))", T.STRING, "add(@0,mul(@1,2))"),
            ("add(expm1,@0),3", T.STRING, "add(expm1,@0),3"),
            ("[@0],@1", T.STRING, "[@0],@1"),
            ("%batch", T.STRING, "%batch"),
            ("(1,%c,?,4)", T.STRING, "(1,%c,?,4)"),
            ("(7)", T.INT_ARRAY, (7,)),
            ("(1,-2,3)", T.INT_ARRAY, (1, -2, 3)),
            ("[1,2]", T.INT_ARRAY, (1, 2)),
            ("(3.0)", T.FLOAT_ARRAY, (3.0,)),
            ("(0.5,1)", T.FLOAT_ARRAY, (0.5, 1.0)),
            ("(1,2.5)", T.FLOAT_ARRAY, (1.0, 2.5)),
            ("(inf,-inf)", T.FLOAT_ARRAY, (math.inf, -math.inf)),
            ("(same,reflect)", T.STRING_ARRAY, ("same", "reflect")),
            ("(1,x)", T.STRING_ARRAY, ("1", "x")),
            ("(True,False)", T.STRING_ARRAY, ("True", "False")),
            ("[None,None,[1,0]]", T.STRING_ARRAY, ("None", "None", "[1", "0]")),
            ("1.000000e+00+2.000000e+00j", T.COMPLEX, 1 + 2j),
            ("1.200000e+00+-9.000000e-01j", T.COMPLEX, 1.2 - 0.9j),
            ("1.200000e+00-9.000000e-01j", T.COMPLEX, 1.2 - 0.9j),
            ("-inf+nanj", T.COMPLEX, complex(-math.inf, NAN)),
            ("(1.0+2.0j,3)", T.COMPLEX_ARRAY, (1 + 2j, 3 + 0j)),
            ("(1.0e+00+-2.0e+00j)", T.COMPLEX_ARRAY, (1 - 2j,)),
        ],
    )
    def test_value(self, text, kind, value):
        parameter = Parameter.parse(text)
        assert parameter == Parameter(kind, value, "")
        assert type(parameter.value) is type(value)
        assert parameter.text == str(parameter) == text

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("(3,3", "'(3,3' lacks its closing bracket"),
            ("(", "'(' lacks its closing bracket"),
            (
                "9223372036854775808",
                "the integer '9223372036854775808' does not fit in 64 bits",
            ),
            (
                "-" + "9" * 5000,
                f"the integer '-{'9' * 38}…' does not fit in 64 bits",
            ),
            ("1e999", "the number '1e999' is too large"),
            ("(1,-1e999)", "the number '-1e999' is too large"),
        ],
    )
    def test_refused(self, text, reason):
        with pytest.raises(ValueError, match=re.escape(reason)) as caught:
            Parameter.parse(text)
        assert str(caught.value) == reason

    @pytest.mark.parametrize("text", ["1" * 200_000 + "x", "1." + "1" * 200_000 + "x"])
    def test_long_text_is_no_work(self, text):
        assert Parameter.parse(text).type is T.STRING


class TestOf:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, "None"),
            (True, "True"),
            (5, "5"),
            (-(2**31), "-2147483648"),
            (0.0, "0.0"),
            (-0.0, "0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e-5, "1.000000e-5"),
            (1e10, "1.000000e10"),
            (math.inf, "inf"),
            (-math.inf, "-inf"),
            (NAN, "nan"),
            ("zeros", "zeros"),
            ("", ""),
            ("%batch", "%batch"),
            ((), "()"),
            ([1, 2], "(1,2)"),
            ((0.5, 2), "(0.5,2.0)"),
            (("a", "b"), "(a,b)"),
            (1.2 - 0.9j, "1.200000e+00+-9.000000e-01j"),
            ((1j,), "(0.000000e+00+1.000000e+00j)"),
            (np.float32(0.5), "0.5"),
            (np.int64(3), "3"),
            ([np.int64(3), np.float64(1)], "(3.0,1.0)"),
        ],
    )
    def test_text(self, value, text):
        parameter = Parameter.of(value)
        assert parameter.text == text
        assert parameter == Parameter.parse(text)

    @pytest.mark.parametrize(
        ("value", "error", "reason"),
        [
            (2**31, ValueError, "2147483648 does not fit in the 32 bits of a PNNX integer"),
            (1e39, ValueError, "1e+39 does not fit in a float32"),
            ("1", ValueError, "'1' cannot be written as a PNNX parameter"),
            ("None", ValueError, "'None' cannot be written as a PNNX parameter"),
            ("a b", ValueError, "'a b' cannot be written as a PNNX parameter"),
            (("a,b",), ValueError, "('a,b',) cannot be written as a PNNX parameter"),
            (("1", "2"), ValueError, "('1', '2') cannot be written as a PNNX parameter"),
            (["%a"], ValueError, "['%a'] cannot be written as a PNNX parameter"),
            (b"x", TypeError, "PNNX has no parameter of type bytes"),
            (
                (True, False),
                TypeError,
                "PNNX has arrays of integers, of floats, of complex numbers or of strings",
            ),
            (
                (1, "a"),
                TypeError,
                "PNNX has arrays of integers, of floats, of complex numbers or of strings",
            ),
        ],
    )
    def test_refused(self, value, error, reason):
        with pytest.raises(error) as caught:
            Parameter.of(value)
        assert str(caught.value) == reason

    @given(
        st.one_of(
            st.booleans(),
            st.integers(-(2**31), 2**31 - 1),
            st.floats(width=32),
            st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1).map(tuple),
            st.lists(st.floats(width=32), min_size=1).map(tuple),
        )
    )
    def test_exact_for_float32(self, value):
        read = Parameter.parse(Parameter.of(value).text)
        assert read == Parameter.of(value)
        mine, theirs = (np.asarray(v, np.float64) for v in (read.value, value))
        np.testing.assert_array_equal(mine.astype(np.float32), theirs.astype(np.float32))

    @given(st.text())
    def test_strings_come_back_or_are_refused(self, text):
        try:
            parameter = Parameter.of(text)
        except ValueError:
            return
        assert Parameter.parse(parameter.text).value == text


class TestFloatText:
    # From pnnx's own float_to_string, compiled and run.
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.0001, "0.0001"),
            (9.9999e-05, "9.999900e-5"),
            (0.00012345678, "1.23456775e-4"),
            (0.33333334, "0.333333343"),
            (3.4641016, "3.46410155"),
            (0.70710677, "0.707106769"),
            (100000.0, "100000.0"),
            (999999.5, "999999.5"),
            (1000000.0, "1.000000e6"),
            (16777216.0, "1.67772160e7"),
            (-2.5, "-2.5"),
            (3.4028234663852886e38, "3.40282347e38"),
            (1.401298464324817e-45, "1.401298e-45"),
        ],
    )
    def test_spelling(self, value, text):
        assert float_text(value) == text

    @given(st.floats(width=32, allow_nan=False))
    def test_reads_back_as_the_same_float32(self, value):
        read = struct.unpack("<f", struct.pack("<f", float(float_text(value))))[0]
        assert read == value


class TestEquality:
    def test_same_value_of_other_text(self):
        assert Parameter.parse("(1,2)") == Parameter.parse("[1,2]")
        assert hash(Parameter.parse("(1,2)")) == hash(Parameter.parse("[1,2]"))
        assert Parameter.parse("1.0") == Parameter.parse("1.000000e0")

    def test_nan_is_nan(self):
        for text in ("nan", "(nan,1.0)", "nan+1j"):
            one, other = Parameter.parse(text), Parameter.parse(text)
            assert one == other
            assert hash(one) == hash(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [("1", "1.0"), ("1", "True"), ("(1)", "1"), ("(1,2)", "(1,2,3)"), ("nan", "1.0")],
    )
    def test_different(self, one, other):
        assert Parameter.parse(one) != Parameter.parse(other)

    def test_other_kinds(self):
        assert Parameter.parse("1") != 1

    def test_immutable(self):
        with pytest.raises(AttributeError):
            Parameter.parse("1").value = 2
