"""Names of the inputs of a finished sweep."""

from __future__ import annotations

import gc
import warnings

from engine.datasets.inputs import find_inputs
from engine.datasets.results import SweptInputs


def test_the_listing_is_closed_with_the_results(tmp_path):
    for name in ("b.npy", "a.npy"):
        (tmp_path / name).touch()
    out = tmp_path / "out"
    out.mkdir()
    inputs = SweptInputs(find_inputs(tmp_path / "*.npy", out), 2, 0, ())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert inputs.name(1) == str(tmp_path / "b.npy")
        assert inputs.name(0) == str(tmp_path / "a.npy")
        del inputs
        gc.collect()
    assert not [each for each in seen if each.category is ResourceWarning]
