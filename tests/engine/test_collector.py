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
    gc.collect()
    resting = gc.get_freeze_count()  # Python 3.12 counts its own immortal objects
    with collector_paused():
        made = [[] for _ in range(200_000)]
    assert gc.get_freeze_count() <= resting
    assert any(each is made[-1] for each in gc.get_objects(generation=2))


def test_what_somebody_has_frozen_stays_so():
    kept = Cycle()
    gc.freeze()
    try:
        with collector_paused():
            made = [[] for _ in range(200_000)]
        assert len(made) == 200_000
        assert not any(each is kept for each in gc.get_objects())
    finally:
        gc.unfreeze()
