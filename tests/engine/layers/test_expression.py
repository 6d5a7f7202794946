"""pnnx.Expression as an operator; the language itself is tested in tests/engine/expression."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ParameterError, ParseParameterAttrStatus

X = np.array([1, 4, 9], np.float32)


@pytest.mark.parametrize(
    ("expr", "operands", "expected"),
    [
        ("add(@0,mul(@1,2.5))", (X, X), [3.5, 14, 31.5]),
        ("sqrt(@0)", (X,), [1, 2, 3]),
        ("sub(10,@0)", (X,), [9, 6, 1]),
        ("size(@0,0)", (X,), 3),
        ("[size(@0,0),-1]", (X,), (3, -1)),
        ("log1p,@0", (np.zeros(2, np.float32),), [0, 0]),
        (2, (), 2),
        (1.5, (), 1.5),
        (None, (), None),
        (False, (), False),
        (1.5 - 2j, (), 1.5 - 2j),
        ((2, 3), (), (2, 3)),
        (("@0", "@1"), (1, 2), (1, 2)),
        (("[2", "1]", "[0", "1]"), (), ((2, 1), (0, 1))),
    ],
)
def test_values(run, expr, operands, expected):
    result = run("pnnx.Expression", *operands, expr=expr)
    if isinstance(expected, list):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    else:
        assert result == expected
        assert type(result) is type(expected)


def test_a_list_holds_its_operands_themselves(run):
    (member,) = run("pnnx.Expression", X, expr=("@0",))
    np.testing.assert_array_equal(member, X)


def test_operand_names_mean_nothing(run):
    result = run("pnnx.Expression", X, X, names=("input", "input"), expr="sub(@0,@1)")
    np.testing.assert_array_equal(result, [0, 0, 0])


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        ("add(@0,@2)", "no operand @2"),
        ("add(@0", "never closed"),
        ("frobnicate(@0)", "frobnicate"),
        ("", "empty"),
    ],
)
def test_faults_are_found_when_the_model_opens(run, expr, reason):
    with pytest.raises(ParameterError, match=reason) as caught:
        run("pnnx.Expression", X, X, expr=expr)
    assert caught.value.status is ParseParameterAttrStatus.kParameterMissingExpr


def test_without_an_expression(run):
    with pytest.raises(ParameterError, match="'expr' is missing") as caught:
        run("pnnx.Expression", X)
    assert caught.value.status is ParseParameterAttrStatus.kParameterMissingExpr
