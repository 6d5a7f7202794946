"""Layouts in the window: when they are inferred, and from which shapes."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel

from engine.axes import Axis, Kind, Layout
from engine.inputs import InputSource
from engine.shapes import InputShapes
from kuiper_studio.tensor_view import TensorView

VIT = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,12)f32",
    (
        "nn.Conv2d patches 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=3 "
        "kernel_size=(4,4) out_channels=5 padding=(0,0) padding_mode=zeros stride=(4,4) "
        "@weight=(5,3,4,4)f32 $input=0 #1=(1,5,2,3)f32"
    ),
    "torch.flatten flat 1 1 1 2 start_dim=2 end_dim=-1 $input=1 #2=(1,5,6)f32",
    "torch.transpose turn 1 1 2 3 dim0=1 dim1=2 $input=2 #3=(1,6,5)f32",
    "nn.ReLU relu 1 1 3 4 #4=(1,6,5)f32",
    "pnnx.Output out 1 0 4",
)


@pytest.fixture
def vit(make_pair):
    weight = np.random.default_rng(3).normal(size=(5, 3, 4, 4)).astype(np.float32)
    return make_pair(*VIT, weights={"patches.weight": weight})


@pytest.fixture
def session(open_model, vit):
    image = np.random.default_rng(4).normal(size=(1, 3, 8, 12)).astype(np.float32)
    return open_model(vit, InputSource("array", array=image))


def text(session, name):
    layout = session.layouts.find(name)
    return layout.text() if layout is not None else None


def test_layouts_are_inferred_on_another_thread_on_first_use(session, qtbot):
    with qtbot.waitSignal(session.layouts.changed):
        assert session.layouts.find("4") is None
    assert text(session, "4") == "2×3 tokens × features"
    assert text(session, "no operand") is None


def test_a_run_at_other_sizes_has_its_own_layouts(session, qtbot, step):
    with qtbot.waitSignal(session.layouts.changed):
        session.layouts.find("4")
    session.set_shapes(InputShapes({"0": (1, 3, 16, 12)}))
    session.set_inputs({"0": InputSource("random", seed=1)})
    session.wait_idle()
    step(session, 4)
    assert session.tensors.metadata("3").shape == (1, 12, 5)
    with qtbot.waitSignal(session.layouts.changed):
        assert session.layouts.find("3") is None  # that of the file does not fit
    assert text(session, "3") == "4×3 tokens × features"


def test_user_layouts_spread_until_they_are_removed(session, qtbot):
    with qtbot.waitSignal(session.layouts.changed):
        session.layouts.find("4")
    with qtbot.waitSignal(session.layouts.changed):
        session.layouts.choose("0", _image_with_time())
    assert text(session, "1") == "channels × rows × time"
    assert text(session, "3") == "2×3 tokens × features"
    with qtbot.waitSignal(session.layouts.changed):
        session.layouts.choose("0", None)
    assert text(session, "1") == "channels × rows × columns"


def _image_with_time() -> Layout:
    kinds = (Kind.BATCH, Kind.CHANNEL, Kind.ROW, Kind.TIME)
    return Layout(tuple(Axis(k, n) for k, n in zip(kinds, (1, 3, 8, 12), strict=True)))


def test_another_model_has_other_layouts(session, qtbot, open_model, residual):
    with qtbot.waitSignal(session.layouts.changed):
        session.layouts.find("4")
    open_model(residual)
    with qtbot.waitSignal(session.layouts.changed):
        assert session.layouts.find("4") is None
    assert text(session, "4") == "channels × rows × columns"


def test_the_tensor_view_shows_words_and_folds_tokens(session, qtbot, theme, step):
    view = TensorView(session, theme)
    qtbot.addWidget(view)
    step(session, 5)
    qtbot.waitUntil(lambda: view.pane.model.plan is not None)
    assert session.operand == "4"
    assert view.strip.findChild(QLabel, "tensorAxes").text() == "2×3 tokens × features"
    value = session.fetch("4")
    np.testing.assert_array_equal(view.pane.model.page_planes(), value[0].T.reshape(5, 2, 3))


def test_members_of_a_tuple_have_their_own_words(open_model, make_pair, qtbot, theme, step):
    """Detectors give scores and boxes as a tuple; members may be tuples again."""
    inner = "prim::TupleConstruct inner 2 1 1 3 5"
    lines = (*VIT[:-1], inner, "prim::TupleConstruct pair 2 1 4 5 6", "pnnx.Output out 1 0 6")
    weight = np.ones((5, 3, 4, 4), np.float32)
    session = open_model(make_pair(*lines, weights={"patches.weight": weight}))
    view = TensorView(session, theme)
    qtbot.addWidget(view)
    step(session, 7)
    assert session.operand == "6"
    words = view.strip.findChild(QLabel, "tensorAxes")
    qtbot.waitUntil(lambda: words.text() == "2×3 tokens × features")
    view.pane.tools.member.box.setValue(1)
    assert words.text() == "channels × rows × columns"
    view.pane.tools.member.box.setValue(2)
    assert words.text() == "2×3 tokens × features"
    assert session.layouts.source("6", 1) == "1"
    with qtbot.waitSignal(session.layouts.changed):
        session.layouts.choose("1", _image_with_time_of(session.layouts.find("1")))
    view.pane.tools.member.box.setValue(1)
    assert words.text() == "channels × rows × time"


def _image_with_time_of(layout: Layout) -> Layout:
    *axes, last = layout.axes
    return Layout((*axes, Axis(Kind.TIME, last.size)))
