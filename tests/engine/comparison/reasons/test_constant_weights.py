"""Wrong weights that reach a product of matrices as constant operands."""

from __future__ import annotations

import numpy as np
import pytest

from array_reference import compare, reference_of

RNG = np.random.default_rng(21)
WIDTH, OUTPUTS = 8, 6


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


# The operator, and whether its matrix has the inputs first.
PRODUCTS = {
    "addmm": ("torch.addmm op 3 1 2 0 1 3 alpha=1 beta=1 $input=2 $mat1=0 $mat2=1", True),
    "linear": ("F.linear op 3 1 0 1 2 3 $input=0 $weight=1 $bias=2", False),
    "matmul": ("torch.matmul op 2 1 0 1 3 $input=0 $other=1", True),
}


def model(name, rows):
    """A product with a matrix that is an operator of its own, and a tanh."""
    line, inputs_first = PRODUCTS[name]
    shape = (WIDTH, OUTPUTS) if inputs_first else (OUTPUTS, WIDTH)
    lines = [f"pnnx.Input in 0 1 0 #0=({rows},{WIDTH})f32"]
    lines.append(f"pnnx.Attribute matrix 0 1 1 @data=({shape[0]},{shape[1]})f32")
    if name != "matmul":
        lines.append(f"pnnx.Attribute shift 0 1 2 @data=({OUTPUTS})f32")
    lines += [f"{line} #3=({rows},{OUTPUTS})f32", "F.tanh act 1 1 3 4 $input=3"]
    return [*lines, "pnnx.Output out 1 0 4"], inputs_first


def given_weights(name, weight, bias, *, inputs_first):
    given = {"matrix.data": weight.T if inputs_first else weight}
    return given if name == "matmul" else given | {"shift.data": bias}


def recorded(x, weight, bias, *, in_two_calls):
    """What a recorder notes: PyTorch computes a product and the sum with its bias, or both."""
    product = x.astype(np.float64) @ weight.T.astype(np.float64)
    arrays = {"x": x, "p": product, "y": product + bias, "t": np.tanh(product + bias)}
    arrays = {key: array.astype("f4") for key, array in arrays.items()}
    if in_two_calls:
        calls = [("aten::mm", ("x",), "p", {"weight": weight})]
        calls += [("aten::add", ("p",), "y", {"bias": bias})]
    else:
        del arrays["p"]
        calls = [("aten::addmm", ("x",), "y", {"weight": weight, "bias": bias})]
    return reference_of(arrays, [*calls, ("aten::tanh", ("y",), "t", {})])


@pytest.mark.parametrize("in_two_calls", [False, True])
@pytest.mark.parametrize("name", PRODUCTS)
def test_hashes_name_the_constant_that_differs(make_pair, name, in_two_calls):
    """Three rows tell no numbers."""
    x, weight, bias = normal(3, WIDTH), normal(OUTPUTS, WIDTH), normal(OUTPUTS)
    if name == "matmul":
        bias = np.zeros(OUTPUTS, "f4")
    lines, inputs_first = model(name, 3)
    wrong = np.roll(weight.reshape(-1), 1).reshape(weight.shape)
    given = given_weights(name, wrong, bias, inputs_first=inputs_first)
    reference = recorded(x, weight, bias, in_two_calls=in_two_calls)
    (origin,) = compare(make_pair(*lines, weights=given), reference, x).origins
    assert origin.operator.name == "op"
    assert origin.reasons[0].kind == "weight_values"
    assert "as its hash tells" in origin.reasons[0].text
    assert "'matrix'" in origin.reasons[0].text


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_changed_number_of_the_constant_is_solved(make_pair, name):
    x, weight, bias = normal(40, WIDTH), normal(OUTPUTS, WIDTH), np.zeros(OUTPUTS, "f4")
    wrong = weight.copy()
    wrong[2, 3] += 1.5
    lines, inputs_first = model(name, 40)
    given = given_weights(name, wrong, bias, inputs_first=inputs_first)
    product = (x @ weight.T).astype("f4")
    arrays = {"x": x, "y": product, "t": np.tanh(product)}
    calls = [("mm", ("x",), "y", {}), ("tanh", ("y",), "t", {})]
    (origin,) = compare(
        make_pair(*lines, weights=given), reference_of(arrays, calls), x
    ).origins
    assert origin.operator.name == "op"
    assert origin.reasons[0].kind == "weight_values"
    (change,) = origin.reasons[0].changes
    assert change.name == "matrix.data"
    stored = weight.T if inputs_first else weight
    assert np.abs(change.value - stored).max() < 1e-3


def test_inputs_of_the_constant_in_another_order_are_a_layout(make_pair):
    x, weight, bias = normal(40, WIDTH), normal(OUTPUTS, WIDTH), np.zeros(OUTPUTS, "f4")
    lines, inputs_first = model("addmm", 40)
    given = given_weights("addmm", weight[:, ::-1], bias, inputs_first=inputs_first)
    product = (x @ weight.T).astype("f4")
    arrays = {"x": x, "y": product, "t": np.tanh(product)}
    calls = [("mm", ("x",), "y", {}), ("tanh", ("y",), "t", {})]
    (origin,) = compare(
        make_pair(*lines, weights=given), reference_of(arrays, calls), x
    ).origins
    assert origin.reasons[0].kind == "weight_layout"
    (change,) = origin.reasons[0].changes
    assert change.name == "matrix.data"
    np.testing.assert_array_equal(change.value, weight.T)
