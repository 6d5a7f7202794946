"""Evaluation of whole expressions, against NumPy and against stored results of PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ExpressionError
from engine.expression import FUNCTIONS, parse

X = np.array([[0.5, 1.0, 2.0], [3.0, 4.0, 0.25]], np.float32)


def test_a_batch():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(2, 3, 4, 5)).astype(np.float32)
    b = rng.normal(size=(3, 1, 1)).astype(np.float32)
    result = parse("add(mul(@0,@1),0.5)").evaluate([a, b])
    assert result.shape == (2, 3, 4, 5)
    assert result.dtype == np.float32
    for n, c, y, x in np.ndindex(a.shape):
        expected = float(a[n, c, y, x]) * float(b[c, 0, 0]) + 0.5
        assert result[n, c, y, x] == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sub(mul(@0,2),1)", [[0, 1, 3], [5, 7, -0.5]]),
        ("pow(2,@0)", [[2**0.5, 2, 4], [8, 16, 2**0.25]]),
        ("sub(1,@0)", [[0.5, 0, -1], [-2, -3, 0.75]]),
        ("floor(mul(@0,2.5))", [[1, 2, 5], [7, 10, 0]]),
        ("expm1,log1p,@0", X.tolist()),
        ("div(@0,size(@0,1))", [[1 / 6, 1 / 3, 2 / 3], [1, 4 / 3, 1 / 12]]),
        ("add(@0,@0)", [[1, 2, 4], [6, 8, 0.5]]),
    ],
)
def test_float32_stays_float32(text, expected):
    result = parse(text).evaluate([X])
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "dtypes", "expected"),
    [
        ("add(@0,@1)", ("int64", "int64"), "int64"),
        ("add(@0,1)", ("uint8",), "uint8"),
        ("mul(@0,2.5)", ("int64",), "float32"),
        ("div(@0,2)", ("int64",), "float32"),
        ("sqrt(@0)", ("int32",), "float32"),
        ("mul(@0,2.5)", ("float16",), "float16"),
        ("add(@0,@1)", ("float32", "float64"), "float64"),
        ("add(@0,@1)", ("int64", "float16"), "float16"),
        ("sub(@0,4.0e+00j)", ("float32",), "complex64"),
        ("sub(@0,4.0e+00j)", ("float64",), "complex128"),
        ("floor(@0)", ("int64",), "int64"),
        ("xor(@0,3)", ("int32",), "int32"),
        ("add(@0,torch.double(1))", ("float32",), "float32"),
        ("add(@0,torch.double(1))", ("int64",), "float64"),
    ],
)
def test_dtype_of_the_result(text, dtypes, expected):
    operands = [np.ones(3, dtype) for dtype in dtypes]
    assert parse(text).evaluate(operands).dtype == np.dtype(expected)


def test_literals_and_lists():
    assert parse("None").evaluate([]) is None
    assert parse("False").evaluate([]) is False
    assert parse("same").evaluate([]) == "same"
    assert parse("[None,None,[1,0]]").evaluate([]) == (None, None, (1, 0))
    assert parse("[int(size(@0,0)),-1]").evaluate([X]) == (2, -1)
    value = parse("[@0,@1]").evaluate([X, 3])
    assert value[0] is X
    assert value[1] == 3


def test_operands_are_not_written_to():
    x = X.copy()
    x.flags.writeable = False
    for name, function in FUNCTIONS.items():
        if name.startswith("torch.") or name in {"and", "or", "xor", "lshift", "rshift"}:
            continue
        if name not in {"size", "int", "float", "bool"}:
            parse(f"{name}({','.join(['@0'] * function.least)})").evaluate([x])
    np.testing.assert_array_equal(x, X)
    assert parse("@0").evaluate([x]) is x


def test_steps():
    expression = parse("add(mul(@0,2),neg(1))")
    steps = list(expression.evaluate_steps([X]))
    assert [node for node, _ in steps] == list(expression.nodes)
    assert steps[0][1] is X
    np.testing.assert_array_equal(steps[2][1], X * 2)
    assert steps[4][1] == -1
    np.testing.assert_array_equal(steps[5][1], X * 2 - 1)


def test_steps_before_a_failure_are_given():
    steps = parse("add(mul(@0,2),neg(None))").evaluate_steps([X])
    seen = []
    with pytest.raises(ExpressionError, match="neg: takes tensors and numbers"):
        seen.extend(node.label for node, _ in steps)
    assert seen == ["@0", "2", "mul", "None"]


def test_an_operand_that_is_not_there():
    with pytest.raises(ExpressionError) as caught:
        parse("add(@0,mul(@1,2))").evaluate([X])
    assert caught.value.position == 11
    assert caught.value.reason == "there is no operand @1; the operator has 1"


def test_the_error_state_of_numpy_is_left_alone():
    before = np.geterr()
    for _ in parse("log(div(@0,0))").evaluate_steps([-X]):
        assert np.geterr() == before


@pytest.mark.slow
def test_any_depth():
    depth = 100_000
    assert parse("add(" * depth + "@0" + ",1)" * depth).evaluate([0]) == depth


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
          "maximum": np.maximum, "min": np.minimum, "atan2": np.arctan2,
          "remainder": np.remainder, "fmod": np.fmod, "floor_divide": np.floor_divide,
          "logaddexp": np.logaddexp}  # fmt: skip
UNARY = {"neg": np.negative, "abs": np.abs, "exp": np.exp, "sin": np.sin, "tanh": np.tanh,
         "square": np.square, "sqrt": np.sqrt, "log": np.log, "cos": np.cos}  # fmt: skip
INTEGER = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum,
           "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
           "neg": np.negative, "square": np.square, "abs": np.abs}  # fmt: skip


def _trees(leaves, functions):
    """Random (name, argument…) tuples over `leaves`."""

    def calls(children):
        return st.sampled_from(sorted(functions)).flatmap(
            lambda name: st.tuples(st.just(name), *[children] * FUNCTIONS[name].least)
        )

    return st.recursive(leaves, calls, max_leaves=12)


def _written(tree):
    if isinstance(tree, tuple):
        return f"{tree[0]}({', '.join(map(_written, tree[1:]))})"
    return tree if isinstance(tree, str) else repr(tree)


def _by_numpy(tree, functions, operands, scalar):
    """Straight recursion; Python scalars in 64 bits until they meet an array."""
    if isinstance(tree, str):
        return operands[int(tree[1:])]
    if not isinstance(tree, tuple):
        return scalar(tree)
    args = [_by_numpy(arg, functions, operands, scalar) for arg in tree[1:]]
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    with np.errstate(all="ignore"):
        if arrays:
            args = [np.asarray(arg).astype(arrays[0].dtype) for arg in args]
        return functions[tree[0]](*args)


def _same(result, expected):
    if isinstance(expected, np.ndarray):
        assert result.dtype == expected.dtype
    else:
        assert isinstance(result, (int, float))
    np.testing.assert_array_equal(result, expected)


@given(_trees(st.sampled_from(["@0", "@1"]) | st.floats(), BINARY | UNARY))
def test_random_float_trees_against_numpy(tree):
    operands = [X, np.array([[-1.5, 0.0, 7.25]], np.float32)]
    expected = _by_numpy(tree, BINARY | UNARY, operands, np.float64)
    _same(parse(_written(tree)).evaluate(operands), expected)


@given(_trees(st.sampled_from(["@0", "@1"]) | st.integers(-(2**63), 2**63 - 1), INTEGER))
def test_random_integer_trees_against_numpy(tree):
    operands = [np.array([[5, -3, 2**62], [0, 1, -1]]), np.array([-(2**63), 7, 12])]
    expected = _by_numpy(tree, INTEGER, operands, np.int64)
    _same(parse(_written(tree)).evaluate(operands), expected)


def test_live_against_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(11)
    a, b = rng.normal(size=(2, 4, 3)).astype(np.float32) * 3
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    expected = torch.logaddexp(torch.erf(ta) * 2 - tb % 2.5, torch.atan2(ta, tb) // 0.5)
    text = "logaddexp(sub(mul(erf(@0),2),remainder(@1,2.5)),floor_divide(atan2(@0,@1),0.5))"
    result = parse(text).evaluate([a, b])
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected.numpy(), rtol=1e-5, atol=1e-6)
