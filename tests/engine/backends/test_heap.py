"""Memory that goes back to the system."""

from __future__ import annotations

import ctypes
import sys

import pytest

from engine.backends.heap import _trim, trim_heap


@pytest.fixture(autouse=True)
def _unknown():
    """Whether the C library can do it is found out anew."""
    _trim.cache_clear()
    yield
    _trim.cache_clear()


def test_it_may_be_called_anywhere():
    trim_heap()


@pytest.mark.parametrize("platform", ["win32", "darwin", "linux"])
def test_a_c_library_that_cannot(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    trim_heap()


def test_the_library_is_asked(monkeypatch):
    asked = []

    class Library:
        malloc_trim = staticmethod(asked.append)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library)
    trim_heap()
    assert asked == [0]
