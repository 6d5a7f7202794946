"""What can be opened as a reference, and what is refused."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

import engine
from engine.array_files import write_safetensors
from engine.comparison.fingerprints import FingerprintIndex
from engine.comparison.references.opening import open_data
from engine.dump import DumpOptions
from engine.errors import DumpFileError, EngineError, ReferenceFileError


@pytest.fixture
def session(make_session):
    made = make_session()
    made.run()
    return made


@pytest.mark.parametrize("kind", ["folder", "npz", "safetensors"])
def test_dumps_of_ours(session, tmp_path, kind):
    name = "dump" if kind == "folder" else f"dump.{kind}"
    engine.write_dump(session, tmp_path / name, DumpOptions(format=kind))
    reference = engine.open_reference(tmp_path / name)
    found = engine.compare(session, reference)
    assert (found.verdict, len(found.rows), found.unmatched.reference) == ("same", 8, ())
    assert {row.matched_by for row in found.rows} <= {"name", "input"}
    assert all(row.measures.max_abs == 0 for row in found.rows)


def test_a_tensor_that_its_name_tells_is_read_once(session, tmp_path):
    engine.write_dump(session, tmp_path / "dump")
    reference, read = engine.open_reference(tmp_path / "dump"), []

    def note(load, key):
        read.append(key)
        return load()

    for tensor in reference.tensors:
        object.__setattr__(tensor, "load", partial(note, tensor.load, tensor.key))
    found = engine.compare(session, reference)
    assert sorted(read) == sorted(row.reference for row in found.rows)


@pytest.mark.parametrize("name", ["a.npy", "all.safetensors"])
def test_what_its_description_says_and_its_elements_do_not(tmp_path, name):
    """A file that loses its elements while it is compared."""
    kept, lost = np.ones((1, 8), np.float32), np.arange(8, dtype=np.float32)
    if name == "a.npy":
        np.save(tmp_path / "a.npy", lost)
        np.save(tmp_path / "b.npy", kept)
        reference = engine.open_reference(tmp_path)
    else:
        write_safetensors(tmp_path / name, {"b": kept, "a": lost})
        reference = engine.open_reference(tmp_path / name)
    index = FingerprintIndex(reference)
    assert index.shapes == {"a": (8,), "b": (1, 8)}
    with (tmp_path / name).open("r+b") as file:
        file.truncate((tmp_path / name).stat().st_size - 4)
    assert [each.key for each in index.similar(kept, 0.0)] == ["b"]
    assert index.similar(lost, 0.0) == []
    assert [*index.unreadable] == ["a"]
    assert not index.equal("a", "b")
    assert (index.copies("a"), index.copies("b")) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("values", "integers"),
    [
        ([0, 3, 7], True),
        ([[1, 2], [70_000, 0]], True),
        ([0, 0, 0], False),  # zeros are zeros in either reading
        ([0, 3, 1 << 23], False),  # 1.2e-38, the least normal number
        ([*range(1, 500), 1 << 30], False),  # 2.0, not among those that are looked at first
    ],
)
def test_integers_in_the_bits_of_float32(tmp_path, values, integers):
    """As ncnn keeps indices."""
    bits = np.int32(values)
    np.save(tmp_path / "index.npy", bits.view(np.float32))
    array = engine.open_reference(tmp_path).array("index")
    assert array.dtype == (np.int32 if integers else np.float32)
    np.testing.assert_array_equal(array, bits if integers else bits.view(np.float32))


def test_a_dump_names_the_fault(session, make_session, tmp_path):
    engine.write_dump(session, tmp_path / "dump")
    found = engine.compare(make_session({"nn.ReLU act": "nn.Tanh act"}), tmp_path / "dump")
    assert [origin.operator.name for origin in found.origins] == ["act"]


def test_a_model_that_runs_as_a_reference_can_be_ended(session):
    told = []

    def progress(done, total):
        told.append((done, total))
        if done == 3:
            raise KeyboardInterrupt

    fed = [session.value(operand.name) for operand in session.graph.input_operands]
    with pytest.raises(KeyboardInterrupt):
        engine.open_reference(session.graph.source_path, fed, progress=progress)
    total = len(session.graph.operators)
    assert told == [(1, total), (2, total), (3, total)]


def test_measuring_can_be_ended_at_each_row(session, tmp_path):
    engine.write_dump(session, tmp_path / "dump")
    total = len(session.graph.operators)
    told = []
    found = engine.compare(session, tmp_path / "dump", progress=lambda *done: told.append(done))
    assert told.count((total, total)) >= len(found.rows)  # behind those of the alignment


def test_arrays_in_a_folder(session, tensors, tmp_path):
    """Named by the order, as scripts do."""
    for index, array in enumerate(tensors.values()):
        np.save(tmp_path / f"{index}_layer.npy", array)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    reference = engine.open_reference(tmp_path)
    assert [tensor.key for tensor in reference.tensors][:2] == ["0_layer", "1_layer"]
    assert engine.compare(session, reference).verdict == "same"


def test_lines_of_numbers(session, tensors, tmp_path):
    """A row a line, channel after channel, as KuiperInfer's tests have them."""
    np.savetxt(tmp_path / "conv.csv", tensors["1"].reshape(-1, 8), delimiter=",")
    np.savetxt(tmp_path / "7.csv", tensors["7"], delimiter=" ")
    found = engine.compare(session, tmp_path)
    assert found.verdict == "same"
    assert {row.operand for row in found.rows} >= {"1", "7"}
    (tmp_path / "conv.csv").write_text("1,2\n3\n", encoding="ascii")
    reference = engine.open_reference(tmp_path)
    assert "different numbers of columns" in FingerprintIndex(reference).unreadable["conv"]
    (tmp_path / "conv.csv").write_text("1,two\n", encoding="ascii")
    assert "does not hold only numbers" in FingerprintIndex(reference).unreadable["conv"]


def test_keys_that_are_names_of_operators(session, tensors, tmp_path):
    names = {"conv": "1", "act": "2", "last": "5", "fc": "7"}
    np.savez(tmp_path / "torch.npz", **{name: tensors[key] for name, key in names.items()})
    found = engine.compare(session, tmp_path / "torch.npz")
    rows = {row.operand: row for row in found.rows}
    assert {rows[key].reference for key in names.values()} == set(names)
    assert {rows[key].matched_by for key in names.values()} == {"name"}


def make_chain(make_pair, channels):
    """Activations named by their places, as those of a Sequential are."""
    given = f"(1,{channels},6)f32"
    types = ("nn.Tanh", "nn.ReLU", "F.softsign", "nn.Sigmoid", "nn.Hardswish")
    lines = [
        f"{each} {n} 1 1 {n} {n + 1} #{n + 1}=(1,2,6)f32" for n, each in enumerate(types, 1)
    ]
    return make_pair(
        f"pnnx.Input in 0 1 0 #0={given}",
        f"Tensor.slice 0 1 1 0 1 dim=1 end=2 start=0 step=1 #0={given} #1=(1,2,6)f32",
        *lines,
        "pnnx.Output out 1 0 6",
    )


@pytest.mark.parametrize("channels", [2, 3])
def test_keys_that_are_names_of_operators_and_of_operands(make_pair, tmp_path, channels):
    """The place of a layer in a Sequential is also the name of the operand before it."""
    session = engine.Session(engine.load(make_chain(make_pair, channels)))
    x = np.random.default_rng(0).normal(size=(1, channels, 6)).astype(np.float32)
    session.feed([x])
    session.run()
    by_operand = {str(n): session.value(str(n)) for n in range(7)}
    by_operator = {str(n): by_operand[str(n + 1)] for n in range(6)}
    for arrays in (by_operand, by_operator):
        np.savez(tmp_path / "theirs.npz", **arrays)
        found = engine.compare(session, tmp_path / "theirs.npz")
        assert found.verdict == "same"
        assert {row.matched_by for row in found.rows if row.operand != "0"} == {"name"}


def test_safetensors_agree_with_the_original_library(session, tensors, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file({f"t{k}": v for k, v in tensors.items()}, tmp_path / "a.safetensors")
    assert engine.compare(session, tmp_path / "a.safetensors").verdict == "same"


def recording(folder, **changes):
    (folder / "tensors").mkdir(parents=True)
    np.save(folder / "tensors" / "a.npy", np.zeros(3, np.float32))
    table = {
        "schema": "kuiper-studio-recording", "version": 1, "inputs": [], "outputs": [],
        "operators": [], "tensors": [{"key": "a", "file": "tensors/a.npy", "names": []}],
        **changes,
    }  # fmt: skip
    (folder / "recording.json").write_text(json.dumps(table), encoding="utf-8")
    return folder


def tensor(file):
    return [{"key": "a", "file": file, "names": []}]


@pytest.mark.parametrize(
    "changes",
    [
        {"tensors": tensor("../a.npy")},
        {"tensors": tensor("/etc/passwd")},
        {"tensors": tensor("tensors/../../a.npy")},
        {"tensors": tensor("tensors/.hidden.npy")},
        {"tensors": tensor(7)},
        {"tensors": "a"},
        {"tensors": []},
        {"tensors": [*tensor("tensors/a.npy"), *tensor("tensors/a.npy")]},
        {"operators": [{"name": "x"}]},
        {"operators": [{"name": "x", "type": "y", "inputs": [], "outputs": [],
                        "weights": {"w": {"float32": "zz", "float16": ""}}}]},
        {"inputs": {"a": 1}},
        {"schema": "another"},
    ],
)  # fmt: skip
def test_hostile_recordings_are_refused(tmp_path, changes):
    with pytest.raises(ReferenceFileError, match="recording"):
        engine.open_reference(recording(tmp_path / "r", **changes))


def test_a_folder_with_a_file_to_convert_is_a_model(tmp_path):
    """Unless it has arrays, too."""
    (tmp_path / "net.onnx").touch()
    assert open_data(tmp_path) is None
    np.save(tmp_path / "a.npy", np.zeros(3))
    assert [each.key for each in open_data(tmp_path).tensors] == ["a"]


def test_a_recording_is_opened(tmp_path):
    reference = engine.open_reference(recording(tmp_path / "r"))
    assert [t.key for t in reference.tensors] == ["a"]
    assert engine.open_reference(tmp_path / "r" / "recording.json").title == "r"


def test_a_recorded_file_that_contradicts_its_manifest_is_refused(tmp_path):
    reference = engine.open_reference(recording(tmp_path / "r"))
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': "
    (tmp_path / "r" / "tensors" / "a.npy").write_bytes(header + b"(99999999999,), }   \n")
    assert "a.npy" in FingerprintIndex(reference).unreadable["a"]


@pytest.mark.parametrize("depth", [3, 100_000])
def test_deep_or_truncated_json_is_refused(tmp_path, depth):
    folder = recording(tmp_path / "r")
    (folder / "recording.json").write_text("[" * depth, encoding="utf-8")
    with pytest.raises(ReferenceFileError, match="damaged"):
        engine.open_reference(folder)


def test_hostile_manifests_of_dumps(session, tmp_path):
    engine.write_dump(session, tmp_path / "dump")
    file = tmp_path / "dump" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    for row in manifest["operands"]:
        row["file"] = "ops/../../../etc/passwd.npy"
    file.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ReferenceFileError, match="not a file of a dump"):
        engine.open_reference(tmp_path / "dump")
    file.write_text(json.dumps({"schema": "kuiper-studio-dump", "operands": 3}), "utf-8")
    with pytest.raises(ReferenceFileError, match="lists no operands"):
        engine.open_reference(tmp_path / "dump")
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(DumpFileError, match="not a dump"):
        engine.open_reference(tmp_path / "dump")


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 1 << 60]}},
        {"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F99", "shape": [4], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F32", "shape": [-4], "data_offsets": [0, -16]}},
        {"a": {"dtype": ["F32"], "shape": [4], "data_offsets": [0, 16]}},
        {"a": 7},
        [],
    ],
)
def test_hostile_safetensors_are_refused(tmp_path, header):
    text = json.dumps(header).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(16))
    with pytest.raises(ReferenceFileError):
        engine.open_reference(path)


def test_other_files_are_no_references(tmp_path, make_session):
    with pytest.raises(ReferenceFileError, match="no such file"):
        engine.open_reference(tmp_path / "a.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReferenceFileError, match=r"has no \.npy"):
        engine.open_reference(tmp_path / "empty")
    with pytest.raises(EngineError):
        engine.open_reference(tmp_path / "nothing")
    with pytest.raises(ReferenceFileError, match="inputs"):
        engine.open_reference(make_session().graph)


def test_one_look_keeps_nothing_that_is_quick_to_read_again(tmp_path):
    (tmp_path / "folder").mkdir()
    first, second = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)
    np.save(tmp_path / "folder" / "a.npy", first)
    np.savez(tmp_path / "a.npz", a=first)
    folder = engine.open_reference(tmp_path / "folder")
    archive = engine.open_reference(tmp_path / "a.npz")
    assert folder.read("a").tolist() == archive.read("a").tolist() == [1.0, 2.0]
    np.save(tmp_path / "folder" / "a.npy", second)
    (tmp_path / "a.npz").unlink()
    assert folder.read("a").tolist() == [3.0, 4.0]
    assert archive.read("a").tolist() == [1.0, 2.0]  # unpacking it again would take long
    assert folder.array("a").tolist() == [3.0, 4.0]
    (tmp_path / "folder" / "a.npy").unlink()
    assert folder.array("a").tolist() == folder.read("a").tolist() == [3.0, 4.0]
