"""What annotations say, whichever kind of alias they are written with."""

from __future__ import annotations

import sys
import textwrap
import typing
from operator import attrgetter
from typing import Annotated, Any, Optional, TypeVar, Union, get_args, get_origin

import numpy as np
import pytest
from typing_extensions import TypeAliasType

from engine.errors import ParameterError
from engine.layers import OperatorCall, load_layers, unload_layers
from engine.layers.annotations import hints_of, is_union, parameters_of
from engine.layers.binding import bind, describe_annotation, takes_array
from engine.layers.notes import note
from engine.layers.registry import registration

Item = TypeVar("Item")
Other = TypeVar("Other")

# The backport, and the class that a `type` statement makes where Python has that.
KINDS = {TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType)}
kinds = pytest.mark.parametrize("alias", sorted(KINDS, key=str), ids=attrgetter("__module__"))
statements = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python has `type` statements from 3.12 on"
)


def hint_of(annotation):
    def code(value): ...

    code.__annotations__ = {"value": annotation}
    return hints_of(code)["value"]


def arrays(alias):
    """As ``npt.NDArray`` is from NumPy 2.5 on."""
    return alias("NDArray", np.ndarray[Any, np.dtype[Item]], type_params=(Item,))


@kinds
class TestAliases:
    def test_of_a_type(self, alias):
        assert hint_of(alias("Gain", float)) is float

    def test_of_an_alias(self, alias):
        assert hint_of(alias("Outer", alias("Inner", int))) is int

    @pytest.mark.parametrize("argument", [Any, np.float32])
    def test_with_an_argument(self, alias, argument):
        assert get_origin(hint_of(arrays(alias)[argument])) is np.ndarray

    def test_without_its_argument(self, alias):
        assert get_origin(hint_of(arrays(alias))) is np.ndarray
        assert hint_of(alias("Items", tuple[Item, ...], type_params=(Item,))) == tuple[Any, ...]

    def test_arguments_go_where_their_parameters_stand(self, alias):
        pair = alias("Pair", tuple[Other, Item], type_params=(Item, Other))
        assert hint_of(pair[int, str]) == tuple[str, int]

    def test_that_is_nothing_but_its_argument(self, alias):
        same = alias("Same", Item, type_params=(Item,))
        assert hint_of(same[int]) is int
        assert hint_of(same) is Any

    def test_used_within_its_own_argument(self, alias):
        maybe = alias("Maybe", Item | None, type_params=(Item,))
        assert set(get_args(hint_of(maybe[maybe[int]]))) == {int, type(None)}

    def test_in_unions(self, alias):
        number = alias("Number", int | float)
        hints = [Optional[number], Union[None, number], alias("Outer", number) | None]  # noqa: UP007, UP045
        for hint in map(hint_of, hints):
            assert is_union(hint)
            assert set(get_args(hint)) == {int, float, type(None)}

    def test_in_tuples(self, alias):
        size = alias("Size", int)
        sizes = alias("Sizes", size | tuple[size, ...])
        assert set(get_args(hint_of(sizes))) == {int, tuple[int, ...]}
        assert hint_of(tuple[sizes, size]) == tuple[int | tuple[int, ...], int]

    def test_within_annotated(self, alias):
        assert hint_of(alias("Gain", Annotated[float, "decibel"])) is float

    def test_of_the_call_and_of_random_numbers(self, alias):
        """Arguments that are known by their annotation."""
        numbers = alias("Numbers", np.random.Generator)
        called = alias("Called", OperatorCall)

        def noisy(input, rng, call): ...

        noisy.__annotations__ = {"rng": numbers, "call": called}
        layer = bind(noisy, OperatorCall("op", "test.op", {}, input_names=("",)))
        assert layer.generator == "rng"
        assert layer.static["call"].name == "op"

    def test_as_a_string(self, alias):
        assert hint_of(alias("Late", "int | None")) is Any
        assert hint_of(alias("Late", tuple["Missing", ...])) == tuple[Any, ...]  # noqa: F821

    def test_what_binding_asks(self, alias):
        array = arrays(alias)[Any]
        optional = hint_of(array | None)
        assert takes_array(optional)
        assert describe_annotation(optional) == "a tensor or None"
        assert takes_array(hint_of(array | int | None))
        assert not takes_array(hint_of(alias("Ints", int | tuple[int, ...])))

    def test_a_flag_in_place_of_a_tensor(self, alias):
        """``bias=False`` where the model has no ``@bias``."""

        def biased(input, bias=None):
            return bias

        def call(value):
            return OperatorCall("op", "test.op", {"bias": value}, input_names=("",))

        biased.__annotations__ = {"bias": arrays(alias)[Any] | None}
        assert bind(biased, call(False)).forward(1) is None
        with pytest.raises(ParameterError, match="the model has no attribute @bias"):
            bind(biased, call(True))
        with pytest.raises(ParameterError, match="bias is 'x', not a tensor or None"):
            bind(biased, call("x"))


def test_without_aliases_nothing_changes():
    def code(
        a: int, b: float | None, c: tuple[int, ...], d: np.ndarray[Any, Any], e: Any, f: None
    ): ...

    assert hints_of(code) == {
        "a": int,
        "b": float | None,
        "c": tuple[int, ...],
        "d": np.ndarray[Any, Any],
        "e": Any,
        "f": type(None),
    }


@statements
def test_an_alias_that_contains_itself():
    scope = {}
    exec("type Nested = int | tuple[Nested, ...]", scope)
    assert set(get_args(hint_of(scope["Nested"]))) == {int, tuple[Any, ...]}


def test_an_open_type_is_anything():
    def code(a: Item, b: tuple[Item, ...]) -> Item: ...

    assert hints_of(code) == {"a": Any, "b": tuple[Any, ...], "return": Any}


def test_a_name_that_does_not_exist():
    def code(first: Missing, second: int = 2): ...  # noqa: F821

    with pytest.raises(NameError):
        hints_of(code)
    assert [each.name for each in parameters_of(code)] == ["first", "second"]


@pytest.fixture
def load(tmp_path):
    """A function that loads a user's file of layers, which is forgotten afterwards."""

    def load(text):
        path = tmp_path / "mine.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_layers(path)

    yield load
    unload_layers()


class TestUsersFiles:
    """Nobody asks them for ``from __future__ import annotations`` or for `engine.values`."""

    def check(self):
        target = registration("my.Scale").target
        attributes = {"weight": np.ones(2, np.float32)}

        def layer(**params):
            return bind(target, OperatorCall("op", "my.Scale", params, attributes, ("",)))

        np.testing.assert_array_equal(layer(bias=False, size=3).forward(np.ones(2)), [3, 3])
        with pytest.raises(
            ParameterError, match="size is 'x', not an integer or a list of int"
        ):
            layer(size="x")
        arguments = {each.name: each for each in note("my.Scale").arguments}
        assert arguments["size"].accepts == "an integer or a list of integers"

    def test_with_numpys_own_alias(self, load):
        load(
            """
            import numpy as np
            import numpy.typing as npt
            from engine.layers import register

            @register("my.Scale")
            def scale(
                input: npt.NDArray[np.float32],
                weight: npt.NDArray[np.float32],
                bias: npt.NDArray[np.float32] | None = None,
                size: int | tuple[int, ...] = 1,
            ) -> npt.NDArray[np.float32]:
                return input * weight * size
            """
        )
        self.check()

    @statements
    def test_with_type_statements(self, load):
        load(
            """
            import numpy as np
            from engine.layers import register

            type Tensor[Number: np.generic] = np.ndarray[tuple[int, ...], np.dtype[Number]]
            type Maybe[Thing] = Thing | None
            type OneOrMore[Thing] = Thing | tuple[Thing, ...]
            type Sizes = OneOrMore[int]

            @register("my.Scale")
            def scale(
                input: Tensor[np.float32],
                weight: Tensor[np.float32],
                bias: Maybe[Tensor[np.float32]] = None,
                size: Sizes = 1,
            ) -> Tensor[np.float32]:
                return input * weight * size
            """
        )
        self.check()
