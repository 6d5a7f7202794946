"""``kuiper-studio run``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from engine.backends.tuning_cache import TuningCache

THREE_INPUTS = (
    "pnnx.Input in0 0 1 a #a=(2,3)f32",
    "pnnx.Input in1 0 1 b #b=(3)f32",
    "pnnx.Input in2 0 1 c #c=(1)i64",
    "pnnx.Expression sum 2 1 a b d expr=add(@0,@1) #d=(2,3)f32",
    "pnnx.Output out0 1 0 d",
    "pnnx.Output out1 1 0 c",
)


def test_outputs_equal_pytorch(run, digits, samples, tmp_path):
    golden = np.load(samples / "digits" / "golden.npz")
    ended = run(
        "run", digits, "--input", digits / "digit_3.png", "--output", tmp_path / "o.npz"
    )
    assert ended.lines[0].startswith("25 operators in ")
    assert ended.lines[1:] == ["out0: 1×10 float32", f"written to {tmp_path / 'o.npz'}"]
    with np.load(tmp_path / "o.npz", allow_pickle=False) as found:
        assert found.files == ["out0"]
        np.testing.assert_allclose(found["out0"], golden["23"], atol=1e-5)


def test_the_five_best(run, digits):
    ended = run(
        "run", digits, "--input", digits / "digit_3.png", "--labels", digits / "labels.txt"
    )
    assert ended.lines[2] == "      0.9998  3"
    assert len(ended.lines) == 2 + 5
    scores = [float(line.split()[0]) for line in ended.lines[2:]]
    assert scores == sorted(scores, reverse=True)


def test_the_best_of_every_sample(run, digits, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 1, 32, 32), np.float32))
    ended = run("run", digits, "--input", tmp_path / "x.npy", "--labels", digits / "labels.txt")
    assert [line.split()[0] for line in ended.lines[2:]] == [
        f"[{n}]" for n in range(3) for _ in range(5)
    ]
    np.save(tmp_path / "x.npy", np.zeros((10, 1, 32, 32), np.float32))
    ended = run("run", digits, "--input", tmp_path / "x.npy", "--labels", digits / "labels.txt")
    assert len(ended.lines) == 2 + 8 * 5 + 1
    assert ended.lines[-1] == "  and 2 samples more"


def test_json_for_programs(run, digits, tmp_path):
    ended = run(
        "run", digits, "--input", digits / "digit_3.png", "--labels", digits / "labels.txt",
        "--output", tmp_path / "o.npz", "--json",
    )  # fmt: skip
    facts = json.loads(ended.out)
    assert (ended.status, ended.err) == (0, "")
    assert (facts["operators"], facts["random"], facts["seed"]) == (25, 0, 0)
    assert facts["seconds"] > 0
    assert facts["written"] == str(tmp_path / "o.npz")
    (out,) = facts["outputs"]
    assert (out["name"], out["shape"], out["dtype"]) == ("out0", [1, 10], "float32")
    ((first, *rest),) = out["best"]
    assert (first["label"], round(first["score"], 4), len(rest)) == ("3", 0.9998, 4)
    with np.load(tmp_path / "o.npz") as found:
        assert first["score"] == float(found["out0"].max())


def test_labels_that_fit_no_output_leave_the_json_alone(run, digits, tmp_path):
    (tmp_path / "l.txt").write_text("a\nb\nc\n")
    ended = run("run", digits, "--input", "ones", "--labels", tmp_path / "l.txt", "--json")
    assert "best" not in json.loads(ended.out)["outputs"][0]
    assert "no output has as many values" in ended.err


@pytest.mark.parametrize(
    ("expression", "best"),
    [
        pytest.param("mul(@0,1.0)", ["c", "a", "b"], id="in order"),
        pytest.param("div(@0,0.0)", ["a", "c", "b"], id="infinite and not a number"),
    ],
)
def test_ranking(run, make_pair, tmp_path, expression, best):
    param = make_pair(
        "pnnx.Input in 0 1 x #x=(3)f32",
        f"pnnx.Expression e 1 1 x y expr={expression} #y=(3)f32",
        "pnnx.Output out 1 0 y",
    )
    np.save(tmp_path / "x.npy", np.array([1, 0, 2], np.float32))
    (tmp_path / "l.txt").write_text("a\nb\nc\n")
    lines = run(
        "run", param, "--input", tmp_path / "x.npy", "--labels", tmp_path / "l.txt"
    ).lines
    assert [line.split()[1] for line in lines[2:]] == best


def test_ranking_of_unsigned_numbers(run, make_pair, tmp_path):
    param = make_pair("pnnx.Input in 0 1 x #x=(3)u8", "pnnx.Output out 1 0 x")
    np.save(tmp_path / "x.npy", np.array([7, 0, 200], np.uint8))
    (tmp_path / "l.txt").write_text("a\nb\nc\n")
    lines = run(
        "run", param, "--input", tmp_path / "x.npy", "--labels", tmp_path / "l.txt"
    ).lines
    assert [line.split() for line in lines[2:]] == [
        ["200.0000", "c"], ["7.0000", "a"], ["0.0000", "b"],
    ]  # fmt: skip


def test_labels_that_fit_nothing(run, digits, tmp_path):
    (tmp_path / "l.txt").write_text("cat\ndog\n")
    lines = run("run", digits, "--input", "ones", "--labels", tmp_path / "l.txt").lines
    assert lines[2:] == [f"{tmp_path / 'l.txt'} has 2 names, but no output has as many values"]


@pytest.mark.parametrize("way", ["three files", "one archive", "by name", "members"])
def test_several_inputs(run, make_pair, tmp_path, monkeypatch, way):
    param = make_pair(*THREE_INPUTS)
    a, b, c = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32), np.array([7])
    monkeypatch.chdir(tmp_path)
    for name, array in zip("abc", (a, b, c), strict=True):
        np.save(f"{name}.npy", array)
    np.savez("order.npz", x=a, y=b, z=c)
    np.savez("names.npz", c=c, a=a, b=b, more=np.zeros(9))
    sources = {
        "three files": ["a.npy", "b.npy", "c.npy"],
        "one archive": ["order.npz"],
        "by name": ["names.npz"],
        "members": ["order.npz:x", "order.npz:y", "constant:7"],
    }[way]
    lines = run("run", param, "--input", *sources, "--output", "o.npz").lines
    assert lines[1:3] == ["out0: 2×3 float32", "out1: 1 int64"]
    with np.load("o.npz") as found:
        np.testing.assert_array_equal(found["out0"], a + b)
        np.testing.assert_array_equal(found["out1"], c)


def test_inputs_may_be_given_one_by_one(run, make_pair):
    arguments = ("--input", "ones", "--input", "zeros", "--input", "random:3")
    assert run("run", make_pair(*THREE_INPUTS), *arguments).lines[1] == "out0: 2×3 float32"


def test_a_model_without_inputs(run, make_pair):
    weight = np.arange(3, dtype=np.float32)
    param = make_pair(
        "pnnx.Attribute w 0 1 x @data=(3)f32 #x=(3)f32",
        "pnnx.Output out 1 0 x",
        weights={"w.data": weight},
    )
    assert run("run", param).lines[1] == "out0: 3 float32"


def test_image_options(run, make_pair, samples, tmp_path):
    param = make_pair("pnnx.Input in 0 1 x #x=(1,3,?,?)f32", "pnnx.Output out 1 0 x")
    arguments = (
        "--size", "4x6", "--fit", "crop", "--order", "BGR", "--scale", "1/2",
        "--mean", "1,2,3", "--std", "1,2,4",
    )  # fmt: skip
    from PIL import Image

    Image.new("RGB", (60, 40), (10, 20, 30)).save(tmp_path / "p.png")
    run("run", param, "--input", tmp_path / "p.png", *arguments, "--output", tmp_path / "o.npz")
    with np.load(tmp_path / "o.npz") as found:
        assert found["out0"].shape == (1, 3, 4, 6)
        # blue first: (30/2 - 1) / 1, (20/2 - 2) / 2, (10/2 - 3) / 4
        np.testing.assert_allclose(found["out0"][0, :, 0, 0], [14, 4, 0.5], atol=1e-5)


def test_outputs_that_are_no_arrays(run, make_pair, tmp_path, monkeypatch):
    param = make_pair("pnnx.Input in 0 1 x #x=(3)f32", "pnnx.Output out 1 0 x")
    monkeypatch.setattr(
        "engine.session.Session.outputs", lambda _: ("a mode", np.zeros(2), None)
    )
    lines = run("run", param, "--input", "ones", "--output", tmp_path / "o.npz").lines
    assert lines[1:4] == [
        "out0: 'a mode' is not an array and is not written",
        "out1: 2 float64",
        "out2: None is not an array and is not written",
    ]
    with np.load(tmp_path / "o.npz") as found:
        assert found.files == ["out1"]


def test_an_earlier_output_is_replaced_and_a_failed_run_keeps_it(run, digits, tmp_path):
    output = tmp_path / "o.npz"
    run("run", digits, "--input", "ones", "--output", output)
    earlier = output.read_bytes()
    assert run("run", digits, "--input", "nothing.npy", "--output", output).status == 2
    assert output.read_bytes() == earlier
    run("run", digits, "--input", "zeros", "--output", output)
    assert output.read_bytes() != earlier


def test_a_failing_operator_is_named(run, failing):
    assert run("run", failing, "--input", "ones").sentence.startswith(
        "pnnx.Expression 'sum' failed on inputs 1×3×6×6, 1×3×8×8: "
    )


class TestShapes:
    OPEN = (
        "pnnx.Input in 0 1 in0 #in0=(1,%h,?)f32",
        "pnnx.Input mask 0 1 in1 #in1=(%h)f32",
        "nn.ReLU relu 1 1 in0 x",
        "pnnx.Output out 2 0 x in1",
    )

    def test_open_dimensions_are_requested(self, run, make_pair):
        assert run("run", make_pair(*self.OPEN), "--input", "ones").sentence == (
            "input in0 of 1×%h×? leaves dimension 2 and %h open; input in1 of %h leaves %h "
            "open; set its size, e.g. --shape h=16 --shape in0=1,?,16"
        )

    @pytest.mark.parametrize(
        "shapes",
        [
            pytest.param(["h=5", "in0=1,?,6"], id="symbol"),
            pytest.param(["%h=5", "1,?,6"], id="in order"),
            pytest.param(["1,5,6"], id="a shape says what the symbol is"),
            pytest.param(["1,5,6", "5"], id="all"),
        ],
    )
    def test_given(self, run, make_pair, shapes):
        param = make_pair(*self.OPEN)
        lines = run("run", param, "--input", "ones", "--shape", *shapes).lines
        assert lines[1:] == ["out0: 1×5×6 float32", "out1: 5 float32"]

    def test_repeated_option(self, run, make_pair):
        arguments = ("--input", "ones", "--shape", "h=5", "--shape", "2,?,6")
        assert run("run", make_pair(*self.OPEN), *arguments).lines[1] == "out0: 2×5×6 float32"

    def test_checked_against_files(self, run, make_pair, tmp_path):
        np.save(tmp_path / "x.npy", np.zeros((1, 5, 6), np.float32))
        arguments = ("--input", tmp_path / "x.npy", "ones", "--shape", "h=7")
        assert run("run", make_pair(*self.OPEN), *arguments).sentence == (
            "%h stands for one size, but is 7 as asked for and 5 in input in0 of 1×5×6"
        )

    def test_another_size_than_the_exported_one(self, run, digits):
        arguments = ("--input", digits / "digit_3.png", "--shape", "3,1,48,40")
        assert run("run", digits, *arguments).lines[1] == "out0: 3×10 float32"


class TestSupply:
    @pytest.fixture
    def files(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        np.save("five.npy", np.full((1, 4, 4, 4), 5, np.float64))
        np.savez("five.npz", anything=np.full((1, 4, 4, 4), 5, np.float32))
        np.save("small.npy", np.zeros((1, 4, 4), np.float32))

    @pytest.mark.parametrize("supply", ["5=five.npy", "strange=five.npz", "strange=five.npy"])
    def test_an_operator_that_cannot_run(self, run, residual, files, supply):
        arguments = ("--input", "ones", "--supply", supply, "--output", "o.npz")
        assert run("run", residual, *arguments).lines[1] == "out0: 1×4×4×4 float32"
        with np.load("o.npz") as found:
            np.testing.assert_array_equal(found["out0"], np.full((1, 4, 4, 4), 5))

    @pytest.mark.parametrize(
        ("supply", "sentence"),
        [
            ("5=small.npy", "operand 5 is 1×4×4×4, and the value to supply is 1×4×4"),
            ("6=gone.npy", "gone.npy: there is no such file"),
            (
                "strangr=five.npy",
                "the graph has no operand or operator named 'strangr'; did you mean 'strange'?",
            ),
            ("0=five.npy", "operand 0 is an input of the model: feed it"),
            ("out=five.npy", "five.npy cannot be supplied: the operator has no outputs"),
        ],
    )  # fmt: skip
    def test_wrong(self, run, residual, files, supply, sentence):
        assert run("run", residual, "--input", "ones", "--supply", supply).sentence == sentence

    def test_the_manifest_lists_overrides(self, run, residual, files):
        run("dump", residual, "--input", "ones", "--supply", "5=five.npy", "--output", "d")
        manifest = json.loads(Path("d/manifest.json").read_text(encoding="utf-8"))
        row = manifest["operators"][5]
        assert (row["status"], row["backend"], row["supplied"]) == (
            "executed", "supplied", {"5": "five.npy"},
        )  # fmt: skip
        assert manifest["operators"][4]["supplied"] == {}


def test_an_operator_that_cannot_run_is_named(run, residual, tmp_path):
    ended = run("run", residual, "--input", "ones", "--output", tmp_path / "o.npz")
    assert ended.sentence == (
        "the model did not run to its end: 'strange': no layer for operator type my.Strange"
        "; --layers FILE loads your own layers"
    )
    assert not (tmp_path / "o.npz").exists()


def test_the_operator_to_blame_is_named_and_not_another(run, make_pair):
    param = make_pair(
        "pnnx.Input in 0 1 a #a=(2)f32",
        "my.Unused aside 1 1 a b",
        "my.Cause cause 1 1 a c",
        "nn.ReLU relu 1 1 c d",
        "pnnx.Output out 1 0 d",
    )
    assert run("run", param, "--input", "ones").sentence == (
        "the model did not run to its end: 'cause': no layer for operator type my.Cause; "
        "--layers FILE loads your own layers; info lists 1 more that cannot run"
    )


def test_unsupported_operators_may_be_unneeded(run, make_pair):
    param = make_pair(
        "pnnx.Input in 0 1 a #a=(2)f32",
        "my.Unused aside 1 1 a b",
        "pnnx.Output out 1 0 a",
    )
    assert run("run", param, "--input", "ones").lines[1] == "out0: 2 float32"


NOISY = (
    "pnnx.Input in0 0 1 x #x=(8)f32",
    "torch.rand_like noise 1 1 x n dtype=None",
    "F.dropout thin 1 1 n t p=0.500000 training=True",
    "pnnx.Output out0 1 0 t",
)


def test_random_operators_follow_the_seed(run, make_pair, tmp_path):
    param, found = make_pair(*NOISY), {}
    for name, options in {
        "none": (), "0": ("--seed", "0"), "7": ("--seed", "7"), "7 again": ("--seed", "7"),
    }.items():  # fmt: skip
        ended = run("run", param, "--input", "ones", "--output", tmp_path / "o.npz", *options)
        seed = options[1] if options else "0"
        measured = r"4 operators in [0-9.]+ (µs|ms|s), 2 of them random, seed "
        assert re.fullmatch(measured + seed, ended.lines[0])
        with np.load(tmp_path / "o.npz") as written:
            found[name] = written["out0"].tolist()
    assert found["none"] == found["0"] != found["7"] == found["7 again"]


@pytest.mark.parametrize("seed", ["-1", "x", "1.5", "", "1" * 21])
def test_invalid_seeds_are_refused(run, make_pair, seed):
    ended = run("run", make_pair(*NOISY), "--input", "ones", f"--seed={seed}")
    assert ended.status == 2
    assert ended.err.endswith(
        "argument --seed: a seed is a whole number of at most 20 digits, such as 0; "
        "kuiper-studio run --help lists the arguments\n"
    )


def test_a_memory_limit_changes_nothing(run, digits, tmp_path):
    found = []
    for options in ((), ("--memory-limit", "1B")):
        output = ("--backend", "numpy", "--output", tmp_path / "o.npz")
        run("run", digits, "--input", digits / "digit_3.png", *output, *options).lines  # noqa: B018
        with np.load(tmp_path / "o.npz") as written:
            found.append(written["out0"].tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("limit", ["-1", "x", "5M", "", "1e6"])
@pytest.mark.parametrize("command", ["run", "check", "dump", "info"])
def test_invalid_memory_limits_are_refused(run, digits, command, limit):
    ended = run(command, digits, f"--memory-limit={limit}")
    assert ended.status == 2
    assert ended.err.endswith(
        f"argument --memory-limit: {limit!r} is not an amount of memory, such as 500MB, 2GiB "
        f"or 1000000; kuiper-studio {command} --help lists the arguments\n"
    )


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_a_memory_bound(run, digits, backend):
    """The first convolution's result is the largest, the session holds much less."""
    options = ("--input", digits / "digit_3.png", "--backend", backend)
    assert run("run", digits, *options, "--memory-bound", "10MB").status == 0
    ended = run("run", digits, *options, "--memory-bound", "20kB")
    assert ended.status == 2
    (sentence,) = ended.err.splitlines()
    assert sentence.startswith("kuiper-studio: nn.Conv2d")
    assert sentence.endswith(
        "; the memory bound is 20.0 kB, of which 4.1 kB are taken: --memory-bound raises it, "
        "or Debug → Memory… in the window"
    )
    assert "would take" in sentence


def test_inputs_are_held_to_the_memory_bound(run, make_pair):
    model = make_pair("pnnx.Input in0 0 1 0 #0=(1,?)f32", "pnnx.Output out 1 0 0")
    fed = ("--input", "random", "--shape", "1,2147483647", "--memory-bound", "1MB")
    ended = run("run", model, *fed)
    assert ended.status == 2
    assert ended.err == (
        "kuiper-studio: input 0 of 1×2147483647 would take 8.6 GB; the memory bound is "
        "1.0 MB: --memory-bound raises it, or Debug → Memory… in the window\n"
    )


@pytest.mark.parametrize("command", ["run", "check", "dump", "info"])
def test_invalid_memory_bounds_are_refused(run, digits, command):
    ended = run(command, digits, "--memory-bound=much")
    assert ended.status == 2
    assert "argument --memory-bound: 'much' is not an amount of memory" in ended.err


@pytest.mark.parametrize("command", ["run", "dump", "check"])
def test_tuning_within_a_budget(run, digits, tmp_path, monkeypatch, command):
    """Only where it is asked for; it says what came of it, and later runs use it."""
    pytest.importorskip("onnxruntime")
    own = TuningCache(tmp_path / "kernels.json")
    monkeypatch.setattr("engine.backends._tuning_cache", lambda: own)
    arguments = [command, digits, "--input", digits / "digit_3.png"]
    if command == "dump":
        arguments += ["--overwrite", "--output", tmp_path / "d"]
    assert run(*arguments).err == ""
    assert not own._table()
    ended = run(*arguments, "--tune", "60")
    assert ended.status == 0
    assert ended.err == (
        "kuiper-studio: kernels of 25 of 25 operators are tuned; later runs use the fastest\n"
    )
    assert own._table()


def test_no_time_to_tune(run, digits):
    ended = run("run", digits, "--input", digits / "digit_3.png", "--tune", "-1")
    assert ended.sentence.startswith("argument --tune: the number of seconds -1 is negative")


def test_a_partial_dump_tunes_nothing(run, digits, tmp_path):
    ended = run(
        "dump", digits, "--input", digits / "digit_3.png", "--output", tmp_path / "d",
        "--operators", "0", "--tune", "5",
    )  # fmt: skip
    assert ended.status == 0
    assert ended.err == (
        "kuiper-studio: no kernels are tuned: the run has not reached the end of the model\n"
    )


def test_what_the_output_means(run, digits):
    given = ("run", digits, "--input", digits / "digit_3.png", "--meaning")
    ended = run(*given, "--meaning-option", "top=2", "--labels", digits / "labels.txt")
    place = ended.lines.index("Classes:")
    assert ended.lines[place + 1] == "       100.0 %  3"
    assert ended.lines[place + 3].strip() == "scores as the model gives them"
    found = json.loads(run(*given, "classification", "--json").out)["meaning"]
    assert found["reading"] == "classification"
    assert found["rows"][0]["name"] == "3"
