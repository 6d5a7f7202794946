"""``kuiper-studio compare`` and ``kuiper-studio recorder``."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from ncnn_files import F16, tagged, write_pair
from PIL import Image


@pytest.fixture
def dump(run, digits, tmp_path):
    """The dump of a run of the sample."""
    folder = tmp_path / "dump"
    run("dump", digits, "--input", digits / "digit_3.png", "--output", folder)
    return folder


@pytest.fixture
def faulty(digits, tmp_path):
    """The sample with another activation in the place of its first one."""
    folder = tmp_path / "faulty"
    shutil.copytree(digits, folder)
    param = folder / "digits.pnnx.param"
    text = param.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith(("nn.ReLU", "F.relu")))
    kind, name = line.split()[:2]
    other = line.replace(kind, "F.sigmoid" if kind == "F.relu" else "nn.Sigmoid", 1)
    param.write_text(text.replace(line, other), encoding="utf-8")
    return folder, name


def test_equal_runs_exit_with_0(run, digits, dump):
    (line,) = run(
        "compare", digits, "--input", digits / "digit_3.png", "--reference", dump
    ).lines
    assert line.startswith("same: ")
    assert line.endswith(
        " compared with dump, 0 of the model and 0 of the reference not matched"
    )


def test_another_preparation_of_the_image_is_found(run, photographed, tmp_path):
    pair, picture, photograph = photographed
    whole = picture.resize((30, 18), Image.Resampling.BILINEAR)
    cut = np.asarray(whole.crop((7, 1, 23, 17)), np.float32).transpose(2, 0, 1)[np.newaxis]
    reference = tmp_path / "reference.npz"
    np.savez(reference, **{"0": cut, "1": cut})
    ended = run("compare", pair, "--input", photograph, "--reference", reference)
    assert "until its shorter side is 18, then cut to 16×16" in ended.out
    assert "Set scale=1." in ended.out


def test_float16_weights_are_counted(run, tmp_path):
    rng = np.random.default_rng(3)
    weight, x = (rng.standard_normal(s).astype(np.float32) for s in ((7, 64), (64,)))
    lines = ("Input in0 0 1 in0 0=64", "InnerProduct fc 1 1 in0 1 0=7 1=0 2=448")
    path = write_pair(tmp_path, lines, tagged(weight.astype(np.float16), F16))
    reference = tmp_path / "reference.npz"
    np.savez(reference, **{"in0": x, "1": weight @ x})
    source = tmp_path / "x.npy"
    np.save(source, x)
    ended = run(
        "compare", path, "--input", source, "--reference", reference, "--tolerance", "1e-6"
    )
    assert ended.status == 0
    assert ended.lines[-1].startswith("same: 2 operands compared with ")
    assert ended.lines[-1].endswith("; 1 operand differs by the rounding of weights to float16")


def test_the_inputs_of_the_reference_are_used(run, digits, dump):
    assert run("compare", digits, "--reference", dump).lines[-1].startswith("same: ")


def test_arrays_that_are_named_like_the_inputs_are_fed(run, tmp_path):
    rng = np.random.default_rng(4)
    weight, x = (rng.standard_normal(s).astype(np.float32) for s in ((7, 64), (64,)))
    lines = ("Input in0 0 1 in0 0=64", "InnerProduct fc 1 1 in0 1 0=7 1=0 2=448")
    path = write_pair(tmp_path, lines, tagged(weight))
    whole, results = tmp_path / "whole.npz", tmp_path / "results.npz"
    np.savez(whole, **{"1": weight @ x, "in0": x})
    np.savez(results, **{"1": weight @ x})
    ended = run("compare", path, "--reference", whole)
    assert ended.lines[-1].startswith("same: 2 operands compared with whole.npz")
    assert "give them with --input" in run("compare", path, "--reference", results).sentence


def test_recorded_inputs_without_a_batch_axis_are_fed(run, digits, samples, tmp_path):
    golden = np.load(samples / "digits" / "golden.npz")
    reference = tmp_path / "without_batch.npz"
    np.savez(reference, **{name: golden[name][0] for name in ("0", "1", "23")})
    ended = run("compare", digits, "--reference", reference)
    assert ended.lines[-1].startswith("same: 3 operands compared with without_batch.npz")


def test_the_origin_is_named(run, faulty, digits, dump):
    folder, name = faulty
    ended = run("compare", folder, "--reference", dump)
    assert (ended.status, ended.err) == (1, "")
    *_, origin, reason, verdict = ended.out.splitlines()
    assert origin.startswith("origin: ")
    assert reason.startswith("  100% activation_missing: ")
    assert f"{name!r} differs on the reference's inputs by " in origin
    assert verdict.startswith("differs: 1 origin; ")
    rows = [line.split() for line in ended.out.splitlines()[1:-4]]
    assert [row[-1] for row in rows if row[2] == name] == ["origin"]
    assert {row[-1] for row in rows if row[2] != name} == {"inherited"}


def test_json_for_programs(run, faulty, dump):
    folder, name = faulty
    ended = run("compare", folder, "--reference", dump, "--json")
    facts = json.loads(ended.out)
    assert (ended.status, facts["verdict"]) == (1, "differs")
    assert [origin["operator"] for origin in facts["origins"]] == [name]
    assert facts["unmatched"] == {"ours": [], "reference": []}


def test_a_model_is_the_reference(run, faulty, digits):
    folder, name = faulty
    options = ("--input", digits / "digit_3.png", "--reference", digits)
    ended = run("compare", folder, *options, "--json")
    facts = json.loads(ended.out)
    assert [origin["operator"] for origin in facts["origins"]] == [name]
    assert run("compare", digits, *options).lines[-1].startswith("same: ")
    assert "give them with --input" in run("compare", digits, "--reference", digits).sentence


def test_a_wide_tolerance(run, faulty, dump):
    folder, _ = faulty
    ended = run("compare", folder, "--reference", dump, "--tolerance", "100", "--all")
    assert ended.status == 0


def test_a_run_that_fails_is_compared(run, digits, dump):
    param = digits / "digits.pnnx.param"
    text = param.read_text(encoding="utf-8")
    param.write_text(text.replace("padding=(1,1)", "padding=(0,0)", 1), encoding="utf-8")
    ended = run("compare", digits, "--reference", dump)
    assert (ended.status, ended.err) == (1, "")
    assert "differs: 1 origin; " in ended.out


def test_why_a_run_did_not_reach_its_end(run, digits, dump):
    param = digits / "digits.pnnx.param"
    text = param.read_text(encoding="utf-8")
    param.write_text(text.replace("padding=(1,1)", "padding=(0,0)", 2), encoding="utf-8")
    ended = run("compare", digits, "--reference", dump)
    assert (ended.status, ended.err) == (1, "")
    first, *_, last = ended.out.splitlines()
    assert first.startswith("the model did not run to its end: pnnx.Expression 'pnnx_expr_4'")
    assert last.startswith("differs: ")
    assert "outputs of the model not compared: 23" in last


def test_a_reference_without_matches_is_not_the_same(run, digits, tmp_path):
    np.savez(tmp_path / "other.npz", strange=np.ones((3, 4)), other=np.arange(7))
    options = ("--input", digits / "digit_3.png", "--reference", tmp_path / "other.npz")
    ended = run("compare", digits, *options, "--report", tmp_path / "r.html")
    assert (ended.status, ended.err) == (1, "")
    why = (
        "No tensor of other.npz matches an operand by name, values or place. "
        "Another reference may, or match one by hand."
    )
    assert ended.out.splitlines()[0] == f"nothing compared. {why}"
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<span>?</span> Nothing compared</h1>" in page
    assert why in page
    facts = json.loads(run("compare", digits, *options, "--json").out)
    assert (facts["verdict"], facts["rows"]) == ("differs", [])


def test_a_reference_that_ends_early_is_not_plainly_the_same(run, digits, tmp_path):
    folder = tmp_path / "early"
    shutil.copytree(digits, folder)
    param = folder / "digits.pnnx.param"
    text = param.read_text(encoding="utf-8")
    param.write_text(text.replace("F.softmax ", "F.unknown ", 1), encoding="utf-8")
    options = ("--input", digits / "digit_3.png", "--reference", folder)
    ended = run("compare", digits, *options)
    assert (ended.status, ended.err) == (0, "")
    assert ended.lines[-1].startswith("same, outputs not compared: ")
    assert "; outputs of the model not compared: 23; " in ended.lines[-1]
    assert ended.lines[-1].endswith(": 'F.softmax_1': no layer for operator type F.unknown")


def test_invalid_references_are_refused(run, digits, tmp_path):
    np.savez(tmp_path / "none.npz")
    options = ("--input", digits / "digit_3.png", "--reference")
    assert "has no arrays" in run("compare", digits, *options, tmp_path / "none.npz").sentence
    assert "gone" in run("compare", digits, *options, tmp_path / "gone").sentence


@pytest.mark.parametrize("library", ["torch", "onnxruntime", "ncnn"])
def test_a_recorder_is_written(run, tmp_path, library):
    file = tmp_path / "my.py"
    assert str(file) in run("recorder", library, "--output", file).lines[0]
    script = file.read_text(encoding="utf-8")
    assert "def record(" in script
    assert "engine" not in script.replace("Kuiper", "")


def test_a_library_without_recorder(run):
    assert "invalid choice: 'jax'" in run("recorder", "jax").sentence
