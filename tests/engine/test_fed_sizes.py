"""Sizes of values for a conversion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.conversion.inspection import SourceFile
from engine.conversion.source_inputs import SourceInput
from engine.fed_sizes import find_sizes, size_of
from engine.inputs import InputSource, parse_source


@pytest.fixture
def source():
    """A function that makes a file with inputs of unknown sizes."""

    def make(*names, has_shapes=False):
        inputs = tuple(SourceInput(name) for name in names)
        return SourceFile(Path("m.pt"), "torchscript", inputs, has_shapes)

    return make


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((1, 3, 4, 5), np.float32), "1,3,4,5f32"),
        (np.zeros((1, 6), np.int64), "1,6i64"),
        (np.zeros((2, 2)), "2,2"),  # NumPy's usual float64 becomes what the model takes
    ],
)
def test_an_array_has_its_size_and_type(tmp_path, array, expected):
    np.save(tmp_path / "x.npy", array)
    assert size_of(parse_source(str(tmp_path / "x.npy"))) == expected


def test_a_picture_has_channels_and_may_be_resized(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (7, 5)).save(tmp_path / "colour.png")
    image.new("L", (7, 5)).save(tmp_path / "grey.png")
    assert size_of(parse_source(str(tmp_path / "colour.png"))) == "1,3,5,7"
    assert size_of(parse_source(str(tmp_path / "grey.png"))) == "1,1,5,7"
    assert size_of(parse_source(str(tmp_path / "grey.png")), (32, 16)) == "1,1,32,16"


def test_arrays_of_an_npz_belong_by_name_or_in_order(tmp_path, source):
    path = tmp_path / "x.npz"
    np.savez(path, b=np.zeros((2,), "i8"), a=np.zeros((1,), "f4"), extra=np.zeros((9,), "f4"))
    fed = [parse_source(str(path))]
    assert find_sizes(source("a", "b"), (), fed) == ("1f32", "2i64")
    assert find_sizes(source("x", "y"), (), fed) == ("2i64", "1f32")
    assert find_sizes(source("x"), (), [parse_source(f"{path}:extra")]) == ("9f32",)


def test_sizes_of_the_user_count_more_and_those_of_the_file_most(tmp_path, source):
    np.save(tmp_path / "x.npy", np.zeros((1, 2), np.float32))
    fed = [parse_source(str(tmp_path / "x.npy"))]
    assert find_sizes(source("a"), ("3,4",), fed) == ("3,4",)
    assert find_sizes(source("a", has_shapes=True), ("3,4",), fed) == ()


def test_made_up_values_have_no_size(source):
    assert find_sizes(source("a"), (), [InputSource("random")]) == ()
