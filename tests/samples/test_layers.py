"""The example of layers of one's own works as it is documented, with PyTorch's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine
from engine.errors import InferenceError
from engine.layers import layer_files, load_layers, unload_layers
from engine.pnnx import load

FOLDER = Path(__file__).parents[2] / "samples" / "layers"
TOLERANCE = 1e-4


@pytest.fixture
def golden():
    """What PyTorch computed (``contrast_net.py``)."""
    with np.load(FOLDER / "golden.npz", allow_pickle=False) as archive:
        return dict(archive)


@pytest.fixture
def loaded():
    yield load_layers(FOLDER / "my_layers.py")
    unload_layers()


def test_without_the_file_two_operators_have_no_layer():
    assert layer_files() == ()
    graph = engine.load(FOLDER / "contrast.pnnx.param")
    assert [operator.name for operator in graph.unsupported] == ["contrast", "squash"]


def test_the_file_has_the_types_that_the_model_lacks(loaded):
    model = load(FOLDER / "contrast.pnnx.param")
    own = {operator.type for operator in model.operators if "contrast_net" in operator.type}
    assert set(loaded.types) == own


def test_every_operand_is_pytorchs(loaded, golden):
    session = engine.Session(engine.load(FOLDER / "contrast.pnnx.param"))
    session.feed([golden["picture"]])
    session.run()
    for operand, name in {"1": "contrast", "2": "squashed", "4": "output"}.items():
        value = session.value(operand)
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, golden[name], rtol=TOLERANCE, atol=TOLERANCE)


def test_what_it_refuses_is_said(loaded, golden):
    graph = engine.load(FOLDER / "contrast.pnnx.param")
    with pytest.raises(InferenceError) as caught:
        graph.operator("contrast").forward([golden["picture"][:, :2]])
    assert caught.value.reason.startswith("the input is not an image of 3 channels (my_layers")


def test_the_folder_holds_nothing_else():
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_file()) == [
        "contrast.pnnx.bin", "contrast.pnnx.param", "contrast_net.py", "golden.npz",
        "my_layers.py",
    ]  # fmt: skip


def test_the_example_in_the_manual_computes(tmp_path, golden):
    text = (FOLDER.parents[1] / "docs" / "layers.md").read_text(encoding="utf-8")
    code = text.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "my_layers.py").write_text(code, encoding="utf-8")
    try:
        assert load_layers(tmp_path / "my_layers.py").types == ("contrast_net.Squash",)
        graph = engine.load(FOLDER / "contrast.pnnx.param")
        (value,) = graph.operator("squash").forward([golden["contrast"]])
    finally:
        unload_layers()
    np.testing.assert_allclose(value, golden["squashed"], rtol=TOLERANCE, atol=TOLERANCE)
