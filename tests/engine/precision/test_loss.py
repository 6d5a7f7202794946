"""Losses and storage, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.precision.formats import format_of
from engine.precision.loss import LOST, Loss, measure_loss, measure_storage


def single(*members):
    return np.array(members, np.float32)


def test_loss_by_hand():
    found = measure_loss([single(3, 5)], [single(3, 4)])
    assert found.relative == 0.25
    assert found.snr == pytest.approx(10 * math.log10(25))
    assert found.cosine == pytest.approx((9 + 20) / (5 * math.sqrt(34)))


def test_equal():
    same = single(1, math.nan, math.inf)
    assert measure_loss([same, 3, np.arange(2)], [same, 3, np.arange(2)]) == Loss()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (single(1, math.inf), single(1, 2)),
        (single(1, 2), single(1, math.nan)),
        (single(1), single(1, 2)),
        (np.arange(2), np.arange(1, 3)),
        (2, 3),
    ],
)
def test_lost(found, expected):
    assert measure_loss([found], [expected]) == LOST


def test_storage_by_hand():
    # 6e-5 is subnormal in float16, 1e-9 becomes 0; 0 itself does not count.
    values = single(0, -2.0, 6e-5, 1e-9, 1.0)
    rounded = values.astype(np.float16).astype(np.float32)
    found = measure_storage([values], [rounded], format_of("float16"))
    assert (found.headroom, found.underflow) == (32752.0, 0.5)
    scaled = measure_storage([values], [single(0, -2, 0, 0, 1)], format_of("int8"))
    assert (scaled.headroom, scaled.underflow) == (None, 0.5)
