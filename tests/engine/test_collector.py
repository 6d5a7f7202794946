"""The cycle collector rests, and goes on as before."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import pytest

from engine.collector import (
    collect_due,
    collect_on_request,
    collector_paused,
    count_set_aside,
    set_aside,
)


class Cycle:
    def __init__(self):
        self.me = self


def test_the_collector_is_paused():
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_resumes_after_an_error():
    with pytest.raises(ValueError, match="no"), collector_paused():
        raise ValueError("no")
    assert gc.isenabled()


def test_young_cycles_are_collected_soon():
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


def test_frozen_objects_stay_frozen():
    kept = Cycle()
    gc.freeze()
    try:
        with collector_paused():
            made = [[] for _ in range(200_000)]
        assert len(made) == 200_000
        assert not any(each is kept for each in gc.get_objects())
    finally:
        gc.unfreeze()


@pytest.fixture
def on_request():
    collect_on_request()
    yield
    collect_on_request(on=False)
    assert gc.isenabled()


def make_objects(count):
    return len([[] for _ in range(count)])


def test_on_request_no_thread_collects_by_itself(on_request):
    dead = weakref.ref(Cycle())
    thread = threading.Thread(target=make_objects, args=(50_000,))
    thread.start()
    thread.join()
    kept = [[] for _ in range(50_000)]
    assert dead() is not None
    collect_due()
    assert dead() is None
    assert len(kept) == 50_000


def test_on_request_it_collects_no_more_often_than_python(on_request):
    gc.collect()
    dead = weakref.ref(Cycle())
    kept = [[] for _ in range(gc.get_threshold()[0] // 2)]
    collect_due()
    assert dead() is not None
    kept += [[] for _ in range(gc.get_threshold()[0])]
    collect_due()
    assert dead() is None


def test_on_request_pauses_hold(on_request):
    with collector_paused():
        dead = weakref.ref(Cycle())
        kept = [[] for _ in range(20_000)]
        collect_due()
        assert dead() is not None
    assert not gc.isenabled()
    collect_due()
    assert dead() is None
    assert len(kept) == 20_000


def test_on_request_what_is_old_is_collected_as_it_grows(on_request):
    kept, dead = [], weakref.ref(old := Cycle())
    gc.collect()
    del old  # only a collection of everything finds it
    before = sys.getallocatedblocks()  # those of other tests, too
    while dead() is not None and sys.getallocatedblocks() < 2 * before:
        kept += [[] for _ in range(10_000)]
        collect_due()
    assert dead() is None


def test_without_a_request_nothing_is_due():
    dead = weakref.ref(Cycle())
    gc.disable()
    try:
        kept = [[] for _ in range(20_000)]
        collect_due()
        assert dead() is not None
    finally:
        gc.enable()
    assert len(kept) == 20_000


def test_what_is_set_aside_is_skipped_and_new_cycles_are_found():
    class Node:
        pass

    kept = Node()
    try:
        set_aside()
        assert not any(each is kept for each in gc.get_objects())
        node = Node()
        node.itself, seen = node, weakref.ref(node)
        del node
        gc.collect()
        assert seen() is None
    finally:
        gc.unfreeze()


def test_what_a_part_freezes_after_that_stays_frozen():
    try:
        set_aside()
        count_set_aside()
        kept = [[] for _ in range(5000)]
        gc.freeze()
        frozen = gc.get_freeze_count()
        with collector_paused():
            kept += [[] for _ in range(150_000)]
        assert gc.get_freeze_count() >= frozen
    finally:
        gc.unfreeze()
