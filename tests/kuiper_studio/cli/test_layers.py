"""``--layers``: the user's own layers on the command line."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from engine.layers import layer_files, unload_layers

FILES = ("contrast.pnnx.param", "contrast.pnnx.bin", "my_layers.py")


@pytest.fixture(autouse=True)
def place(tmp_path, samples, monkeypatch):
    """A folder with the example and a picture; nothing stays loaded."""
    for name in FILES:
        shutil.copy(samples / "layers" / name, tmp_path)
    shutil.copy(samples / "unet" / "scene_1.png", tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    unload_layers()


def test_the_models_own_folder_is_not_searched(run):
    ended = run("run", "contrast.pnnx.param", "--input", "scene_1.png")
    assert ended.sentence == (
        "the model did not run to its end: 'contrast': no layer for operator type "
        "contrast_net.LocalContrast; --layers FILE loads your own layers; "
        "info lists 1 more that cannot run"
    )
    assert layer_files() == ()


def test_run(run, samples):
    ended = run("run", "contrast.pnnx.param", "--input", "scene_1.png",
                "--layers", "my_layers.py", "--output", "out.npz")  # fmt: skip
    assert "out0: 1×2×96×96 float32" in ended.lines
    with np.load(samples / "layers" / "golden.npz") as golden, np.load("out.npz") as got:
        np.testing.assert_allclose(got["out0"], golden["output"], atol=1e-4)


def test_info(run, place):
    line = f"layers: {place.resolve() / 'my_layers.py'}: "
    line += "contrast_net.LocalContrast, contrast_net.Squash"
    lines = run("info", "contrast.pnnx.param", "--layers", "my_layers.py").lines
    assert line in lines
    assert not any("cannot run" in line for line in lines)
    unload_layers()
    lines = run("info", "contrast.pnnx.param").lines
    assert lines[-1] == "use --layers FILE to load your own layers"


def test_info_json_for_programs(run, place):
    ended = run("info", "contrast.pnnx.param", "--json", "--layers", "my_layers.py")
    facts = json.loads(ended.out)
    files = {row["type"]: row["layer_file"] for row in facts["operators"]}
    assert files["contrast_net.Squash"] == str(place.resolve() / "my_layers.py")
    assert files["nn.Conv2d"] is None
    assert facts["unsupported"] == []


@pytest.mark.parametrize("command", ["info", "dump", "render"])
def test_all_commands_take_layers(run, command):
    options = {
        "info": [],
        "dump": ["--input", "scene_1.png", "--output", "dump"],
        "render": ["--output", "graph.svg"],
    }
    ended = run(command, "contrast.pnnx.param", *options[command], "--layers", "my_layers.py")
    assert (ended.status, ended.err) == (0, "")


@pytest.mark.parametrize("command", ["info .", "run .", "render . --output g.svg"])
def test_errors_name_the_line(run, place, command):
    (place / "wrong.py").write_text("from engine.layers import register\n\n1 / 0\n")
    ended = run(*command.split(), "--layers", "my_layers.py", "wrong.py")
    assert ended.sentence == "wrong.py:3: ZeroDivisionError: division by zero"


def test_the_window_is_not_opened_with_wrong_layers(run, place):
    (place / "wrong.py").write_text("def f(:\n")
    ended = run(".", "--demo", "out", "--layers", "wrong.py")
    assert ended.sentence.startswith("wrong.py:1: SyntaxError: ")
    assert not (place / "out").exists()


def test_a_layer_that_fails_names_its_line(run, place):
    (place / "failing.py").write_text(
        "from engine.layers import register\n\n"
        '@register("contrast_net.LocalContrast")\n'
        "def contrast(input, gain):\n"
        "    return input * gain\n"
    )
    ended = run("run", ".", "--input", "scene_1.png", "--layers", "failing.py")
    assert ended.sentence == (
        "contrast_net.LocalContrast 'contrast' failed on inputs 1×3×96×96: ValueError: "
        "operands could not be broadcast together with shapes (1,3,96,96) (3,) (failing.py:5)"
    )


def test_the_window_says_which_types_a_file_has(run, place, qapp, monkeypatch):
    texts = []
    monkeypatch.setattr(
        "kuiper_studio.session.workspace.Workspace.log",
        lambda session, level, text: texts.append(text),
    )
    ended = run(".", "--input", "scene_1.png", "--demo", "out", "--layers", "my_layers.py")
    assert "contrast.pnnx.param: 6 of 6 operators stepped" in ended.lines
    assert texts[0] == "layers of my_layers.py: contrast_net.Squash, contrast_net.LocalContrast"
