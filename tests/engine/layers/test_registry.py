"""The table of layers: one registration per type, helpful errors, complete annotations."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import numpy as np
import pytest

from engine.errors import InferStatus, UnsupportedOperatorError
from engine.layers import (
    Layer,
    OperatorCall,
    build_layer,
    layer_table,
    register,
    registered_types,
    registration,
    registry,
)


@pytest.fixture
def empty_registry(monkeypatch):
    monkeypatch.setattr("engine.layers.registry._registry", type(registry._registry)())


def double(input):
    return input * 2


def test_a_registered_function_computes(empty_registry):
    register("test.double")(double)
    layer = build_layer(OperatorCall("d", "test.double", {}, input_names=("",)))
    assert layer.forward(np.float32(3)) == 6


def test_registering_returns_the_function_itself(empty_registry):
    assert register("test.double")(double) is double


def test_several_types_share_one_target(empty_registry):
    register("test.b", "test.a")(double)
    assert registered_types() == ("test.a", "test.b")
    assert registration("test.a").target is registration("test.b").target is double


def test_registering_twice_is_an_error_that_names_the_first(empty_registry):
    register("test.double")(double)
    with pytest.raises(ValueError, match=r"'test.double' is already registered by .*double"):
        register("test.double")(lambda input: input)
    assert registration("test.double").target is double


def test_an_unknown_type_is_not_registered():
    assert registration("test.nothing") is None


def test_an_unknown_type_is_unsupported_and_suggests(empty_registry):
    register("test.double")(double)
    with pytest.raises(UnsupportedOperatorError) as caught:
        build_layer(OperatorCall("d0", "test.doubl", {}))
    assert str(caught.value) == (
        "'d0': no layer for operator type test.doubl; the nearest known type is test.double"
    )
    assert caught.value.status is InferStatus.kInferLayerNotImplement
    assert caught.value.suggestion == "test.double"


TARGETS = {registration(t).target: t for t in reversed(registered_types())}
every_target = pytest.mark.parametrize("target", TARGETS, ids=TARGETS.get)


@every_target
def test_annotations_resolve(target):
    """The frame checks parameters by annotation; one that does not resolve checks nothing."""
    codes = [target]
    if isinstance(target, type) and issubclass(target, Layer):
        own = target.__init__ is not object.__init__
        codes = [target.forward, *([target.__init__] if own else [])]
    for code in codes:
        hints = get_type_hints(code)
        names = [n for n in inspect.signature(code).parameters if n != "self"]
        assert set(names) <= set(hints), f"{code.__qualname__} lacks annotations"


@every_target
def test_every_layer_is_documented(target):
    """The docstrings are the operator notes that the application shows."""
    assert inspect.getdoc(target), f"{target.__qualname__} has no docstring"


def test_what_is_of_no_effect_is_no_argument():
    """The frame drops it, so that code that asks for it would never get it."""
    for name, entry in layer_table().items():
        target = entry.target
        is_class = isinstance(target, type)
        codes = [target.forward, target.__init__] if is_class else [target]
        for code in codes:
            taken = set(inspect.signature(code).parameters) & set(entry.unused)
            assert taken == set(), name
