"""Small models, sessions that are closed, and views on them."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.inputs import InputSource
from kuiper_studio.graph_view import GraphView
from kuiper_studio.session import RunState, StudioSession
from kuiper_studio.theme import Scheme, Theme

RESIDUAL = (
    "pnnx.Input image 0 1 0 #0=(1,3,8,8)f32",
    "F.relu stem.relu 1 1 0 1 #1=(1,3,8,8)f32",
    "F.sigmoid block.0.sigmoid 1 1 1 2 #2=(1,3,8,8)f32",
    "F.tanh block.0.tanh 1 1 2 3 #3=(1,3,8,8)f32",
    "F.relu side.relu 1 1 1 4 #4=(1,3,8,8)f32",
    "pnnx.Expression add 3 1 3 1 4 5 expr=add(add(@0,@1),@2) #5=(1,3,8,8)f32",
    "pnnx.Expression square 2 1 5 5 6 expr=mul(@0,@1) #6=(1,3,8,8)f32",
    "pnnx.Output out 1 0 6",
)
POOL = (
    "F.max_pool2d pool 1 1 0 1 kernel_size=(2,2) stride=(2,2) padding=(0,0) dilation=(1,1) "
    "ceil_mode=False return_indices=False #1=(1,3,4,4)f32"
)
FAILING = (
    "pnnx.Input image 0 1 0 #0=(1,3,8,8)f32",
    POOL,
    "pnnx.Expression add 2 1 0 1 2 expr=add(@0,@1) #2=(1,3,8,8)f32",
    "F.relu after 1 1 2 3 #3=(1,3,8,8)f32",
    "F.not_there odd 1 1 0 4 #4=(1,3,8,8)f32",
    "pnnx.Output out 1 0 3",
)


MODELS = {"residual": RESIDUAL, "failing": FAILING}


@pytest.fixture
def load_graph(make_pair):
    """Load one of the models, or operator lines."""

    def load(lines="residual"):
        return engine.load(make_pair(*MODELS.get(lines, lines)))

    return load


@pytest.fixture
def theme(qapp):
    return Theme(Scheme.DARK)


@pytest.fixture
def session(qtbot):
    made = StudioSession()
    yield made
    made.close()


@pytest.fixture
def open_model(qtbot, session, make_pair):
    """Open operator lines, fed with an array, and wait until the session has settled."""

    def open_lines(lines="residual", value=None, *, feed=True):
        if feed:
            array = np.linspace(-2, 2, 192, dtype=np.float32).reshape(1, 3, 8, 8)
            array = array if value is None else value
            session.next_model.set_sources([InputSource("array", array=array)])
        session.open(make_pair(*MODELS.get(lines, lines)))
        settled = (RunState.READY if feed else RunState.NEED_INPUT,)
        qtbot.waitUntil(lambda: session.state in settled and not session.busy)
        return session.graph

    return open_lines


@pytest.fixture
def run(qtbot, session):
    """Step some operators, or run to the end, and wait."""

    def run_steps(count=None):
        for _ in range(count or 0):
            session.step()
            qtbot.waitUntil(lambda: not session.busy and session.state is not RunState.RUNNING)
        if count is None:
            session.resume()
            qtbot.waitUntil(lambda: not session.busy and session.state is not RunState.RUNNING)

    return run_steps


@pytest.fixture
def view(qtbot, session, theme):
    made = GraphView(session, theme)
    qtbot.addWidget(made)
    made.canvas.viewport.reduced_motion = True
    made.resize(1200, 330)
    made.show()
    return made
