"""How far channels are from the reference's: against a slow loop over the elements."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.axes import Axis, Kind, Layout, plan_view
from kuiper_studio.engine_service.channels import ChannelView, measure_channels

LIMIT = 0.25


def expect(ours, theirs):
    """Return largest, MAE, RMSE and number of differing elements of a channel, in a loop."""
    largest, total, squares, differing, finite = 0.0, 0.0, 0.0, 0, 0
    for one, other in zip(ours.ravel().tolist(), theirs.ravel().tolist(), strict=True):
        is_same = one == other or (one != one and other != other)
        apart = 0.0 if is_same else abs(one - other)
        if not math.isfinite(apart):
            largest, differing = math.inf, differing + 1
            continue
        finite += 1
        largest = max(largest, apart)
        total += apart
        squares += apart * apart
        differing += apart > LIMIT
    return largest, total / max(finite, 1), math.sqrt(squares / max(finite, 1)), differing


def check(found, pairs):
    assert found.count == pairs[0][0].size
    for channel, (ours, theirs) in enumerate(pairs):
        largest, mae, rmse, differing = expect(ours, theirs)
        assert found.largest[channel] == pytest.approx(largest, rel=1e-12)
        assert found.mae[channel] == pytest.approx(mae)
        assert found.rmse[channel] == pytest.approx(rmse)
        assert found.differing[channel] == differing


def numbers(*shape, dtype=np.float32):
    rng = np.random.default_rng(sum(shape))
    ours = rng.standard_normal(shape).astype(dtype)
    return ours, (ours + rng.standard_normal(shape) * 0.3).astype(dtype)


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 7, 6, 5), (1, 2, 300, 300)])
def test_channels_of_a_sample(shape):
    """Also channels that are longer than what is measured at a time."""
    ours, theirs = numbers(*shape)
    axis, fixed = (0, ()) if len(shape) == 3 else (1, ((0, shape[0] - 1),))
    found = measure_channels(ours, theirs, ChannelView(shape, axis, fixed), LIMIT)
    if fixed:
        ours, theirs = ours[-1], theirs[-1]
    check(found, list(zip(ours, theirs, strict=True)))


def test_channels_last_and_complex_numbers():
    ours, theirs = numbers(2, 4, 5, 3)
    ours = ours + 1j * theirs
    found = measure_channels(ours, theirs, ChannelView(ours.shape, 3, ((0, 1),)), LIMIT)
    check(found, [(ours[1, ..., c], theirs[1, ..., c]) for c in range(3)])


def test_special_values():
    ours, theirs = numbers(4, 2, 3)
    ours[0, 0, 0] = theirs[0, 0, 0] = np.nan
    ours[1, 0, 1] = theirs[1, 0, 1] = -np.inf
    ours[2, 1, 1] = np.inf
    theirs[3] = np.nan
    found = measure_channels(ours, theirs, ChannelView(ours.shape, 0), LIMIT)
    check(found, list(zip(ours, theirs, strict=True)))
    assert np.isinf(found.largest).tolist() == [False, False, True, True]


def test_tokens_that_are_folded_to_pictures():
    grid = Axis(Kind.TOKEN, 6, (Axis(Kind.ROW, 2), Axis(Kind.COLUMN, 3)))
    layout = Layout((Axis(Kind.BATCH, 1), grid, Axis(Kind.FEATURE, 4)))
    ours, theirs = numbers(1, 6, 4)
    plan = plan_view(layout, ours.shape)
    assert plan.folded_shape == (1, 4, 2, 3)
    found = measure_channels(ours, theirs, ChannelView(ours.shape, 1, ((0, 0),), plan), LIMIT)
    check(found, [(ours[0, :, c], theirs[0, :, c]) for c in range(4)])
