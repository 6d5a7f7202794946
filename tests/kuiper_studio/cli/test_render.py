"""``kuiper-studio render``."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

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


def test_orientation(run, digits, tmp_path, qapp):
    run("render", digits, "--output", tmp_path / "g.png", "--orientation", "top-down")
    with Image.open(tmp_path / "g.png") as picture:
        assert picture.height > picture.width


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
