"""Debug → Use kernels of a dump: the same numbers again, in the window."""

from __future__ import annotations

import json

import pytest
from driving import enabled, trigger
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFileDialog, QLabel

from kuiper_studio.cli.program import main
from kuiper_studio.session import RunState

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
    "nn.ReLU relu 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
    "pnnx.Expression twice 1 1 1 2 expr=mul(@0,2) #1=(1,2,4,4)f32 #2=(1,2,4,4)f32",
    "pnnx.Output out 1 0 2",
)
KERNELS = {"in": "", "relu": "numpy/one-thread", "twice": "numpy", "out": ""}
OF_CHAIN = {"relu": "numpy/one-thread", "twice": "numpy"}


@pytest.fixture
def dump(tmp_path):
    """A function that writes the manifest of a dump by hand."""

    def write(kernels, name="earlier", **more):
        folder = tmp_path / name
        folder.mkdir()
        rows = [{"name": operator, "kernel": kernel} for operator, kernel in kernels.items()]
        manifest = {"schema": "kuiper-studio-dump", "operators": rows, **more}
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        return folder / "manifest.json"

    return write


@pytest.fixture
def chain(make_pair):
    return make_pair(*CHAIN, name="chain")


@pytest.fixture
def window(open_window, chain):
    return open_window(chain, ["ones"])


@pytest.fixture
def choose(monkeypatch):
    """A function that says which file the dialog gives."""

    def answer(path):
        monkeypatch.setattr(
            QFileDialog, "getOpenFileName", lambda *args, **more: (str(path or ""), "")
        )

    return answer


def text(window, name):
    return window.findChild(QLabel, name).text()


def choice(window):
    return window.findChild(QComboBox, "backendChoice")


def kernels(window):
    session = window.session
    return {name: session.record(name).kernel for name in OF_CHAIN if session.record(name)}


def log(window):
    return [entry.text for entry in window.session.workspace.log_entries]


def test_pinned_and_back(qtbot, window, dump, choose, settings):
    session = window.session
    session.set_backend("numpy")
    choose(dump(KERNELS))
    assert not enabled(window, "debug.forgetKernels")
    trigger(qtbot, window, "debug.useKernels")
    assert session.state is RunState.READY
    assert [source.text for source in session.inputs.values()] == ["ones"]
    assert text(window, "statusBackend") == "kernels of earlier"
    assert (
        window.findChild(QLabel, "statusBackend")
        .toolTip()
        .endswith("manifest.json\n2 by numpy")
    )
    assert choice(window).currentText() == "recorded"
    assert choice(window).toolTip() == (
        "Backend that computes the operators. recorded: as in earlier, 2 by numpy; "
        "choose a backend to stop using them"
    )
    assert "kernels of earlier: 2 by numpy" in log(window)
    assert settings.value("folder/dump").endswith("earlier")
    session.select("relu")
    window.properties_panel.catch_up()
    assert text(window, "propertiesKernel") == "pinned to numpy/one-thread"
    trigger(qtbot, window, "debug.continue")
    assert kernels(window) == OF_CHAIN
    session.select("relu")
    window.properties_panel.catch_up()
    assert text(window, "propertiesKernel") == "by numpy/one-thread"
    trigger(qtbot, window, "debug.forgetKernels")
    assert session.backend == choice(window).currentText() == "numpy"
    assert text(window, "statusBackend") == "backend numpy"
    assert choice(window).findText("recorded") == -1
    assert not enabled(window, "debug.forgetKernels")
    trigger(qtbot, window, "debug.continue")
    assert kernels(window) == {"relu": "numpy", "twice": "numpy"}


def test_the_choice_of_another_backend_ends_it(qtbot, window, dump, choose):
    choose(dump(KERNELS))
    trigger(qtbot, window, "debug.useKernels")
    choice(window).setCurrentText("numpy")
    qtbot.waitUntil(lambda: not window.session.busy)
    assert text(window, "statusBackend") == "backend numpy"
    trigger(qtbot, window, "debug.continue")
    assert kernels(window)["relu"] == "numpy"


def test_reload_keeps_them_and_another_model_drops_them(qtbot, window, dump, choose, make_pair):
    choose(dump(KERNELS))
    trigger(qtbot, window, "debug.useKernels")
    trigger(qtbot, window, "file.reload")
    assert text(window, "statusBackend") == "kernels of earlier"
    other = make_pair("pnnx.Input a 0 1 0 #0=(1)f32", "pnnx.Output b 1 0 0", name="other")
    window.opening.open_model(other)
    qtbot.waitUntil(lambda: window.session.model_path == other)
    assert window.session.kernels_from is None
    assert text(window, "statusBackend") == "backend auto"
    assert choice(window).currentText() == "auto"
    assert "kernels of earlier are used no more" in log(window)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param({"in": "", "relu": "numpy", "out": ""},
                     "there is no kernel for pnnx.Expression 'twice'", id="another model"),
        pytest.param({**KERNELS, "relu": "abacus/2"},
                     "'relu' was computed by abacus, which is not", id="library"),
        pytest.param(None, "its manifest is damaged", id="damaged"),
    ],
)  # fmt: skip
def test_what_cannot_be_used(qtbot, window, dump, choose, content, reason):
    path = dump(content or {})
    if content is None:
        path.write_bytes(b"{")
    trigger(qtbot, window, "debug.step")
    trigger(qtbot, window, "debug.step")
    choose(path)
    trigger(qtbot, window, "debug.useKernels")
    assert window.banner.isVisible()
    failure = window.session.failure
    assert failure.title == "The kernels of the dump earlier cannot be used"
    assert reason in failure.reason
    assert failure.hint == "The open model keeps its kernels."
    assert window.session.position == 2  # what was computed is still there
    assert text(window, "statusBackend") == "backend auto"
    assert choice(window).currentText() == "auto"
    assert not enabled(window, "debug.forgetKernels")
    trigger(qtbot, window, "debug.continue")
    assert window.session.state is RunState.FINISHED


def test_a_dialog_that_is_cancelled_changes_nothing(qtbot, window, choose):
    choose(None)
    trigger(qtbot, window, "debug.useKernels")
    assert text(window, "statusBackend") == "backend auto"


def test_without_a_model(open_window):
    window = open_window()
    assert not enabled(window, "debug.useKernels")
    assert not enabled(window, "debug.forgetKernels")


def test_the_dumps_seed_comes_along(qtbot, open_window, noisy, dump, choose):
    window = open_window(noisy, ["ones"])
    names = [operator.name for operator in window.session.graph.operators]
    choose(dump(dict.fromkeys(names, "numpy"), seed=23))
    trigger(qtbot, window, "debug.useKernels")
    assert window.session.seed == 23
    trigger(qtbot, window, "debug.continue")
    drawn = [window.session.record(name).seed for name in names]
    assert [seed for seed in drawn if seed is not None] == [23] * 2
    window.session.set_seed(5)  # the user's own, from now on
    qtbot.waitUntil(lambda: not window.session.busy)
    trigger(qtbot, window, "file.reload")
    assert window.session.seed == 5
    assert text(window, "statusBackend") == "kernels of earlier"


@pytest.mark.parametrize(("more", "seed"), [((), 23), (("--seed", "0"), 0)])
def test_on_the_command_line(noisy, dump, tmp_path, more, seed):
    names = [line.split()[1] for line in noisy.read_text().splitlines()[2:]]
    first = dump(dict.fromkeys(names, "numpy"), seed=23).parent
    out = tmp_path / "demo"
    arguments = [str(noisy), "--input", "ones", "--backend-from", str(first), *more]
    assert main([*arguments, "--demo", str(out)]) == 0
    manifest = json.loads((out / "dump" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["backend"], manifest["seed"]) == ("recorded", seed)
    ran = {row["kernel"] for row in manifest["operators"] if row["kernel"]}
    assert ran == {"numpy"}


def test_in_the_palette(qtbot, window):
    window.show_palette()
    palette = window.palette_popup
    qtbot.keyClicks(palette.box, "kernels of a dump")
    assert palette.model.entry(0).text == "Use kernels of a dump"
    qtbot.keyClick(palette.box, Qt.Key.Key_Escape)
