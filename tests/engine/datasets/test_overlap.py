"""Values are taken in beside the next run: in order, one batch at a time, errors included."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from datasets_support import DIGITS

from engine.datasets.overlap import overlapped
from engine.datasets.running import sweep
from engine.datasets.statistics import _Gatherer
from engine.errors import SweepError

VALUES = {"a": np.zeros(1)}


def hand_over(take_in, count, error=None):
    """Hand over some batches, and then fail."""
    with overlapped(take_in) as take:
        for number in range(count):
            take([number], VALUES)
        if error is not None:
            raise error


def test_batches_are_taken_in_order_by_another_thread():
    seen = []
    with overlapped(lambda indices, _: seen.append((indices, threading.get_ident()))) as take:
        for number in range(20):
            take([number], VALUES)
    assert [indices for indices, _ in seen] == [[number] for number in range(20)]
    assert threading.get_ident() not in {thread for _, thread in seen}


def test_the_caller_goes_on_while_one_batch_is_taken_in_and_waits_with_the_next():
    begun, let_go, handed = threading.Event(), threading.Event(), []

    def slow(indices, _):
        begun.set()
        assert let_go.wait(10)

    def give_three():
        with overlapped(slow) as take:
            for number in range(3):
                take([number], VALUES)
                handed.append(number)

    caller = threading.Thread(target=give_three)
    caller.start()
    assert begun.wait(10)
    caller.join(0.1)  # it would have handed over all three by now
    assert handed == [0]
    let_go.set()
    caller.join(10)
    assert handed == [0, 1, 2]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_reaches_the_caller_also_that_of_the_last_batch(failing):
    def fail(indices, _):
        if indices == [failing]:
            raise MemoryError(f"batch {failing}")

    with pytest.raises(MemoryError, match=f"batch {failing}"):
        hand_over(fail, 3)


def test_an_error_of_the_caller_is_not_hidden_and_no_thread_is_left():
    def fail(indices, _):
        raise MemoryError

    before = threading.active_count()
    with pytest.raises(SweepError, match="mine"):
        hand_over(fail, 1, SweepError("mine"))
    assert threading.active_count() == before


def test_without_threads_it_takes_in_at_once(monkeypatch):
    monkeypatch.setattr("engine.datasets.overlap.can_start_threads", lambda: False)
    seen = []
    with overlapped(lambda indices, _: seen.append(threading.get_ident())) as take:
        take([0], VALUES)
        assert seen == [threading.get_ident()]


def test_threads_give_way_as_before_when_it_has_ended():
    before = sys.getswitchinterval()
    with overlapped(lambda *_: None):
        assert sys.getswitchinterval() < before
    assert sys.getswitchinterval() == before


@pytest.mark.parametrize("processors", [1, 2])
def test_a_worker_gathers_in_a_thread_of_its_own_if_a_processor_is_left_for_it(
    tmp_path, monkeypatch, processors
):
    inputs = tmp_path / "set.npy"
    np.save(inputs, np.zeros((20, 1, 32, 32), np.float32))
    monkeypatch.setattr("engine.datasets.running.processor_count", lambda: processors)
    gather, own = _Gatherer.add, []

    def watched(self, indices, values):
        own.append(threading.current_thread() is not threading.main_thread())
        gather(self, indices, values)

    monkeypatch.setattr(_Gatherer, "add", watched)
    sweep(DIGITS, inputs, tmp_path / "out", workers=0)
    assert set(own) == {processors > 1}


def test_results_are_the_same_to_the_last_bit_where_memory_allows_no_second_batch(
    tmp_path, monkeypatch
):
    inputs = tmp_path / "set.npy"
    np.save(inputs, np.random.default_rng(3).random((70, 1, 32, 32), np.float32))
    beside = sweep(DIGITS, inputs, tmp_path / "beside", workers=0)
    monkeypatch.setattr("engine.datasets.shard._SHARE", 1 << 40)
    monkeypatch.setattr("engine.datasets.shard.overlapped", None)
    after = sweep(DIGITS, inputs, tmp_path / "after", workers=0)
    files = [(each.path / "statistics.npz").read_bytes() for each in (beside, after)]
    assert files[0] == files[1]
