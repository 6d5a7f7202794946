"""Lazy arrays, and threads that read them."""

from __future__ import annotations

import threading

import numpy as np

from engine.values import LazyArray

FLOAT32 = np.dtype(np.float32)
PATIENCE = 20.0  # seconds


def lazy(arrange):
    return LazyArray([1.0, 2.0], (2,), FLOAT32, arrange)


def test_it_is_arranged_once_and_read_only():
    calls = []

    def arrange(stored, shape):
        calls.append(shape)
        return np.array(stored, np.float32)

    value = lazy(arrange)
    assert value.array is value.array
    assert value.array.tolist() == [1, 2]
    assert not value.array.flags.writeable
    assert calls == [(2,)]


def test_threads_get_the_same_array():
    calls = []

    def arrange(stored, _):
        calls.append(threading.get_ident())
        threading.Event().wait(0.05)  # the others come meanwhile
        return np.array(stored, np.float32)

    value, found = lazy(arrange), []
    threads = [threading.Thread(target=lambda: found.append(value.array)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(calls) == 1
    assert len(found) == 4
    assert all(array is found[0] for array in found)


def test_an_array_that_is_there_waits_for_no_other():
    begun, end = threading.Event(), threading.Event()

    def arrange_slowly(stored, _):
        begun.set()
        assert end.wait(PATIENCE)
        return np.array(stored, np.float32)

    there, slow, found = lazy(lambda stored, _: np.array(stored, np.float32)), [], []
    there.array  # noqa: B018 - arranged now
    other = lazy(arrange_slowly)
    arranging = threading.Thread(target=lambda: slow.append(other.array))
    reading = threading.Thread(target=lambda: found.append(there.array))
    arranging.start()
    assert begun.wait(PATIENCE)
    reading.start()
    reading.join(PATIENCE)
    read_meanwhile = bool(found) and not slow
    end.set()
    arranging.join(PATIENCE)
    reading.join(PATIENCE)
    assert read_meanwhile
    assert found[0] is there.array
    assert slow[0] is other.array
