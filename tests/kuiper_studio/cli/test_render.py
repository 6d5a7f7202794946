"""``kuiper-studio render``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import networkx as nx
import pytest
from PIL import Image


def test_svg(run, digits, tmp_path, qapp):
    lines = run("render", digits, "--output", tmp_path / "g.svg").lines
    assert len(lines) == 1
    assert lines[0].startswith(f"written to {tmp_path / 'g.svg'}, ")
    assert ET.parse(tmp_path / "g.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_png(run, digits, tmp_path, qapp, theme):
    run("render", digits, "--output", tmp_path / "g.png", "--theme", theme)
    with Image.open(tmp_path / "g.png") as picture:
        assert picture.width > picture.height
        corner = picture.convert("RGB").getpixel((0, 0))
    assert (sum(corner) < 3 * 128) == (theme == "dark")


def test_sizes_are_for_conversions_only(run, digits, tmp_path):
    model = digits / "digits.pnnx.param"
    ended = run("render", model, "--output", tmp_path / "g.svg", "--shape", "1,1,8,8")
    assert "--shape of render applies only to a .pt or .onnx" in ended.sentence
    assert not (tmp_path / "g.svg").exists()


def test_orientation(run, digits, tmp_path, qapp):
    run("render", digits, "--output", tmp_path / "g.png", "--orientation", "top-down")
    with Image.open(tmp_path / "g.png") as picture:
        assert picture.height > picture.width


@pytest.fixture
def chain(make_pair):
    """Three boxes of the least width, by hand 112 wide and 53 apart; no texts on the lines."""
    return make_pair(
        "pnnx.Input in 0 1 0", "F.relu relu 1 1 0 1", "pnnx.Output out 1 0 1"
    )  # fmt: skip


def opened(path, form):
    if form == "graphml":
        return nx.read_graphml(path)
    return nx.node_link_graph(json.loads(path.read_text(encoding="ascii")), edges="edges")


@pytest.mark.parametrize("form", ["graphml", "json"])
@pytest.mark.parametrize("named", [True, False], ids=["by the suffix", "by the option"])
def test_layout_as_data(run, chain, tmp_path, qapp, form, named):
    output = tmp_path / (f"g.{form.upper()}" if named else "g")
    options = [] if named else ["--format", form]
    lines = run("render", chain, "--output", output, *options).lines
    assert lines == [f"written to {output}, 3 operators"]
    graph = opened(output, form)
    found = [(name, node["x"], node["y"], node["layer"]) for name, node in graph.nodes.items()]
    assert found == [
        ("in", 0, 0, 0), ("relu", 165, 0, 1), ("out", 330, 0, 2),
    ]  # fmt: skip
    assert [node["type"] for node in graph.nodes.values()] == [
        "pnnx.Input", "F.relu", "pnnx.Output",
    ]  # fmt: skip
    (route,) = [edge["route"] for source, _, edge in graph.edges(data=True) if source == "in"]
    assert route == ("112.0,47.0 165.0,47.0" if form == "graphml" else [[112, 47], [165, 47]])


def test_layout_as_data_top_down(run, chain, tmp_path, qapp):
    output = tmp_path / "g.json"
    run("render", chain, "--output", output, "--orientation", "top-down")
    graph = opened(output, "json")
    assert graph.graph == {"orientation": "top-down"}
    assert [(node["x"], node["y"]) for node in graph.nodes.values()] == [
        (0, 0), (0, 128), (0, 256),
    ]  # fmt: skip


def test_format_of_a_picture(run, digits, tmp_path, qapp):
    run("render", digits, "--output", tmp_path / "g", "--format", "png")
    with Image.open(tmp_path / "g") as picture:
        assert picture.format == "PNG"


def test_model_is_spared(run, chain):
    before = chain.read_bytes()
    told = run("render", chain, "--output", chain, "--format", "json").sentence
    assert told.endswith("is the model itself; choose another name")
    assert chain.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("platform", [None, "xcb"], ids=["none", "one that needs a display"])
def test_needs_no_display(samples, tmp_path, platform):
    environment = {
        k: v for k, v in os.environ.items() if k not in {"DISPLAY", "WAYLAND_DISPLAY"}
    }
    environment.pop("QT_QPA_PLATFORM", None)
    if platform is not None:
        environment["QT_QPA_PLATFORM"] = platform
    ended = subprocess.run(
        [sys.executable, "-m", "kuiper_studio", "render", str(samples / "linear"), "--output",
         str(tmp_path / "g.svg")],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "g.svg").stat().st_size > 1000
