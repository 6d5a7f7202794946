"""Scales and levels of the values that the graph is coloured by."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kuiper_studio.item_models.overlays import OverlayModel, Scale

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("scale", "values", "levels"),
    [
        # 0.25 of 255 is 63.75, 0.5 of 255 is 127.5, which rounds to even
        pytest.param(Scale(0, 4), [0, 1, 2, 4, NAN], [0, 64, 128, 255, -1], id="linear"),
        pytest.param(Scale(-2, 2), [-2, 0, 2], [0, 128, 255], id="signed"),
        pytest.param(Scale(1, 1e3, is_log=True), [1, 10, 1e3], [0, 85, 255], id="log"),
        pytest.param(
            Scale(1, 100, is_log=True), [0, 0.5, 1e9, INF], [0, 0, 255, 255], id="out"
        ),
        pytest.param(Scale(3, 3), [3, NAN, 3], [255, -1, 255], id="one"),
        pytest.param(Scale(0, 0), [0, INF], [0, 0], id="zero"),
        pytest.param(Scale(INF, INF), [INF, NAN], [255, -1], id="infinite"),
        pytest.param(Scale(-1e308, 1.7e308), [-1e308, 1.7e308], [0, 255], id="overflow"),
        pytest.param(Scale(0, 5e-324), [0, 5e-324], [0, 255], id="subnormal"),
        pytest.param(Scale(0, 1), [], [], id="none"),
    ],
)
def test_levels(scale, values, levels):
    assert scale.levels(np.array(values, np.float64)).tolist() == levels


@pytest.mark.parametrize(
    ("numbers", "ends", "is_log", "text"),
    [
        pytest.param({"in": 1, "tail": 3}, ("1", "2", "3"), False, "1 to 3", id="linear"),
        pytest.param({"in": 1, "tail": 1000}, ("1", "500", "1000"), False, "1 to 1000", id="3"),
        pytest.param(
            {"in": 0.1, "tail": 1000}, ("0.1", "10", "1000"), True, "0.1 to 1000", id="log"
        ),
        pytest.param(
            {"in": 0, "add": 1, "tail": 1e4}, ("≤ 1", "100", "10000"), True, "≤ 1 to 10000",
            id="zeros",
        ),
        pytest.param(
            {"in": -1, "tail": 1e4}, ("−1", "5000", "10000"), False, "−1 to 10000", id="signed"
        ),
        # Eight decades at most.
        pytest.param(
            {"in": 1e-30, "tail": 1}, ("≤ 1e−8", "0.0001", "1"), True, "≤ 1e−8 to 1", id="long"
        ),
        pytest.param({"tail": 7, "in": 7}, ("7", "7", "7"), False, "all 7", id="one"),
        pytest.param({"tail": 0}, ("0", "0", "0"), False, "all 0", id="zero"),
    ],
)  # fmt: skip
def test_scales_of_own_numbers(studio, tmp_path, numbers, ends, is_log, text):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(numbers))
    studio.overlaying.use_numbers(path)
    overlay = OverlayModel(studio).shown

    assert (overlay.ends, overlay.scale.is_log, overlay.range_text) == (ends, is_log, text)
    graph = studio.graph
    ranked = [graph.operators[index].name for index in overlay.ranked]
    assert ranked == sorted(
        numbers, key=lambda name: (-numbers[name], graph.operator(name).index)
    )


def test_a_model_that_is_gone_has_no_overlay(studio, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"in": 1}')
    studio.overlaying.use_numbers(path)
    model = OverlayModel(studio)
    assert model.shown is not None
    studio.close_model()
    assert model.shown is None
