"""``kuiper-studio convert``, and the other commands on files that are converted."""

from __future__ import annotations

import json
import sys
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


def test_what_it_writes_is_what_opens_after_a_crash(run, tmp_path, monkeypatch):
    """With less joined operators this exporter does not crash."""
    real = find_pnnx(Path("model.pt"))
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "pnnx").write_text(
        f"#!{sys.executable}\nimport os, signal, sys\n"
        "if 'optlevel=1' not in sys.argv: os.kill(os.getpid(), signal.SIGSEGV)\n"
        f"os.execv({str(real)!r}, [{str(real)!r}, *sys.argv[1:]])\n"
    )
    (folder / "pnnx").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    ended = run("convert", DATA / "traced.pt", "--output", tmp_path / "out")
    assert "pnnx crashed, so this is what it makes with optlevel=1" in ended.out + ended.err
    assert (tmp_path / "out" / "traced.pnnx.param").exists()


def test_json_for_programs(run, tmp_path):
    (line,) = run("convert", DATA / "traced.pt", "--output", tmp_path / "out", "--json").lines
    facts = json.loads(line)
    assert sorted(facts["written"]) == sorted(map(str, (tmp_path / "out").iterdir()))
    assert facts["written"][0].endswith("traced.pnnx.param")
    assert facts["notes"] == []
    assert "############# pass_level5" in facts["log"]
    ended = run("convert", DATA / "traced.pt", "--output", tmp_path / "out", "--json")
    assert ended.sentence
    assert ended.out == ""


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


def test_the_log_is_printed_before_the_error(run, tmp_path):
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


@pytest.fixture
def text_encoder(tmp_path):
    """A traced text encoder of int64 ids, its inputs, and PyTorch's result."""
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(
        torch.nn.Embedding(40, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
    ).eval()
    ids = torch.arange(12)[None] * 3 % 40
    torch.jit.trace(module, (ids,)).save(str(tmp_path / "m.pt"))
    np.save(tmp_path / "ids.npy", ids.numpy())
    return tmp_path / "m.pt", tmp_path / "ids.npy", module(ids).detach().numpy()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sizes_may_end_with_the_type_of_the_input(run, tmp_path, text_encoder):
    model, ids, expected = text_encoder
    with_type = ("--shape", "1,12i64")
    run("convert", model, *with_type, "--output", tmp_path / "out")
    pair = tmp_path / "out" / "m.pnnx.param"
    assert "#0=(1,12)i64" in pair.read_text(encoding="utf-8")
    for path in (model, pair):
        output = tmp_path / f"{path.stem}.npz"
        run("run", path, *with_type, "--input", ids, "--output", output)
        np.testing.assert_allclose(np.load(output)["out0"], expected, rtol=1e-4, atol=1e-5)
        compared = run("compare", path, *with_type, "--input", ids, "--reference", output)
        assert compared.status == 0
    assert any("1×12 int64" in line for line in run("info", model, *with_type).lines)
    run("render", model, *with_type, "--output", tmp_path / "graph.json")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_wrong_types_are_refused(run, tmp_path, text_encoder):
    model, ids, _ = text_encoder
    output = ("--output", tmp_path / "out")
    sentence = run("convert", model, "--shape", "1,12i65", *output).sentence
    assert "'i65' is no type; write one of f32, i64" in sentence
    ended = run("convert", model, "--shape", "1,12", *output)
    assert "input 0 takes i64, not f32; give its size as 1,12i64" in ended.sentence
    run_model = ("run", model, "--input", ids, "--output", tmp_path / "o.npz")
    assert "takes i64, not f32" in run(*run_model, "--shape", "1,12f32").sentence
