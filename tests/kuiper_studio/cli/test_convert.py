"""``kuiper-studio convert``, and the other commands on files that are converted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.conversion.executable import find_pnnx
from engine.errors import ConversionError

DATA = Path(__file__).parents[2] / "engine" / "conversion" / "data"


@pytest.fixture(autouse=True)
def _exporter(tmp_path, monkeypatch):
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "cache"))
    try:
        find_pnnx(Path("model.pt"))
    except ConversionError:
        pytest.skip("pnnx is not installed")


def test_convert_writes_both_pairs_and_what_was_printed(run, tmp_path):
    lines = run("convert", DATA / "traced.pt", "--output", tmp_path / "out").lines
    assert "############# pass_level5" in lines
    names = ["traced.ncnn.bin", "traced.ncnn.param", "traced.pnnx.bin", "traced.pnnx.log",
             "traced.pnnx.param"]  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == names
    sentence = run("convert", DATA / "traced.pt", "--output", tmp_path / "out").sentence
    assert "already exists" in sentence
    assert "--overwrite" in sentence


@pytest.mark.parametrize("name", ["traced.pt", "small.onnx", "no_sizes.pt", "open.onnx"])
def test_run_takes_the_sizes_of_its_input(run, tmp_path, name):
    expected = np.load(DATA / "expected.npz")
    np.save(tmp_path / "x.npy", expected["image"])
    run(
        "run", DATA / name, "--input", tmp_path / "x.npy", "--output", tmp_path / "o.npz"
    )  # fmt: skip
    np.testing.assert_allclose(
        np.load(tmp_path / "o.npz")["out0"], expected["out"], rtol=1e-4, atol=1e-5
    )


def test_info_names_the_source_and_takes_its_own_names_of_inputs(run):
    lines = run("info", DATA / "no_sizes.pt", "--shape", "image=1,3,6,6").lines
    assert lines[0].startswith("no_sizes.pt: 6 operators")
    assert any(line.startswith("input: 0 1×3×6×6 float32") for line in lines)


def test_second_sizes_leave_dimensions_open(run):
    lines = run("info", DATA / "open.onnx", "--shape", "batch=1", "h=8", "w=8",
                "--shape2", "2,3,16,8").lines  # fmt: skip
    assert any("nn.Conv2d" in line and "1×4×8×8" in line for line in lines)


def test_second_sizes_are_for_conversions_only(run, samples):
    model = samples / "digits" / "digits.pnnx.param"
    assert "--shape2 applies only to" in run("info", model, "--shape2", "1,1,8,8").sentence


def test_what_failed_is_printed_before_the_sentence(run, tmp_path):
    ended = run(
        "convert", DATA / "traced.pt", "--shape", "1,3,9,9", "--output", tmp_path / "out"
    )  # fmt: skip
    assert "exported at [1,3,8,8]f32" in ended.sentence
    assert "input_shapes[0] expect" in ended.out
    assert not (tmp_path / "out").exists()


def test_a_dump_names_the_source(run, tmp_path):
    np.save(tmp_path / "x.npy", np.load(DATA / "expected.npz")["image"])
    folder = tmp_path / "dump"
    run("dump", DATA / "traced.pt", "--input", tmp_path / "x.npy", "--output", folder)
    model = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["model"]
    assert (model["source"], model["param"]) == ("traced.pt", "model.pnnx.param")


def test_render_draws_a_converted_model(run, tmp_path):
    run("render", DATA / "small.onnx", "--output", tmp_path / "graph.json")
    assert (tmp_path / "graph.json").is_file()
