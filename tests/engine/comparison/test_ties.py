"""Which differences of indexes are ties, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.comparison.ties import is_tie
from reasons.operators import make_operator

NAN, INF = np.nan, np.inf
# Two rows: 5 stands at columns 0 and 2, 9 at 1 and 3.
ROWS = np.float32([[5, 1, 5, 2], [7, 9, 0, 9]])


def tie(kind, params, source, found, expected, tolerance=1e-6, others=()):
    operator = make_operator(kind, params, {}, [source, *others])
    inputs = dict(enumerate([source, *others]))
    return is_tie(operator, inputs, np.int64(found), np.int64(expected), tolerance)


@pytest.mark.parametrize(
    ("kind", "params", "found", "expected", "is_one"),
    [
        ("torch.argmax", {"dim": 1}, [0, 1], [2, 3], True),
        ("torch.argmax", {"dim": 1}, [0, 1], [2, 0], False),  # 7 is not 9
        ("torch.argmax", {"dim": 1, "keepdim": True}, [[0], [1]], [[2], [3]], True),
        ("torch.argmax", {"dim": 1, "keepdim": True}, [[0], [1]], [[3], [3]], False),
        ("torch.argmax", {"dim": -1}, [0, 1], [-2, -1], True),  # counted from the end
        ("ArgMax", {"axis": 1, "keepdims": 0}, [0, 1], [2, 3], True),
        ("torch.argmax", {"dim": 0}, [1, 1, 0, 1], [1, 1, 0, 1], True),
        ("torch.argmax", {"dim": 0}, [1, 1, 0, 1], [0, 1, 0, 1], False),  # 5 is not 7
        ("torch.argmax", {"dim": None}, 5, 7, True),  # over all elements: 9 and 9
        ("torch.argmax", {}, 5, 4, False),
        ("torch.topk", {"k": 2}, [[0, 2], [1, 3]], [[2, 0], [3, 1]], True),
        ("torch.topk", {"k": 2}, [[0, 2], [1, 3]], [[2, 3], [3, 1]], False),
        ("torch.argsort", {"dim": 1}, [[1, 3, 0, 2], [2, 0, 1, 3]],
         [[1, 3, 2, 0], [2, 0, 3, 1]], True),
        ("torch.cumsum", {"dim": 1}, [[0, 2, 0, 0], [0, 0, 0, 0]],
         [[2, 0, 0, 0], [0, 0, 0, 0]], False),  # chooses nothing
    ],
)  # fmt: skip
def test_the_elements_at_the_indexes_decide(kind, params, found, expected, is_one):
    assert tie(kind, params, ROWS, found, expected) is is_one


def test_the_results_may_have_become_floats():
    """A recorder may give indexes as floats."""
    operator = make_operator("torch.argmax", {"dim": 1}, {}, [ROWS])
    found, expected = np.int64([0, 1]), np.float32([2, 3])
    assert is_tie(operator, {0: ROWS}, found, expected, 1e-6)
    assert not is_tie(operator, {0: ROWS}, found, np.float32([1, 3]), 1e-6)


@pytest.mark.parametrize("index", [4, -5])
def test_an_index_outside_is_no_tie(index):
    assert not tie("torch.argmax", {"dim": 1}, ROWS, [0, 1], [index, 3])


def test_shapes_that_do_not_belong_together_are_no_tie():
    assert not tie("torch.argmax", {"dim": 1}, ROWS, [0, 1], [[2], [3]])
    assert not tie("torch.argmax", {"dim": 2}, ROWS, [0, 1], [2, 3])
    assert not tie("torch.topk", {"dim": 1}, ROWS, [[0, 2]], [[2, 0]])  # a row is missing


@pytest.mark.parametrize(("apart", "is_one"), [(0.0009, True), (0.0011, False)])
def test_equal_is_relative_to_the_largest_element(apart, is_one):
    """Up to a millionth of 1000, which is 0.001."""
    source = np.float64([[1, 1 + apart, -1000, 0]])
    assert tie("torch.argmax", {"dim": 1}, source, [0], [1]) is is_one


def test_infinities_are_no_scale():
    """Beside an infinity, 1 and 2 are still apart."""
    source = np.float32([[INF, 1, 2, INF]])
    assert not tie("torch.argsort", {"dim": 1}, source, [[1, 2, 0, 3]], [[2, 1, 0, 3]])
    assert tie("torch.argsort", {"dim": 1}, source, [[1, 2, 0, 3]], [[1, 2, 3, 0]])


def test_nan_equals_nan_only():
    source = np.float32([[NAN, 1, NAN, 2]])
    assert tie("torch.argmax", {"dim": 1}, source, [0], [2])
    assert not tie("torch.argmax", {"dim": 1}, source, [0], [1])
    assert not tie("torch.argmax", {"dim": 1}, source, [1], [0])


def test_booleans_have_no_scale():
    source = np.array([[True, False, True]])
    assert tie("torch.argmax", {"dim": 1}, source, [0], [2])
    assert not tie("torch.argmax", {"dim": 1}, source, [0], [1])


class TestSuppression:
    """Boxes of the same score may be kept in any order."""

    BOXES = np.float32([[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]])
    SCORES = np.float32([0.5, 0.9, 0.5])

    def tie(self, found, expected, scores=SCORES):
        others = () if scores is None else (scores,)
        return tie("torchvision.ops.nms", {}, self.BOXES, found, expected, others=others)

    def test_scores_decide(self):
        assert self.tie([1, 0, 2], [1, 2, 0])
        assert not self.tie([1, 0, 2], [0, 1, 2])

    def test_no_box_is_counted_from_the_end(self):
        assert not self.tie([1, 0, 2], [1, 0, -1])
        assert not self.tie([1, 0, 2], [1, 0, 3])

    def test_without_scores_nothing_is_known(self):
        assert not self.tie([1, 0], [1, 2], scores=None)
        assert not self.tie([1, 0], [1, 2], scores=self.BOXES)
