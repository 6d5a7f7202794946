"""What a file is, and what it says of its inputs, without trusting it."""

from __future__ import annotations

import io
import os
import pickle
import zipfile

import pytest

import engine
from engine.conversion.inspection import inspect
from engine.errors import ConversionError, ModelFileError


def test_traced_torchscript_has_its_sizes(data):
    found = inspect(data / "traced.pt")
    assert (found.kind, found.has_shapes, found.is_traced) == ("torchscript", True, True)
    assert [given.name for given in found.inputs] == ["image"]


def test_torchscript_of_an_older_pytorch_does_not(data):
    found = inspect(data / "no_sizes.pt")
    assert (found.has_shapes, found.is_traced) == (False, False)
    assert [(given.name, given.shape) for given in found.inputs] == [("image", None)]


def test_onnx_has_names_shapes_and_dtypes(data):
    found = inspect(data / "small.onnx")
    assert (found.kind, found.has_shapes, found.files) == (
        "onnx", True, (data / "small.onnx",),
    )  # fmt: skip
    assert [tuple(given) for given in found.inputs] == [("image", (1, 3, 8, 8), "f32")]


def test_open_dimensions_of_onnx_are_symbols(data):
    found = inspect(data / "open.onnx")
    assert not found.has_shapes
    assert [tuple(given) for given in found.inputs] == [
        ("image", ("%batch", 3, "%h", "%w"), "f32")
    ]


class _Harm:
    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return os.mkdir, (self.place,)


def _pickled(path, content, *, zipped=True):
    data = pickle.dumps(content, protocol=2)
    if not zipped:
        path.write_bytes(data)
        return path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", data)
        archive.writestr("model/data/0", b"\0" * 16)
        archive.writestr("model/version", "3")
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_is_named_and_not_executed(tmp_path, zipped):
    harmed = tmp_path / "harmed"
    path = _pickled(tmp_path / "model.pt", _Harm(harmed), zipped=zipped)
    with pytest.raises(
        ConversionError, match=r"state_dict or a pickled module.*torch\.jit\.trace"
    ):
        inspect(path)
    assert not harmed.exists()


def test_the_pickle_of_torchscript_is_not_executed_either(tmp_path):
    harmed, path = tmp_path / "harmed", tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/constants.pkl", b"")
        archive.writestr("model/code/os.py", "class mkdir(Module):\n  def forward(self): pass")
        archive.writestr("model/data.pkl", pickle.dumps(_Harm(harmed), protocol=2))
    assert inspect(path).inputs == ()
    assert not harmed.exists()


def _reason_of(path):
    """Why a file is refused; "" where it is not."""
    try:
        inspect(path)
    except ConversionError as exc:
        return str(exc)
    return ""


def test_every_truncated_torchscript_is_refused_in_a_sentence(data, tmp_path):
    whole, path = (data / "traced.pt").read_bytes(), tmp_path / "model.pt"
    for length in range(0, len(whole) - 1, 71):
        path.write_bytes(whole[:length])
        assert "copy or export it again" in _reason_of(path)


def test_every_truncated_onnx_file_is_refused_in_a_sentence(data, tmp_path):
    # The graph is one field, with which the file ends but for the opset.
    whole, path = (data / "small.onnx").read_bytes(), tmp_path / "model.onnx"
    for length in range(0, len(whole) - 16, 7):
        path.write_bytes(whole[:length])
        assert "copy or export it again" in _reason_of(path)


@pytest.mark.parametrize("name", ["traced.pt", "small.onnx"])
def test_bytes_changed_at_random_never_raise_anything_else(data, tmp_path, random_bytes, name):
    path = tmp_path / name
    for changed in random_bytes((data / name).read_bytes(), 150):
        path.write_bytes(changed)
        assert "\n" not in _reason_of(path)


@pytest.fixture
def random_bytes():
    import random

    def make(whole, count):
        draw = random.Random(3)
        for _ in range(count):
            changed = bytearray(whole)
            for _ in range(draw.randint(1, 8)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            yield bytes(changed)

    return make


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "model.pt", "not TorchScript"),
        (b"hello, world", "model.pt", "not TorchScript"),
        (b"\xff" * 50, "model.onnx", "not an ONNX model"),
        (b"", "model.onnx", "not an ONNX model"),
    ],
)
def test_anything_else_is_refused(tmp_path, content, name, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConversionError, match=words):
        inspect(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html><body>404</body></html>", "a web page .* download"),
        (b'\x18\0\0\0\0\0\0\0{"a":{"dtype":"F32"}}', "safetensors, which has weights but"),
        (b"GGUF\3\0\0\0", "GGUF, which has weights but no graph"),
        (b"\x89HDF\r\n\x1a\n", "HDF5.* export the model to ONNX"),
        (b"\x1c\0\0\0TFL3", "TensorFlow Lite; export the model to ONNX"),
        (b"\x1f\x8b\x08\0", "compressed by gzip; unpack"),
    ],
)
@pytest.mark.parametrize("name", ["model.pt", "model.onnx", "model.other"])
def test_files_of_other_programs_are_recognised(tmp_path, content, words, name):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=words):
        engine.load(path)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("m/archive_format", "m/models/model.json", "m/data/weights/w"), "by torch.export"),
        (("serialized_exported_program.json", "version"), "by torch.export"),
        (("archive/data.pkl", "archive/data/0"), "state_dict or a pickled module"),
    ],
)
@pytest.mark.parametrize("name", ["model.pt", "model.pt2", "model.ckpt"])
def test_archives_of_pytorch_are_recognised(tmp_path, files, words, name):
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.writestr(file, b"content")
    with pytest.raises(ModelFileError, match=words):
        engine.load(path)


def test_torchscript_under_another_suffix_is_named(data, tmp_path):
    path = tmp_path / "model.zip"
    path.write_bytes((data / "traced.pt").read_bytes())
    with pytest.raises(ModelFileError, match="rename it to"):
        engine.load(path)


def test_onnx_under_the_suffix_of_torchscript_is_onnx(data, tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes((data / "small.onnx").read_bytes())
    assert inspect(path).kind == "onnx"


def test_a_file_of_zeros_is_refused_at_once(tmp_path):
    path = tmp_path / "model.onnx"
    path.touch()
    os.truncate(path, 1 << 36)  # takes no place on the disk
    with pytest.raises(ConversionError, match="not an ONNX model"):
        inspect(path)


def test_a_zip_of_something_else(tmp_path):
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("letter.txt", "hello")
    with pytest.raises(ConversionError, match="not TorchScript"):
        inspect(path)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(ConversionError, match="no such file"):
        inspect(tmp_path / "gone.pt")
    (tmp_path / "folder.pt").mkdir()
    with pytest.raises(ConversionError, match="not a file"):
        inspect(tmp_path / "folder.pt")
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(ConversionError, match="not a file"):
        inspect(tmp_path / "pipe.onnx")
    for name in ("x" * 300, "nul\0byte"):
        with pytest.raises(ConversionError, match="no such file"):
            inspect(tmp_path / f"{name}.onnx")


# Protobuf by hand: a field is its number and wire type, and a length for bytes.


def _varint(value):
    out = io.BytesIO()
    while True:
        value, low = value >> 7, value & 0x7F
        out.write(bytes([low | (0x80 if value else 0)]))
        if not value:
            return out.getvalue()


def _bytes(number, content):
    content = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _weight(name, location):
    entry = _bytes(1, "location") + _bytes(2, location)
    return _bytes(5, _bytes(8, name) + _bytes(13, entry))


def test_weights_are_no_inputs_and_may_be_external(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "w.data").write_bytes(b"1234")
    shape = _bytes(1, _varint(1 << 3) + _varint(5)) + _bytes(1, b"")
    kind = _bytes(1, _varint(1 << 3) + _varint(7) + _bytes(2, shape))
    graph = (
        _bytes(11, _bytes(1, "x") + _bytes(2, kind))
        + _bytes(11, _bytes(1, "w"))
        + _weight("w", "deep/w.data")
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(_bytes(7, graph))
    found = inspect(path)
    assert [tuple(given) for given in found.inputs] == [("x", (5, None), "i64")]
    assert found.files == (path, tmp_path / "deep" / "w.data")


@pytest.mark.parametrize("location", ["../w", "/etc/passwd", "a/../../w", "", "link/w"])
def test_weights_outside_of_the_folder_are_refused(tmp_path, location):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "w").write_bytes(b"1234")
    (tmp_path / "w").write_bytes(b"1234")
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    path = folder / "model.onnx"
    path.write_bytes(_bytes(7, _weight("w", location)))
    with pytest.raises(ConversionError, match="outside of its folder"):
        inspect(path)


def test_missing_external_weights_are_named(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(_bytes(7, _weight("w", "model.onnx.data")))
    with pytest.raises(ConversionError, match=r"'model\.onnx\.data', which is missing"):
        inspect(path)
