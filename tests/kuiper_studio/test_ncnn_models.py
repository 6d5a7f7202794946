"""Models of ncnn's own format in the window and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ncnn_files import f32, tagged, write_pair

from kuiper_studio.cli import main

LINES = [
    "Input in0 0 1 a 0=8 1=8 2=2",
    "Convolution conv 1 1 a b 0=3 1=1 5=1 6=6",
    "ReLU act 1 1 b out0",
]
WEIGHT = np.arange(-3, 3, dtype=np.float32)
BIAS = np.array([1, 2, 3], np.float32)


@pytest.fixture
def model(tmp_path):
    return write_pair(
        tmp_path, LINES, tagged(WEIGHT.astype(np.float16), 0x01306B47) + f32(BIAS)
    )


EXPECTED = np.maximum(WEIGHT.reshape(3, 2).sum(1) + BIAS, 0)


def test_the_window_steps_through_it(open_window, model):
    pytest.importorskip("ncnn")
    session = open_window(model, ["ones"]).session
    assert session.wait_idle()
    session.resume()
    assert session.wait_idle()
    assert session.snapshot.records[1].kernel == "ncnn/exact"
    assert session.fetch("out0")[:, 0, 0].tolist() == EXPECTED.tolist()
    assert session.graph.operator("conv").attributes["weight"].stored_dtype == "f16"
    session.set_ncnn_options("deployed")
    assert session.wait_idle()
    session.resume()
    assert session.wait_idle()
    assert session.snapshot.records[1].kernel == "ncnn/deployed"


def test_the_command_line_runs_it(model, tmp_path, capsys):
    output = tmp_path / "out.npz"
    arguments = ["run", str(model), "--input", "ones", "--output", str(output)]
    assert main([*arguments, "--ncnn-options", "packing"]) == 0
    np.testing.assert_allclose(np.load(output)["out0"][:, 0, 0], EXPECTED, 1e-6)
    capsys.readouterr()
    assert main(["info", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"][1]["type"] == "ncnn.Convolution"
    assert main([*arguments, "--ncnn-options", "fast"]) == 2
    assert "no option 'fast'" in capsys.readouterr().err
