"""The cycle collector rests, and goes on as before."""

from __future__ import annotations

import gc
import weakref

import pytest

from engine.collector import collector_paused


class Cycle:
    def __init__(self):
        self.me = self


def test_it_rests():
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error():
    with pytest.raises(ValueError, match="no"), collector_paused():
        raise ValueError("no")
    assert gc.isenabled()


def test_what_dies_young_is_found_soon():
    """A few objects made meanwhile do not make everything old."""
    dead = weakref.ref(Cycle())
    assert dead() is not None
    with collector_paused():
        made = [[] for _ in range(100)]
    made += [[] for _ in range(3 * gc.get_threshold()[0])]
    assert dead() is None


def test_many_objects_are_old_at_once():
    with collector_paused():
        made = [[] for _ in range(200_000)]
    assert not gc.get_freeze_count()
    assert any(each is made[-1] for each in gc.get_objects(generation=2))
