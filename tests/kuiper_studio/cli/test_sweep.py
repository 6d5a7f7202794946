"""The command ``sweep``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from datasets_support import DIGITS

from kuiper_studio.cli.program import main


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("photos")
    values = np.random.default_rng(2).integers(0, 256, (3, 32, 32), np.uint8)
    for number, pixels in enumerate(values):
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (folder / "3.png").write_bytes(b"no picture")
    return folder, values


def arguments(photos, output, *more):
    folder, _ = photos
    return [
        "sweep", str(DIGITS), "--inputs", str(folder), "--output", str(output),
        "--workers", "0", *more,
    ]  # fmt: skip


def test_statistics_of_pictures(photos, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(arguments(photos, out, "--mean", "0.5", "--operators", "pnnx.Input")) == 0
    said = capsys.readouterr()
    assert "3 inputs, written to" in said.out
    assert "passed over: " in said.err
    assert "1 input of 4 could not be run" in said.err
    row = json.loads((out / "summary.json").read_bytes())["operands"]["0"]
    pixels = photos[1] / 255 - 0.5
    assert row["count"] == 3 * 1024
    assert row["max"] == pytest.approx(pixels.max(), abs=1e-6)
    assert row["mean"] == pytest.approx(pixels.mean(), abs=1e-6)


def test_json_is_the_summary(photos, tmp_path, capsys):
    options = ["--json", "--operators", "pnnx.Input", "--limit", "2"]
    assert main(arguments(photos, tmp_path / "out", *options)) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["inputs"]["set"]["count"] == 2


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--strict"], "input 3: "),
        (["--workers", "2", "--scheduler", "tcp://x:1"], "not allowed with"),
        (["--limit", "0"], "0 are too few"),
        (["--operators", "nothing"], "nothing"),
    ],
)
def test_errors_are_one_sentence(photos, tmp_path, capsys, more, sentence):
    assert main(arguments(photos, tmp_path / "out", *more)) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_without_the_extra_it_says_what_to_install(photos, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("engine.datasets.extra.find_spec", lambda name: None)
    assert main(arguments(photos, tmp_path / "out")) == 2
    assert "pip install 'kuiper-studio[datasets]'" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["no/such/folder", "*.nothing", __file__])
def test_inputs_that_are_none(tmp_path, capsys, source):
    command = ["sweep", str(DIGITS), "--inputs", source, "--output", str(tmp_path / "out")]
    assert main([*command, "--workers", "0"]) == 2
    assert capsys.readouterr().err.startswith("kuiper-studio: inputs ")
