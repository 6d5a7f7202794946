"""The graph as a file."""

from __future__ import annotations

import errno
import os
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PySide6.QtGui import QImage

from engine.errors import ExportError
from kuiper_studio.engine_service.summary import summarise
from kuiper_studio.graph_view.render import render_graph


def test_svg(theme, load_graph, tmp_path):
    rendered = render_graph(load_graph(), tmp_path / "graph.svg", theme)
    root = ET.parse(rendered.path).getroot()
    texts = "".join(root.itertext())
    assert root.attrib["viewBox"].split()[2:] == [str(rendered.width), str(rendered.height)]
    for name in ("stem.relu", "pnnx.Expression", "3×8×8"):
        assert name in texts
    assert rendered.note == ""
    assert [path.name for path in tmp_path.glob("*.part")] == []


@pytest.mark.parametrize("name", ["a\x01b", "a\x1b[2Jb", "a\uffffb", "<b>&amp;</b>"])
def test_svg_is_xml_whatever_names_hold(theme, load_graph, tmp_path, name):
    graph = load_graph(
        (
            "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
            f"nn.ReLU {name} 1 1 0 1",
            "pnnx.Output o 1 0 1",
        )
    )
    rendered = render_graph(graph, tmp_path / f"{name[-3:-1]}<i>&.svg", theme)
    text = "".join(ET.parse(rendered.path).getroot().itertext())
    shown = name.translate(dict.fromkeys((1, 0x1B, 0xFFFF), "\ufffd"))
    assert shown in text


@pytest.mark.parametrize("orientation", ["left-right", "top-down"])
def test_png(theme, load_graph, tmp_path, orientation):
    rendered = render_graph(load_graph(), tmp_path / "graph.PNG", theme, orientation)
    image = QImage(str(rendered.path))
    assert (image.width(), image.height()) == (rendered.width, rendered.height)
    assert (image.width() > image.height()) == (orientation == "left-right")
    assert rendered.scale == 2


def test_run_is_drawn_with_its_values(theme, session, open_model, run, tmp_path):
    open_model(value=np.full((1, 3, 8, 8), -3.0, np.float32))
    run()
    path = tmp_path / "graph.svg"
    summaries = {0: summarise(session.fetch("0"))}
    render_graph(session.graph, path, theme, session=session, summaries=summaries)
    text = path.read_text()
    assert "all −3" in text
    assert "<image" in text


def test_too_large_for_png_is_said(theme, load_graph, tmp_path):
    lines = ["pnnx.Input image 0 1 0"]
    lines += [f"F.relu relu_{i} 1 1 {i} {i + 1}" for i in range(130)]
    rendered = render_graph(load_graph(tuple(lines)), tmp_path / "graph.png", theme)
    assert rendered.width == 16384
    assert rendered.scale < 1
    assert "SVG" in rendered.note


def test_other_suffix_is_refused(theme, load_graph, tmp_path):
    with pytest.raises(ExportError, match=r"graph\.pdf: a graph picture is an \.svg or \.png"):
        render_graph(load_graph(), tmp_path / "graph.pdf", theme)


@pytest.mark.parametrize("name", ["graph.svg", "graph.png"])
def test_a_failure_leaves_what_was_there_and_nothing_else(
    theme, load_graph, tmp_path, monkeypatch, name
):
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    (tmp_path / name).write_text("precious")
    monkeypatch.setattr(os, "fsync", fail)
    graph = load_graph()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ExportError, match="cannot be written: the disk is full"):
        render_graph(graph, tmp_path / name, theme)
    assert (tmp_path / name).read_text() == "precious"
    assert sorted(tmp_path.iterdir()) == before


def test_links_are_neither_replaced_nor_written_through_by_chance(theme, load_graph, tmp_path):
    """A link at the destination is followed; those of names that could be guessed are not."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real.svg").write_text("old")
    (tmp_path / "far" / "victim").write_text("precious")
    (tmp_path / "graph.svg").symlink_to(tmp_path / "far" / "real.svg")
    for suffix in (".part", ".tmp", "~", ".new"):
        (tmp_path / f"graph.svg{suffix}").symlink_to(tmp_path / "far" / "victim")
        (tmp_path / "far" / f"real.svg{suffix}").symlink_to(tmp_path / "far" / "victim")
    render_graph(load_graph(), tmp_path / "graph.svg", theme)
    assert (tmp_path / "graph.svg").is_symlink()
    assert "<svg" in (tmp_path / "far" / "real.svg").read_text()
    assert (tmp_path / "far" / "victim").read_text() == "precious"


def test_unwritable_place_is_told(theme, load_graph, tmp_path):
    with pytest.raises(ExportError, match="cannot be written: there is no such file or folder"):
        render_graph(load_graph(), tmp_path / "nowhere" / "graph.svg", theme)
