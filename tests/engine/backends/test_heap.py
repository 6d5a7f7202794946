"""Memory is returned to the system."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest

from engine.backends.heap import (
    _trim,
    aligned,
    register_trim,
    trim_heap,
    trim_libraries,
    unload,
)


@pytest.fixture(autouse=True)
def _unknown():
    """Clear the cached result of looking for ``malloc_trim``."""
    _trim.cache_clear()
    yield
    _trim.cache_clear()


def test_trimming_works_on_any_system():
    trim_heap()


@pytest.mark.parametrize("platform", ["win32", "darwin", "linux"])
def test_a_c_library_without_trim(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    trim_heap()


def test_the_c_library_is_called(monkeypatch):
    asked = []

    class Library:
        malloc_trim = staticmethod(asked.append)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library)
    trim_heap()
    assert asked == [0]


@pytest.mark.parametrize("place", [0, 5, 4096, 10_000])
def test_a_mapped_array_is_the_same_afterwards(tmp_path, place):
    content = np.random.default_rng(0).integers(0, 256, 100_000).astype(np.uint8)
    path = tmp_path / "weights"
    path.write_bytes(content.tobytes())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(mapped, np.uint8)[place : place + 50_000].reshape(-1, 5)
    unload(array)
    unload(array[::2])
    np.testing.assert_array_equal(array.reshape(-1), content[place : place + 50_000])


@pytest.mark.parametrize("place", [0, 2])
def test_an_array_at_an_odd_place_is_copied(place):
    memory = np.arange(102, dtype=np.uint8)
    array = memory[place : place + 100].view(np.float32).reshape(5, 5)
    found = aligned(array)
    assert (found is array) == (place == 0)
    assert found.flags.aligned
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, array, strict=True)
    columns = aligned(found.T)
    assert columns.flags.c_contiguous
    np.testing.assert_array_equal(columns, array.T, strict=True)


def test_arrays_outside_a_mapping_are_ignored():
    array = np.arange(100_000)
    unload(array)
    unload(np.frombuffer(array.tobytes(), np.int64))
    unload(np.zeros(()))
    np.testing.assert_array_equal(array, range(100_000))


def test_libraries_free_their_spare_memory(monkeypatch):
    monkeypatch.setattr("engine.backends.heap._others", [])
    asked = []
    register_trim(lambda: asked.append("pool"))
    trim_heap()
    assert asked == []
    trim_libraries()
    assert asked == ["pool"]
