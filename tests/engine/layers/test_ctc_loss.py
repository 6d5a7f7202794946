"""Connectionist temporal classification."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.errors import LayerError

RNG = np.random.default_rng(6)
LOGITS = RNG.standard_normal((5, 3, 4))
LOG_PROBS = np.float32(LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True)))
TARGETS = np.array([[1, 2, 2], [3, 0, 0], [2, 1, 0]])
TIMES, LENGTHS = np.array([5, 3, 4]), np.array([3, 1, 2])


def by_hand(log_probs, labels, blank=0):
    """Add up the probabilities of all ways to say the labels."""
    total = 0.0
    for way in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        said = [label for label, _ in itertools.groupby(way) if label != blank]
        if said == list(labels):
            total += math.exp(sum(log_probs[t, label] for t, label in enumerate(way)))
    return -math.log(total) if total else math.inf


EXPECTED = [
    by_hand(LOG_PROBS[:times, n].astype(float), TARGETS[n, :length])
    for n, (times, length) in enumerate(zip(TIMES, LENGTHS, strict=True))
]


@pytest.mark.parametrize(
    "targets", [TARGETS, np.array([1, 2, 2, 3, 2, 1])], ids=["padded", "joined"]
)
@pytest.mark.parametrize("as_numbers", [False, True])
def test_by_hand(run, targets, as_numbers):
    sizes = (TIMES, LENGTHS) if not as_numbers else (tuple(TIMES.tolist()), (3, 1, 2))
    result = run("aten::ctc_loss", LOG_PROBS, targets, *sizes, 0, 0, False)
    np.testing.assert_allclose(result, np.float32(EXPECTED), rtol=1e-5, strict=True)
    total = run("F.ctc_loss", LOG_PROBS, targets, *sizes, reduction="sum")
    assert total == pytest.approx(sum(EXPECTED), rel=1e-5)
    mean = run("F.ctc_loss", LOG_PROBS, targets, *sizes)
    assert mean == pytest.approx(np.mean(np.array(EXPECTED) / LENGTHS), rel=1e-5)


def test_another_blank(run):
    expected = by_hand(LOG_PROBS[:, 0].astype(float), [1, 0], blank=3)
    result = run("F.ctc_loss", LOG_PROBS[:, 0], np.array([1, 0]), (5,), (2,), blank=3)
    assert result.shape == ()
    assert result == pytest.approx(expected / 2, rel=1e-5)


def test_more_labels_than_time(run):
    # Two equal labels need a blank between them, and so three times.
    operands = (LOG_PROBS[:2, :1], np.array([[1, 1]]), (2,), (2,))
    assert run("F.ctc_loss", *operands) == math.inf
    assert run("F.ctc_loss", *operands, zero_infinity=True) == 0


def test_no_labels(run):
    result = run("F.ctc_loss", LOG_PROBS[:, :1], np.zeros((1, 0), int), (5,), (0,))
    assert result == pytest.approx(-LOG_PROBS[:, 0, 0].sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("operands", "sentence"),
    [
        ((LOG_PROBS, TARGETS, (5, 3), (3, 1)), "differ in their number of samples"),
        ((LOG_PROBS, TARGETS, (6, 3, 4), (3, 1, 2)), "input_lengths must be from 0 to 5"),
        ((LOG_PROBS, TARGETS, (5, 3, 4), (4, 1, 2)), "do not have as many labels"),
        ((LOG_PROBS, TARGETS.reshape(-1)[:4], (5, 3, 4), (3, 1, 2)), "as many labels"),
        ((LOG_PROBS, TARGETS + 2, (5, 3, 4), (3, 1, 2)), "not one of the 4 classes"),
    ],
)
def test_refusals(run, operands, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("F.ctc_loss", *operands)


def test_against_pytorch(run):
    torch = pytest.importorskip("torch")
    log_probs = torch.randn(30, 4, 9).log_softmax(-1)
    targets, times = torch.randint(1, 9, (4, 12)), torch.tensor([30, 25, 28, 30])
    lengths = torch.tensor([12, 5, 0, 9])
    operands = (log_probs, targets, times, lengths)
    for reduction in ("none", "mean", "sum"):
        want = torch.nn.functional.ctc_loss(*operands, reduction=reduction).numpy()
        got = run("F.ctc_loss", *(x.numpy() for x in operands), reduction=reduction)
        np.testing.assert_allclose(got, want, rtol=1e-5, strict=True)
