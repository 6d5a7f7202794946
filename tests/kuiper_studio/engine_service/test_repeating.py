"""The command line that repeats a comparison, read as the command line reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

import engine
from engine.inputs import ImageOptions, InputSource
from engine.shapes import InputShapes
from kuiper_studio.cli.arguments import compare_parser
from kuiper_studio.engine_service.plans import ResolvedPlan
from kuiper_studio.engine_service.protocol import CompareRequest, OtherRun
from kuiper_studio.engine_service.repeating import command_of

NET = (
    "pnnx.Input in 0 1 0 #0=(1,3,?,?)f32",
    "nn.ReLU relu 1 1 0 1",
    "pnnx.Output out 1 0 1",
)


@pytest.fixture
def session(make_pair):
    return engine.Session(engine.load(make_pair(*NET)))


def plan_of(source, options=None, shapes=None):
    sizes = InputShapes(shapes or {})
    return ResolvedPlan({"0": source}, options or ImageOptions(), sizes, (), None, None, ())


def test_pictures_sizes_seed_and_tolerance(session):
    numbers = (-0.5, 0.25, 0.1), (2.0, 2.0, 4.0)
    options = ImageOptions((4, 5), "crop", "BGR", 1.0, *numbers, 6, 0, "opencv-bilinear")
    plan = plan_of(InputSource("image", Path("a cat.png")), options, {"0": (1, 3, 4, 5)})
    session.reseed(7)

    command = command_of(session, CompareRequest(1, Path("dump"), 0.01), plan)

    assert command[:2] == ("kuiper-studio", "compare")
    found = compare_parser().parse_args(command[2:])
    assert (found.input, found.shape) == (["a cat.png"], ["0=1,3,4,5"])
    assert (found.size, found.fit, found.order, found.scale) == ((4, 5), "crop", "BGR", 1.0)
    assert (found.shorter_side, found.border, found.resampling) == (6, 0, "opencv-bilinear")
    assert (found.mean, found.std) == ((-0.5, 0.25, 0.1), (2.0, 2.0, 4.0))
    assert (found.seed, found.tolerance, found.reference) == (7, 0.01, "dump")


def test_what_is_as_by_default_is_left_out(session):
    plan = plan_of(InputSource("random", seed=3))
    command = command_of(session, CompareRequest(1, Path("dump")), plan)
    assert command[3:] == ("--reference", "dump", "--input", "random:3")


def test_what_no_command_line_does(session):
    plan = plan_of(InputSource("random"))
    assert command_of(session, CompareRequest(1, Path("dump")), None) == ()
    other = OtherRun("numpy", 0)
    assert command_of(session, CompareRequest(1, other), plan) == ()
