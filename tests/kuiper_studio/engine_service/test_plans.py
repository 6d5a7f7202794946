"""What a plan means for a model."""

from __future__ import annotations

from pathlib import Path

import pytest

import engine
from engine.inputs import ImageOptions, InputSource
from engine.shapes import InputShapes
from kuiper_studio.engine_service.plans import resolve
from kuiper_studio.engine_service.protocol import Plan, Supply

PICTURE = InputSource("image", Path("cat.png"))
ONES = InputSource("constant", value=1.0)
LINES = (
    "pnnx.Input left 0 1 0 #0=(1,3,?,?)f32",
    "pnnx.Input right 0 1 1 #1=(1,3,8,8)f32",
    "F.relu relu 1 1 0 2 #2=(1,3,?,?)f32",
    "F.relu other 1 1 1 3 #3=(1,3,8,8)f32",
    "pnnx.Output out 2 0 2 3",
)


@pytest.fixture
def graph(make_pair):
    return engine.load(make_pair(*LINES))


class TestSizesOfPictures:
    """The size of pictures, rows first, becomes that of the inputs that they are fed to."""

    SIZED = ImageOptions(size=(6, 5))

    def test_rows_and_columns_come_last(self, graph):
        found = resolve(graph, Plan((PICTURE, PICTURE), self.SIZED))
        sized = (None, None, 6, 5)
        assert found.shapes == InputShapes({"0": sized, "1": sized})
        assert found.options == ImageOptions()  # the sizes say it now

    def test_only_of_inputs_that_get_one(self, graph):
        found = resolve(graph, Plan((ONES, PICTURE), self.SIZED))
        assert found.shapes == InputShapes({"1": (None, None, 6, 5)})
        assert resolve(graph, Plan((ONES, ONES), self.SIZED)).shapes == InputShapes()

    def test_sizes_of_the_user_hold(self, graph):
        found = resolve(graph, Plan((PICTURE, PICTURE), self.SIZED, ("0=1,3,4,4",)))
        assert found.shapes == InputShapes({"0": (1, 3, 4, 4), "1": (None, None, 6, 5)})

    def test_none_without_a_size(self, graph):
        scaled = ImageOptions(scale=1.0)
        found = resolve(graph, Plan((PICTURE, PICTURE), scaled))
        assert (found.shapes, found.options) == (InputShapes(), scaled)

    def test_a_picture_without_channels(self, make_pair):
        plain = engine.load(make_pair("pnnx.Input in 0 1 0 #0=(4,4)f32", "pnnx.Output o 1 0 0"))
        found = resolve(plain, Plan((PICTURE,), self.SIZED))
        assert (found.shapes, found.options) == (InputShapes(), self.SIZED)

    @pytest.mark.parametrize("shape", ["(3,?,?)", "(1,3,?,?)"])
    def test_with_and_without_a_batch(self, make_pair, shape):
        lines = (f"pnnx.Input in 0 1 0 #0={shape}f32", "pnnx.Output out 1 0 0")
        found = resolve(engine.load(make_pair(*lines)), Plan((PICTURE,), self.SIZED))
        assert found.shapes.shapes["0"][-2:] == (6, 5)
        assert len(found.shapes.shapes["0"]) == shape.count(",") + 1


def test_one_source_is_for_all_inputs(graph):
    inputs = resolve(graph, Plan((ONES,))).inputs
    assert {name: source.value for name, source in inputs.items()} == {"0": 1.0, "1": 1.0}


def test_too_few_sources_leave_inputs_out(graph):
    array = InputSource("npy", Path("x.npy"))
    assert resolve(graph, Plan((array,))).inputs == {"0": array}


def test_what_is_gone_is_dropped_with_a_sentence(graph):
    kept, gone = Supply(("2",), ONES), Supply(("9",), ONES)
    found = resolve(graph, Plan(supplies=(kept, gone), place="conv"))
    assert (found.supplies, found.place, found.misfit) == ((kept,), None, None)
    assert found.dropped == (
        "operand 9 is supplied no more: it is gone",
        "conv, where the model stood, is gone; it is at the start",
    )


@pytest.mark.parametrize("place", ["relu", "", None])
def test_a_place_of_the_model_stays(graph, place):
    assert resolve(graph, Plan(place=place)).place == place


@pytest.mark.parametrize(("name", "operands"), [("2", ("2",)), ("other", ("3",))])
def test_overrides_by_operand_or_operator(graph, name, operands):
    found = resolve(graph, Plan(supplies=((name, ONES),)))
    assert found.supplies == (Supply(operands, ONES),)


@pytest.mark.parametrize(
    "wrong", [Plan(supplies=(("nothing", ONES),)), Plan(shapes=("9=1,3,4,4",))]
)
def test_what_does_not_fit_is_said_and_the_rest_holds(graph, wrong):
    found = resolve(graph, wrong)
    assert found.misfit is not None
    assert (found.shapes, found.supplies) == (InputShapes(), ())
