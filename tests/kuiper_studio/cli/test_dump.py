"""``kuiper-studio dump``; what dumps hold is tested with the engine."""

from __future__ import annotations

import json

import numpy as np
import pytest


def files(folder) -> list[str]:
    found = folder.rglob("*")
    return sorted(p.relative_to(folder).as_posix() for p in found if p.is_file())


def test_a_folder(run, digits, tmp_path):
    ended = run("dump", digits, "--input", digits / "digit_3.png", "--output", tmp_path / "d")
    assert ended.lines == [f"written to {tmp_path / 'd'}"]
    assert len(files(tmp_path / "d")) == 24 + 2


@pytest.mark.parametrize(
    ("arguments", "name", "opener"),
    [
        pytest.param([], "d.npz", np.load, id="suffix npz"),
        pytest.param(["--format", "npz"], "d", np.load, id="format npz"),
        pytest.param([], "d.safetensors", None, id="suffix safetensors"),
        pytest.param(["--format", "folder"], "d.npz", "folder", id="format before suffix"),
    ],
)
def test_formats(run, digits, tmp_path, arguments, name, opener):
    run("dump", digits, "--input", "ones", "--output", tmp_path / name, *arguments)
    if opener == "folder":
        assert (tmp_path / name / "manifest.json").is_file()
    elif opener is None:
        from safetensors.numpy import load_file

        assert "23" in load_file(tmp_path / name)
    else:
        with opener(tmp_path / name) as found:
            assert "23" in found.files


def test_the_run_ends_with_the_last_chosen_operator(run, failing, tmp_path):
    ended = run(
        "dump", failing, "--input", "ones", "--output", tmp_path / "d", "--operators", "nn.*"
    )
    assert ended.lines == [f"written to {tmp_path / 'd'}"]
    manifest = json.loads((tmp_path / "d" / "manifest.json").read_text())
    assert [row["status"] for row in manifest["operators"]] == [
        "executed", "executed", "pending", "pending",
    ]  # fmt: skip


def test_weights_need_no_run(run, failing, tmp_path):
    arguments = ("--weights", "--no-outputs", "--no-inputs")
    run("dump", failing, "--input", "ones", "--output", tmp_path / "d", *arguments)
    assert files(tmp_path / "d") == ["manifest.json", "summary.csv", "weights/conv.weight.npy"]


def test_selection(run, digits, tmp_path):
    arguments = ("--operators", "pool", "stem.*", "--no-inputs")
    run("dump", digits, "--input", "ones", "--output", tmp_path / "d", *arguments)
    assert files(tmp_path / "d") == [
        "manifest.json",
        "ops/002_nn.ReLU__2.npy",
        "ops/020_nn.AdaptiveAvgPool2d__20.npy",
        "summary.csv",
    ]


def test_statistics_only(run, digits, tmp_path):
    run("dump", digits, "--input", "ones", "--output", tmp_path / "d", "--statistics-only")
    assert files(tmp_path / "d") == ["manifest.json", "summary.csv"]


def test_a_failed_run_is_dumped_as_far_as_it_came(run, failing, tmp_path):
    ended = run("dump", failing, "--input", "ones", "--output", tmp_path / "d")
    assert ended.sentence.startswith("pnnx.Expression 'sum' failed on inputs")
    assert ended.out == f"written to {tmp_path / 'd'}\n"
    assert "ops/001_nn.Conv2d__1.npy" in files(tmp_path / "d")


def test_missing_values_are_reported(run, residual, tmp_path):
    ended = run("dump", residual, "--input", "ones", "--output", tmp_path / "d")
    assert ended.sentence == (
        "the dump lacks 3 of 8 operators: 'strange': no layer for operator type my.Strange"
        "; --layers FILE loads your own layers"
    )
    assert "ops/004_nn.MaxPool2d__4.npy" in files(tmp_path / "d")


def test_an_earlier_dump_stays_without_overwrite(run, digits, tmp_path):
    command = ("dump", digits, "--input", "ones", "--output", tmp_path / "d")
    run(*command, "--operators", "pool")
    assert run(*command).sentence == (
        f"{tmp_path / 'd'} already has a dump; choose another or overwrite it with --overwrite"
    )
    assert run(*command, "--overwrite").status == 0
    assert len(files(tmp_path / "d")) == 26


def test_wrong_names_and_places_are_refused_before_the_run(run, digits, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "engine.session.Session.run", lambda *_, **__: pytest.fail("the model was run")
    )
    for arguments in (
        ("--output", tmp_path / "d", "--operators", "nothing"),
        ("--output", tmp_path / "none" / "d"),
        ("--output", digits),
        ("--output", tmp_path / "d.npz", "--statistics-only"),
    ):
        assert run("dump", digits, "--input", "ones", *arguments).sentence


def test_the_same_numbers_again(run, digits, tmp_path):
    """A dump's kernels are taken by a later run and dump."""
    arguments = ("dump", digits, "--input", digits / "digit_3.png", "--output")
    run(*arguments, tmp_path / "first", "--sha256").lines  # noqa: B018
    again = ("--backend-from", tmp_path / "first")
    run(*arguments, tmp_path / "second", "--sha256", *again).lines  # noqa: B018
    first, second = (
        json.loads((tmp_path / name / "manifest.json").read_text())
        for name in ("first", "second")
    )
    assert (first["backend"], second["backend"]) == ("auto", "recorded")
    for old, new in zip(first["operators"], second["operators"], strict=True):
        assert new["kernel"] == old["kernel"]
    for old, new in zip(first["operands"], second["operands"], strict=True):
        assert new["sha256"] == old["sha256"] is not None
    out = run("run", digits, "--input", digits / "digit_3.png", "--output", tmp_path / "o.npz",
              *again)  # fmt: skip
    assert out.status == 0
    ended = run("run", digits, "--input", "ones", "--backend", "numpy", *again)
    assert "not allowed with argument --backend" in ended.err


def test_seed(run, make_pair, tmp_path):
    param = make_pair(
        "pnnx.Input in0 0 1 x #x=(8)f32",
        "torch.rand_like noise 1 1 x n dtype=None",
        "pnnx.Output out0 1 0 n",
    )
    drawn = []
    options = (
        ("--seed", "3"),
        ("--seed", "3"),
        ("--seed", "4"),
        ("--backend-from", tmp_path / "0"),  # the same numbers again
        ("--backend-from", tmp_path / "0", "--seed", "4"),
    )
    for place, (seed, asked) in enumerate(zip((3, 3, 4, 3, 4), options, strict=True)):
        output = tmp_path / str(place)
        run("dump", param, "--input", "ones", *asked, "--output", output).lines  # noqa: B018
        manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["seed"] == seed
        assert [row["name"] for row in manifest["operators"] if row["random"]] == ["noise"]
        drawn.append(np.load(output / "ops" / "001_torch.rand_like__n.npy").tolist())
    assert drawn[0] == drawn[1] == drawn[3] != drawn[2] == drawn[4]


@pytest.mark.parametrize("limit", ["0", "200kB", "0.1 MiB", "none"])
def test_a_memory_limit_changes_nothing(run, digits, tmp_path, limit):
    arguments = ("dump", digits, "--input", digits / "digit_3.png", "--backend", "numpy",
                 "--sha256")  # fmt: skip
    rows = {}
    for name, options in {"free": (), "tight": ("--memory-limit", limit)}.items():
        run(*arguments, *options, "--output", tmp_path / name).lines  # noqa: B018
        manifest = json.loads((tmp_path / name / "manifest.json").read_text(encoding="utf-8"))
        rows[name] = manifest["operands"]
    assert rows["tight"] == rows["free"]
    assert all(row["sha256"] for row in rows["free"])
