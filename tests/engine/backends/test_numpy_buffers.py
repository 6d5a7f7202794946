"""NumPy with reused buffers: equal numbers, and cases that it does not compute."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.backends import describe_kernel, make_kernels
from engine.backends.numpy_buffers import NumpyBuffers

SPECIAL = [0.0, -0.0, 1.5, -2.5, 7.0, np.nan, np.inf, -np.inf]


def arrays(*shapes):
    rng = np.random.default_rng(8)
    found = [rng.normal(0, 4, shape).astype(np.float32) for shape in shapes]
    found[0].flat[: len(SPECIAL)] = SPECIAL[: found[0].size]
    return found


def compiled(operator, operator_type, inputs, **params):
    built = operator(operator_type, inputs, **params)
    made = NumpyBuffers().variants(built, inputs)
    return made["buffer"]() if made else None


def clipped(low, high):
    def by_hand(x):
        if np.isnan(x):
            return x
        return low if x < low else min(x, high)

    return by_hand


ACTIVATIONS = {
    "nn.ReLU": ({}, clipped(0, np.inf)),
    "F.relu": ({}, clipped(0, np.inf)),
    "nn.ReLU6": ({}, clipped(0, 6)),
    "nn.Hardtanh": ({"min_val": -1.0, "max_val": 2.0}, clipped(-1, 2)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(2, 3, 4), (24,), (1, 1, 4, 6)])
def test_activations(operator, name, shape):
    params, by_hand = ACTIVATIONS[name]
    (x,) = arrays(shape)
    (found,) = compiled(operator, name, [x], **params)([x])
    expected = np.array([by_hand(number) for number in x.flat], np.float32).reshape(shape)
    np.testing.assert_array_equal(found, expected, strict=True)
    assert not found.flags.writeable


def test_tanh(operator):
    (x,) = arrays((2, 3, 4))
    (found,) = compiled(operator, "nn.Tanh", [x])([x])
    expected = np.array([math.tanh(number) for number in x.flat]).reshape(x.shape)
    np.testing.assert_allclose(found, expected, rtol=3e-7)
    assert (found.dtype, found.flags.writeable) == (np.float32, False)


EXPRESSIONS = {
    "add(@0,@1)": lambda a, b: a + b,
    "sub(@1,@0)": lambda a, b: b - a,
    "mul(@0,@1)": lambda a, b: a * b,
    "div(@0,@1)": lambda a, b: a / b,
    "mul(@0,@0)": lambda a, _: a * a,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("shapes", [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((4, 5), ())])
def test_expressions(operator, text, shapes):
    a, b = arrays(*shapes)
    (found,) = compiled(operator, "pnnx.Expression", [a, b], expr=text)([a, b])
    with np.errstate(all="ignore"):
        wide = np.broadcast_arrays(a, b)
        numbers = [EXPRESSIONS[text](x, y) for x, y in zip(*map(np.ravel, wide), strict=True)]
    np.testing.assert_array_equal(found, np.reshape(numbers, wide[0].shape), strict=True)


@pytest.mark.parametrize(
    ("text", "expected"), [("add(@0,1)", 3.5), ("div(1.0,@0)", 0.4), ("mul(2,@0)", 5.0)]
)
def test_numbers_in_expressions(operator, text, expected):
    x = np.full((3, 2), 2.5, np.float32)
    (found,) = compiled(operator, "pnnx.Expression", [x], expr=text)([x])
    np.testing.assert_array_equal(found, np.full((3, 2), np.float32(expected)), strict=True)


def test_elements_in_another_memory_order(operator):
    x = arrays((4, 6))[0].T
    (found,) = compiled(operator, "nn.ReLU", [x])([x])
    np.testing.assert_array_equal(found, np.where(x < 0, 0, x))


LEFT = {
    "doubles": ("nn.ReLU", [np.ones(4)], {}),
    "integers": ("nn.ReLU", [np.ones(4, np.int64)], {}),
    "nothing": ("nn.ReLU", [np.ones((0, 4), np.float32)], {}),
    "mixed": ("pnnx.Expression", [np.ones(4, np.float32), np.ones(4)], {"expr": "add(@0,@1)"}),
    "two operations": (
        "pnnx.Expression", [np.ones(4, np.float32)], {"expr": "add(mul(@0,2),1)"},
    ),
    "one operand": ("pnnx.Expression", [np.ones(4, np.float32)], {"expr": "sqrt(@0)"}),
    "another operation": (
        "pnnx.Expression", [np.ones(4, np.float32)] * 2, {"expr": "pow(@0,@1)"},
    ),
    "no pass": ("nn.Softmax", [np.ones((2, 3), np.float32)], {"dim": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_other_operators_have_no_variant(operator, name):
    operator_type, inputs, params = LEFT[name]
    built = operator(operator_type, inputs, **params)
    backend = NumpyBuffers()
    assert not backend.supports(built) or not backend.variants(built, inputs)


def test_unused_memory_is_reused(operator):
    (x,) = arrays((64, 64))
    run = compiled(operator, "nn.ReLU", [x])
    first = run([x])[0].__array_interface__["data"][0]
    held = run([x])[0]
    assert held.__array_interface__["data"][0] == first
    other = run([-x])[0]
    assert other.__array_interface__["data"][0] != first
    np.testing.assert_array_equal(held, np.where(x < 0, 0, x))


def test_recorded(operator):
    (x,) = arrays((2, 3, 4))
    built = operator("nn.ReLU", [x])
    kernel = make_kernels({"op": "numpy/buffer"}, [built])[0]
    kernel.prepare([x])
    np.testing.assert_array_equal(kernel([x])[0], np.where(x < 0, 0, x))
    assert kernel.name == "numpy/buffer"
    assert describe_kernel(kernel.name) == "NumPy, into a reused buffer"


def test_an_operator_with_missing_outputs_is_left_to_its_layer(operator):
    """Its layer reports them, even if the operator with one output has this kernel."""
    (x,) = arrays((2, 3))
    built = operator("nn.Tanh", [x], outputs=2)
    assert NumpyBuffers().variants(built, [x]) == {}
