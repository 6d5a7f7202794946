"""How many threads there may be."""

from __future__ import annotations

import os
import threading

import pytest

from engine import threads


@pytest.fixture(autouse=True)
def forget():
    threads.can_start_threads.cache_clear()
    yield
    threads.can_start_threads.cache_clear()


def limit(monkeypatch, most: int) -> None:
    """Let this process have so many threads more than now, as a limit of processes does."""
    start, present = threading.Thread.start, threading.active_count()

    def counted(self: threading.Thread) -> None:
        if threading.active_count() - present >= most:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", counted)


def test_as_many_as_processors():
    present = threading.active_count()
    assert threads.can_start_threads()
    assert threading.active_count() == present
    if hasattr(os, "sched_getaffinity"):
        assert threads.thread_count() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("most", [0, 1, 5])
def test_one_where_none_may_be_started(monkeypatch, most):
    present = threading.active_count()
    limit(monkeypatch, most)
    assert not threads.can_start_threads()
    assert threads.thread_count() == 1
    assert threading.active_count() == present
