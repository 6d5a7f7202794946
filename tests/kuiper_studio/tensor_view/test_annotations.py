"""Labels of rows, and what int8 weights stand for."""

from __future__ import annotations

import json

import numpy as np
import pytest
from int8_pairs import write_int8_pair
from ncnn_files import tagged, write_pair

from engine.axes import Axis, Kind, Layout
from engine.inputs import read_labels
from engine.int8_scales import Scales
from kuiper_studio.tensor_view import TensorView
from kuiper_studio.tensor_view.annotations import label_axis


@pytest.mark.parametrize(
    ("scales", "shape", "index", "expected"),
    [
        ([2.0, 4.0], (2, 3, 3, 3), (1, 2, 0, 0), 4.0),  # of each filter
        ([2.0, 4.0], (6, 1, 3, 3), (2, 0, 0, 0), 2.0),  # of groups of three filters
        ([2.0, 4.0], (6, 1, 3, 3), (3, 0, 0, 0), 4.0),
        ([5.0], (7, 3), (6, 0), 5.0),  # one
        ([[1.0, 2.0], [3.0, 4.0]], (2, 2, 9), (1, 0, 8), 3.0),  # of each direction and row
    ],
)
def test_scale_of_an_element(scales, shape, index, expected):
    assert Scales(np.array(scales)).at(index, shape) == expected


def test_int8_weights_say_what_they_stand_for(shown, theme, tmp_path, open_model):
    weight = np.linspace(-0.7, 0.9, 2 * 3 * 3 * 3, dtype=np.float32).reshape(2, 3, 3, 3)
    lines = ["Input in 0 1 in", "Convolution conv 1 1 in out 0=2 1=3 4=1 5=0 6=54"]
    param = write_pair(tmp_path, lines, tagged(weight))
    x = np.random.default_rng(0).normal(size=(3, 6, 6)).astype(np.float32)
    studio = open_model(write_int8_pair(param, [x], tmp_path))
    operator = studio.graph.operator("conv")
    view = shown(TensorView(studio, theme), 900, 400)
    stored = operator.attributes["weight"].array
    view.show_weight("conv", "weight", stored)
    element = view.pane.model.element(1, 2)
    words = str(element).split("= ")[1]
    assert float(words.replace("\u2212", "-")) == pytest.approx(weight[element.index], abs=4e-3)


def test_rows_of_an_embedding_have_the_names_of_tokens(pane, tmp_path):
    tokens = {"\u0120the": 0, "the": 1, "cat": 2, "\u0120cat": 3, "dog": 4}
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps(tokens))
    labels = read_labels(path)
    assert labels == (" the", "the", "cat", " cat", "dog")
    value = np.arange(24, dtype=np.float32).reshape(6, 4)  # a row fills it up
    axes = Axis(Kind.VOCABULARY, 6), Axis(Kind.FEATURE, 4)
    pane.set_value("embed", value, layout=Layout(axes))
    pane.set_labels(labels)
    pane.pointing.ask_for_index()
    for text, row in (("dog", 4), (" cat", 3), ("cat", 2), ("og", 4)):
        pane.index_bar.entered.emit(text)
        assert pane.picked.index == (row, 0)
    assert str(pane.picked) == "[4, 0] \u201cdog\u201d 16.0"
    pane.show_element((5, 1))
    assert str(pane.picked) == "[5, 1] 21.0"


@pytest.mark.parametrize(
    ("count", "shape", "expected"),
    [(3, (3, 4), 0), (4, (3, 4), 1), (3, (3, 3), None), (1, (1, 4), None), (0, (2,), None)],
)
def test_the_dimension_that_has_labels(count, shape, expected):
    assert label_axis(["x"] * count, shape) == expected
