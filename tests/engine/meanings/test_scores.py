"""Best classes, probabilities, softmax and sigmoid."""

from __future__ import annotations

import numpy as np
import pytest

from engine.meanings.scores import are_probabilities, best_scores

LABELS = ("cat", "dog", "bird", "fish", "ant", "bee")


def test_best_scores_are_shown_as_they_are():
    values = np.array([1.5, -2, 8.25, 0, np.nan, 3], np.float32)
    found = best_scores(values, LABELS)
    assert [(s.entry, s.name, s.text) for s in found] == [
        (2, "bird", "8.25"),
        (5, "bee", "3.00"),
        (0, "cat", "1.50"),
        (3, "fish", "0.00"),
        (1, "dog", "−2.00"),
    ]
    assert [s.share for s in found] == pytest.approx([1, 5 / 10.25, 3.5 / 10.25, 2 / 10.25, 0])


def test_probabilities_are_percentages():
    values = np.array([0.05, 0.9, 0.05, 0, 0, 0])
    assert are_probabilities(values)
    found = best_scores(values, LABELS, 2)
    assert [(s.name, s.text, s.share) for s in found] == [
        ("dog", "90.0 %", pytest.approx(0.9)),
        ("cat", "5.0 %", pytest.approx(0.05)),
    ]


@pytest.mark.parametrize("values", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1]])
def test_other_scores_are_no_probabilities(values):
    assert not are_probabilities(np.array(values))


def test_no_finite_score():
    assert best_scores(np.array([np.nan]), ("cat",)) == []


def test_the_best_of_many_scores_are_found_in_order():
    """The first of equal ones comes first, also where they are the last that count."""
    values = np.zeros(100_000, np.float32)
    values[[70_000, 9, 400]] = (5, 7, 6)
    values[[50_000, 20, 90_000]] = 3
    found = [score.entry for score in best_scores(values, ())]
    assert found == [9, 400, 70_000, 20, 50_000]
