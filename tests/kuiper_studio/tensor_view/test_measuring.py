"""Measuring at once or on a thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from kuiper_studio.tensor_view import measuring
from kuiper_studio.tensor_view.measuring import Measurer, What


@pytest.fixture
def measurer(qapp):
    return Measurer(at_once=10)


def test_small_arrays_are_measured_at_once(measurer, qtbot):
    with qtbot.assertNotEmitted(measurer.answered, wait=20):
        facts = measurer.ask(What.TENSOR, np.array([1.0, 3.0]))
    assert (facts.min, facts.max, facts.mean) == (1, 3, 2)


def test_histogram_over_more_than_a_float_can_hold(measurer):
    values = np.array([-1.7e308, 0, 1.7e308])
    counts = measurer.ask(What.HISTOGRAM, values, -1.7e308, 1.7e308)
    assert np.flatnonzero(counts).tolist() == [0, 128, 255]


def test_large_arrays_are_measured_later(measurer, qtbot):
    with qtbot.waitSignal(measurer.answered) as answered:
        assert measurer.ask(What.HISTOGRAM, np.arange(256.0), 0, 256) is None
    (answer,) = answered.args
    assert answer.what is What.HISTOGRAM
    assert answer.result.tolist() == [1] * 256


def test_channels_that_are_not_contiguous(measurer, qtbot):
    """Rows, columns and channels of an image whose channels are last."""
    image = np.array([[[1, 0, 7], [3, 0, 7]], [[5, 0, 7], [np.nan, 0, 7]]])
    with qtbot.waitSignal(measurer.answered) as answered:
        assert measurer.ask(What.KEYS, image.transpose(2, 0, 1)) is None
    keys = answered.args[0].result
    assert keys.mean.tolist() == [3, 0, 7]
    assert keys.largest.tolist() == [5, 0, 7]
    assert keys.is_dead.tolist() == [False, True, False]


def test_answers_land_on_the_thread_of_the_window(measurer, qtbot):
    threads = []
    measurer.answered.connect(lambda _answer: threads.append(threading.current_thread()))
    with qtbot.waitSignal(measurer.answered):
        measurer.ask(What.TENSOR, np.zeros(100))
    assert threads == [threading.main_thread()]


def test_late_answers_are_dropped(measurer, qtbot, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    real = measuring.statistics

    def slow(array, **options):
        begun.set()
        go_on.wait(10)
        return real(array, **options)

    monkeypatch.setattr(measuring, "statistics", slow)
    answers = []
    measurer.answered.connect(answers.append)
    measurer.ask(What.TENSOR, np.full(100, 1.0))
    assert begun.wait(10)
    with qtbot.waitSignal(measurer.answered):
        measurer.ask(What.TENSOR, np.full(100, 2.0))
        measurer.ask(What.CHANNEL, np.full(100, 3.0))
        go_on.set()
    qtbot.waitUntil(lambda: len(answers) == 2)
    assert [(a.what, a.result.mean) for a in answers] == [(What.TENSOR, 2), (What.CHANNEL, 3)]


def test_forgotten_questions_get_no_answer(measurer, qtbot):
    with qtbot.assertNotEmitted(measurer.answered, wait=50):
        measurer.ask(What.TENSOR, np.zeros(100))
        measurer.forget(What.TENSOR)


def test_want_of_memory_is_an_answer(measurer, qtbot, monkeypatch):
    def fail(_array):
        raise MemoryError

    monkeypatch.setattr(measuring, "statistics", fail)
    with qtbot.waitSignal(measurer.answered) as answered:
        measurer.ask(What.TENSOR, np.zeros(100))
    assert answered.args[0].result is None
