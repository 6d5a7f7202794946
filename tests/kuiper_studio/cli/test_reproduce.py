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


def test_an_earlier_one_stays(run, digits, tmp_path):
    arguments = ("--operators", "pool", "--input", "ones", "--output", tmp_path / "r")
    assert run("reproduce", digits, *arguments).status == 0
    again = run("reproduce", digits, *arguments)
    assert again.sentence == (
        f"{tmp_path / 'r'} already exists; choose another or overwrite it with --overwrite"
    )
    assert run("reproduce", digits, *arguments, "--overwrite").status == 0


def test_a_failed_operator_needs_what_is_expected(run, failing, tmp_path):
    arguments = ("--operators", "sum", "--input", "ones", "--output", tmp_path / "r")
    ended = run("reproduce", failing, *arguments)
    assert "give its expected value" in ended.sentence
    assert not (tmp_path / "r").exists()
