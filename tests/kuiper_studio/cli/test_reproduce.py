"""``kuiper-studio reproduce``; what it writes is tested with the engine."""

from __future__ import annotations

import numpy as np


def test_operators_as_a_model(run, digits, tmp_path):
    folder = tmp_path / "r"
    arguments = ("--operators", "convbn2d_0,stem.*", "--output", folder)
    ended = run("reproduce", digits, "--input", digits / "digit_3.png", *arguments)
    assert ended.lines == [f"written to {folder}; run python check.py in that folder"]
    again = run(
        "run", folder, "--input", folder / "inputs.npz", "--backend", "numpy",
        "--output", tmp_path / "out.npz",
    )  # fmt: skip
    assert again.status == 0, again
    with np.load(tmp_path / "out.npz") as found, np.load(folder / "expected.npz") as wanted:
        assert len(found.files) == len(wanted.files) == 1
        np.testing.assert_allclose(found["out0"], wanted[wanted.files[0]], 1e-4, 1e-5)


def test_an_earlier_reproducer_stays(run, digits, tmp_path):
    arguments = ("--operators", "pool", "--input", "ones", "--output", tmp_path / "r")
    assert run("reproduce", digits, *arguments).status == 0
    again = run("reproduce", digits, *arguments)
    assert again.sentence == (
        f"{tmp_path / 'r'} already exists; choose another or overwrite it with --overwrite"
    )
    assert run("reproduce", digits, *arguments, "--overwrite").status == 0


def test_a_failed_operator_needs_expected_outputs(run, failing, tmp_path):
    arguments = ("--operators", "sum", "--input", "ones", "--output", tmp_path / "r")
    ended = run("reproduce", failing, *arguments)
    assert "give its expected value" in ended.sentence
    assert not (tmp_path / "r").exists()


def test_outputs_of_a_reference_are_expected(run, digits, tmp_path):
    dump, folder = tmp_path / "dump", tmp_path / "r"
    run("dump", digits, "--input", digits / "digit_3.png", "--output", dump)
    param = digits / "digits.pnnx.param"
    text = param.read_text(encoding="utf-8")
    param.write_text(text.replace("nn.ReLU   ", "nn.Sigmoid", 1), encoding="utf-8")
    arguments = ("--operators", "stem.2", "--output", folder, "--reference")
    ended = run("reproduce", digits, *arguments, dump)  # on the reference's inputs
    assert ended.lines == [f"written to {folder}; run python check.py in that folder"]
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "expected.npz") as wanted:
        np.testing.assert_allclose(wanted["2"], np.maximum(inputs["1"], 0), 1e-5, 1e-6)


def test_two_sources_of_expected_outputs(run, digits, tmp_path):
    ended = run(
        "reproduce", digits, "--operators", "pool", "--output", tmp_path / "r",
        "--expected", "e.npz", "--reference", "dump",
    )  # fmt: skip
    assert "--reference: not allowed with argument --expected" in ended.sentence


def test_names_and_references_are_checked_before_the_run(run, digits, tmp_path):
    arguments = ("reproduce", digits, "--output", tmp_path / "r", "--input", "ones")
    ended = run(*arguments, "--operators", "pool", "--reference", tmp_path / "gone.npz")
    assert "there is no such file" in ended.sentence
    ended = run(*arguments, "--operators", "pol", "--reference", digits)
    assert "'pol'" in ended.sentence
