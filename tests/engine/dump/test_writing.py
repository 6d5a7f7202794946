"""Dumps: what is in them, and that nothing is left of one that failed."""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import re
import struct
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from PIL import Image

import engine
from engine.dump import FORMATS, DumpOptions, write_arrays, write_dump
from engine.dump import writing as writing_module
from engine.errors import (
    DumpExistsError,
    ExportCancelledError,
    ExportError,
    InferenceError,
    UnknownNameError,
)
from engine.layers import unload_layers
from engine.session import Session

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE_NAMES = [
    "../../x",
    "..",
    "/etc/passwd",
    "CON",
    "con",
    "Con",
    "aux.weight",
    "n" * 300,
    "n" * 299 + "m",
    ".hidden",
    "-rf",
    "größe",
    "日本語",
    "a\\b:c*d?e",
    "+1+1",
    "__metadata__",
    "\x1b[31mred",
    "x_0",
]


def strict_json(text: str) -> Any:
    """Parse JSON as other languages do, which know neither NaN nor Infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def manifest_of(folder: Path) -> dict[str, Any]:
    return strict_json((folder / "manifest.json").read_text(encoding="utf-8"))


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def directory_in(path: Path) -> bytes:
    """The directory at the end of an archive, which its last record points at."""
    data = path.read_bytes()
    size, start = struct.unpack_from("<2L", data, data.rindex(b"PK\5\6") + 12)
    if start == 0xFFFFFFFF:
        size, start = struct.unpack_from("<2Q", data, data.rindex(b"PK\6\6") + 40)
    return data[start : start + size]


def dump(session: Session, path: Path, **options: Any) -> Path:
    return write_dump(session, path, DumpOptions(**options))


# What is in a dump


def test_layout_of_a_folder(digits, tmp_path):
    write_dump(digits, tmp_path / "d", DumpOptions(operators=("pool", "conv*_0"), weights=True))
    assert names_in(tmp_path / "d") == [
        "inputs",
        "inputs/000__0.npy",
        "manifest.json",
        "ops",
        "ops/001_nn.Conv2d__1.npy",
        "ops/020_nn.AdaptiveAvgPool2d__20.npy",
        "summary.csv",
        "weights",
        "weights/convbn2d_0.bias.npy",
        "weights/convbn2d_0.weight.npy",
    ]


def test_arrays_are_those_of_the_session(digits, tmp_path):
    write_dump(digits, tmp_path / "d", DumpOptions(weights=True, sha256=True))
    manifest = manifest_of(tmp_path / "d")
    assert len(manifest["operands"]) == 24 + 20
    for row in manifest["operands"]:
        array = np.load(tmp_path / "d" / row["file"], allow_pickle=False)
        if row["role"] == "weights":
            operator, _, key = row["name"].rpartition(".")
            expected = digits.graph.operator(operator).attributes[key].array
        else:
            expected = digits.value(row["name"])
        np.testing.assert_array_equal(array, expected, strict=True)
        assert row["shape"] == list(expected.shape)
        assert row["dtype"] == expected.dtype.name
        assert row["sha256"] == hashlib.sha256(expected.tobytes()).hexdigest()
        assert row["min"] == expected.min()
        assert row["mean"] == pytest.approx(expected.mean(dtype=np.float64), rel=1e-5)
        assert row["std"] == pytest.approx(expected.std(dtype=np.float64), rel=1e-4)
        assert row["zeros"] == (expected == 0).sum()


def test_manifest(digits, tmp_path, samples):
    options = DumpOptions(operators=("convbn2d_0",), sha256=True)
    write_dump(digits, tmp_path / "d", options)
    manifest = manifest_of(tmp_path / "d")
    assert manifest["schema"] == "kuiper-studio-dump"
    assert manifest["version"] == 4
    assert manifest["layers"] == []
    assert manifest["state"] == "finished"
    assert manifest["model"]["source"] == "digits.pnnx.param"
    for kind in ("param", "bin"):
        path = samples / "digits" / f"digits.pnnx.{kind}"
        assert manifest["model"][kind] == path.name
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert manifest["model"][f"{kind}_sha256"] == digest
    assert len(manifest["operators"]) == 25
    conv = manifest["operators"][1]
    assert conv.pop("ms") > 0
    assert conv.pop("backend")
    assert conv.pop("kernel")
    assert conv == {
        "index": 1,
        "name": "convbn2d_0",
        "type": "nn.Conv2d",
        "status": "executed",
        "supplied": {},
        "reason": "",
        "random": False,
        "macs": 16 * 32 * 32 * 9,
        "flops": 2 * 16 * 32 * 32 * 9,
        "params": {
            "bias": True,
            "dilation": [1, 1],
            "groups": 1,
            "in_channels": 1,
            "kernel_size": [3, 3],
            "out_channels": 16,
            "padding": [1, 1],
            "padding_mode": "zeros",
            "stride": [1, 1],
        },
        "inputs": ["0"],
        "outputs": ["1"],
    }
    row = manifest["operands"][1]
    assert row["producer"] == "convbn2d_0"
    assert row["consumers"] == ["stem.2"]
    assert (row["role"], row["kind"], row["layout"]) == ("ops", "tensor", "NCHW")


def test_files_of_layers(tmp_path, make_pair):
    """By name and checksum of what was run, not of what the file has become."""
    model = make_pair(
        "pnnx.Input in 0 1 0 #0=(2)f32", "my.Own own 1 1 0 1", "pnnx.Output out 1 0 1"
    )
    text = (
        "from engine.layers import register\n"
        "@register('my.Own', 'my.Other')\n"
        "def own(input):\n    return input + 1\n"
    )
    (tmp_path / "secret").mkdir()
    path = tmp_path / "secret" / "mine.py"
    path.write_text(text, encoding="utf-8", newline="")
    engine.load_layers(path)
    try:
        session = engine.Session(engine.load(model))
        path.write_text(text.replace("+ 1", "+ 2"), encoding="utf-8", newline="")
        engine.load_layers(path)
    finally:
        unload_layers()
    session.feed([np.zeros(2, np.float32)])
    session.run()
    write_dump(session, tmp_path / "d")
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert manifest_of(tmp_path / "d")["layers"] == [
        {"file": "mine.py", "sha256": digest, "types": ["my.Own", "my.Other"]}
    ]
    assert "secret" not in (tmp_path / "d" / "manifest.json").read_text(encoding="utf-8")


def test_checksums_tell_what_was_computed(digits, tmp_path, samples):
    """Of the inputs and the model; of what was computed only where that is asked for."""
    write_dump(digits, tmp_path / "d")
    manifest = manifest_of(tmp_path / "d")
    fed, *computed = manifest["operands"]
    assert fed["sha256"] == hashlib.sha256(digits.value("0").tobytes()).hexdigest()
    assert {row["sha256"] for row in computed} == {None}
    model = manifest["model"]
    assert model["param_sha256"]
    assert model["bin_sha256"] is None
    directory = directory_in(samples / "digits" / "digits.pnnx.bin")
    assert directory.count(b"PK\1\2") == 20
    assert model["bin_directory_sha256"] == hashlib.sha256(directory).hexdigest()


@pytest.mark.parametrize("format_", ["safetensors", "png"])
def test_checksums_in_other_formats(digits, tmp_path, format_):
    dump(digits, tmp_path / "d", format=format_, operators=("pool",), sha256=True)
    if format_ == "png":
        manifest = manifest_of(tmp_path / "d")
    else:
        with safetensors.safe_open(tmp_path / "d", "np") as opened:
            manifest = strict_json(opened.metadata()["manifest"])
    expected = hashlib.sha256(digits.value("20").tobytes()).hexdigest()
    assert manifest["operands"][-1]["sha256"] == expected


def test_summary(digits, tmp_path):
    write_dump(digits, tmp_path / "d")
    with (tmp_path / "d" / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    pool = rows[20]
    assert (pool["name"], pool["producer"], pool["shape"]) == ("20", "pool", "1x48x1x1")
    assert float(pool["max"]) == pytest.approx(float(digits.value("20").max()))
    assert pool["file"] == "ops/020_nn.AdaptiveAvgPool2d__20.npy"


def test_npz(digits, tmp_path):
    assert dump(digits, tmp_path / "d.npz", format="npz", weights=True) == tmp_path / "d.npz"
    with np.load(tmp_path / "d.npz", allow_pickle=False) as found:
        assert set(found.files) >= {"0", "23", "weights.classifier.weight"}
        assert len(found.files) == 24 + 20
        np.testing.assert_array_equal(found["23"], digits.value("23"), strict=True)


def test_safetensors(digits, tmp_path):
    dump(digits, tmp_path / "d.safetensors", format="safetensors", weights=True)
    found = safetensors.numpy.load_file(tmp_path / "d.safetensors")
    assert len(found) == 24 + 20
    np.testing.assert_array_equal(found["23"], digits.value("23"), strict=True)
    with safetensors.safe_open(tmp_path / "d.safetensors", "np") as opened:
        manifest = strict_json(opened.metadata()["manifest"])
    assert {row["file"] for row in manifest["operands"]} == set(found)


def test_pictures(digits, tmp_path):
    dump(digits, tmp_path / "d", format="png", operators=("pool", "stem.2"))
    files = names_in(tmp_path / "d")
    assert "ops/020_nn.AdaptiveAvgPool2d__20.png" in files
    assert {"manifest.json", "summary.csv"} < set(files)
    with Image.open(tmp_path / "d" / "ops" / "002_nn.ReLU__2.png") as picture:
        assert picture.format == "PNG"
        assert min(picture.size) >= 4 * 32  # 16 channels of 32x32 side by side
    assert not list((tmp_path / "d").rglob("*.npy"))


def test_statistics_only(digits, tmp_path):
    dump(digits, tmp_path / "d", statistics_only=True)
    assert names_in(tmp_path / "d") == ["manifest.json", "summary.csv"]
    rows = manifest_of(tmp_path / "d")["operands"]
    assert rows[5]["file"] == ""
    assert rows[5]["mean"]


def test_equal_sessions_give_equal_dumps(digits, tmp_path):
    for name in ("a", "b"):
        dump(digits, tmp_path / f"{name}.npz", format="npz")
        dump(digits, tmp_path / f"{name}.st", format="safetensors")
        dump(digits, tmp_path / name)
    for one in sorted((tmp_path / "a").rglob("*.*")):
        two = tmp_path / "b" / one.relative_to(tmp_path / "a")
        assert one.read_bytes() == two.read_bytes()
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert (tmp_path / "a.st").read_bytes() == (tmp_path / "b.st").read_bytes()


# Hostile names and odd values


@pytest.mark.parametrize("format_", FORMATS)
def test_hostile_names(session_with, tmp_path, format_):
    values = {name: np.full((2, 2), i, np.float32) for i, name in enumerate(HOSTILE_NAMES)}
    session = session_with(values, operator_type="../..::Op")
    home = tmp_path / "home"
    home.mkdir()
    dump(session, home / "d", format=format_)
    assert [path.name for path in home.iterdir()] == ["d"]
    if format_ == "npz":
        with np.load(home / "d", allow_pickle=False) as loaded:
            found = {int(loaded[name][0, 0]): name for name in loaded.files}
    elif format_ == "safetensors":
        loaded = safetensors.numpy.load_file(home / "d")
        found = {int(array[0, 0]): name for name, array in loaded.items()}
    else:
        manifest = manifest_of(home / "d")
        assert [row["name"] for row in manifest["operands"]] == HOSTILE_NAMES
        found = {i: row["file"] for i, row in enumerate(manifest["operands"])}
        files = [name for name in names_in(home / "d") if "." in name]
        assert set(files) == {"manifest.json", "summary.csv", *found.values()}
        assert all(re.fullmatch(r"ops/[\w.-]{1,84}", n, re.ASCII) for n in found.values())
        assert len({name.lower() for name in found.values()}) == len(HOSTILE_NAMES)
    assert sorted(found) == list(range(len(HOSTILE_NAMES)))


def test_hostile_names_of_weights(make_pair, tmp_path):
    names = ["../w", "CON", "con", "m" * 300]
    weights = {f"{name}.weight": np.full(3, i, np.float32) for i, name in enumerate(names)}
    lines = [f"test.Op {name} 0 1 x{i} @weight=(3)f32" for i, name in enumerate(names)]
    session = Session(engine.load(make_pair(*lines, weights=weights)))
    dump(session, tmp_path / "d", weights=True)
    rows = manifest_of(tmp_path / "d")["operands"]
    for row in rows:
        array = np.load(tmp_path / "d" / row["file"])
        np.testing.assert_array_equal(array, weights[row["name"]])
    assert len({row["file"].lower() for row in rows}) == len(names)


def test_the_summary_holds_no_formulas(session_with, tmp_path):
    session = session_with({"+1+1": np.zeros(2), "@SUM(A1)": -np.ones(2)})
    dump(session, tmp_path / "d")
    with (tmp_path / "d" / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["'+1+1", "'@SUM(A1)"]
    assert rows[1]["min"] == "-1.0"


ODD = {
    "scalar": np.array(1.5, np.float32),
    "empty": np.zeros((0, 4), np.float32),
    "bool": np.array([[True, False]]),
    "half": np.arange(4, dtype=np.float16),
    "single complex": np.array([1 + 2j, 3], np.complex64),
    "nan": np.full(3, np.nan, np.float32),
    "infinite": np.array([np.inf, -np.inf, 1.0], np.float32),
    "long": np.array([1 << 62]),
    "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "read-only broadcast": np.broadcast_to(np.float32(2), (3, 4)),
    "big-endian": np.arange(3, dtype=">f4"),
    "tuple": (np.ones(2, np.float32), (np.zeros(1, np.int32), "inner")),
    "number": 7,
    "truth": True,
    "fraction": float("inf"),
    "word": "mode",
    "nothing": None,
    "no members": (),
}


@pytest.fixture
def odd(session_with) -> Session:
    return session_with({name.replace(" ", "_"): value for name, value in ODD.items()})


@pytest.mark.parametrize("format_", FORMATS)
def test_odd_values(odd, tmp_path, format_):
    dump(odd, tmp_path / "d", format=format_)
    if format_ == "folder":
        loaded = {
            row["name"] + "".join(f"_{i}" for i in row["member"]): np.load(
                tmp_path / "d" / row["file"], allow_pickle=False
            )
            for row in manifest_of(tmp_path / "d")["operands"]
            if row["file"]
        }
    elif format_ == "npz":
        with np.load(tmp_path / "d", allow_pickle=False) as archive:
            loaded = {name: archive[name] for name in archive.files}
    elif format_ == "safetensors":
        loaded = safetensors.numpy.load_file(tmp_path / "d")
    else:
        assert len(list((tmp_path / "d").rglob("*.png"))) == 16
        return
    assert len(loaded) == 16
    for name in ("scalar", "empty", "bool", "half", "nan", "infinite", "turned", "long"):
        np.testing.assert_array_equal(loaded[name], ODD[name], strict=True)
    np.testing.assert_array_equal(loaded["tuple_0"], [1, 1])
    np.testing.assert_array_equal(loaded["tuple_1_0"], [0])
    assert loaded["number"].shape == ()
    assert loaded["big-endian"].dtype.str == "<f4"
    np.testing.assert_array_equal(loaded["big-endian"], [0, 1, 2])


def test_rows_of_odd_values(odd, tmp_path):
    dump(odd, tmp_path / "d", sha256=True)
    rows = {
        row["name"] + "".join(f"_{i}" for i in row["member"]): row
        for row in manifest_of(tmp_path / "d")["operands"]
    }
    picked = ("min", "max", "mean", "std", "zeros", "nan", "pinf", "ninf")
    expected = {
        "nan": [None, None, None, None, 0, 3, 0, 0],
        "infinite": [1.0, 1.0, 1.0, 0.0, 0, 0, 1, 1],
        "empty": [None, None, None, None, 0, 0, 0, 0],
        "bool": [0, 1, 0.5, 0.5, 1, 0, 0, 0],
        "word": [None] * 8,
    }
    assert {name: [rows[name][key] for key in picked] for name in expected} == expected
    assert (rows["word"]["kind"], rows["word"]["value"], rows["word"]["file"]) == (
        "str", "mode", "",
    )  # fmt: skip
    assert (rows["fraction"]["kind"], rows["fraction"]["value"]) == ("float", "inf")
    assert (rows["nothing"]["kind"], rows["no_members"]["value"]) == ("NoneType", [])
    assert rows["tuple_1_1"]["value"] == "inner"
    assert rows["big-endian"]["sha256"] == hashlib.sha256(np.arange(3, dtype="<f4")).hexdigest()
    assert rows["turned"]["sha256"] == hashlib.sha256(ODD["turned"].tobytes()).hexdigest()


def test_parameters_that_json_lacks(make_pair, tmp_path):
    session = Session(engine.load(make_pair("test.Op a 0 1 x low=-inf c=(1.0,inf) s=nan")))
    dump(session, tmp_path / "d")
    assert manifest_of(tmp_path / "d")["operators"][0]["params"]["low"] == "-inf"


def test_a_name_of_a_member_may_be_taken(session_with, tmp_path):
    values = {"x": (np.zeros(1), np.ones(1)), "x_0": np.full(1, 2.0)}
    dump(session_with(values), tmp_path / "d.npz", format="npz")
    with np.load(tmp_path / "d.npz") as found:
        assert sorted(float(found[name][0]) for name in found.files) == [0, 1, 2]


# Runs that did not come to the end


def test_a_session_that_has_not_run(digits, tmp_path):
    dump(Session(digits.graph), tmp_path / "d")
    manifest = manifest_of(tmp_path / "d")
    assert manifest["operands"] == []
    assert {row["status"] for row in manifest["operators"]} == {"pending"}
    assert names_in(tmp_path / "d") == ["manifest.json", "summary.csv"]


def test_a_session_half_way(digits, tmp_path):
    session = Session(digits.graph)
    session.feed([np.zeros((1, 1, 32, 32), np.float32)])
    session.run(until="block2.relu1")
    dump(session, tmp_path / "d.npz", format="npz")
    with np.load(tmp_path / "d.npz") as found:
        assert found.files == [str(i) for i in range(9)]


def test_a_session_that_failed(make_pair, tmp_path):
    param = make_pair(
        "pnnx.Input in 0 1 a #a=(2,3)f32",
        "nn.ReLU relu 1 1 a b",
        "Tensor.reshape bad 1 1 b c shape=(7,7)",
        "pnnx.Output out 1 0 c",
    )
    session = Session(engine.load(param))
    session.feed([np.ones((2, 3), np.float32)])
    with pytest.raises(InferenceError):
        session.run()
    dump(session, tmp_path / "d")
    manifest = manifest_of(tmp_path / "d")
    assert manifest["state"] == "failed"
    assert [row["status"] for row in manifest["operators"]] == [
        "executed", "executed", "failed", "pending",
    ]  # fmt: skip
    assert "'bad' failed on inputs 2×3" in manifest["operators"][2]["reason"]
    assert [row["name"] for row in manifest["operands"]] == ["a", "b"]


def test_operators_that_cannot_run_say_why(make_pair, tmp_path):
    param = make_pair(
        "pnnx.Input in 0 1 a #a=(2,3)f32",
        "my.Own own 1 1 a b",
        "nn.ReLU relu 1 1 b c",
        "pnnx.Output out 1 0 c",
    )
    session = Session(engine.load(param))
    session.feed([np.ones((2, 3), np.float32)])
    session.run()
    dump(session, tmp_path / "d")
    rows = manifest_of(tmp_path / "d")["operators"]
    assert [row["status"] for row in rows[1:]] == ["unsupported", "blocked", "blocked"]
    assert "no layer for operator type my.Own" in rows[1]["reason"]


def test_the_model_may_have_been_moved(samples, tmp_path):
    for kind in ("param", "bin"):
        source = samples / "linear" / f"linear.pnnx.{kind}"
        (tmp_path / source.name).write_bytes(source.read_bytes())
    session = Session(engine.load(tmp_path / "linear.pnnx.param"))
    directory = directory_in(tmp_path / "linear.pnnx.bin")
    for kind in ("param", "bin"):
        (tmp_path / f"linear.pnnx.{kind}").unlink()
    dump(session, tmp_path / "d", sha256=True)
    model = manifest_of(tmp_path / "d")["model"]
    assert model["param_sha256"] is None
    assert model["bin_sha256"] is None
    # which was read when the model was opened
    assert model["bin_directory_sha256"] == hashlib.sha256(directory).hexdigest()


def test_the_model_may_have_been_exported_again(samples, tmp_path):
    """A dump never says that it is of the model that has the files' names by now."""
    for kind in ("param", "bin"):
        source = samples / "linear" / f"linear.pnnx.{kind}"
        (tmp_path / source.name).write_bytes(source.read_bytes())
    session = Session(engine.load(tmp_path / "linear.pnnx.param"))
    dump(session, tmp_path / "before", sha256=True)
    for kind in ("param", "bin"):
        source = samples / "digits" / f"digits.pnnx.{kind}"
        (tmp_path / f"linear.pnnx.{kind}").write_bytes(source.read_bytes())
    dump(session, tmp_path / "after", sha256=True)
    before, after = (manifest_of(tmp_path / name)["model"] for name in ("before", "after"))
    bin_of = samples / "linear" / "linear.pnnx.bin"
    assert before["bin_sha256"] == hashlib.sha256(bin_of.read_bytes()).hexdigest()
    assert before["bin_directory_sha256"] == hashlib.sha256(directory_in(bin_of)).hexdigest()
    assert after == {**before, "param_sha256": None, "bin_sha256": None}


# Nothing half written, whatever happens


def state_of(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("existing", [False, True], ids=["new", "over an earlier dump"])
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (OSError(errno.EIO, "Input/output error"), "input/output error"),
        (MemoryError(), "not enough memory"),
    ],
    ids=["full", "broken", "memory"],
)
def test_a_writer_that_fails_half_way(
    digits, tmp_path, monkeypatch, format_, existing, error, sentence
):
    if existing:
        dump(digits, tmp_path / "d", format=format_, operators=("pool",))
    earlier = state_of(tmp_path)
    count = iter(range(100))

    def failing(*arguments: object, **_: object) -> None:
        if next(count) == 5:
            raise error

    name = {"png": "_write_png", "folder": "write_npy"}.get(format_)
    if name is not None:
        monkeypatch.setattr(writing_module, name, failing)
    else:
        monkeypatch.setattr("engine.array_files.pieces", lambda array: failing() or [])
    with pytest.raises(ExportError) as caught:
        dump(digits, tmp_path / "d", format=format_, overwrite=True)
    assert str(caught.value) == f"{tmp_path / 'd'} was not written: {sentence}"
    assert state_of(tmp_path) == earlier


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("after", [0, 1, 5, 20])
def test_cancelling_at_any_time(digits, tmp_path, format_, after):
    asked = iter(range(1000))
    with pytest.raises(ExportCancelledError) as caught:
        write_dump(
            digits,
            tmp_path / "d",
            DumpOptions(format=format_),
            cancelled=lambda: next(asked) >= after,
        )
    assert str(caught.value) == "the export was cancelled; nothing was written"
    assert list(tmp_path.iterdir()) == []
    assert not [t for t in threading.enumerate() if t.name.startswith("dump")]


def test_cancelling_within_one_large_array(session_with, tmp_path, monkeypatch):
    monkeypatch.setattr("engine.array_files._PIECE", 1 << 10)
    session = session_with({"x": np.zeros(64 << 20, np.uint8)})
    earlier = state_of(tmp_path)
    asked = iter(range(1000))
    with pytest.raises(ExportCancelledError):
        write_dump(session, tmp_path / "d", cancelled=lambda: next(asked) >= 1)
    assert state_of(tmp_path) == earlier


def test_an_interrupt_leaves_nothing(digits, tmp_path):
    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_dump(digits, tmp_path / "d", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format_", ["folder", "npz", "png"])
def test_progress(digits, tmp_path, format_):
    told: list[tuple[int, int]] = []
    threads = set()

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        threads.add(threading.current_thread())

    options = DumpOptions(format=format_, operators=("pool", "stem.2"))
    write_dump(digits, tmp_path / "d", options, progress)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize("most", [0, 1])
@pytest.mark.parametrize("format_", ["folder", "safetensors"])
def test_as_many_threads_as_may_start(digits, tmp_path, monkeypatch, format_, most):
    """With fewer than two the dump is the same, and progress is told all the same."""
    start, started, told = threading.Thread.start, [], []

    def limited(self: threading.Thread) -> None:
        if len(started) >= most:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    dump(digits, tmp_path / "expected", format=format_)
    monkeypatch.setattr(threading.Thread, "start", limited)
    options = DumpOptions(format=format_)
    write_dump(digits, tmp_path / "found", options, lambda *args: told.append(args))
    assert len(started) == most
    assert state_of(tmp_path / "found") == state_of(tmp_path / "expected")
    assert told == sorted(told)
    assert told[-1] == (24, 24)
    assert len(told) == 25


def test_cancelling_where_no_thread_may_start(digits, tmp_path, monkeypatch):
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    asked = iter(range(100))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(ExportCancelledError):
        write_dump(digits, tmp_path / "d", cancelled=lambda: next(asked) > 10)
    assert list(tmp_path.iterdir()) == []


LIMITED = """
import resource, signal, sys
import numpy as np
import engine
from engine.dump import DumpOptions, write_dump
from engine.errors import ExportError
session = engine.Session(engine.load(sys.argv[1]))
session.feed([np.zeros((1, 1, 32, 32), np.float32)])
session.run()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    write_dump(session, sys.argv[2], DumpOptions(format=sys.argv[3]))
except ExportError as exc:
    sys.exit(str(exc))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX")
@pytest.mark.parametrize("format_", ["folder", "npz", "safetensors"])
def test_a_system_that_refuses_to_write_on(samples, tmp_path, format_):
    model = samples / "digits" / "digits.pnnx.param"
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(model), str(tmp_path / "d"), format_],
        capture_output=True,
        text=True,
        check=False,
    )
    expected = f"{tmp_path / 'd'} was not written: the file would exceed the allowed size\n"
    assert (ended.returncode, ended.stderr) == (1, expected)
    assert list(tmp_path.iterdir()) == []


# Refusals


@pytest.fixture
def place(tmp_path, digits, samples) -> Path:
    """A folder with whatever may already be at a destination."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "file.npz").write_text("precious")
    (tmp_path / "like").mkdir()
    (tmp_path / "like" / "manifest.json").write_text('{"schema": "of somebody else"}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("[" * 100_000)
    write_dump(digits, tmp_path / "dump", DumpOptions(operators=("pool",)))
    return tmp_path


LONG = "n" * 300


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        pytest.param("none/d", {}, "{0}/none is not a folder; create it, or choose another one",
                     id="no parent"),
        pytest.param("file/d", {}, "{0}/file is not a folder; create it, or choose another one",
                     id="parent is a file"),
        pytest.param("full", {}, "{0}/full exists and is not a dump; choose a new folder",
                     id="no dump"),
        pytest.param("like", {}, "{0}/like exists and is not a dump; choose a new folder",
                     id="other manifest"),
        pytest.param("broken", {}, "{0}/broken exists and is not a dump; choose a new folder",
                     id="hostile manifest"),
        pytest.param("file", {}, "{0}/file is a file; name a folder for the dump",
                     id="file for a folder"),
        pytest.param("full", {"format": "npz"}, "{0}/full is a folder; name a .npz file",
                     id="folder for a file"),
        pytest.param(".", {}, "{0} is the current folder; name a new one in it", id="here"),
        pytest.param("d", {"format": "zip"}, "there is no dump format 'zip'; choose one of "
                     "folder, npz, safetensors, png", id="format"),
        pytest.param("d", {"format": "npz", "statistics_only": True},
                     "statistics without arrays need the format folder",
                     id="statistics as a file"),
        pytest.param("x.npz", {"format": "safetensors"},
                     "{0}/x.npz ends in .npz, but the format is safetensors; change the name "
                     "or the format",
                     id="suffix of another format"),
        pytest.param(LONG, {}, f"{{0}}/{LONG} was not written: the name is too long",
                     id="long name"),
    ],
)  # fmt: skip
def test_refusals(place, digits, monkeypatch, name, options, sentence, overwrite):
    monkeypatch.chdir(place)
    earlier = state_of(place)
    with pytest.raises(ExportError) as caught:
        dump(digits, place / name, overwrite=overwrite, **options)
    assert str(caught.value) == sentence.format(place)
    assert state_of(place) == earlier


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("dump", {}, "{0} already has a dump; choose another or overwrite it"),
        (
            "file.npz",
            {"format": "npz"},
            "{0} already exists; choose another name or overwrite it",
        ),
    ],
)
def test_overwriting_is_asked_for(place, digits, name, options, sentence):
    with pytest.raises(ExportError) as caught:
        dump(digits, place / name, **options)
    assert str(caught.value) == sentence.format(place / name)
    dump(digits, place / name, overwrite=True, operators=("stem.2",), **options)
    if name == "dump":
        assert "ops/002_nn.ReLU__2.npy" in names_in(place / name)
        assert "ops/020_nn.AdaptiveAvgPool2d__20.npy" not in names_in(place / name)


@pytest.mark.parametrize("name", ["notes.txt", "ops/mine.npy", "deep/er/x", "link"])
def test_a_file_of_the_users_is_not_lost(digits, tmp_path, name):
    """Overwriting is meant for what the dump wrote."""
    dump(digits, tmp_path / "d", operators=("pool",))
    (tmp_path / "far").mkdir()
    own = tmp_path / "d" / name
    own.parent.mkdir(parents=True, exist_ok=True)
    if name == "link":
        own.symlink_to(tmp_path / "far")
    else:
        own.write_text("precious")
    earlier = state_of(tmp_path)
    for overwrite in (False, True):
        with pytest.raises(ExportError) as caught:
            dump(digits, tmp_path / "d", overwrite=overwrite)
        assert str(caught.value) == (
            f"{tmp_path / 'd'} holds {name}, which is no part of the dump there; move it away, "
            "or choose another folder"
        )
    assert state_of(tmp_path) == earlier


def test_a_file_that_the_user_adds_meanwhile_is_not_lost(digits, tmp_path):
    dump(digits, tmp_path / "d", operators=("pool",))

    def progress(done: int, total: int) -> None:
        if done == total:
            (tmp_path / "d" / "notes.txt").write_text("precious")

    with pytest.raises(ExportError, match=r"holds notes\.txt, which is no part of the dump"):
        write_dump(digits, tmp_path / "d", DumpOptions(overwrite=True), progress)
    assert (tmp_path / "d" / "notes.txt").read_text() == "precious"
    assert (tmp_path / "d" / "manifest.json").is_file()


def test_what_a_file_manager_leaves_is_in_nobodys_way(digits, tmp_path):
    dump(digits, tmp_path / "d", operators=("pool",))
    (tmp_path / "d" / ".DS_Store").write_bytes(b"\0")
    dump(digits, tmp_path / "d", operators=("pool",), overwrite=True)
    assert ".DS_Store" not in names_in(tmp_path / "d")


@pytest.mark.parametrize("format_", ["folder", "npz", "safetensors"])
def test_of_two_at_the_same_time_one_succeeds(digits, tmp_path, format_):
    """Neither was asked to overwrite what the other has written."""
    path = tmp_path / f"d.{format_}"
    theirs = []

    def other(done: int, _: int) -> None:
        if done == 0 and not theirs:
            dump(digits, path, format=format_, operators=("pool",))
            theirs.append(path.stat().st_ino)

    with pytest.raises(DumpExistsError, match="choose another"):
        write_dump(digits, path, DumpOptions(format=format_), other)
    assert [path.stat().st_ino] == theirs
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_folder_is_taken(digits, tmp_path):
    (tmp_path / "d").mkdir()
    dump(digits, tmp_path / "d", statistics_only=True)
    assert names_in(tmp_path / "d") == ["manifest.json", "summary.csv"]


@pytest.mark.parametrize("kind", ["param", "bin"])
def test_the_model_is_never_overwritten(samples, tmp_path, kind):
    for suffix in ("param", "bin"):
        source = samples / "linear" / f"linear.pnnx.{suffix}"
        (tmp_path / source.name).write_bytes(source.read_bytes())
    session = Session(engine.load(tmp_path / "linear.pnnx.param"))
    earlier = state_of(tmp_path)
    with pytest.raises(ExportError, match="is the model itself; choose another name"):
        dump(session, tmp_path / f"linear.pnnx.{kind}", format="npz", overwrite=True)
    assert state_of(tmp_path) == earlier


def test_a_disk_that_is_known_to_be_too_small(digits, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})()
    monkeypatch.setattr(writing_module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(
        ExportError, match=r"the dump takes 739\.8 kB and the disk has 1\.0 kB free"
    ):
        dump(digits, tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_a_pattern_without_operators(digits, tmp_path):
    with pytest.raises(UnknownNameError):
        dump(digits, tmp_path / "d", operators=("nothing",))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [np.complex128, np.longdouble])
def test_what_safetensors_cannot_hold(session_with, tmp_path, dtype):
    session = session_with({"a": np.zeros(2, np.float32), "z": np.zeros(2, dtype)})
    earlier = state_of(tmp_path)
    with pytest.raises(ExportError) as caught:
        dump(session, tmp_path / "d", format="safetensors")
    assert str(caught.value) == (
        f"safetensors cannot store 'z' of {np.dtype(dtype)}; choose a folder or .npz"
    )
    assert state_of(tmp_path) == earlier


def test_a_manifest_too_long_for_safetensors(digits, tmp_path, monkeypatch):
    monkeypatch.setattr("engine.array_files._LONGEST_HEADER", 100)
    with pytest.raises(ExportError, match="safetensors cannot store this dump: the header has"):
        dump(digits, tmp_path / "d", format="safetensors")
    assert list(tmp_path.iterdir()) == []


# Arrays without a session


def test_write_arrays(tmp_path):
    write_arrays(tmp_path / "x.npz", {"a": np.arange(3)})
    write_arrays(tmp_path / "x.npz", {"b": np.arange(4)})
    with np.load(tmp_path / "x.npz") as found:
        assert found.files == ["b"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("folder", "{} was not written: it is a folder"),
        ("none/x.npz", "{} was not written: there is no such file or folder"),
    ],
)
def test_write_arrays_refuses(tmp_path, name, sentence):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ExportError) as caught:
        write_arrays(tmp_path / name, {"a": np.arange(3)})
    assert str(caught.value) == sentence.format(tmp_path / name)
    assert names_in(tmp_path) == ["folder"]


def test_seed_and_random_operators(make_pair, tmp_path):
    lines = (
        "pnnx.Input in 0 1 0 #0=(3)f32",
        "torch.rand_like noise 1 1 0 1 dtype=None",
        "F.dropout whole 1 1 1 2 p=0.500000 training=False",
        "F.dropout thinned 1 1 2 3 p=0.500000 training=True",
        "pnnx.Output out 1 0 3",
    )
    session = Session(engine.load(make_pair(*lines)), seed=42)
    session.feed([np.ones(3)])
    session.run(until="thinned")
    write_dump(session, tmp_path / "d")
    manifest = manifest_of(tmp_path / "d")
    assert manifest["seed"] == 42
    random = {row["name"]: row["random"] for row in manifest["operators"]}
    assert random == {"in": False, "noise": True, "whole": False, "thinned": True, "out": False}
