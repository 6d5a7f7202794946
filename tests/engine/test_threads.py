"""How many threads there may be."""

from __future__ import annotations

import _thread
import os

import pytest

from engine import threads


@pytest.fixture(autouse=True)
def forget():
    threads.can_start_threads.cache_clear()
    yield
    threads.can_start_threads.cache_clear()


def test_as_many_as_processors():
    assert threads.can_start_threads()
    if hasattr(os, "sched_getaffinity"):
        assert threads.thread_count() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("most", [0, 1, 5])
def test_one_thread_if_none_may_be_started(monkeypatch, most):
    start, started = _thread.start_new_thread, []

    def limited(function: object, arguments: tuple[object, ...]) -> int:
        if len(started) >= most:
            raise RuntimeError("can't start new thread")
        started.append(function)
        return start(function, arguments)

    monkeypatch.setattr(_thread, "start_new_thread", limited)
    assert not threads.can_start_threads()
    assert threads.thread_count() == 1
