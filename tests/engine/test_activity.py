"""The note of what a process computes, read after its end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest

from engine.activity import Activity, ActivityNote

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


def test_nothing_is_noted_at_first():
    assert ActivityNote().read() is None


@pytest.mark.parametrize(
    ("operator", "kernel"),
    [
        pytest.param("conv1", "ncnn/all-2", id="usual"),
        pytest.param("größe.層", "numpy", id="beyond ASCII"),
        pytest.param("a\0b", "c\nd", id="control characters"),
        pytest.param("conv1", "", id="no kernel"),
    ],
)
def test_what_is_noted_is_read(operator, kernel):
    note = ActivityNote()
    note.write("a longer name than what follows", "onnxruntime")
    note.write(operator, kernel)
    assert note.read() == (operator, kernel)


def test_the_library_of_a_kernel():
    assert Activity("conv1", "ncnn/all-2").library == "ncnn"
    assert Activity("conv1", "numpy").library == "numpy"


def test_a_cleared_note_says_nothing():
    note = ActivityNote()
    note.write("conv1", "ncnn")
    note.clear()
    assert note.read() is None


def test_long_names_lose_their_end():
    note = ActivityNote()
    note.write("é" * 5000, "k" * 5000)
    operator, kernel = note.read()
    assert operator.startswith("é" * 1000)
    assert kernel.startswith("k" * 1000)
    assert len(operator.encode()) + len(kernel.encode()) < 4096


def test_surrogates_are_shown_somehow():
    note = ActivityNote()
    note.write("a\udc80", "ncnn")
    assert note.read().operator.startswith("a")


def test_a_note_that_was_cut_short_says_nothing():
    note = ActivityNote()
    note.write("conv1", "ncnn")
    note._memory[10] ^= 1
    assert note.read() is None


def test_a_forked_child_is_heard_after_a_fault():
    note = ActivityNote()
    child = os.fork()
    if not child:
        note.write("conv1", "ncnn")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert note.read() == ("conv1", "ncnn")


def test_a_spawned_child_is_heard_after_a_fault(tmp_path):
    note = ActivityNote()
    process = multiprocessing.get_context("spawn").Process(
        target=note.write, args=("conv1", "ncnn")
    )
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert note.read() == ("conv1", "ncnn")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_closed_note_lets_go_of_its_file():
    before = len(list(Path("/proc/self/fd").iterdir()))
    notes = [ActivityNote() for _ in range(5)]
    notes[0].close()
    del notes
    assert len(list(Path("/proc/self/fd").iterdir())) == before
