"""A small model, a session that has it open, and a theme."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QEvent, QSettings
from PySide6.QtWidgets import QApplication

from engine.errors import LayerError
from engine.inputs import InputSource
from engine.layers import register
from kuiper_studio.app import make_window
from kuiper_studio.cycles import CycleCollector
from kuiper_studio.main_window import MainWindow
from kuiper_studio.session import StudioSession
from kuiper_studio.theme import Scheme, Theme
from kuiper_studio.turns import turns_are_left

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RESIDUAL = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    (
        "nn.Conv2d layer1.conv 1 1 0 1 bias=True dilation=(1,1) groups=1 in_channels=3 "
        "kernel_size=(3,3) out_channels=4 padding=(1,1) padding_mode=zeros stride=(1,1) "
        "@bias=(4)f32 @weight=(4,3,3,3)f32 $input=0 #0=(1,3,8,8)f32 #1=(1,4,8,8)f32"
    ),
    "nn.ReLU layer1.relu 1 1 1 2 #1=(1,4,8,8)f32 #2=(1,4,8,8)f32",
    "pnnx.Expression add 2 1 1 2 3 expr=add(@0,@1) #3=(1,4,8,8)f32",
    (
        "nn.MaxPool2d layer2.pool 1 1 3 4 ceil_mode=False dilation=(1,1) kernel_size=(2,2) "
        "padding=(0,0) return_indices=False stride=(2,2) #4=(1,4,4,4)f32"
    ),
    "my.Strange strange 1 1 4 5 #5=(1,4,4,4)f32",
    "nn.ReLU tail 1 1 5 6 #6=(1,4,4,4)f32",
    "pnnx.Output out 1 0 6",
)
FAILING = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    (
        "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=3 "
        "kernel_size=(3,3) out_channels=3 padding=(0,0) padding_mode=zeros stride=(1,1) "
        "@weight=(3,3,3,3)f32 #0=(1,3,8,8)f32 #1=(1,3,8,8)f32"
    ),
    "pnnx.Expression sum 2 1 1 0 2 expr=add(@0,@1) #2=(1,3,8,8)f32",
    "pnnx.Output out 1 0 2",
)
NOISY = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    "nn.ReLU relu 1 1 0 1 #1=(1,3,8,8)f32",
    "F.dropout thin 1 1 1 2 p=0.500000 training=True #2=(1,3,8,8)f32",
    "torch.randn_like noise 1 1 2 3 dtype=None #3=(1,3,8,8)f32",
    "F.dropout whole 1 1 3 4 p=0.500000 training=False #4=(1,3,8,8)f32",
    "pnnx.Output out 1 0 4",
)


@pytest.fixture(autouse=True, scope="session")
def no_settings_of_the_user(tmp_path_factory):
    """Settings are in a folder of the tests also where the system has rules of its own."""
    QSettings.setPath(
        QSettings.Format.IniFormat,
        QSettings.Scope.UserScope,
        str(tmp_path_factory.mktemp("settings")),
    )


@pytest.fixture(autouse=True, scope="module")
def cycles_on_the_gui_thread(qapp):
    """Objects of Qt are destroyed on the GUI thread, though engines run on others."""
    collector = CycleCollector(qapp)
    yield
    collector.close()


@pytest.fixture
def wait_for_turns(qtbot):
    """A function that waits until all work is done that has a turn of the event loop each."""

    return lambda: qtbot.waitUntil(lambda: not turns_are_left())


@pytest.fixture(autouse=True)
def no_windows_left():
    """Delete windows with their test, and take off the style sheet, which all of them share."""
    yield
    if QApplication.instance() is not None:
        windows = [w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow)]
        for window in windows:
            window.close()
        _delete_windows(windows)


def _delete_windows(windows):
    """Delete windows, and the style sheet where no other is left.

    Each new window lays it on all widgets that there are; its pictures go with its theme.
    """
    for window in windows:
        window.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    app = QApplication.instance()
    is_left = any(isinstance(w, MainWindow) for w in QApplication.topLevelWidgets())
    if app.styleSheet() and not is_left:
        app.setStyleSheet("")


@pytest.fixture
def theme(qapp) -> Theme:
    return Theme(Scheme.DARK)


@pytest.fixture
def residual(make_pair) -> Path:
    """A net with a convolution, a skip, and an operator that has no layer."""
    rng = np.random.default_rng(1)
    return make_pair(
        *RESIDUAL,
        weights={
            "layer1.conv.bias": np.array([0.5, -0.25, 0, 1], np.float32),
            "layer1.conv.weight": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        },
        name="residual",
    )


@pytest.fixture
def failing(make_pair) -> Path:
    """A net whose sum fails, because the convolution before it lacks padding."""
    return make_pair(
        *FAILING, weights={"conv.weight": np.ones((3, 3, 3, 3), np.float32)}, name="failing"
    )


@pytest.fixture
def noisy(make_pair) -> Path:
    """A net with two operators that are random, and one that could be."""
    return make_pair(*NOISY, name="noisy")


class Gate:
    """Holds up operators of type ``test.Gate``, as work that takes long would.

    Attributes
    ----------
    reached : threading.Event
        Set when one of them is about to run.
    fault : str
        What they fail with; ``""`` for nothing.
    compute : callable
        From their input to their output; the input itself by default.
    """

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._opened.set()
        self.reached = threading.Event()
        self.fault = ""
        self.compute: Callable[[np.ndarray], np.ndarray] = lambda x: x

    def close(self) -> None:
        self._opened.clear()

    def open(self) -> None:
        self._opened.set()

    def layer(self, x: np.ndarray) -> np.ndarray:
        """Wait until the gate is open, but not for ever."""
        self.reached.set()
        self._opened.wait(10)
        if self.fault:
            raise LayerError(self.fault)
        return self.compute(x)


@pytest.fixture
def gate():
    """An open gate, of this test alone."""
    made = Gate()

    @register("test.Gate", replace=True)
    def layer(x):
        """Pass through the gate."""
        return made.layer(x)

    yield made
    made.open()


@pytest.fixture
def empty_session(qapp):
    """A session without a model."""
    session = StudioSession()
    yield session
    session.close()


@pytest.fixture
def settle(qtbot) -> Callable[[StudioSession], None]:
    """A function that waits until a session has nothing to do."""

    def wait(session: StudioSession) -> None:
        qtbot.waitUntil(lambda: not session.busy, timeout=10_000)

    return wait


@pytest.fixture
def open_model(qtbot, empty_session) -> Callable[..., StudioSession]:
    """A function that opens a pair, with ones as its input unless told otherwise."""

    def open_it(path: Path, source: InputSource | None = None) -> StudioSession:
        session = empty_session
        session.next_model.set_sources([source or InputSource("constant", value=1.0)])
        with qtbot.waitSignal(session.notes_changed, timeout=10_000):
            session.open(path)
        qtbot.waitUntil(lambda: session.graph is not None and not session.busy, timeout=10_000)
        return session

    return open_it


@pytest.fixture
def studio(open_model, residual) -> StudioSession:
    """A session with the residual net open, fed with ones, at the start."""
    return open_model(residual)


@pytest.fixture
def step(settle) -> Callable[[StudioSession, int], None]:
    """A function that steps a session."""

    def run(session: StudioSession, count: int = 1) -> None:
        for _ in range(count):
            session.step()
            settle(session)

    return run


@pytest.fixture
def settings(tmp_path):
    """Settings of a user who has none yet."""
    return QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)


@pytest.fixture
def open_window(qtbot, settings):
    """A function that makes a window, shown at 1440x900 and closed at the end.

    It deletes those that the test has closed.
    """
    windows = []

    def make(model=None, inputs=(), scheme=Scheme.DARK):
        closed = [window for window in windows if not window.isVisible()]
        for window in closed:
            windows.remove(window)
        _delete_windows(closed)
        window = make_window(model, inputs, theme=Theme(scheme), settings=settings)
        windows.append(window)
        window.resize(1440, 900)
        window.show()
        qtbot.waitExposed(window)
        return window

    yield make
    for window in windows:
        window.close()


@pytest.fixture
def photographed(make_pair, tmp_path):
    """A model that takes an image of 16×16, a picture of 36×60, and the file that holds it."""
    rng = np.random.default_rng(2)
    pixels = np.kron(rng.integers(0, 256, (12, 20, 3)), np.ones((3, 3, 1))).astype(np.uint8)
    picture = Image.fromarray(pixels)
    picture.save(tmp_path / "photo.png")
    pair = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,16,16)f32",
        "F.relu act 1 1 0 1 #0=(1,3,16,16)f32 #1=(1,3,16,16)f32",
        "pnnx.Output out 1 0 1 #1=(1,3,16,16)f32",
    )
    return pair, picture, tmp_path / "photo.png"
