"""``kuiper-studio info``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kuiper_studio.cli.report import format_operand


def strict(text: str) -> dict:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_text(run, digits):
    lines = run("info", digits / "digits.pnnx.param").lines
    assert lines[:6] == [
        ("digits.pnnx.param: 25 operators, 24 operands, 55 962 parameters, 10.85 MMAC"),
        f"weights: {digits / 'digits.pnnx.bin'}",
        "input: 0 1×1×32×32 float32",
        "output: 23 1×10 float32",
        "",
        " #  type                  name             output              parameters      MAC",
    ]
    assert lines[7] == (
        " 1  nn.Conv2d             convbn2d_0       1×16×32×32 float32         160  147.5 K"
    )
    # Seven images of 65 536 bytes, six of 32 768, six of 12 288 and 464 of vectors; at most
    # three of the first are there at once, when two are added.
    empty, sentence = lines[6 + 25 :]
    assert empty == ""
    assert sentence.startswith(
        "a pass keeps 729.6 kB of values; --memory-limit SIZE keeps fewer, "
    )
    assert sentence.endswith(", but at least the 196.6 kB that operators need at once")
    facts = strict(run("info", digits, "--json").out)
    assert facts["memory"] == {"values": 729_552, "needed": 196_608}


def test_memory_of_a_small_model_is_no_zero(run, make_pair):
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.ReLU relu 1 1 0 1 #1=(1,3,8,8)f32",
        "pnnx.Output out 1 0 1",
    )
    sentence = run("info", param).lines[-1]  # 192 values of 4 bytes; the input is not counted
    assert sentence.startswith("a pass keeps 768 B of values")


def test_shapes_and_costs_at_another_size(run, digits):
    lines = run("info", digits, "--shape", "2,1,64,64").lines
    # Four times the pixels and twice the samples: 147.5 K becomes 1.18 M.
    assert lines[2:4] == ["input: 0 2×1×64×64 float32", "output: 23 2×10 float32"]
    assert lines[7] == (
        " 1  nn.Conv2d             convbn2d_0       2×16×64×64 float32         160   1.18 M"
    )
    facts = strict(run("info", digits, "--shape", "2,1,64,64", "--json").out)
    assert facts["inputs"][0]["shape"] == [2, 1, 64, 64]
    assert facts["operators"][1]["macs"] == 2 * 16 * 64 * 64 * 9


def test_symbols_and_open_dimensions_are_shown(run, make_pair):
    param = make_pair("pnnx.Input in 0 1 x #x=(1,?,%w)f32", "pnnx.Output out 1 0 x")
    assert run("info", param).lines[2] == "input: x 1×?×%w float32"
    assert run("info", param, "--shape", "w=4", "1,2,?").lines[2] == "input: x 1×2×4 float32"
    assert run("info", param, "--shape", "w=4").sentence.endswith("e.g. --shape x=1,16,4")


@pytest.mark.parametrize("named", ["digits.pnnx.param", "digits.pnnx.bin", "."])
def test_a_model_may_be_named_by_either_file_or_their_folder(run, digits, named):
    assert run("info", digits / named).lines[0].startswith("digits.pnnx.param: 25 operators")


def test_weights_from_elsewhere(run, digits, tmp_path):
    (digits / "digits.pnnx.bin").rename(tmp_path / "w.bin")
    model = digits / "digits.pnnx.param"
    assert run("info", model, "--bin", tmp_path / "w.bin").lines[1] == (
        f"weights: {tmp_path / 'w.bin'}"
    )
    assert run("info", model).lines[1] == "weights: none found, structure only"


def test_structure_only_names_all_operators_without_weights(run, digits):
    (digits / "digits.pnnx.bin").unlink()
    lines = run("info", digits).lines
    place = lines.index("10 operators cannot run:")
    assert lines[place + 1].startswith("  1, 3, 5, 8, 10, 11, 14, 16, and 2 more: ")
    assert "its weights are missing" in lines[place + 1]
    assert len(lines) == place + 2


def test_operators_that_cannot_run_are_all_listed(run, make_pair):
    param = make_pair(
        "pnnx.Input in 0 1 a #a=(1,3,8,8)f32",
        "my.Own first 1 1 a b",
        "nn.MaxPool2d second 1 1 b c",
        "my.Own third 1 1 c d",
        "pnnx.Output out 1 0 d",
    )
    lines = run("info", param).lines
    told = lines[lines.index("3 operators cannot run:") + 1 :]
    assert told[0] == "  1: 'first': no layer for operator type my.Own"
    assert told[1].startswith("  2: nn.MaxPool2d 'second': ")
    assert "kernel_size" in told[1]
    assert told[2] == "  3: 'third': no layer for operator type my.Own"
    facts = strict(run("info", param, "--json").out)
    assert [row["name"] for row in facts["unsupported"]] == ["first", "second", "third"]
    assert all(row["reason"] for row in facts["unsupported"])


def test_json(run, digits):
    ended = run("info", digits, "--json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.isascii()
    facts = strict(ended.out)
    assert facts["param"] == str(digits / "digits.pnnx.param")
    assert facts["inputs"] == [{"name": "0", "shape": [1, 1, 32, 32], "dtype": "float32"}]
    assert facts["outputs"] == [{"name": "23", "shape": [1, 10], "dtype": "float32"}]
    assert (facts["parameters"], facts["macs"]) == (55_962, 10_846_688)
    assert facts["unsupported"] == []
    assert facts["operators"][8] == {
        "index": 8,
        "name": "convbn2d_3",
        "type": "nn.Conv2d",
        "params": {
            "bias": True,
            "dilation": [1, 1],
            "groups": 1,
            "in_channels": 16,
            "kernel_size": [3, 3],
            "out_channels": 32,
            "padding": [1, 1],
            "padding_mode": "zeros",
            "stride": [2, 2],
        },
        "attributes": {
            "bias": {"shape": [32], "dtype": "f32", "nbytes": 128},
            "weight": {"shape": [32, 16, 3, 3], "dtype": "f32", "nbytes": 18432},
        },
        "inputs": ["7"],
        "outputs": [{"name": "8", "shape": [1, 32, 16, 16], "dtype": "float32"}],
        "macs": 32 * 256 * 16 * 9,
        "flops": 2 * 32 * 256 * 16 * 9,
        "nbytes": 4 * (16 * 1024 + 32 * 256 + 32 * 16 * 9 + 32),
        "parameters": 4640,
        "layer_file": None,
        "reason": "",
    }


def test_json_of_values_that_json_lacks(run, make_pair):
    param = make_pair(
        "pnnx.Input größe 0 1 a #a=(?,%n,3)f32",
        "my.Own own 1 1 a b low=-inf high=inf z=1.0-2.0j zs=(1.0+2.0j,3.0+4.0j) n=None",
        "pnnx.Output out 1 0 b",
    )
    facts = strict(run("info", param, "--json").out)
    assert facts["inputs"][0]["shape"] == [None, "%n", 3]
    assert facts["operators"][0]["name"] == "größe"
    params = facts["operators"][1]["params"]
    assert (params["low"], params["high"], params["n"]) == ("-inf", "inf", None)
    json.dumps(facts, allow_nan=False)


def test_hostile_names_do_not_reach_the_terminal(run, make_pair):
    long = "n" * 300
    param = make_pair(
        "pnnx.Input in 0 1 a #a=(1)f32",
        "nn.ReLU \x1b]0;owned\x07 1 1 a b",
        f"nn.ReLU {long} 1 1 b c",
        "nn.ReLU \u202eback 1 1 c d",
        "pnnx.Output out 1 0 d",
    )
    ended = run("info", param)
    assert all(c.isprintable() for line in ended.lines for c in line)
    assert r"\x1b]0;owned\x07" in ended.out
    assert r"\u202eback" in ended.out
    assert max(map(len, ended.lines)) < 200
    assert strict(run("info", param, "--json").out)["operators"][2]["name"] == long


def test_a_model_without_anything(run, make_pair):
    assert run("info", make_pair()).lines[0] == (
        "m.pnnx.param: 0 operators, 0 operands, 0 parameters, 0 MAC"
    )


@pytest.mark.shared
@pytest.mark.parametrize("name", ["resnet18_batch1", "yolov5s", "simple_ops2", "test_linear"])
def test_course_models(run, shared, name):
    param = shared / "models" / f"{name}.pnnx.param"
    assert run("info", param).lines[0].startswith(f"{name}.pnnx.param: ")
    assert strict(run("info", param, "--json").out)["operators"]


LOADED = """
import sys
from kuiper_studio.cli import main
status = main(["info", sys.argv[1]])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(status)
"""


def test_needs_neither_qt_nor_other_runtimes(samples):
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, str(samples / "digits")],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in ended.stderr.split()}
    assert "numpy" in loaded
    for heavy in ("PySide6", "shiboken6", "pyqtgraph", "onnxruntime", "onnx", "ncnn", "PIL",
                  "networkx", "torch", "safetensors"):  # fmt: skip
        assert heavy not in loaded


@pytest.mark.parametrize(
    ("shape", "dtype", "text"),
    [
        ((1, 3, 224, 224), "float32", "1×3×224×224 float32"),
        ((), "int64", "scalar int64"),
        ((None, "%n", 3), None, "?×%n×3"),
        (None, "float32", "?"),
    ],
)
def test_format_operand(shape, dtype, text):
    assert format_operand(shape, dtype) == text


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (1, "1 operator is random: 1; --seed N sets the random seed"),
        (2, "2 operators are random: 1, 2; --seed N sets the random seed"),
        pytest.param(
            10,
            "10 operators are random: 1, 2, 3, 4, 5, 6, 7, 8, and 2 more; "
            "--seed N sets the random seed",
            id="many",
        ),
    ],
)
def test_random_operators_are_listed(run, make_pair, count, sentence):
    noise = [f"F.dropout d{n} 1 1 {n} {n + 1} p=0.5 training=True" for n in range(count)]
    quiet = f"F.dropout q 1 1 {count} {count + 1} p=0.5 training=False"
    param = make_pair("pnnx.Input in 0 1 0 #0=(3)f32", *noise, quiet)
    assert run("info", param).lines[-1] == sentence
    assert strict(run("info", param, "--json").out)["random"] == list(range(1, count + 1))


def test_most_models_are_not_random(run, digits):
    assert strict(run("info", digits, "--json").out)["random"] == []
