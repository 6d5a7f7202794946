"""Making the window, and a session with nobody watching."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QSettings
from PySide6.QtGui import QImage

from engine.cache import cache_folder
from kuiper_studio import app
from kuiper_studio.cli import main
from kuiper_studio.session import RunState
from kuiper_studio.theme import Scheme, Theme

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "pnnx.Expression twice 1 1 0 1 expr=mul(@0,2)",
    "pnnx.Output out 1 0 1",
)


@pytest.fixture(autouse=True)
def own_settings(tmp_path):
    """Keep the user's settings out of the tests."""
    QSettings.setPath(
        QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "settings")
    )


@pytest.fixture
def closed(qtbot):
    """Windows to close at the end."""
    windows = []
    yield windows
    for window in windows:
        window.close()


def test_make_window_is_ready(make_pair, closed):
    window = app.make_window(make_pair(*CHAIN), [np.array([1, 2, 3], np.float32)])
    closed.append(window)
    assert window.session.state is RunState.READY
    assert window.session.graph.operator("twice").index == 1


def test_make_window_without_a_model(closed):
    window = app.make_window()
    closed.append(window)
    assert window.session.state is RunState.EMPTY


def test_stored_theme_is_used(tmp_path, closed):
    settings = QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat)
    settings.setValue("theme", "dark")
    window = app.make_window(settings=settings)
    closed.append(window)
    assert window.theme.dark
    settings.setValue("theme", "rainbow")
    other = app.make_window(settings=settings)
    closed.append(other)
    assert other.theme.scheme is Scheme.SYSTEM


def test_demo(tmp_path, capsys, qapp):
    assert main(["--sample", "--demo", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "25 of 25 operators stepped" in said
    assert str(tmp_path / "out" / "dump") in said
    picture = QImage(str(tmp_path / "out" / "window.png"))
    assert (picture.width(), picture.height()) == (1440, 900)
    manifest = json.loads((tmp_path / "out" / "dump" / "manifest.json").read_text("utf-8"))
    assert {row["status"] for row in manifest["operators"]} == {"executed"}


def test_demo_with_a_seed(tmp_path, noisy, qapp):
    out = tmp_path / "out"
    assert main([str(noisy), "--input", "ones", "--seed", "31", "--demo", str(out)]) == 0
    assert json.loads((out / "dump" / "manifest.json").read_text("utf-8"))["seed"] == 31


def test_demo_with_a_memory_limit(tmp_path, noisy, qapp):
    written = []
    for name, limit in (("free", "none"), ("tight", "0")):
        out = tmp_path / name
        options = ("--input", "ones", "--seed", "3", "--memory-limit", limit)
        assert main([str(noisy), *options, "--demo", str(out)]) == 0
        written.append({f.name: f.read_bytes() for f in (out / "dump" / "ops").iterdir()})
    assert written[0] == written[1] != {}


def test_demo_of_a_model_that_cannot_be_opened(tmp_path, capsys, qapp):
    bad = tmp_path / "bad.param"
    bad.write_text("no model", encoding="utf-8")
    assert main([str(bad), "--demo", str(tmp_path / "out")]) == 2
    assert "bad.param" in capsys.readouterr().err


def test_log_records_reach_the_session(make_pair, closed, qtbot):
    window = app.make_window(theme=Theme(Scheme.LIGHT))
    closed.append(window)
    handler = app._LogHandler(app._LogRelay(window.session))
    handler.handle(logging.LogRecord("x", logging.ERROR, "", 0, "it is %s", ("broken",), None))
    entry = window.session.workspace.log_entries[-1]
    assert (entry.level, entry.text) == ("error", "it is broken")


def test_nothing_to_demonstrate(tmp_path, qapp, capsys):
    assert main(["--demo", str(tmp_path / "out")]) == 2
    assert "no model was given" in capsys.readouterr().err


@pytest.mark.slow
def test_window_needs_no_networkx(tmp_path, make_pair):
    """Importing it takes a tenth of the start; the engine's process has it.

    Panels of results are imported later, before somebody asks for them.
    """
    code = (
        "import sys, time\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from kuiper_studio.app import make_window\n"
        "window = make_window(sys.argv[1], engine='process')\n"
        "window.show()\n"
        "laid_out = window.graph_view.canvas.laid_out\n"
        "assert 'kuiper_studio.panels.provenance_panel' not in sys.modules\n"
        "deadline = time.monotonic() + 60\n"
        "while 'kuiper_studio.panels.provenance_panel' not in sys.modules:\n"
        "    QApplication.processEvents()\n"
        "    assert time.monotonic() < deadline\n"
        "window.close()\n"
        "sys.exit(not laid_out or 'networkx' in sys.modules)\n"
    )
    model = make_pair("pnnx.Input in 0 1 0 #0=(2)f32", "pnnx.Output out 1 0 0")
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path),
        "QT_QPA_PLATFORM": "offscreen",
    }
    command = [sys.executable, "-c", code, str(model)]
    ended = subprocess.run(command, check=False, env=environment)
    assert ended.returncode == 0


def test_nothing_is_written_to_the_users_settings():
    """Nor by the processes that tests start: they find their folder by the environment."""
    temporary = Path(tempfile.gettempdir()).resolve()
    settings = QSettings(
        QSettings.Format.IniFormat, QSettings.Scope.UserScope, "kuiper-studio", "kuiper-studio"
    )
    for path in (settings.fileName(), os.environ["XDG_CONFIG_HOME"], cache_folder()):
        assert Path(path).resolve().is_relative_to(temporary)


@pytest.mark.slow
def test_window_is_imported_by_plain_imports():
    """By PySide6's own, the source of each module would be read, also of those of dialogs."""
    code = (
        "import sys\n"
        "from kuiper_studio.cli.program import import_window\n"
        "import_window()\n"
        "import kuiper_studio.dialogs.preferences_dialog\n"
        "read = sys.modules['linecache'].cache if 'linecache' in sys.modules else {}\n"
        "assert not [name for name in read if 'kuiper_studio' in name], read.keys()\n"
        "assert 'kuiper_studio.main_window' in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_start_imports_nothing_that_comes_later():
    """What nobody has asked for yet; what rests or the first use of a part imports it."""
    code = (
        "import sys\n"
        "from kuiper_studio.cli.program import import_window\n"
        "import_window()\n"
        "print(*[name for name in sys.argv[1:] if name in sys.modules])\n"
    )
    later = (
        "PIL", "engine.attention", "engine.axes.inference", "engine.comparison",
        "engine.conversion.convert", "engine.datasets", "engine.expression",
        "engine.layers.convolution", "engine.meanings.results", "engine.precision",
        "engine.operator_numbers", "engine.provenance", "engine.runtime.executor",
        "engine.session", "kuiper_studio.engine_service.sweep_process",
        "kuiper_studio.panels.start_page", "kuiper_studio.panels.weight_view", "ncnn",
        "networkx", "numpy.random", "onnxruntime", "pyqtgraph",
    )  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", code, *later], check=True, capture_output=True, text=True
    )
    assert ended.stdout.split() == []
