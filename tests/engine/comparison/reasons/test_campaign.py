"""Faults planted while PyTorch computes the truth; ``python -m reasons`` plants more."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from reasons.campaign import outcomes
from reasons.plants import PLANTS


@pytest.mark.parametrize("name", PLANTS)
def test_first_reason_is_the_planted_one(name):
    for outcome in outcomes(range(1000, 1002), name):
        said = [(reason.kind, reason.text) for reason in outcome.reasons]
        assert outcome.is_right, f"seed {outcome.seed}: {said}, planted {outcome.wanted}"
