"""The graph as a file."""

from __future__ import annotations

import errno
import math
import os
import re
import tracemalloc
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PySide6.QtGui import QImage

from engine.errors import ExportError
from kuiper_studio.engine_service.summary import summarise
from kuiper_studio.graph_view import pages
from kuiper_studio.graph_view.render import (
    Shown,
    Size,
    prepare_scene,
    render_graph,
    write_scene,
)
from kuiper_studio.session.overlaying import OverlayKind


def test_svg(theme, load_graph, tmp_path):
    rendered = render_graph(load_graph(), tmp_path / "graph.svg", theme)
    root = ET.parse(rendered.path).getroot()
    texts = "".join(root.itertext())
    assert root.attrib["viewBox"].split()[2:] == [str(rendered.width), str(rendered.height)]
    for name in ("stem.relu", "pnnx.Expression", "3×8×8"):
        assert name in texts
    assert rendered.note == ""
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_svg_names_fonts_of_the_same_kind_for_programs_that_lack_ours(
    theme, load_graph, tmp_path
):
    rendered = render_graph(load_graph(), tmp_path / "graph.svg", theme)
    kinds = {
        text.text: text.attrib["font-family"].rpartition(", ")[2]
        for text in ET.parse(rendered.path).iter("{http://www.w3.org/2000/svg}text")
    }
    assert kinds["pnnx.Expression"] == "sans-serif"
    assert kinds["stem.relu"] == "monospace"
    assert set(kinds.values()) == {"sans-serif", "monospace"}


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
    told = r"graph\.jpg: a graph picture is an \.svg, \.png or \.pdf"
    with pytest.raises(ExportError, match=told):
        render_graph(load_graph(), tmp_path / "graph.jpg", theme)


@pytest.mark.parametrize("name", ["graph.svg", "graph.png"])
def test_width_is_what_was_asked_for(theme, load_graph, tmp_path, name):
    rendered = render_graph(load_graph(), tmp_path / name, theme, size=Size(width=1234))
    assert rendered.width == 1234
    usual = render_graph(load_graph(), tmp_path / "usual.svg", theme)
    assert rendered.height == pytest.approx(usual.height * 1234 / usual.width, abs=2)
    if name.endswith("png"):
        assert QImage(str(rendered.path)).width() == 1234
    else:
        root = ET.parse(rendered.path).getroot()
        assert root.attrib["viewBox"].split()[2:] == [str(usual.width), str(usual.height)]


def test_a_png_in_tiles_is_the_same_as_in_one_piece(theme, load_graph, tmp_path, monkeypatch):
    """Also with an odd number of rows in the last strip and of columns in the last tile."""
    graph = load_graph()
    whole = QImage(str(render_graph(graph, tmp_path / "whole.png", theme).path))
    monkeypatch.setattr(pages, "_TILE", 333)
    monkeypatch.setattr(pages, "_STRIP_BYTES", 97 * 4 * whole.width())
    tiled = QImage(str(render_graph(graph, tmp_path / "tiled.png", theme).path))
    first, second = (
        np.frombuffer(image.constBits(), np.uint8).astype(int) for image in (whole, tiled)
    )
    # Edges of strokes and glyphs differ by their rounding alone, in few places.
    differs = np.abs(first - second)
    assert differs.max() < 64
    assert np.count_nonzero(differs > 8) < len(first) / 20_000


def test_a_large_png_takes_little_memory(theme, load_graph, tmp_path, monkeypatch):
    """A picture of more than 100 MB, with strips of 4 MB."""
    monkeypatch.setattr(pages, "_STRIP_BYTES", 4 << 20)
    tracemalloc.start()
    rendered = render_graph(
        load_graph(("pnnx.Input a 0 1 0", *(f"F.relu r{i} 1 1 {i} {i + 1}" for i in range(9)))),
        tmp_path / "graph.png", theme, size=Size(width=20_000),
    )  # fmt: skip
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 4 * rendered.width * rendered.height > 100e6
    assert most < 25e6


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (Size(width=2_000_000), "a side has at most 1 000 000"),
        (Size(scale=300.0), "at most 4 000 000 000 are drawn"),
    ],
)
def test_a_png_of_too_many_pixels_is_refused(theme, load_graph, tmp_path, size, told):
    with pytest.raises(ExportError) as refused:
        render_graph(load_graph(), tmp_path / "graph.png", theme, size=size)
    assert told in str(refused.value).replace("\u202f", " ").replace("\xa0", " ")
    assert not (tmp_path / "graph.png").exists()


def test_pdf(theme, load_graph, tmp_path):
    rendered = render_graph(load_graph(), tmp_path / "graph.pdf", theme)
    data = rendered.path.read_bytes()
    assert data.startswith(b"%PDF-1.")
    (box,) = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", data))
    # A pixel is three quarters of a point.
    assert float(box[0]) == pytest.approx(0.75 * rendered.width, abs=1)
    assert float(box[1]) == pytest.approx(0.75 * rendered.height, abs=1)
    assert b"/FontFile2" in data  # texts, not pictures of them
    assert rendered.note == ""


def test_a_long_graph_takes_several_pages_of_a_pdf(theme, load_graph, tmp_path):
    lines = ["pnnx.Input image 0 1 0"]
    lines += [f"F.relu relu_{i} 1 1 {i} {i + 1}" for i in range(130)]
    rendered = render_graph(load_graph(tuple(lines)), tmp_path / "graph.pdf", theme)
    pages_wanted = math.ceil(0.75 * rendered.width / 14_400)
    assert pages_wanted > 1
    assert rendered.note.startswith(f"{pages_wanted} pages")
    assert rendered.path.read_bytes().count(b"/MediaBox") == pages_wanted


class TestShown:
    """What the user chose to have in the picture."""

    @pytest.fixture
    def write(self, theme, session, open_model, run, tmp_path):
        open_model(value=np.full((1, 3, 8, 8), -3.0, np.float32))
        session.toggle_breakpoint("stem.relu")
        run()
        summaries = {0: summarise(session.fetch("0"))}

        def written(shown: Shown) -> str:
            state = prepare_scene(session.graph, session, summaries, shown)
            path = tmp_path / "graph.svg"
            write_scene(state, path, theme, thumbnails=shown.thumbnails)
            return path.read_text()

        return written

    def test_thumbnails(self, write):
        assert "<image" in write(Shown())
        without = write(Shown(thumbnails=False))
        assert "<image" not in without
        assert "all −3" in without

    def test_states(self, write, theme):
        breakpoint_color = theme.color("bp").name()
        assert breakpoint_color in write(Shown())
        without = write(Shown(states=False))
        assert breakpoint_color not in without
        assert "all −3" not in without
        assert "<image" in without

    def test_overlay(self, write, session):
        plain = write(Shown())
        session.overlaying.choose(OverlayKind.MEMORY)
        assert write(Shown()) != plain
        assert write(Shown(overlay=False)) == plain


@pytest.mark.parametrize("name", ["graph.svg", "graph.png", "graph.pdf"])
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
