"""The application: creates the window for users, tests and scripts."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import (
    QDeadlineTimer,
    QEventLoop,
    QMessageLogContext,
    QObject,
    QSettings,
    QTimer,
    QtMsgType,
    Signal,
    Slot,
    qInstallMessageHandler,
)
from PySide6.QtWidgets import QApplication
from typing_extensions import override

from engine.collector import collector_paused, set_aside
from engine.errors import EngineError
from engine.inputs import (
    ImageOptions,
    InputSource,
    parse_source,
    parse_supply,
    read_labels,
)
from engine.ncnn.options import NcnnOptions
from engine.text import format_count
from kuiper_studio.appearance import MONO_FAMILY, restore_numbers, scale_interface
from kuiper_studio.cycles import CycleCollector
from kuiper_studio.icons import app_icon
from kuiper_studio.main_window import MainWindow
from kuiper_studio.picture_files import write_picture
from kuiper_studio.sample_models import default_sample
from kuiper_studio.session import RunState, StudioSession
from kuiper_studio.theme import Scheme, Theme
from kuiper_studio.unexpected_errors import UnexpectedErrors, make_overrides_safe

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from engine.values import Array
    from kuiper_studio.engine_service.transport import EngineKind

__all__ = ["make_application", "make_window", "run_demo", "run_window"]

_qt_log = logging.getLogger("qt")

_SETTLED: Final = frozenset(set(RunState) - {RunState.LOADING, RunState.RUNNING})
_WAKE_MS: Final = 10
# An empty window is worse than none for this long. Most models open sooner.
_FIRST_LOOK_SECONDS: Final = 0.25
_DEMO_SIZE: Final = (1440, 900)
# Thread switch interval: how long the GUI thread waits for the interpreter while a worker
# thread computes. With Python's default of 5 ms a long list took seconds to appear.
_SWITCH_SECONDS: Final = 0.0005


def make_application() -> QApplication:
    """Return the process's QApplication; create it if there is none."""
    running = QApplication.instance()
    if isinstance(running, QApplication):
        CycleCollector.ensure(running)
        return running
    make_overrides_safe()
    application = QApplication(sys.argv[:1])
    sys.setswitchinterval(_SWITCH_SECONDS)
    application.setApplicationName("kuiper-studio")
    application.setApplicationDisplayName("Kuiper Studio")
    application.setOrganizationName("kuiper-studio")
    application.setDesktopFileName("kuiper-studio")
    application.setWindowIcon(app_icon())
    CycleCollector.ensure(application)
    set_aside()
    return application


def make_window(
    model: str | Path | None = None,
    inputs: Sequence[str | Path | Array] = (),
    *,
    theme: Theme | None = None,
    settings: QSettings | None = None,
    backend: str = "auto",
    wait: float = 30.0,
    engine: EngineKind | None = None,
) -> MainWindow:
    """Build a ready window.

    Parameters
    ----------
    model : path, optional
        The ``.param`` or ``.bin`` to open.
    inputs : sequence of str, path or ndarray
        One per input, in order: arrays, or sources as on the command line.
    theme : Theme, optional
    settings : QSettings, optional
        Where geometry, theme and recent models are stored; default the user's own.
    backend : str
        The backend to start with, as in `engine.Session`; the tool bar changes it.
    wait : float
        Seconds to wait for the model and its inputs; with 0 they arrive later.
    engine : {"process", "thread"}, optional
        Where the engine runs: in a process of its own, the default, or on a thread of this
        one, which starts sooner and ends with it.

    Returns
    -------
    MainWindow
        Not shown yet. ``window.session`` is what the views watch.
    """
    application = make_application()
    settings = settings or _user_settings()
    restore_numbers(settings)
    Theme.set_mono_family(str(settings.value(MONO_FAMILY, "")))
    if theme is None:
        theme = Theme(_stored_scheme(settings))
    first = not application.styleSheet()
    dress = theme.prepare if first else theme.apply
    dress(application)
    session = StudioSession(backend=backend, engine=engine)
    window = MainWindow(session, theme, settings)
    if first:
        theme.apply(application)
    window.restore()
    if model is not None:
        session.next_model.set_sources([_source(item) for item in inputs])
        session.open(model)
        _wait_until(lambda: session.state in _SETTLED and not session.busy, wait)
    return window


def _user_settings() -> QSettings:
    return QSettings(
        QSettings.Format.IniFormat, QSettings.Scope.UserScope, "kuiper-studio", "kuiper-studio"
    )


def _source(item: str | Path | Array) -> InputSource:
    if isinstance(item, np.ndarray):
        return InputSource("array", array=item)
    return parse_source(str(item))


def _stored_scheme(settings: QSettings) -> Scheme:
    try:
        return Scheme(str(settings.value("theme", Scheme.SYSTEM.value)))
    except ValueError:
        return Scheme.SYSTEM


def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Handle events until a condition holds, or the time is up."""
    deadline = QDeadlineTimer(round(seconds * 1000))
    waker = QTimer(interval=_WAKE_MS)
    waker.start()
    while not condition() and not deadline.hasExpired():
        # Sleep between events: polling would keep the interpreter from the engine's thread.
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def _relay_qt_message(kind: QtMsgType, _context: QMessageLogContext, text: str | None) -> None:
    """Write Qt's own messages to the log."""
    if text is None or text.startswith("This plugin does not support"):
        return  # the offscreen platform logs this for every window
    serious = kind in {QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg}
    _qt_log.log(logging.ERROR if serious else logging.WARNING, text)


class _LogRelay(QObject):
    """Passes records of the logging module from any thread to the session."""

    recorded = Signal(str, str)

    def __init__(self, session: StudioSession) -> None:
        super().__init__(session)
        self._session = session
        self.recorded.connect(self._on_recorded)

    @Slot(str, str)
    def _on_recorded(self, level: str, text: str) -> None:
        self._session.workspace.log(level, text)


class _LogHandler(logging.Handler):
    """Hands log records to the relay."""

    def __init__(self, relay: _LogRelay) -> None:
        super().__init__(logging.WARNING)
        self._relay = relay

    @override
    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warning"
        self._relay.recorded.emit(level, record.getMessage())


def run_window(arguments: argparse.Namespace, options: ImageOptions) -> int:
    """Open the window and stay until it is closed.

    Parameters
    ----------
    arguments : argparse.Namespace
        Of the command line.
    options : ImageOptions
        How images become tensors.

    Returns
    -------
    int
        Exit status.
    """
    scale_interface(_user_settings())
    application = make_application()
    qInstallMessageHandler(_relay_qt_message)
    with collector_paused():
        window = _window_of(arguments, options, wait=_FIRST_LOOK_SECONDS)
    handler = _LogHandler(_LogRelay(window.session))
    logging.getLogger().addHandler(handler)
    window.show()
    try:
        with UnexpectedErrors():
            return application.exec()
    finally:
        logging.getLogger().removeHandler(handler)


def run_demo(arguments: argparse.Namespace, options: ImageOptions) -> int:
    """Run a whole session without a display.

    Opens the model, steps it to the end, writes its dump and a picture of the window to the
    folder ``arguments.demo``, and says where.

    Raises
    ------
    EngineError
        If something fails.
    """
    from engine.dump import DumpOptions

    folder = Path(arguments.demo)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    qInstallMessageHandler(_relay_qt_message)
    window = _window_of(arguments, options, wait=60.0)
    folder.mkdir(parents=True, exist_ok=True)
    session = window.session
    window.resize(*_DEMO_SIZE)
    window.show()
    try:
        _require_working(session)
        graph = session.graph
        if graph is None:
            raise EngineError("no model was given")
        middle = len(graph.operators) // 2
        steps = 0
        while session.state in {RunState.READY, RunState.STOPPED}:
            session.step()
            _wait_until(lambda: session.state in _SETTLED and not session.busy, 600.0)
            steps += 1
            if steps == middle:
                _take_picture(window, folder / "window.png")
        _require_working(session)
        session.export_dump(folder / "dump", DumpOptions(weights=True, overwrite=True))
        _wait_until(lambda: not session.busy, 600.0)
        _require_working(session)
        name = session.model_path.name if session.model_path else ""
        sys.stdout.write(
            f"{name}: {steps} of {format_count(len(graph.operators), 'operator')} stepped\n"
            f"per-layer dump: {(folder / 'dump').resolve()}\n"
            f"picture of the window: {(folder / 'window.png').resolve()}\n"
        )
    finally:
        window.close()
    return 0


def _take_picture(window: MainWindow, path: Path) -> None:
    _wait_until(lambda: False, 0.5)  # let late pictures and statistics arrive
    write_picture(window.grab().toImage(), path)


def _require_working(session: StudioSession) -> None:
    if session.failure is not None:
        raise EngineError(f"{session.failure.title}: {session.failure.reason}")


def _window_of(arguments: argparse.Namespace, options: ImageOptions, wait: float) -> MainWindow:
    """Create the window with the model and settings of a command line."""
    theme = Theme(Scheme(arguments.theme)) if arguments.theme else None
    window = make_window(theme=theme, backend=arguments.backend)
    # Before the model: the docks that come with it share out the window's final width.
    if not arguments.demo:
        window.fit_into(window.screen().availableGeometry())
    session = window.session
    if arguments.layers:
        for path in arguments.layers:
            session.load_layers(path)
        if session.wait_idle() and session.failure is not None:
            window.close()
            raise EngineError(session.failure.reason)
    if arguments.sample:
        window.opening.open_sample(default_sample())
    elif arguments.model is not None:
        _open(window, arguments, options)
    if arguments.memory_limit is not None:
        session.memory.set_limit(arguments.memory_limit.nbytes)
    if arguments.memory_bound is not None:
        session.memory.set_bound(arguments.memory_bound)
    if arguments.seed is not None:  # overrides the seed of a dump
        session.set_seed(arguments.seed)
    _wait_until(lambda: session.state in _SETTLED and not session.busy, wait)
    return window


def _open(window: MainWindow, arguments: argparse.Namespace, options: ImageOptions) -> None:
    session = window.session
    if not arguments.demo:
        window.opening.prepare_choices(Path(arguments.model))
    if arguments.demo or arguments.input or arguments.shape or options != ImageOptions():
        session.next_model.set_sources(
            [parse_source(text) for text in arguments.input], options
        )
    session.next_model.set_shapes(arguments.shape)
    session.next_model.set_supplies([parse_supply(text) for text in arguments.supply])
    if arguments.labels:
        session.next_model.set_labels(read_labels(Path(arguments.labels)))
    if arguments.ncnn_options != session.ncnn_options:
        session.set_ncnn_options(NcnnOptions.parse(arguments.ncnn_options).text)
    session.open(arguments.model, arguments.bin, arguments.backend_from, arguments.conversion)
