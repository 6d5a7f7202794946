"""``kuiper-studio sweep`` with a calibration, and against another model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ncnn_files import f32, tagged, write_pair
from PIL import Image

LINES = ["Input in0 0 1 in0", "InnerProduct fc 1 1 in0 out0 0=2 1=1 2=6"]
RNG = np.random.default_rng(9)


@pytest.fixture
def model(tmp_path):
    np.save(tmp_path / "set.npy", RNG.standard_normal((12, 3)).astype(np.float32))
    weight = RNG.standard_normal(6).astype(np.float32)
    return write_pair(tmp_path, LINES, tagged(weight) + f32([1, 2]))


def sweep(run, model, *options):
    folder = model.parent
    return run(
        "sweep", model, "--inputs", folder / "set.npy", "--output", folder / "out",
        "--workers", "0", "--backend", "numpy", *options,
    )  # fmt: skip


def test_a_calibration(run, model):
    ended = sweep(run, model, "--calibrate", "minmax", "--keep", "0.5")
    assert ended.status == 0
    assert "all layers in int8, minmax: " in ended.out
    assert "keep in float32: nothing; " in ended.out
    lines = (model.parent / "out" / "calibration.table").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["fc_param_0", "fc"]


@pytest.fixture
def two_pairs(tmp_path):
    """A convolution in both formats, and pictures of 6×8 and 5×9."""
    weight = RNG.standard_normal(3).astype(np.float32)
    lines = ["Input in0 0 1 in0", "Convolution c 1 1 in0 out0 0=1 1=1 5=0 6=3"]
    write_pair(tmp_path, lines, tagged(weight), "m.ncnn")
    (tmp_path / "m.pnnx.param").write_text(
        "7767517\n2 1\npnnx.Input x 0 1 0 #0=(1,3,4,4)f32\npnnx.Output y 1 0 0\n"
    )
    for name, shape in (("a", (6, 8, 3)), ("b", (5, 9, 3))):
        pixels = RNG.integers(0, 256, shape).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    return tmp_path


@pytest.mark.parametrize(
    ("model", "given", "elements", "told"),
    [
        ("m.pnnx.param", (), 2 * 4 * 4, "with pictures of 4×4"),
        ("m.pnnx.param", ("--size", "2x2"), 2 * 2 * 2, "the pair of ncnn beside the model\n"),
        ("m.ncnn.param", (), 6 * 8 + 5 * 9, "so each picture keeps its own"),
    ],
)
def test_sizes_of_pictures_for_a_pair_that_has_none(
    run, two_pairs, model, given, elements, told
):
    ended = run(
        "sweep", two_pairs / model, "--inputs", two_pairs / "*.png", "--workers", "0", *given,
        "--output", two_pairs / "out", "--calibrate", "minmax", "--backend", "numpy",
    )  # fmt: skip
    assert ended.status == 0
    assert told in ended.err
    summary = json.loads((two_pairs / "out" / "summary.json").read_text())
    assert summary["operands"]["in0"]["count"] == 3 * elements
    layers = json.loads((two_pairs / "out" / "calibration.json").read_text())["layers"]
    assert layers[0]["count"] == 3 * elements


def test_an_error_that_cannot_be_reached_without_float32(run, model):
    ended = sweep(run, model, "--calibrate", "kl", "--keep", "0", "--json")
    facts = json.loads(ended.out)["calibration"]
    assert (ended.status, facts["keep_float32"]["layers"]) == (0, ["fc"])
    assert (model.parent / "out" / "calibration.table").read_text().startswith("#fc_param_0 ")


def test_another_model(run, model, tmp_path):
    weight = RNG.standard_normal(6).astype(np.float32)
    other = write_pair(tmp_path, LINES, tagged(weight) + f32([1, 2]), "other.ncnn")
    (tmp_path / "labels.csv").write_text("0,1\n1,0\n")
    ended = sweep(run, model, "--against", other, "--labels", tmp_path / "labels.csv")
    assert ended.status == 0
    assert "same top-1 in " in ended.out
    assert "of 2 labelled inputs" in ended.out
    assert json.loads((tmp_path / "out" / "against.json").read_text())["inputs"] == 12


def test_wrong_arguments(run, model, tmp_path):
    assert "invalid choice" in sweep(run, model, "--calibrate", "eq").sentence
    assert sweep(run, model, "--labels", tmp_path).sentence.startswith("--labels needs")
    told = sweep(run, model, "--calibrate", "percentile", "--percentile", "101").sentence
    assert "is not above 0 and at most 100" in told


@pytest.mark.parametrize("dump", ["out", "out/dump.zarr"])
def test_the_dump_of_the_reference_is_not_overwritten(run, model, dump):
    pytest.importorskip("zarr")
    assert sweep(run, model, "--dump").status == 0
    ended = sweep(run, model, "--reference", model.parent / dump, "--overwrite")
    assert ended.status == 2
    assert "is in the folder of the results: choose another --output" in ended.err
    assert (model.parent / "out" / "dump.zarr" / "out0").is_dir()
    assert (model.parent / "out" / "summary.json").exists()
