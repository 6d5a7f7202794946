"""Inputs that the user has set, and what is set ahead for the next model."""

from __future__ import annotations

import pytest

import engine
from engine.inputs import ImageOptions, InputSource
from engine.shapes import InputShapes
from kuiper_studio.engine_service.protocol import Plan
from kuiper_studio.session.model_inputs import ModelInputs
from kuiper_studio.session.next_model import NextModel
from kuiper_studio.session.opening import Looks

NET = (
    "pnnx.Input first 0 1 a #a=(2)f32",
    "pnnx.Input second 0 1 b #b=(2)f32",
    "torch.add both 2 1 a b c",
    "pnnx.Output out 1 0 c",
)
ONES, RANDOM = InputSource("constant", value=1.0), InputSource("random")


@pytest.fixture
def graph(make_pair):
    return engine.load(make_pair(*NET))


class TestModelInputs:
    def test_they_suffice_once_each_input_has_a_source(self, graph):
        assert not ModelInputs().suffice(graph)
        assert not ModelInputs({"b": ONES, "of another model": ONES}).suffice(graph)
        assert ModelInputs({"b": ONES, "a": ONES}).suffice(graph)

    def test_sources_are_in_the_order_of_the_model(self, graph):
        assert ModelInputs({"b": ONES, "x": ONES, "a": RANDOM}).sources_of(graph) == (
            RANDOM,
            ONES,
        )
        assert ModelInputs({"b": ONES}).sources_of(graph) == (ONES,)

    def test_a_plan_has_sizes_and_options(self):
        options = ImageOptions(size=(3, 4))
        inputs = ModelInputs({"a": ONES}, InputShapes({"a": (1, None)}, {"h": 5}), options)
        assert inputs.plan([RANDOM]) == Plan((RANDOM,), options, ("a=1,?", "h=5"))

    def test_only_operands_with_a_source_are_described(self):
        inputs = ModelInputs({"b": RANDOM, "a": ONES})
        assert inputs.describe(["a", "b", "c"]) == "a = ones, b = random:0"
        assert inputs.describe(["c"]) == ""


class TestNextModel:
    def test_what_was_set_is_taken_once(self):
        ahead = NextModel()
        ahead.set_sources([ONES], ImageOptions(size=(3, 4)))
        ahead.set_shapes(["h=5"])
        ahead.set_supplies([("both", RANDOM)])
        ahead.set_breakpoints(frozenset({"both"}))
        ahead.set_labels(("cat", "dog"))
        assert ahead.take() == (
            Plan((ONES,), ImageOptions(size=(3, 4)), ("h=5",), (("both", RANDOM),)),
            Looks(("cat", "dog"), frozenset({"both"})),
        )
        assert ahead.take() == (Plan(), Looks())

    def test_it_is_forgotten(self):
        ahead = NextModel()
        ahead.set_shapes(["h=5"])
        ahead.set_labels(("cat",))
        ahead.clear()
        assert ahead.take() == (Plan(), Looks())
