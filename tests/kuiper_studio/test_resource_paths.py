from __future__ import annotations

import shutil
from xml.etree import ElementTree as ET

import pytest
from PySide6.QtGui import QFontDatabase

from kuiper_studio import resource_paths

NAMED_ICONS = (
    "open", "restart", "step-back", "step", "step-into", "step-out", "continue", "run-to",
    "stop", "pause", "breakpoint", "nan-prev", "nan-next", "target", "lock", "grid",
    "histogram", "autofit", "zoom-in-range", "reset", "symmetric", "fit", "plus", "minus",
    "search", "filter", "copy", "pin", "image", "file", "theme", "more", "close", "warning",
    "check", "play", "chevron-up", "chevron-down", "chevron-left", "chevron-right", "export",
    "table", "folder", "save", "keyboard", "info", "palette", "kuiper-studio",
)  # fmt: skip


def test_checkout_has_the_resources() -> None:
    assert (resource_paths.resources() / "style.qss").is_file()


def test_wheel_comes_before_the_checkout(tmp_path, monkeypatch) -> None:
    package = tmp_path / "kuiper_studio"
    for folder in (package / "_resources", package / "_samples", tmp_path / "resources"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(resource_paths, "_PACKAGE", package)
    assert resource_paths.resources() == package / "_resources"
    assert resource_paths.samples() == package / "_samples"
    shutil.rmtree(package / "_resources")
    assert resource_paths.resources() == tmp_path / "resources"


def test_missing_resources_are_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(resource_paths, "_PACKAGE", tmp_path / "kuiper_studio")
    with pytest.raises(FileNotFoundError, match="'samples' is missing"):
        resource_paths.samples()


def test_fonts(qapp) -> None:
    families = resource_paths.load_fonts()
    assert {"Inter", "JetBrains Mono"} <= set(families)
    assert QFontDatabase.isFixedPitch("JetBrains Mono")


def test_fonts_come_with_their_licences_and_are_small() -> None:
    folder = resource_paths.resources() / "fonts"
    for name in ("Inter-OFL.txt", "JetBrainsMono-OFL.txt"):
        assert "SIL OPEN FONT LICENSE Version 1.1" in (folder / name).read_text()
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2.5e6


@pytest.mark.parametrize("name", NAMED_ICONS)
def test_icon_file(name: str) -> None:
    root = ET.parse(resource_paths.resources() / "icons" / f"{name}.svg").getroot()
    side = "64" if name == "kuiper-studio" else "16"
    assert root.get("viewBox") == f"0 0 {side} {side}"
    if name != "kuiper-studio":
        assert root.get("stroke") == "currentColor"
