"""``kuiper-studio check``."""

from __future__ import annotations

import json

import pytest

from engine.backends import operator_lowerings
from engine.layers.activations import relu

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")


@pytest.fixture
def fault(monkeypatch):
    """ONNX Runtime computes another activation than the rectifier."""
    lowerings = operator_lowerings.LOWERINGS._lowerings

    def wrong(graph, operand):
        return graph.node("Softplus", graph.read(operand))

    monkeypatch.setitem(lowerings, relu, wrong)


def check(run, digits, *options):
    return run("check", digits, "--input", digits / "digit_3.png", *options)


def test_all_agree(run, digits):
    (line,) = check(run, digits).lines
    assert line.startswith("22 operators, ")
    assert " comparisons with onnxruntime and ncnn: all agree to 0.001." in line
    assert "The largest difference is " in line


def test_a_difference_is_named(run, digits, fault):
    ended = check(run, digits)
    assert (ended.status, ended.err) == (1, "")
    head, *rows, empty, summary = ended.out.splitlines()
    assert head.split() == [
        "#", "type", "name", "kernel", "ms", "largest", "difference", "relative", "to", "the",
        "largest", "relative", "to", "the", "element", "beyond", "tolerance",
    ]  # fmt: skip
    assert empty == ""
    assert {row.split()[1] for row in rows} == {"F.relu"} or all("ReLU" in row for row in rows)
    assert all("onnxruntime/" in row and " of 16 384 " in row for row in rows[:2])
    # Softplus of the most negative number is nearly 0, and of 0 it is log(2)
    assert ", not 0" in rows[0]
    assert "0.69" in rows[0]
    assert "differ by more than 0.001, in " in summary


def test_all_lists_every_operator(run, digits):
    lines = check(run, digits, "--all").lines
    kernels = {line.split()[3] for line in lines[1:-3]}
    assert {"onnxruntime/all-1", "ncnn/winograd", "ncnn/gemm"} <= kernels
    assert lines[-1].startswith("computed by NumPy only: ")


def test_json_for_programs(run, digits, fault):
    ended = check(run, digits, "--json", "--tolerance", "1/100")
    assert (ended.status, ended.err) == (1, "")
    facts = json.loads(ended.out)
    assert (facts["tolerance"], facts["libraries"]) == (0.01, ["onnxruntime", "ncnn"])
    assert facts["compared"] == len(facts["comparisons"])
    wrong = [row for row in facts["comparisons"] if row["verdict"] == "differs"]
    assert len(wrong) == facts["differing"] > 0
    assert wrong[0]["largest"] == pytest.approx(0.6931, rel=1e-3)
    assert (wrong[0]["expected"], wrong[0]["count"]) == (0.0, 16384)
    assert len(wrong[0]["place"]) == 4
    assert wrong[0]["relative_of_element"] == 1  # where the rectifier gives 0
    assert wrong[0]["element"]["expected"] == 0
    assert wrong[0]["element"]["found"] > 0
    assert (facts["not_run"], facts["error"]) == ([], "")


def test_a_wide_tolerance(run, digits, fault):
    assert check(run, digits, "--tolerance", "10").status == 0


UNSUPPORTED = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    "nn.ReLU relu 1 1 0 1 #1=(1,3,8,8)f32",
    "my.Strange strange 1 1 1 2 #2=(1,3,8,8)f32",
    "nn.ReLU last 1 1 2 3",
    "pnnx.Output out 1 0 3",
)


def test_unchecked_operators_are_listed(run, make_pair):
    param = make_pair(*UNSUPPORTED)
    ended = run("check", param, "--input", "random")
    assert ended.out.startswith("1 operator, ")
    assert ended.sentence.startswith(
        "3 operators were not checked: 'strange': no layer for operator type my.Strange"
    )


def test_an_operator_that_fails(run, make_pair):
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.ReLU relu 1 1 0 1",
        "pnnx.Expression sum 1 1 1 2 expr=size(@0,9)",
        "pnnx.Output out 1 0 2",
    )
    ended = run("check", make_pair(*lines), "--input", "random")
    assert "It ended early: " in ended.out
    assert ended.sentence.startswith("pnnx.Expression 'sum' failed on inputs 1×3×8×8: ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--input", "none.npy"), "none.npy: there is no such file"),
        ((), "the model takes 1 input (0 1×1×32×32 float32): give them with --input"),
    ],
)
def test_errors(run, digits, options, sentence):
    assert run("check", digits, *options).sentence == sentence


@pytest.mark.parametrize("number", ["-1", "x", "nan", "1/0"])
def test_invalid_tolerances_are_refused(run, digits, number):
    ended = check(run, digits, f"--tolerance={number}")
    assert ended.status == 2
    assert "argument --tolerance: " in ended.err


def test_no_library(run, digits, monkeypatch):
    monkeypatch.setattr("engine.backend_names.find_spec", lambda name: None)
    assert check(run, digits).sentence == (
        "no other backend than NumPy is installed; pip install onnxruntime onnx ncnn"
    )


def test_a_memory_limit_changes_nothing(run, digits):
    (line,) = check(run, digits, "--memory-limit", "0").lines
    assert line.startswith("22 operators, ")
    assert "all agree to 0.001." in line
