"""How an operator of the file meets the arguments of the code that computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from engine.errors import LayerError, ParameterError, ParseParameterAttrStatus
from engine.layers import Floats, Ints, Layer, Number, OperatorCall
from engine.layers.binding import FunctionLayer, bind
from engine.values import Array, Value

WEIGHT = np.arange(3, dtype=np.float32)


def call(params=None, attributes=None, inputs=("",), outputs=1):
    return OperatorCall("op_1", "test.op", params or {}, attributes or {}, inputs, outputs)


def show(input: Array, other: Array, alpha: float = 1.0, mode: str = "plain") -> Value:
    return (input, other, alpha, mode)


def optional(input: Array, weight: Array | None = None, bias: Array | None = None) -> Value:
    return (input, weight, bias)


def variadic(*tensors: Value, dim: int = 0) -> Value:
    return (*tensors, dim)


def anything(input: Array, **more: Any) -> Value:
    return tuple(sorted(more))


def typed(
    i: int = 0,
    f: float = 0.0,
    b: bool = False,
    s: str = "",
    ints: Ints = 0,
    floats: Floats | None = None,
    only: tuple[int, ...] = (),
    number: Number = 0,
    scalar_or_array: Array | float = 0.0,
    free: Any = None,
) -> Value:
    return {k: v for k, v in locals().items() if v is not None}


class Scale(Layer):
    """Multiplies by a weight."""

    def __init__(self, weight: Array, bias: Array | None = None, gain: float = 1.0) -> None:
        self.weight, self.bias, self.gain = weight, bias, gain

    def forward(self, input: Array, offset: Value = None) -> Value:
        return (input, offset)


class Plain(Layer):
    """Has no parameters."""

    def forward(self, input: Array) -> Value:
        return input


class Noisy(Layer):
    """Draws when it computes."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def forward(self, input: Array, *, numbers: Generator) -> Value:
        return input if numbers is None else input + self.gain * numbers.random()


def noisy(input: Array, gain: float = 1.0, other: Value = None, *, rng: Generator) -> Value:
    return (input, gain, other, None if rng is None else rng.random())


def late(input: Array, call: OperatorCall, rng: Generator, gain: float = 1.0) -> Value:
    return (input, call.name, gain, rng.random())


class Knowing(Layer):
    """Asks what operator it is built for."""

    def __init__(self, operator: OperatorCall, gain: float = 1.0) -> None:
        self.operator = operator

    def forward(self, *inputs: Value) -> Value:
        return (self.operator.name, self.operator.output_count, len(inputs))


class TestOperands:
    @pytest.mark.parametrize(
        ("names", "values", "expected"),
        [
            pytest.param(("", ""), (1, 2), (1, 2), id="by position"),
            pytest.param(("input", "other"), (1, 2), (1, 2), id="named in order"),
            pytest.param(("other", "input"), (1, 2), (2, 1), id="named in another order"),
            pytest.param(("other", ""), (1, 2), (2, 1), id="the rest goes by position"),
            pytest.param(("", "input"), (1, 2), (2, 1), id="position skips what is named"),
            pytest.param(("self", "other"), (1, 2), (1, 2), id="an unknown name is a place"),
            pytest.param(("mask", ""), (1, 2), (1, 2), id="an unknown name comes first"),
            pytest.param(("input", "input"), (1, 2), (1, 2), id="the same name twice"),
        ],
    )
    def test_slots(self, names, values, expected):
        layer = bind(show, call(inputs=names))
        assert layer.forward(*values) == (*expected, 1.0, "plain")

    def test_an_operand_may_stand_for_a_parameter(self):
        layer = bind(show, call({"mode": "m"}, inputs=("input", "other", "alpha")))
        assert layer.forward(1, 2, 3) == (1, 2, 3, "m")

    def test_an_operand_beats_the_parameter_of_the_same_name(self):
        layer = bind(show, call({"alpha": 9.0}, inputs=("input", "other", "alpha")))
        assert layer.forward(1, 2, 3) == (1, 2, 3, "plain")

    def test_a_parameter_may_stand_for_an_operand(self):
        layer = bind(lambda input, other: (input, other), call({"other": 2.5}))
        assert layer.forward(1) == (1, 2.5)

    def test_operands_step_over_parameters(self):
        layer = bind(lambda a, b, c: (a, b, c), call({"b": 5}, inputs=("", "")))
        assert layer.forward(1, 2) == (1, 5, 2)

    @pytest.mark.parametrize("names", [("", "", ""), ("a", "b", "a"), ("input", "", "")])
    def test_variadic(self, names):
        assert bind(variadic, call({"dim": 1}, inputs=names)).forward(5, 6, 7) == (5, 6, 7, 1)

    def test_variadic_with_a_named_operand(self):
        layer = bind(variadic, call(inputs=("tensors", "tensors", "dim")))
        assert layer.forward(5, 6, 2) == (5, 6, 2)

    def test_variadic_without_operands(self):
        assert bind(variadic, call(inputs=())).forward() == (0,)

    def test_too_many(self):
        with pytest.raises(ParameterError, match=r"^test.op 'op_1': 5 operands are more than"):
            bind(show, call(inputs=("",) * 5))

    def test_one_too_many(self):
        one = r"'op_1': 1 operand is more than this layer takes, which takes none$"
        with pytest.raises(ParameterError, match=one):
            bind(lambda: 0, call(inputs=("",)))

    def test_too_few(self):
        with pytest.raises(ParameterError, match=r"^test.op 'op_1': 'other' is missing$"):
            bind(show, call())


class TestOrders:
    """Operands without names, as raw aten operators have them."""

    @pytest.mark.parametrize(
        ("order", "operands", "expected"),
        [
            pytest.param("input other", (1, 2), (1, 2, 1.0, "plain"), id="its own"),
            pytest.param("other input", (1, 2), (2, 1, 1.0, "plain"), id="another"),
            pytest.param("other input mode alpha", (1, 2), (2, 1, 1.0, "plain"), id="longer"),
            pytest.param(
                "input _ mode other _", (1, 2, "m", 3, 4), (1, 3, 1.0, "m"), id="some"
            ),
        ],
    )
    def test_one(self, order, operands, expected):
        layer = bind(show, call(inputs=("",) * len(operands)), orders=(tuple(order.split()),))
        assert layer.forward(*operands) == expected

    def test_the_number_of_operands_tells_overloads_apart(self):
        orders = (("input", "other", "mode"), ("input", "other", "alpha", "mode"))
        three, four = (bind(show, call(inputs=("",) * n), orders=orders) for n in (3, 4))
        assert three.forward(1, 2, "m") == (1, 2, 1.0, "m")
        assert four.forward(1, 2, 0.5, "m") == (1, 2, 0.5, "m")

    def test_named_operands_need_none(self):
        layer = bind(show, call(inputs=("other", "input")), orders=(("input", "other"),))
        assert layer.forward(1, 2) == (2, 1, 1.0, "plain")

    def test_too_many(self):
        with pytest.raises(ParameterError, match=r"3 operands are more .*takes \(input, _\)$"):
            bind(show, call(inputs=("",) * 3), orders=(("input", "_"),))

    def test_arguments_without_a_name_go_by_position(self):
        def unnamed(input: Array, /, low: float = 0.0, high: float = 1.0) -> Value:
            return (input, low, high)

        layer = bind(unnamed, call({"low": 0.5}, inputs=("input", "high")))
        assert layer.forward(1, 2.0) == (1, 0.5, 2.0)


class TestUnused:
    """Arguments that make no difference here are accepted, and the code never sees them."""

    NAMES = ("device", "requires_grad")

    @pytest.mark.parametrize(
        "params",
        [
            {},
            {"device": None, "requires_grad": None},
            {"device": "cpu", "requires_grad": False},
            {"device": 0, "requires_grad": True},
        ],
    )
    def test_parameters(self, params):
        layer = bind(show, call({"alpha": 2.0, **params}, inputs=("", "")), unused=self.NAMES)
        assert layer.forward(1, 2) == (1, 2, 2.0, "plain")

    @pytest.mark.parametrize(
        ("name", "value", "sentence"),
        [
            ("device", (1,), "parameter device is (1,), not an integer or a word or None"),
            ("requires_grad", "x", "parameter requires_grad is 'x', not True or False or None"),
        ],
    )
    def test_wrong(self, name, value, sentence):
        with pytest.raises(ParameterError) as caught:
            bind(show, call({name: value}, inputs=("", "")), unused=self.NAMES)
        assert str(caught.value) == f"test.op 'op_1': {sentence}"
        assert caught.value.parameter == name

    def test_of_another_name_anything_will_do(self):
        layer = bind(optional, call({"hint": (1, "x")}), unused=("hint",))
        assert layer.forward(1) == (1, None, None)

    def test_only_what_is_registered(self):
        with pytest.raises(ParameterError, match=r"parameter layout=0 is not known"):
            bind(show, call({"layout": 0}, inputs=("", "")), unused=self.NAMES)

    def test_named_operands(self):
        names = ("device", "other", "requires_grad", "input")
        layer = bind(show, call(inputs=names), unused=self.NAMES)
        assert layer.forward("cpu", 2, False, 1) == (1, 2, 1.0, "plain")

    def test_operands_behind_the_codes_own(self):
        layer = bind(show, call(inputs=("",) * 6), unused=self.NAMES)
        assert layer.forward(1, 2, 3.0, "m", "cpu", False) == (1, 2, 3.0, "m")
        with pytest.raises(ParameterError, match="7 operands are more than this layer takes"):
            bind(show, call(inputs=("",) * 7), unused=self.NAMES)

    def test_in_an_order(self):
        orders = (("input", "device", "other"),)
        layer = bind(show, call(inputs=("",) * 3), orders=orders, unused=self.NAMES)
        assert layer.forward(1, "cpu", 2) == (1, 2, 1.0, "plain")

    def test_beside_any_number_of_operands(self):
        inputs = ("a", "device", "b")
        layer = bind(variadic, call({"requires_grad": True}, inputs=inputs), unused=self.NAMES)
        assert layer.forward(5, "cpu", 6) == (5, 6, 0)

    def test_of_a_class(self):
        given = call({"device": "cpu"}, {"weight": WEIGHT}, ("", "requires_grad", ""))
        layer = bind(Scale, given, unused=self.NAMES)
        assert layer.forward(1, False, 2) == (1, 2)
        layer = bind(Plain, call(inputs=("", "")), unused=self.NAMES)
        assert layer.forward(1, "cpu") == 1


class TestAttributes:
    def test_beats_the_flag_of_the_same_name(self):
        params, attributes = {"bias": True}, {"bias": WEIGHT}
        _, weight, bias = bind(optional, call(params, attributes)).forward(1)
        assert weight is None
        assert bias is WEIGHT

    def test_flag_alone(self):
        with pytest.raises(ParameterError) as caught:
            bind(optional, call({"bias": True}))
        assert caught.value.reason == "bias=True, but the model has no attribute @bias"
        assert caught.value.status is ParseParameterAttrStatus.kAttrMissingBias

    def test_flag_false_is_none(self):
        assert bind(optional, call({"bias": False})).forward(1) == (1, None, None)

    def test_dots_read_as_underscores(self):
        def attention(input: Array, out_proj_weight: Array) -> Value:
            return out_proj_weight

        layer = bind(attention, call(attributes={"out_proj.weight": WEIGHT}))
        assert layer.forward(1) is WEIGHT

    def test_unknown(self):
        with pytest.raises(ParameterError, match="attribute 'scale' is not known"):
            bind(optional, call(attributes={"scale": WEIGHT}))

    def test_any_name(self):
        layer = bind(anything, call({"a": 1}, {"w.x": WEIGHT}))
        assert layer.forward(1) == ("a", "w_x")


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("i", 3, 3),
            ("f", 2.5, 2.5),
            pytest.param("f", 2, 2.0, id="an integer for a float"),
            ("b", True, True),
            ("s", "same", "same"),
            ("ints", 3, 3),
            ("ints", (1, 2), (1, 2)),
            pytest.param("floats", (1, 2), (1.0, 2.0), id="integers for floats"),
            pytest.param("floats", (1.5,), (1.5,)),
            pytest.param("floats", 3, 3.0),
            ("only", (7,), (7,)),
            ("number", 3, 3),
            ("number", 1 + 2j, 1 + 2j),
            ("scalar_or_array", 2, 2.0),
            ("free", ("x", "y"), ("x", "y")),
            ("free", True, True),
        ],
    )
    def test_converted(self, name, value, expected):
        got = bind(typed, call({name: value}, inputs=())).forward()[name]
        assert got == expected
        assert type(got) is type(expected)

    @pytest.mark.parametrize(
        ("name", "value", "sentence"),
        [
            ("i", 2.5, "2.5, not an integer"),
            ("i", True, "True, not an integer"),
            ("i", None, "None, not an integer"),
            ("b", 1, "1, not True or False"),
            ("s", 1, "1, not a word"),
            ("f", "x", "'x', not a number"),
            ("f", True, "True, not a number"),
            (
                "ints",
                (1, 2.5),
                "(1, 2.5), not an integer or a list of integers",
            ),
            ("ints", "same", "'same', not an integer or a list of integers"),
            ("only", 3, "3, not a list of integers"),
            (
                "floats",
                "x",
                "'x', not a number or a list of numbers or None",
            ),
        ],
    )
    def test_wrong(self, name, value, sentence):
        with pytest.raises(ParameterError) as caught:
            bind(typed, call({name: value}, inputs=()))
        assert str(caught.value) == f"test.op 'op_1': parameter {name} is {sentence}"
        assert caught.value.parameter == name
        assert caught.value.operator == "op_1"
        assert caught.value.operator_type == "test.op"

    def test_unknown(self):
        with pytest.raises(ParameterError) as caught:
            bind(show, call({"beta": 1}, inputs=("", "")))
        assert caught.value.reason == (
            "parameter beta=1 is not known to this layer, which takes input, other, alpha, mode"
        )

    def test_long_values_are_cut(self):
        with pytest.raises(ParameterError, match="…") as caught:
            bind(typed, call({"i": tuple(range(100))}, inputs=()))
        assert len(str(caught.value)) < 120

    @pytest.mark.parametrize(
        ("missing", "status"),
        [
            ("stride", ParseParameterAttrStatus.kParameterMissingStride),
            ("kernel_size", ParseParameterAttrStatus.kParameterMissingKernel),
            ("dim", ParseParameterAttrStatus.kParameterMissingDim),
            ("weight", ParseParameterAttrStatus.kAttrMissingWeight),
            ("running_var", ParseParameterAttrStatus.kAttrMissingRunningVar),
            ("anything_else", ParseParameterAttrStatus.kParameterMissingUnknown),
        ],
    )
    def test_missing(self, missing, status):
        scope = {}
        exec(f"def needs({missing}): return {missing}", scope)
        with pytest.raises(ParameterError, match=f"{missing!r} is missing") as caught:
            bind(scope["needs"], call(inputs=()))
        assert caught.value.status is status

    def test_annotations_for_type_checkers_only_check_nothing(self):
        def from_a_user(input: NotImported, gain: int = 1) -> NotImported:  # noqa: F821
            return gain

        assert bind(from_a_user, call({"gain": "loud"})).forward(1) == "loud"


class TestClasses:
    def test_parameters_and_attributes_reach_the_constructor(self):
        layer = bind(Scale, call({"gain": 2, "bias": False}, {"weight": WEIGHT}))
        assert isinstance(layer, Scale)
        assert layer.weight is WEIGHT
        assert layer.bias is None
        assert layer.gain == 2.0

    def test_operands_by_name(self):
        layer = bind(Scale, call({}, {"weight": WEIGHT}, inputs=("offset", "input")))
        assert isinstance(layer, FunctionLayer)
        assert layer.forward(1, 2) == (2, 1)

    def test_missing_attribute(self):
        with pytest.raises(ParameterError) as caught:
            bind(Scale, call())
        assert caught.value.status is ParseParameterAttrStatus.kAttrMissingWeight

    def test_missing_operand(self):
        with pytest.raises(ParameterError, match="'input' is missing"):
            bind(Scale, call({}, {"weight": WEIGHT}, inputs=()))

    def test_without_a_constructor(self):
        assert bind(Plain, call()).forward(4) == 4
        with pytest.raises(ParameterError, match="gain=1 is not known to this layer"):
            bind(Plain, call({"gain": 1}))

    def test_parameters_as_operands(self):
        layer = bind(Scale, call(attributes={"weight": WEIGHT}, inputs=("input", "gain")))
        assert layer.forward(1, 2) == (1, None)
        with pytest.raises(ParameterError, match="parameter gain is 'high', not a number"):
            layer.forward(1, "high")

    @pytest.mark.parametrize("value", [(2, 3), np.array([2, 3])])
    def test_tensors_as_parameters(self, value):
        class Sized(Layer):
            def __init__(self, size: Ints, dim: int = 0) -> None:
                self.size, self.dim = size, dim

            def forward(self, input: Array) -> Value:
                return (self.size, self.dim)

        layer = bind(Sized, call(inputs=("size", "dim", "input")))
        assert layer.forward(value, np.array(1), 5) == ((2, 3), 1)

    def test_a_constant_operand_is_checked_when_the_model_opens(self):
        def known(gain):
            return OperatorCall(
                "op_1", "test.op", {}, {"weight": WEIGHT}, ("", "gain"), 1, {1: gain}
            )

        assert bind(Scale, known(2.0)).forward(1, 2.0) == (1, None)
        with pytest.raises(ParameterError, match="parameter gain is 'high', not a number"):
            bind(Scale, known("high"))

    def test_the_call_itself(self):
        layer = bind(Knowing, call({"gain": 2.0}, inputs=("", ""), outputs=3))
        assert layer.forward(1, 2) == ("op_1", 3, 2)

    @pytest.mark.parametrize("error", [LayerError, ValueError, TypeError])
    def test_what_the_constructor_finds_wrong_is_located(self, error):
        class Picky(Layer):
            def __init__(self, weight: Array) -> None:
                raise error("the weight is odd")

            def forward(self, input: Array) -> Value:
                return input

        with pytest.raises(ParameterError) as caught:
            bind(Picky, call({}, {"weight": WEIGHT}))
        assert str(caught.value) == "test.op 'op_1': the weight is odd"
        assert caught.value.shapes == ((3,),)

    def test_a_parameter_error_of_the_constructor_keeps_its_status(self):
        class Picky(Layer):
            def __init__(self, groups: int) -> None:
                raise ParameterError("groups", "groups do not divide the channels")

            def forward(self, input: Array) -> Value:
                return input

        with pytest.raises(ParameterError, match=r"^test.op 'op_1': groups do not") as caught:
            bind(Picky, call({"groups": 3}))
        assert caught.value.status is ParseParameterAttrStatus.kParameterMissingGroups


class TestGenerators:
    """An argument annotated ``numpy.random.Generator`` is given at each execution."""

    NUMBER = default_rng(3).random()

    def test_a_function_names_its_argument(self):
        layer = bind(noisy, call({"gain": 2.0}))
        assert layer.generator == "rng"
        assert layer.forward(1, rng=default_rng(3)) == (1, 2.0, None, self.NUMBER)

    @pytest.mark.parametrize("names", [("other", "input"), ("input", "other")])
    def test_beside_operands_by_name(self, names):
        layer = bind(noisy, call(inputs=names))
        result = layer.forward(*names, rng=default_rng(3))
        assert result == ("input", 1.0, "other", self.NUMBER)

    def test_a_class_names_its_argument(self):
        layer = bind(Noisy, call({"gain": 2}))
        assert isinstance(layer, Noisy)
        assert layer.forward(1, numbers=default_rng(3)) == 1 + 2 * self.NUMBER
        assert layer.generator == "numbers"

    def test_operands_step_over_what_the_frame_gives(self):
        layer = bind(late, call(inputs=("", "")))
        assert layer.forward(1, 2.5, rng=default_rng(3)) == (1, "op_1", 2.5, self.NUMBER)

    def test_it_is_no_parameter(self):
        with pytest.raises(ParameterError, match="which takes input, gain, other$"):
            bind(noisy, call({"rng": 1}))

    @pytest.mark.parametrize("target", [show, Scale, Plain])
    def test_most_layers_draw_nothing(self, target):
        attributes = {"weight": WEIGHT} if target is Scale else {}
        inputs = ("",) * (2 if target is show else 1)
        assert bind(target, call({}, attributes, inputs)).generator == ""

    @pytest.mark.parametrize(
        ("params", "inputs", "random"),
        [
            pytest.param({}, ("",), True, id="the default is another"),
            pytest.param({"gain": 0.0}, ("",), False, id="a parameter"),
            pytest.param({"gain": 0}, ("",), False, id="a parameter of another kind"),
            pytest.param({}, ("input", "gain"), True, id="an operand may be anything"),
        ],
    )
    @pytest.mark.parametrize("target", [noisy, Noisy])
    def test_a_value_can_keep_it_from_drawing(self, target, params, inputs, random):
        layer = bind(target, call(params, inputs=inputs), {"gain": 0})
        assert bool(layer.generator) == random
        if not random:
            result = layer.forward(1)  # without numbers
            assert result in {1, (1, 0.0, None, None)}

    def test_a_default_can_keep_it_from_drawing(self):
        assert not bind(noisy, call(), {"gain": 1}).generator
        assert not bind(Noisy, call(), {"gain": 1}).generator
        assert bind(noisy, call(inputs=("", "gain")), {"gain": 1}).generator

    @pytest.mark.parametrize(("constant", "random"), [(1.0, False), (2.0, True), (None, True)])
    def test_a_constant_of_the_file_can_too(self, constant, random):
        known = OperatorCall("op_1", "test.op", {}, {}, ("", "gain"), 1, {1: constant})
        assert bool(bind(noisy, known, {"gain": 1}).generator) == random
