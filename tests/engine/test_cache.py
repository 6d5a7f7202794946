"""Where caches are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.backends.tuning_cache import TuningCache
from engine.cache import cache_folder
from engine.exclusions import ExclusionCache
from engine.leftovers import find_leftovers


@pytest.fixture(autouse=True)
def unset(monkeypatch) -> None:
    monkeypatch.delenv("KUIPER_STUDIO_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


def test_a_folder_that_the_user_names(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="the rules of Linux")
def test_the_folders_that_earlier_versions_wrote_to(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_folder() == Path("/home/somebody/.cache/kuiper-studio")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/kuiper-studio")


@pytest.mark.skipif(sys.platform != "linux", reason="the rules of Linux")
def test_a_user_without_a_home(monkeypatch):
    """There is no folder, and whoever wants to write to it is refused as by a full disk."""

    def nobody(_: int) -> None:
        raise KeyError("no such user")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    folder = cache_folder()
    assert not folder.exists()
    with pytest.raises(NotADirectoryError):
        folder.mkdir(parents=True, exist_ok=True)
    TuningCache().save()
    assert find_leftovers() == []
    assert ExclusionCache().load("m") == {}
