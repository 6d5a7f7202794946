"""An exporter that does what a test says, and the real one where it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.conversion.executable import find_pnnx
from engine.errors import ConversionError


@pytest.fixture
def data() -> Path:
    """Small models, made by ``make_models.py``."""
    return Path(__file__).parent / "data"


@pytest.fixture
def exporter(tmp_path, monkeypatch):
    """A function that makes a Python program the exporter; gives where it may note."""
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    note = tmp_path / "note"

    def make(program: str) -> Path:
        path = folder / "pnnx"
        head = f"#!{sys.executable}\nimport os, sys, signal, time\nNOTE = {str(note)!r}\n"
        path.write_text(head + program)
        path.chmod(0o755)
        return note

    return make


@pytest.fixture
def real_exporter(tmp_path, monkeypatch):
    """The executable of pnnx; without it the test is skipped."""
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "cache"))
    try:
        return find_pnnx(Path("model.pt"))
    except ConversionError:
        pytest.skip("pnnx is not installed")
